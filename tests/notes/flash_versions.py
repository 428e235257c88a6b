"""Figures of notes/flash_versions.md. The table of 8-bit errors is computed again: some seconds."""
from math import ceil, log2, sqrt
from statistics import median

import fp8_error
from check_notes import given, groups, record, says

P, FP8, SMS = 989e12, 1979e12, 132
FA1, FA2, FA3 = "Dao et al. 2022, figure 2", "Dao 2023", "Shah et al. 2024, "
given("| forward reaches, of the peak | 25 to 40 % of an A100 | 50 to 73 % of an A100, 35 to 37 % of an H100 | 75 % of "
     "an H100 |", source="abstracts and introductions of FlashAttention-2 and 3; figure 5 of 3, 370 TFLOP/s")
given("Batch 1, 32 heads, S = 4096. How many blocks of threads does each of the first two versions have for 108 SMs",
      source="chosen; NVIDIA, A100 datasheet")
given("An H100 with H = 128", source="chosen")

given("(S = 1024, H = 64, A100", source=FA1)
flop, moved, ms = (66.6, 75.2), (40.3, 4.4), (41.7, 7.3)
more, less, faster = flop[1] / flop[0], moved[0] / moved[1], ms[0] / ms[1]
says("| GFLOP | 66.6 | 75.2 | {:.2f} times more |", more)
says("| GB moved | 40.3 | 4.4 | {:.1f} times less |", less)
says("| ms | 41.7 | 7.3 | {:.1f} times less |", faster)
given("2SH + 12 S²H²/M elements a head", source="05_tiled_attention")

H, Bc, S, heads = 128, 64, 4096, 32
a100 = 108
blocks = heads * ceil(S / 128)
says("with batch 1 and 32 heads 32 blocks, {:.0f} % of the 108 SMs", 100 * heads / a100)
says("blocks of 128 queries at S = 4096 it is 32 · {} = {} blocks, {:.1f} for each SM", ceil(S / 128), blocks,
     blocks / a100)
cost = 312 / 19.5
says("An A100 does 312 TFLOP/s of fp16 products and 19.5 TFLOP/s of other fp32 arithmetic, so a FLOP outside the "
     "tensor cores costs as much as {:.0f} inside. For one query and a tile of 64 keys at H = 128:", cost)
products, scores, outputs = 4 * Bc * H, 5 * Bc, (3 * H, H)
outside = [scores + o for o in outputs]
says("| products: 4 · B_c · H | {} | {} |", groups(products), groups(products))
says("5 · B_c | {} | {} |", scores, scores)
says("3H; or one factor, H | {} | {} |", *outputs)
says("| all outside the products | {} | {} |", *outside)
says("| the same, in FLOP of the tensor cores | {} | {} |", *(groups(cost * x) for x in outside))
shares = [100 * cost * x / products for x in outside]
says("| beside the products | {:.0f} % | {:.0f} % |", *shares)
says("with 64 queries and H = 128 these are 4 · 64 · 128 floats, {} bytes through shared memory and a barrier, for a "
     "tile of K and V that has {} bytes in fp16", groups(4 * 64 * H * 4), groups(2 * Bc * H * 2))
given("The paper's result: 50 to 73 % of an A100's peak", source=FA2)
fp16, backward, fp8 = {2: 370, 3: 648}, {2: 322, 3: 561}, 1008
says("the same kernel reaches {} TFLOP/s at best (H = 128, S = 16 384), {:.0f} % of the peak", fp16[2],
     100 * fp16[2] / (P / 1e12))

given("it keeps 24 a thread and each consumer thread gets 240", source=FA3 + "its code: setmaxnreg")
says("128 · (24 + 2 · 240) = {} of the {} of an SM", groups(128 * (24 + 2 * 240)), groups(65536))
exps = SMS * 16 * 1.83e9
says("An SM does 16 of them a clock, so the chip 132 · 16 · 1.83 GHz = {:.1f}e12 a second, and 989 TFLOP/s are {:.0f} "
     "times that", exps / 1e12, P / exps)


