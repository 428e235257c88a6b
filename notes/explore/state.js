// What the reader can set, the presets, and a setting written as the hash of the page's address.
(function (explore) {
  "use strict";

  explore.models = {
    "Llama-3-8B": {width: 4096, mlp: 14336, layers: 32, vocabulary: 128256, N: 32, K: 8, H: 128},
    "Llama-3-70B": {width: 8192, mlp: 28672, layers: 80, vocabulary: 128256, N: 64, K: 8, H: 128},
    "Llama-2-7B": {width: 4096, mlp: 11008, layers: 32, vocabulary: 32000, N: 32, K: 32, H: 128},
  };

  // Where a slider stops. A number field beside it takes any whole number from the first stop to the last.
  explore.stops = {
    S: [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072],
    H: [32, 64, 96, 128, 192, 256],
    N: [1, 2, 4, 8, 16, 32, 64, 128],
    K: [1, 2, 4, 8, 16, 32, 64, 128],
    batch: [1, 2, 4, 8, 12, 16, 24, 32, 48, 59, 60, 64, 80, 96, 128, 148, 160, 192, 256, 296, 320, 384, 512, 768, 1024],
    B_r: [16, 32, 64, 128, 192, 256, 320, 384, 512],
  };
  explore.choices = {
    model: Object.keys(explore.models),
    device: explore.devices.map((device) => device.name),
    arithmetic: Object.keys(explore.format_bytes),
    weights: [4, 2, 1, 0.5],  // bytes
    cache: [4, 2, 1, 0.5],
    pass: ["decode", "speculation", "prefill"],
  };

  const start = {
    model: "Llama-3-8B", device: "H100 SXM", arithmetic: "bf16", weights: 2, cache: 2, pass: "decode",
    S: 8192, H: 128, N: 32, K: 8, batch: 59, B_r: 128,
  };
  // What each changes of `start`.
  explore.presets = {
    llama: {},
    int8_weights: {weights: 1},
    int8: {weights: 1, arithmetic: "int8"},
    prefill: {pass: "prefill", batch: 1, S: 2048},
    speculation: {pass: "speculation", batch: 64, S: 4096},
    lesson05: {device: "RTX 4090", arithmetic: "fp16", S: 4096, batch: 1},
    mha: {model: "Llama-2-7B", device: "A100 80GB SXM", S: 4096, batch: 16, K: 32},
    t4: {device: "T4", arithmetic: "fp16", weights: 0.5, S: 2048, batch: 16},
    long: {model: "Llama-3-70B", device: "H200", weights: 1, S: 131072, N: 64, batch: 1},
  };

  explore.device_named = (name) => explore.devices.find((device) => device.name === name);

  // The nearest setting that makes sense: known names, whole numbers in their range, kv heads that divide the query
  // heads, a format that the device computes in. What is missing or unreadable is taken from `start`.
  explore.valid = function (given) {
    const setting = {};
    for (const [key, choices] of Object.entries(explore.choices)) {
      const chosen = typeof choices[0] === "number" ? Number(given[key]) : given[key];
      setting[key] = choices.includes(chosen) ? chosen : start[key];
    }
    for (const [key, stops] of Object.entries(explore.stops)) {
      const number = Math.round(Number(given[key]));
      setting[key] = number ? Math.min(Math.max(number, stops[0]), stops[stops.length - 1]) : start[key];
    }
    setting.K = Math.min(setting.K, setting.N);
    while (setting.N % setting.K) setting.K -= 1;
    const formats = explore.device_named(setting.device).peaks;
    if (!(setting.arithmetic in formats)) setting.arithmetic = setting.arithmetic === "fp8" ? "int8" : "fp16";
    return setting;
  };
  explore.preset = (name) => explore.valid({...start, ...explore.presets[name]});
  explore.to_hash = (setting) => "#" + new URLSearchParams(setting).toString();
  explore.from_hash = (hash) => explore.valid(Object.fromEntries(new URLSearchParams(hash.replace(/^#/, ""))));
})(globalThis.explore);
