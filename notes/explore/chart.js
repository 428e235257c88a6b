// The roofline: log axes that stay, so that what moves are the roofs and the points. Colours: style.css.
(function (explore) {
  "use strict";
  const X = {from: 0.05, to: 2e5};  // FLOP/byte
  const Y = {from: 8e9, to: 1e16};  // FLOP/s
  const TEXT = 13;                  // height of a label

  function element(name, attributes, ...content) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...content);
    return node;
  }

  // Where each label goes: the best place beside its point, below the roof if it can be. Labels are {x, y, width} of a
  // point; a label gets the place of its box.
  function place_labels(labels, roof_y, area, obstacles) {
    const height = TEXT + 5;
    const overlap = (a, b) =>
      Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left)) *
      Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
    const dots = labels.map(({x, y}) => ({left: x - 7, right: x + 7, top: y - 7, bottom: y + 7}));
    const taken = [...obstacles, ...dots];
    const box_at = (left, top, width) => ({left, top, right: left + width, bottom: top + height});
    for (const label of [...labels].sort((a, b) => b.x - a.x)) {
      let best = null;
      for (let step = 0; step < 14; ++step) {
        for (const left of [label.x + 11, label.x - label.width / 2, label.x - label.width - 11]) {
          const top = label.y + (left === label.x - label.width / 2 ? 11 : -2) + step * 9;
          const box = box_at(left, top, label.width);
          const outside = box.left < area.left || box.right > area.right || box.bottom > area.bottom;
          const above = box.top < roof_y(box.left) + 3;
          const cost = taken.reduce((sum, other) => sum + overlap(box, other), 0) + step * 12 + (above ? 400 : 0) +
            (outside ? 1e5 : 0);
          if (!best || cost < best.cost) best = {...box, cost};
        }
      }
      taken.push(best);
      Object.assign(label, {left: best.left, top: best.top, right: best.right, middle: best.top + height / 2});
    }
  }

  let ruler = null;
  function text_width(text) {
    ruler = ruler || document.createElement("canvas").getContext("2d");
    ruler.font = `600 ${TEXT}px system-ui, sans-serif`;
    return ruler.measureText(text).width;
  }

  // Draws into `svg` at `width` pixels. say: key -> word; number: value -> text in the page's language.
  explore.draw_roofline = function (svg, figures, {width, say, number, names}) {
    const narrow = width < 560;
    const height = narrow ? 290 : 430;
    const area = {left: narrow ? 44 : 56, right: width - 10, top: 12, bottom: height - 40};
    const scale = (range, low, high) => (value) =>
      low + ((Math.log(value) - Math.log(range.from)) / (Math.log(range.to) - Math.log(range.from))) * (high - low);
    const x = scale(X, area.left, area.right);
    const y = scale(Y, area.bottom, area.top);
    const parts = [];
    const add = (...args) => parts.push(element(...args));
    const line = (kind, x1, y1, x2, y2) => add("line", {class: kind, x1, y1, x2, y2});
    const text = (kind, left, top, anchor, content, more = {}) =>
      add("text", {class: kind, x: left, y: top, "text-anchor": anchor, ...more}, content);

    // Decades. Below 0.01 and above 1000 a power says it shorter.
    const power = (exponent) => exponent > 3 || exponent < -2
      ? "10" + String(exponent).replace(/./g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit] || "⁻") : number(10 ** exponent);
    for (let exponent = -1; exponent <= 5; ++exponent) {
      line("grid", x(10 ** exponent), area.top, x(10 ** exponent), area.bottom);
      text("tick", x(10 ** exponent), area.bottom + 16, "middle", power(exponent));
    }
    for (let exponent = -2; exponent <= 4; ++exponent) {
      line("grid", area.left, y(10 ** (exponent + 12)), area.right, y(10 ** (exponent + 12)));
      text("tick", area.left - 6, y(10 ** (exponent + 12)) + 4, "end", power(exponent));
    }
    text("axis", area.right, height - 6, "end", say("x_axis"));
    text("axis", area.left + 6, area.top + 14, "start", say("y_axis"));

    // Roofs. The vector units' is lower and shares the slope.
    const {tensor, vector} = figures;
    const obstacles = [];
    const low = {x: X.from, y: X.from * tensor.bytes_per_s};
    const roof = (machine) => {
      const corner = machine.flop_per_s / machine.bytes_per_s;
      return `M${x(low.x)} ${y(low.y)} L${x(corner)} ${y(machine.flop_per_s)} L${area.right} ${y(machine.flop_per_s)}`;
    };
    add("path", {class: "under", d: `${roof(tensor)} L${area.right} ${area.bottom} L${area.left} ${area.bottom} Z`});
    line("ridge", x(figures.ridge), y(tensor.flop_per_s), x(figures.ridge), area.bottom);
    if (vector.flop_per_s < tensor.flop_per_s) {
      add("path", {class: "roof vector", d: roof(vector)});
      const name = `${narrow ? "" : say("vector_units") + " "}${number(vector.flop_per_s / 1e12)}`;
      const base = y(vector.flop_per_s) + 16;
      text("roof-name", area.right - 4, base, "end", name);
      obstacles.push(
        {left: area.right - 12 - text_width(name), right: area.right, top: base - TEXT, bottom: base + 4});
    }
    add("path", {class: "roof", d: roof(tensor)});
    text("roof-name", area.right - 4, y(tensor.flop_per_s) - 8, "end",
      `P = ${number(tensor.flop_per_s / 1e12)} T${say("flop")}/s`);
    text("roof-name", x(figures.ridge) - 6, area.bottom - 8, "end", `P / W = ${number(figures.ridge)}`);
    const slope = (Math.atan2(y(1e12) - y(1e13), x(10) - x(1)) * -180) / Math.PI;
    const at = {x: x(0.5), y: y(0.5 * tensor.bytes_per_s) - 12};
    text("roof-name", at.x, at.y, "middle", `W = ${number(tensor.bytes_per_s / 1e12)} ${say("TB")}/${say("s")}`,
      {transform: `rotate(${slope} ${at.x} ${at.y})`});

    // Points.
    const roof_y = (pixel) => {
      const value = Math.exp(((pixel - area.left) / (area.right - area.left)) * Math.log(X.to / X.from)) * X.from;
      return y(Math.min(tensor.flop_per_s, value * tensor.bytes_per_s));
    };
    const labels = Object.entries(figures.points).map(([key, point], index) => {
      const label = narrow ? `${index + 1}` : `${index + 1} ${names[key]}`;
      return {key, point, label, x: x(point.intensity), y: y(point.attainable), width: text_width(label) + 4};
    });
    place_labels(labels, roof_y, area, obstacles);
    for (const {key, point, label, x: px, y: py, left, right, middle} of labels) {
      const near = Math.min(Math.max(px, left), right);
      const group = element("g", {
        class: `point ${explore.kinds[key]}`, "data-point": key, tabindex: "0", role: "img",
        "aria-label": `${names[key]}: ${number(point.intensity)} ${say("flop_per_byte")}, ` +
          `${number(point.attainable / 1e12)} T${say("flop")}/s`,
      });
      if (Math.hypot(near - px, middle - py) > 16) {
        group.append(element("line", {class: "leader", x1: px, y1: py, x2: near, y2: middle}));
      }
      group.append(
        element("circle", {class: "target", cx: px, cy: py, r: 16}),
        element("circle", {class: "dot", cx: px, cy: py, r: 6}),
        element("text", {x: (left + right) / 2, y: middle + 4.5, "text-anchor": "middle"}, label));
      parts.push(group);
    }

    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.replaceChildren(...parts);
  };
  // Three colours: matrix product, elementwise, attention.
  explore.kinds = {matmul: "product", add: "elementwise", softmax: "elementwise", naive: "attention",
    flash2: "attention", ideal: "attention", decode: "attention"};
})(globalThis.explore);