def beside(rate, h):
    """Time of the exponentials in that of the products."""
    return rate / exps / (4 * h)


def percent(x):
    return f"{100 * x:.0f}"


assert round(P / exps) == 256
says(r"\frac{{256}}{{4H}} = {}\,\% \text{{ of the time at }} H = 128, \qquad {}\,\% \text{{ at }} H = 64",
     percent(beside(P, 128)), percent(beside(P, 64)))
says("products get at most {} % and {} % of the time", *(percent(1 / (1 + beside(P, h))) for h in (128, 64)))
says("{:.0f} + {:.0f} + {:.0f} of the 240 a thread for 64 × 128 scores and H = 128", 64 * 128 / 128,
     64 * 128 / 128 / 2, 64 * H / 128)
given("| measured by the paper, fp16, H = 128, forward | TFLOP/s |", source=FA3 + "table 2")
given("| without, then with ping-pong, S = 8192 | 570, 620 to 640 |", source=FA3 + "section 3.1")
whole, no_overlap, no_roles = 661, 582, 570
says("| all of it, batch 4, S = 8448, 16 heads | {} |", whole)
says("| without overlap of products and softmax | {} |", no_overlap)
says("| without warp specialisation | {} |", no_roles)
says("| S = 16 384: FlashAttention-2, FlashAttention-3 | {}, {} |", fp16[2], fp16[3])
says("| the same, backward | {}, {} |", backward[2], backward[3])
says("So overlap is worth {:.0f} %, specialisation {:.0f} %, and all together {:.2f} times FlashAttention-2 forward "
     "and {:.2f} times backward", 100 * (whole / no_overlap - 1), 100 * (whole / no_roles - 1), fp16[3] / fp16[2],
     backward[3] / backward[2])
says("740 TFLOP/s, {:.0f} % of the peak", 740e14 / P)

says("In 8 bits the tensor cores of an H100 do {:.0f} TFLOP/s, twice as much", FP8 / 1e12)
says("at H = 128 they now take {} % of the time of the products. Measured, H = 128 and S = 16 384: {} TFLOP/s, {:.2f} "
     "times fp16 and not twice; at H = 256 close to 1.2 PFLOP/s", percent(beside(FP8, 128)), fp8, fp8 / fp16[3])
says("numbers up to {:.0f}, a rounding error of up to 1/{:.0f}, {:.2f} %. bf16 has 1/{}", fp8_error.FORMATS["e4m3"][1],
     2 ** 4, 100 / 2 ** 4, 2 ** 8)
given("its largest element is 448", source="OCP 8-bit floating point specification: e4m3")
says("H · log₂ H additions a row, {:.0f} at H = 128", H * log2(H))
says("{} queries, {} keys, H = {}, blocks of {} rows, {} seeds", fp8_error.QUERIES, fp8_error.KEYS, fp8_error.HEAD_DIM,
     fp8_error.BLOCK, len(fp8_error.SEEDS))
given("a second term of standard deviation 10", source=FA3 + "section 4.3")
error = {(data, name): fp8_error.errors(data, name) for name in fp8_error.FORMATS for data in fp8_error.DATA}
for (data, name), row in error.items():
    says("| " + data + " | " + name + " | {:.4f} | {:.4f} | {:.4f} | {:.4f} | {:.4f} |", *row)
loud, out = error["two loud columns", "e4m3"], error["outliers", "e4m3"]
h = fp8_error.HEAD_DIM
before, after = 2 * 100 ** 2 + h - 2, h * ((2 * 100 + h - 2) / h) ** 2
says("{:.1f} times less error. Σ_h q_h² k_h² is 2 · 100² + {} = {} before and {} · ({} / {})² = {:.0f} after, a "
     "factor of "
     "{:.1f}, so a score's error should fall by the root of it, {:.1f}", loud[0] / loud[2], h - 2, groups(before), h,
     2 * 100 + h - 2, h, after, before / after, sqrt(before / after))
