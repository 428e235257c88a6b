// The page: what it says in two languages, the controls, the picture and the tables. It fills <div class="explore"> in
// the language of <html lang>.
(function (explore) {
  "use strict";

  const words = explore.words = {
    // [English, Russian]
    presets: ["Settings to begin with", "Готовые настройки"],
    llama: ["Llama-3-8B, H100, 8k", "Llama-3-8B, H100, 8k"],
    int8_weights: ["int8 weights", "веса int8"],
    int8: ["int8 weights and arithmetic", "веса и арифметика int8"],
    prefill: ["prefill of 2048 tokens", "prefill, 2048 токенов"],
    speculation: ["speculation, 64 × (4 + 1)", "спекулятивное декодирование, 64 × (4 + 1)"],
    lesson05: ["lesson 05: M = 51 200", "урок 05: M = 51 200"],
    mha: ["MHA: Llama-2-7B, A100", "MHA: Llama-2-7B, A100"],
    t4: ["T4, int4 weights", "T4, веса int4"],
    long: ["Llama-3-70B, H200, 131k", "Llama-3-70B, H200, 131k"],

    model: ["model", "модель"],
    device: ["device", "устройство"],
    arithmetic: ["arithmetic", "арифметика"],
    weights: ["weights, b_w", "веса, b_w"],
    cache: ["KV cache, b_c", "KV-кэш, b_c"],
    pass: ["pass", "проход"],
    pass_decode: ["decode", "decode"],
    pass_speculation: ["check of γ = 4 drafted", "проверка черновика, γ = 4"],
    pass_prefill: ["prefill of S", "prefill длины S"],
    S: ["S, tokens of a sequence", "S, длина в токенах"],
    H: ["H, width of a head", "H, ширина головы"],
    N: ["N, query heads", "N, голов запросов"],
    K: ["K, kv heads", "K, голов ключей"],
    batch: ["batch, sequences", "батч, последовательностей"],
    B_r: ["B_r, rows of a query block", "B_r, строк в блоке запросов"],
    bytes_4: ["32 bits", "32 бита"],
    bytes_2: ["16 bits", "16 бит"],
    bytes_1: ["8 bits", "8 бит"],
    "bytes_0.5": ["4 bits", "4 бита"],

    roofline: ["Roofline", "Roofline"],
    x_axis: ["intensity, FLOP/byte", "интенсивность, FLOP/байт"],
    y_axis: ["TFLOP/s", "TFLOP/s"],
    flop: ["FLOP", "FLOP"],
    flop_per_byte: ["FLOP/byte", "FLOP/байт"],
    s: ["s", "с"],
    ms: ["ms", "мс"],
    TB: ["TB", "ТБ"],
    GB: ["GB", "ГБ"],
    MB: ["MB", "МБ"],
    kB: ["kB", "кБ"],
    bytes: ["bytes", "байт"],
    GiB: ["GiB", "ГиБ"],
    vector_units: ["vector units, fp32:", "векторные устройства, fp32:"],
    matmul: ["matmul, B tokens", "матмул, B токенов"],
    add: ["vector add", "сложение векторов"],
    softmax: ["softmax", "softmax"],
    naive: ["naive attention", "наивное внимание"],
    flash2: ["FlashAttention-2", "FlashAttention-2"],
    ideal: ["ideal flash", "идеальный flash"],
    decode: ["decode attention", "внимание в decode"],

    point: ["point", "точка"],
    intensity: ["FLOP/byte", "FLOP/байт"],
    attainable: ["at most, TFLOP/s", "не больше, TFLOP/s"],
    share: ["of the roof", "от крыши"],
    bound: ["limited by", "упирается в"],
    memory_bound: ["memory", "память"],
    compute_bound: ["arithmetic", "арифметику"],

    quantity: ["quantity", "величина"],
    value: ["value", "значение"],
    formula: ["formula", "формула"],
    ridge: ["ridge", "порог (ridge)"],
    critical_batch: ["critical batch B*", "критический батч B*"],
    tokens: ["tokens of the pass, B", "токенов в проходе, B"],
    exact_critical_batch: ["B* of the layer with its activations", "B* слоя с учётом активаций"],
    weight_bytes: ["weights", "веса"],
    kv_bytes: ["cache of a token", "кэш одного токена"],
    fit: ["sequences that fit", "помещается последовательностей"],
    step: ["decode step, at least", "шаг decode, не меньше"],
    short_critical_batch: ["B*", "B*"],
    short_fit: ["fit", "помещается"],
    short_step: ["step", "шаг"],
    speed: ["decode, all sequences", "decode, все последовательности"],
    scores: ["score matrices of a layer", "матрицы оценок слоя"],
    naive_traffic: ["elements that a head moves, naive", "трафик головы в элементах, наивное"],
    flash1_traffic: ["… FlashAttention-1", "… FlashAttention-1"],
    flash2_traffic: ["… FlashAttention-2", "… FlashAttention-2"],
    ideal_traffic: ["… ideal", "… идеал"],
    flash1_wins: ["FlashAttention-1 below naive for long S", "FlashAttention-1 меньше наивного при большом S"],
    decode_limit: ["decode attention, long cache", "внимание в decode, длинный кэш"],
    yes: ["yes", "да"],
    no: ["no", "нет"],
    below: ["below B*", "ниже B*"],
    above: ["not below B*", "не ниже B*"],
    too_many: ["the batch does not fit", "батч не помещается"],
    tokens_per_s: ["tokens/s", "токенов/с"],
    link: ["Link to this setting", "Ссылка на эту настройку"],
    symbols: [
      "P, W, C, SRAM: the device's peak, bandwidth, memory and shared memory of an SM. b: bytes of an element in " +
        "the arithmetic's format; M = SRAM / b elements. L, D, F: layers, width and MLP width of the model; n: its " +
        "weights.",
      "P, W, C, SRAM: пик, пропускная способность, память и разделяемая память одного SM устройства. b: байт на " +
        "элемент в формате арифметики; M = SRAM / b элементов. L, D, F: число слоёв, ширина модели и ширина MLP; " +
        "n: число весов.",
    ],
  };

  // Numbers. Three significant digits unless they are whole; groups of three; the comma of Russian. Zeros at the end of
  // a fraction go, but for a computed value (`zeros`), where they say that it was rounded.
  explore.number_writer = function (language) {
    const group = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, "\u202f");
    return function (value, digits = 3, zeros = false) {
      if (!Number.isFinite(value)) return "∞";
      const decimals = value === 0 ? 0 : digits - 1 - Math.floor(Math.log10(Math.abs(value)));
      let text = value.toFixed(Number.isInteger(value) ? 0 : Math.max(0, decimals));
      if (!zeros && text.includes(".")) text = text.replace(/\.?0+$/, "");
      const [whole, fraction] = text.split(".");
      return (whole.length > 4 ? group(whole) : whole) + (fraction ? (language === "ru" ? "," : ".") + fraction : "");
    };
  };

  // The rows of the table of quantities: [word, value, formula, the formula with its numbers].
  explore.quantities = function (setting, f, say, number) {
    const {S, H, N, K, batch, B_r, weights: b_w, cache: b_c} = setting;
    const {b, M, n, D, F, L, B, kv} = f;
    const exponent = (value) => String(value).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
    // 989.4·10¹²: powers of a thousand, as rates and sizes are said. Few digits: the value is computed with all.
    const big = (value) => {
      if (value < 1e6) return number(value, 4);
      const power = 3 * Math.floor(Math.log10(value) / 3);
      return `${number(Number((value / 10 ** power).toPrecision(4)), 4)}·10${exponent(power)}`;
    };
    const bytes = (value) => {
      const units = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [0, "bytes"]];
      const [size, unit] = units.find(([least]) => value >= least);
      return `${number(value / (size || 1))} ${say(unit)}`;
    };
    const P = big(f.tensor.flop_per_s), W = big(f.tensor.bytes_per_s);
    const times = (traffic) =>
      `${number(Math.round(traffic))} (×\u00a0${number(traffic / f.ideal_traffic)})`;
    const tokens = {
      decode: ["batch", `${batch}`],
      speculation: ["batch · (γ + 1)", `${batch} · ${explore.drafted + 1}`],
      prefill: ["batch · S", `${batch} · ${S}`],
    }[setting.pass];
    const fits = batch > f.sequences_that_fit ? ` (${say("too_many")})` : "";
    return [
      ["ridge", `${number(f.ridge, 4)} ${say("flop_per_byte")}`, "P / W", `${P} / ${W}`],
      ["critical_batch", number(f.critical_batch, 4), "P b_w / (2 W)", `${P} · ${number(b_w)} / (2 · ${W})`],
      ["tokens", `${number(B)}, ${say(B < f.critical_batch ? "below" : "above")}`, ...tokens],
      ["exact_critical_batch", number(f.exact_critical_batch, 4), "P/W · b_w D F / (2 D F − P/W · b (D + F))",
        `D = ${D}, F = ${F}`],
      ["weight_bytes", bytes(f.weight_bytes), "n b_w", `${big(n)} · ${number(b_w)}`],
      ["kv_bytes", `${number(kv)} ${say("bytes")}`, "2 L K H b_c", `2 · ${L} · ${K} · ${H} · ${number(b_c)}`],
      ["fit", number(f.sequences_that_fit), "⌊(C − n b_w) / (2 L K H b_c S)⌋",
        f.weight_bytes > f.memory ? `${big(f.memory)} < ${big(f.weight_bytes)}`
          : `(${big(f.memory)} − ${big(f.weight_bytes)}) / ${big(kv * S)}`],
      ["step", `${number(f.decode_step_s * 1e3, 4, true)} ${say("ms")}${fits}`,
        "max(2 n batch / P, (n b_w + batch · 2 L K H b_c S) / W)",
        `max(${number((2 * n * batch / f.tensor.flop_per_s) * 1e3)}, ` +
          `${number(((f.weight_bytes + batch * kv * S) / f.tensor.bytes_per_s) * 1e3, 4, true)}) ${say("ms")}`],
      ["speed", `${number(f.decode_tokens_per_s)} ${say("tokens_per_s")}${fits}`, "batch / max(…)", ""],
      ["scores", `${bytes(f.score_matrix_bytes)} (${number(f.score_matrix_bytes / 2 ** 30)} ${say("GiB")})`,
        "batch · N S² b", `${batch} · ${N} · ${S}² · ${b}`],
      ["naive_traffic", times(f.naive_traffic), "4 S H + 4 S²", ""],
      ["flash1_traffic", times(f.flash1_traffic), "2 S H + 12 S² H² / M", `M = ${number(M)}`],
      ["flash2_traffic", times(f.flash2_traffic), "2 S H (1 + ⌈S / B_r⌉)", `B_r = ${B_r}`],
      ["ideal_traffic", times(f.ideal_traffic), "4 S H", `4 · ${S} · ${H}`],
      ["flash1_wins", say(f.flash1_wins ? "yes" : "no"), "3 H² < M",
        `${number(3 * H * H)} ${f.flash1_wins ? "<" : "≥"} ${number(M)}`],
      ["decode_limit", `${number(f.decode_intensity_limit)} ${say("flop_per_byte")}`, "2 N / (b_c K)",
        `2 · ${N} / (${number(b_c)} · ${K})`],
    ];
  };

  // Nodes of the page. Text like B_r becomes B with an r below.
  function node(name, attributes = {}, ...content) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...content);
    return made;
  }
  const subscripts = (text) =>
    text.split(/_([a-z])\b/).map((part, index) => index % 2 ? node("sub", {}, part) : part);
  let next_id = 0;

  function mount(root) {
    const language = document.documentElement.lang.startsWith("ru") ? "ru" : "en";
    const say = (key) => words[key][language === "ru" ? 1 : 0];
    const number = explore.number_writer(language);
    const names = Object.fromEntries(Object.keys(explore.kinds).map((key) => [key, say(key)]));
    let setting = explore.from_hash(location.hash);
    const refreshers = [];
    const change = (changed) => {
      setting = explore.valid({...setting, ...changed});
      history.replaceState(null, "", explore.to_hash(setting));
      refresh();
    };

    function preset_buttons() {
      const buttons = Object.keys(explore.presets).map((name) => {
        const button = node("button", {type: "button"}, say(name));
        button.addEventListener("click", () => change(explore.preset(name)));
        refreshers.push(() => button.setAttribute("aria-pressed",
          explore.to_hash(setting) === explore.to_hash(explore.preset(name))));
        return button;
      });
      return node("div", {class: "presets", role: "group", "aria-label": say("presets")}, ...buttons);
    }

    function choice(key) {
      const id = `explore-${++next_id}`;
      const select = node("select", {id});
      const named = (value) => key === "pass" ? say(`pass_${value}`)
        : key === "weights" || key === "cache" ? say(`bytes_${value}`) : value;
      for (const value of explore.choices[key]) select.append(node("option", {value}, named(value)));
      select.addEventListener("change", () => change(
        key === "model" ? {model: select.value, ...heads_of(select.value)} : {[key]: select.value}));
      refreshers.push(() => {
        select.value = setting[key];
        if (key !== "arithmetic") return;
        const formats = explore.device_named(setting.device).peaks;
        for (const option of select.options) option.disabled = !(option.value in formats);
      });
      return node("div", {class: "control"}, node("label", {for: id}, ...subscripts(say(key))), select);
    }
    const heads_of = (model) => (({N, K, H}) => ({N, K, H}))(explore.models[model]);

    function slider(key) {
      const id = `explore-${++next_id}`;
      const stops = explore.stops[key];
      const range = node("input", {id, type: "range", min: 0, max: stops.length - 1, step: 1});
      const field = node("input",
        {type: "number", min: stops[0], max: stops[stops.length - 1], "aria-label": say(key)});
      range.addEventListener("input", () => change({[key]: stops[range.value]}));
      field.addEventListener("change", () => change({[key]: field.value}));
      refreshers.push(() => {
        const distance = stops.map((stop) => Math.abs(Math.log(stop / setting[key])));
        range.value = distance.indexOf(Math.min(...distance));
        range.setAttribute("aria-valuetext", String(setting[key]));
        field.value = setting[key];
      });
      return node("div", {class: "control"}, node("label", {for: id}, ...subscripts(say(key))),
        node("div", {class: "slider"}, range, field));
    }

    // A point and its row light up together.
    function link_highlights() {
      const light = (event) => {
        const near = event.target.closest("[data-point]");
        const key = near && near.dataset.point;
        for (const one of root.querySelectorAll("[data-point]")) one.classList.toggle("hot", one.dataset.point === key);
      };
      for (const kind of ["pointerover", "focusin", "click"]) root.addEventListener(kind, light);
    }

    const table = (kind, head) => {
      const body = node("tbody");
      const made = node("table", {class: kind},
        node("thead", {}, node("tr", {}, ...head.map((key) => node("th", {scope: "col"}, say(key))))), body);
      return [node("div", {class: "scroll"}, made), body];
    };
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", say("roofline"));
    const summary = node("p", {class: "summary"});
    const picture = node("div", {class: "picture"}, svg, summary);
    const [points, point_rows] = table("points", ["point", "intensity", "attainable", "share", "bound"]);
    const [quantity_table, quantity_rows] = table("quantities", ["quantity", "value", "formula"]);
    const link = node("a", {}, say("link"));

    function refresh() {
      const figures = explore.figures(setting, explore.device_named(setting.device));
      for (const one of refreshers) one();
      draw(figures);
      point_rows.replaceChildren(...Object.entries(figures.points).map(([key, point], index) =>
        node("tr", {"data-point": key, class: explore.kinds[key]},
          node("th", {scope: "row"}, node("span", {class: "number"}, `${index + 1}`), ` ${names[key]}`),
          node("td", {}, number(point.intensity, 4, true)),
          node("td", {}, number(point.attainable / 1e12, 3, true)),
          node("td", {}, `${number(point.share * 100, 3, true)}\u00a0%`),
          node("td", {}, say(point.compute_bound ? "compute_bound" : "memory_bound")))));
      const quantities = explore.quantities(setting, figures, say, number);
      // The three that the sliders are moved for, in sight of them.
      summary.replaceChildren(...["critical_batch", "fit", "step"].map((key) => node("span", {},
        `${say(`short_${key}`)} `, node("b", {}, quantities.find(([name]) => name === key)[1]))));
      quantity_rows.replaceChildren(...quantities.map(
        ([key, value, formula, filled]) => node("tr", {},
          node("th", {scope: "row"}, ...subscripts(say(key))),
          node("td", {class: "value", "data-quantity": key}, value),
          node("td", {class: "how"}, ...subscripts(formula),
            node("div", {class: "filled"}, ...subscripts(filled))))));
      link.href = explore.to_hash(setting);
    }
    function draw(figures) {
      const width = Math.floor(picture.clientWidth);
      if (width > 0) explore.draw_roofline(svg, figures, {width, say, number, names});
    }

    root.replaceChildren(
      preset_buttons(),
      node("div", {class: "bench"}, picture,
        node("div", {class: "controls choices"},
          ...["model", "device", "pass", "arithmetic", "weights", "cache"].map(choice)),
        node("div", {class: "controls"}, ...["S", "batch", "N", "K", "H", "B_r"].map(slider))),
      points, quantity_table, node("p", {class: "symbols"}, say("symbols")), node("p", {}, link));
    link_highlights();
    refresh();
    new ResizeObserver(() => draw(explore.figures(setting, explore.device_named(setting.device)))).observe(picture);
    addEventListener("hashchange", () => {
      // An anchor of the page is no setting.
      if (!location.hash.includes("=")) return;
      setting = explore.from_hash(location.hash);
      refresh();
    });
  }

  if (typeof document !== "undefined") for (const root of document.querySelectorAll("div.explore")) mount(root);
})(globalThis.explore);
