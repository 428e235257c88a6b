// The formulas of the page, under the contract's names (include/nanolm/: roofline.h, critical_batch.h,
// naive_attention.h, tiled_attention.h, decode_attention.h). tests/meta/explore_test.py compares every number with what
// the reference lessons compute. A classic script, not a module: browsers refuse modules in a page opened as a file.
(function (explore) {
  "use strict";

  // Bytes of an element of what is computed on: activations, Q, K, V, O and scores. tf32 is stored as fp32.
  explore.format_bytes = {fp32: 4, tf32: 4, fp16: 2, bf16: 2, fp8: 1, int8: 1};
  explore.drafted = 4;      // γ, the tokens a sequence that a pass of speculation checks, beside the one after them
  explore.softmax_ops = 5;  // maximum, subtraction, exponential, sum, division: an element of the scores

  // Lesson 01.
  const matmul_cost = (m, n, k, b) => ({flop: 2 * m * n * k, bytes: b * (m * k + k * n + m * n)});
  const binary_cost = (n, b) => ({flop: n, bytes: b * 3 * n});
  const fused_chain_cost = (ops, n, b) => ({flop: ops * n, bytes: b * 2 * n});
  const naive_attention_cost = (S, H, b) => ({flop: 4 * S * S * H, bytes: b * (4 * S * H + 4 * S * S)});
  const flash_attention_cost = (S, H, b) => ({flop: 4 * S * S * H, bytes: b * 4 * S * H});
  const intensity = (cost) => cost.flop / cost.bytes;
  const ridge = (machine) => machine.flop_per_s / machine.bytes_per_s;
  const attainable_flop_per_s = (cost, machine) =>
    Math.min(machine.flop_per_s, intensity(cost) * machine.bytes_per_s);

  // Lesson 02.
  const critical_batch = (machine, b) => (machine.flop_per_s * b) / (2 * machine.bytes_per_s);
  const pass_tokens = {
    decode: (batch) => batch,
    speculation: (batch) => batch * (explore.drafted + 1),
    prefill: (batch, S) => batch * S,
  };
  const kv_cache_bytes_per_token = (L, K, H, b) => 2 * L * K * H * b;
  const sequences_that_fit = (memory, weights, kv, S) =>
    weights > memory ? 0 : Math.floor((memory - weights) / (kv * S));
  // A layer of D inputs and F outputs with its activations: b_w bytes a weight, b an activation.
  const layer_cost = (B, D, F, b_w, b) => ({flop: 2 * B * D * F, bytes: b * B * (D + F) + b_w * D * F});
  function exact_critical_batch(machine, D, F, b_w, b) {
    const gain = 2 * D * F - ridge(machine) * b * (D + F);
    return gain <= 0 ? Infinity : (ridge(machine) * b_w * D * F) / gain;
  }
  const decode_step_time_s = (machine, n, b, batch, cache) =>
    Math.max((2 * n * batch) / machine.flop_per_s, (n * b + batch * cache) / machine.bytes_per_s);

  // Lesson 04.
  const score_matrix_bytes = (batch, N, S, b) => batch * N * S * S * b;

  // Lesson 05: elements a head.
  const naive_traffic = (S, H) => naive_attention_cost(S, H, 1).bytes;
  const ideal_traffic = (S, H) => 4 * S * H;
  const flash1_traffic = (S, H, M) => 2 * S * H + (12 * S * S * H * H) / M;
  const flash2_traffic = (S, H, B_r) => 2 * S * H * (1 + Math.ceil(S / B_r));
  const flash1_wins = (H, M) => 3 * H * H < M;

  // Lesson 07: one new token, K and V of S cached ones in b_c bytes an element, Q and O in b.
  const decode_cost = (N, K, H, S, b, b_c) => ({flop: 4 * N * S * H, bytes: b_c * 2 * K * S * H + b * 2 * N * H});
  const decode_intensity_limit = (N, K, b_c) => (2 * N) / (b_c * K);

  // Weights of a Llama: two tables of embeddings; in a layer the projections of q and o, of k and v, three matrices of
  // the MLP and two norms; a norm at the end. The heads need not fill the width.
  const parameters = (model, N, K, H) =>
    2 * model.vocabulary * model.width +
    model.layers * (2 * model.width * N * H + 2 * model.width * K * H + 3 * model.width * model.mlp +
      2 * model.width) + model.width;

  // Everything that the page shows for a setting (state.js has its keys) on a device (devices.js has its row).
  explore.figures = function (setting, device) {
    const {arithmetic, weights: b_w, cache: b_c, S, H, N, K, batch, B_r} = setting;
    const {width: D, mlp: F, layers: L} = explore.models[setting.model];
    const b = explore.format_bytes[arithmetic];
    const tensor = {flop_per_s: device.peaks[arithmetic], bytes_per_s: device.bytes_per_s};
    const vector = {flop_per_s: device.peaks.fp32, bytes_per_s: device.bytes_per_s};
    const M = device.sram_bytes_sm / b;
    const B = pass_tokens[setting.pass](batch, S);
    const n = parameters(explore.models[setting.model], N, K, H);
    const kv = kv_cache_bytes_per_token(L, K, H, b_c);
    const step = decode_step_time_s(tensor, n, b_w, batch, kv * S);

    // Elementwise work never touches the tensor cores: its roof is the vector units'.
    const point = (cost, machine) => ({
      intensity: intensity(cost),
      attainable: attainable_flop_per_s(cost, machine),
      share: attainable_flop_per_s(cost, machine) / machine.flop_per_s,
      compute_bound: intensity(cost) >= ridge(machine),
      vector: machine === vector,
    });
    const points = {
      matmul: point(layer_cost(B, D, F, b_w, b), tensor),
      add: point(binary_cost(B * D, b), vector),
      softmax: point(fused_chain_cost(explore.softmax_ops, S * S, b), vector),
      naive: point(naive_attention_cost(S, H, b), tensor),
      flash2: point({flop: 4 * S * S * H, bytes: b * flash2_traffic(S, H, B_r)}, tensor),
      ideal: point(flash_attention_cost(S, H, b), tensor),
      decode: point(decode_cost(N, K, H, S, b, b_c), tensor),
    };
    return {
      points, tensor, vector, b, M, B, n, D, F, L, kv,
      memory: device.memory_bytes,
      ridge: ridge(tensor),
      critical_batch: critical_batch(tensor, b_w),
      exact_critical_batch: exact_critical_batch(tensor, D, F, b_w, b),
      weight_bytes: n * b_w,
      sequences_that_fit: sequences_that_fit(device.memory_bytes, n * b_w, kv, S),
      decode_step_s: step,
      decode_tokens_per_s: batch / step,
      score_matrix_bytes: score_matrix_bytes(batch, N, S, b),
      naive_traffic: naive_traffic(S, H),
      flash1_traffic: flash1_traffic(S, H, M),
      flash2_traffic: flash2_traffic(S, H, B_r),
      ideal_traffic: ideal_traffic(S, H),
      flash1_wins: flash1_wins(H, M),
      decode_intensity_limit: decode_intensity_limit(N, K, b_c),
    };
  };
  explore.matmul_cost = matmul_cost;  // what layer_cost is when weights and activations have the same width
})((globalThis.explore = globalThis.explore || {}));