says("happens {:.2f} times in all of this table's "
     "pairs", len(fp8_error.SEEDS) * fp8_error.QUERIES * fp8_error.KEYS * h * 1e-6)
says("Here the rotation takes {:.0f} % away", 100 * (1 - out[2] / out[0]))
says("that of e4m3 spans 2¹⁵ before it loses bits. int8 has none, and gains: {:.4f} to {:.4f}", *error["outliers",
     "int8"][:2])
assert 2 ** 14 < 448 / 2 ** -6 < 2 ** 15
sets = record("fp8_error_seeds.json")  # fp8_error.py --record


def gains(data, way):
    ratios = [one[data][0] / one[data][way] for one in sets]
    return min(ratios), max(ratios)


says("lowers the error {:.1f} to {:.1f} times for loud columns and {:.1f} to {:.1f} times for outliers, block scales "
     "{:.1f} to "
     "{:.1f} and {:.1f} to {:.1f} times", *gains("two loud columns", 2), *gains("outliers", 2),
     *gains("two loud columns", 1),
     *gains("outliers", 1))
rmse = {"standard": 3.2e-4, "fp16": 1.9e-4, "base": 2.4e-2, "fp8": 9.1e-3}
for row in ("fp16, standard attention | 3.2e-4", "fp16, FlashAttention-2 and 3 | 1.9e-4",
    "fp8, one scale a tensor | 2.4e-2",
            "fp8, FlashAttention-3 | 9.1e-3", "fp8, without block scales | 9.3e-3",
            "fp8, without incoherent processing | 2.4e-2"):
    given("| " + row + " |", source=FA3 + "table 3")
says("{:.1f} times less than the baseline", rmse["base"] / rmse["fp8"])
says("the fused kernels are {:.1f} times better", rmse["standard"] / rmse["fp16"])
says("still {:.0f} times worse than fp16", rmse["fp8"] / rmse["fp16"])

given("to 8192 FLOP a clock and SM, and leaves the exponentials at 16: at H = 128",
     source="Zadouri et al. 2026, FlashAttention-4")
assert 8192 / 16 == 4 * 128
given("by more than 8 in the exponent of 2, which the final division makes exact. It reaches 1613 TFLOP/s, 71 % of a "
      "B200",
      source="Zadouri et al. 2026, abstract and section on rescaling")
ladder = record("ladder_h200.json")
rung = next(one for one in ladder["forward"] if one["rung"] == "cuda/03_flash_forward" and one["seqlen"] == 8192
            and one["head_dim"] == 64 and not one["causal"])
rate = rung["flop"] / median(rung["samples_ms"]) / 1e9
peak = ladder["multiply_add"]["flop"] / median(ladder["multiply_add"]["samples_ms"]) / 1e9
says("{:.1f} TFLOP/s on an H200 at S = 8192, H = 64, {:.0f} % of what fp32 multiply-adds reach there", rate,
     100 * rate / peak)

says("{:.2f} times the FLOP, {:.1f} times fewer bytes, {:.1f} times faster. The time follows the bytes, not fully: "
     "{:.0f} TFLOP/s and {:.1f} TB/s are under both of an A100's roofs", more, less, faster, 75.2 / 7.3, 4.4 / 7.3)
says("312 / 19.5 = {:.0f}. Three operations for each element of O and tile are {} of {}, and cost as much as {:.0f} "
     "FLOP of products. One in place of three takes the share from {:.0f} % to {:.0f} %", cost, outputs[0], outside[0],
     cost * outputs[0], *shares)
says("{} and {}. In the first, {} SMs have nothing to do", heads, blocks, a100 - heads)
says("busy {} % of the time at best, in FP8 {} %", *(percent(1 / (1 + beside(rate, 128))) for rate in (P, FP8)))
says("{:.4f} with one scale, {:.4f} with block scales, {:.4f} rotated", *loud[:3])
