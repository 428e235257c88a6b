"""The figures of notes/05_tiled_attention.md."""

from math import ceil, exp, log, sqrt
from statistics import median

from check_notes import given, groups, record, says

GiB = 2**30
P, W, b = 989e12, 3.35e12, 2  # include/nanolm/devices.h, H100 SXM, in bf16
S, H, M = 4096, 128, 51200


def naive_traffic(seqlen, head_dim):
    return 4 * seqlen * head_dim + 4 * seqlen**2


def flash1_traffic(seqlen, head_dim, sram_elements):
    return 2 * seqlen * head_dim + 12 * seqlen**2 * head_dim**2 / sram_elements


def flash2_traffic(seqlen, head_dim, block_q):
    return 2 * seqlen * head_dim * (1 + ceil(seqlen / block_q))


def flash2_intensity(block_q):
    return 4 * S * S * H / (b * flash2_traffic(S, H, block_q))


def e(value):
    return "{:.1e}".format(value).replace("e-0", "e-")


n = S // 128
tiles = n * (n + 1) // 2
says("S = 4096, tiles of 128 × 128: how many of the {} tiles", n * n)
product, stored, exps = 2 * S * S * H * 32 / P, 2 * b * 32 * S * S / W, 32 * S * S / (132 * 16 * 1.83e9)  # lesson 06
says("For 32 heads at S = 4096, H = 128 in bf16 the product takes an H100 {:.0f} µs of arithmetic, and the "
     "exponentials as long", product * 1e6)
assert abs(exps / product - 1) < 0.01
says("writing P to main memory and reading it back would take {:.0f} µs", stored * 1e6)
says("hence the factor {:.1f} in FLOP", 5 / 2)
given("FlashAttention-1 has 100 KiB on the chip for its tiles of fp16, H = 128", source="chosen")
given("naive attention at S = 4096: 30, 3, or 1?", source="chosen: a guess, M/H², the answer")
given("A query block of 128 rows stays on the chip", source="chosen")
says("for its scores and values: {:.1f} % with B_c = 64", 100 / (4 * 64))
says("at S = 4096 with tiles of 128, {} of the {} remain", tiles, n * n)
says("here {} of the {}.", n, tiles)
says("2n / (n + 1): {:.2f} at n = {}", 2 * n / (n + 1), n)

bench = record("attention_bench_cpu.json")
core = {run["run_name"].split("/iterations")[0]: run["real_time"] for run in bench["benchmarks"]
        if run.get("aggregate_name") == "median"}
open_, causal = core["tiled/4096"], core["tiled/4096/causal"]
says("at S = 4096 took {:.0f} ms without and {:.0f} ms with it, {:.2f} times", open_, causal, open_ / causal)
ladder = record("ladder_h200.json")
runs = {(run["rung"][5:7], run["seqlen"], run["head_dim"], run["causal"]): run for run in ladder["forward"]}


def ms(rung, seqlen, causal=False):
    return median(runs[rung, seqlen, 64, causal]["samples_ms"])


given("on an H200 (batch 4, 8 heads, H = 64)", source="the record")
says("gains {:.2f} times at S = 4096 and {:.2f} at S = 8192", *(ms("03", s) / ms("03", s, True) for s in (4096, 8192)))
says("{:.2f} against {:.2f} ms.", ms("02", 4096), ms("02", 4096, True))

says("The M of the table, {}, is 100 KiB of fp16", M)
assert M * b == 100 * 1024 < 228 * 1024 / 2
given("less than half of the 228 KiB of an H100's SM", source="include/nanolm/devices.h")
given("| | moves | S = 4096, H = 128 (M = 51200) |", source="chosen")
says("| naive | 4SH + 4S² | {} |", groups(naive_traffic(S, H)))
says("| FlashAttention-1 | 2SH + 12 S²H²/M | {} |", groups(flash1_traffic(S, H, M)))
equal = M // (4 * H)
says("| FlashAttention-2, B_r = {} | 2SH (1 + ceil(S / B_r)) | {} |", equal, groups(flash2_traffic(S, H, equal)))
says("| FlashAttention-2, B_r = 128 | the same | {} |", groups(flash2_traffic(S, H, 128)))
says("| ideal | 4SH | {} |", groups(4 * S * H))
says(r"2SH + \frac{{{} S^2 H^2}}{{M}}", 3 * 4)
says("B_r is M / (4H) = {}. Four tiles of 128 rows are {} elements, more than M; when o lives in registers the other "
     "three are {}", equal, groups(4 * 128 * H), groups(3 * 128 * H))
assert 3 * 128 * H < M < 4 * 128 * H
says("Θ hides the constants: {} on one side", 12)
says(r"\frac{{{} S^2 H^2}}{{M}} < 4 S^2", 12)
says("With M = {} ({} KiB of fp16) and S = 4096", M, M * 2 // 1024)
for head_dim, wins in ((64, "yes"), (128, "barely"), (256, "no")):
    assert (3 * head_dim**2 < M) == (wins != "no")
    gain, textbook = naive_traffic(S, head_dim) / flash1_traffic(S, head_dim, M), M / head_dim**2
    says("| {} | {} | {} | {:.2f} | {:.1f} |", head_dim, 3 * head_dim**2, wins, gain, textbook)

says("where the ridge is {:.0f} FLOP a byte", P / W)
says("the intensity is S/b: {:.0f} at S = 4096. It reaches the ridge at S = {}", S / b, ceil(b * P / W))
says("{:.0f} FLOP a byte at S = 4096 and B_r = 128, still", flash2_intensity(128))
rows = next(block for block in range(1, S) if flash2_intensity(block) >= P / W)
says("B_r would have to be {}, and o alone would fill {:.0f} KB of an SM's {:.0f} KB of registers", rows,
     rows * H * 4 / 1e3, 256 * 1024 / 1e3)
given("an H100's L2 holds 50 MiB", source="include/nanolm/devices.h")
says("K and V of one head are {:.1f} MB", 2 * S * H * b / 1e6)
case = next(c for c in record("ladder_counters_h200.json")["cases"] if c["arguments"] == "4 32 32 4096 4096 64 0")
kernel = case["measured"]["flash_kernel"]
asked, read, once = 32 * kernel["load sectors"], kernel["read"], 3 * 128 * 4096 * 64 * 4
says("rung 03 with {} heads of S = 4096, H = 64 in fp32", 4 * 32)
says("asked for {:.2f} GB, and HBM delivered {:.3f} GB, where Q, K and V once are {:.3f} GB. The other {:.0f} % came",
     asked / 1e9, read / 1e9, once / 1e9, 100 * (1 - read / asked))
says("At {:.0f} FLOP for each byte asked of it the L2 must deliver {:.1f} TB/s", flash2_intensity(128),
     P / flash2_intensity(128) / 1e12)
given("tensor cores of 989 TFLOP/s", source="include/nanolm/devices.h")
says("each tensor moves about once, at {:.0f} FLOP a byte. By the L2's roof it is open at B_r = 128", S / b)
says("whether it delivers {:.1f} TB/s only a measurement says. Larger query blocks lower the demand, to {:.1f} TB/s "
     "with 256 rows", P / flash2_intensity(128) / 1e12, P / flash2_intensity(256) / 1e12)
peak = ladder["multiply_add"]["flop"] / median(ladder["multiply_add"]["samples_ms"])
share = [100 * runs[rung, 4096, 64, False]["flop"] / ms(rung, 4096) / peak for rung in ("02", "03")]
says("the naive rung 02 reaches {:.0f} % of the fp32 peak and rung 03 reaches {:.0f} %", *share)
says("{:.2f} against {:.2f} ms at S = 4096, {:.2f} times", ms("02", 4096), ms("03", 4096),
     ms("02", 4096) / ms("03", 4096))

given("2^{-23}", source="include/nanolm/tiled_attention.h")
says("{} for S = 4096, H = 64 and scores up to 5", e(2**-23 * ((4 + sqrt(64)) * 5 + 2 * sqrt(4096) + 8)))
differences = [c["largest_difference"] for c in bench["attention_bench"]["cases"] if c["largest_difference"]]
lengths = sorted({c["seqlen"] for c in bench["attention_bench"]["cases"] if c["largest_difference"]})
says("(`attention_bench`), the largest | {} to {} | {} to {} |", lengths[0], lengths[-1],
     e(min(differences)), e(max(differences)))
errors = {rung: [run["error"] for key, run in runs.items() if key[0] == rung] for rung in ("02", "03")}
lengths = sorted({key[1] for key in runs})
for name in ("naive, rung 02", "flash, rung 03"):
    says("| " + name + ", against double precision, H200, the worst element | {} to {} | {} to {} |",
         lengths[0], lengths[-1], e(min(errors[name[-2:]])), e(max(errors[name[-2:]])))
# For shorter ones that record's error is rung 02's.
fused = [c for c in record("compare_torch_h200.json")["forward"] if c["seqlen"] > 4096]
assert all("02" not in c["bytes"] for c in fused)
says("rung 03 against PyTorch's fused kernel, H200, the largest | {} and {} | {} to {} |",
     *sorted({c["seqlen"] for c in fused}), e(min(c["errors"]["03"] for c in fused)),
     e(max(c["errors"]["03"] for c in fused)))
larger = sum(run["error"] > runs["02", *key[1:]]["error"] for key, run in runs.items() if key[0] == "03")
says("rung 03's error is the larger one in {} of {}", larger, len(errors["03"]))
given("The programme's ~5e-7", source="the programme")
says("fp16 has {} bits and an error near {}", 11, "{:.0e}".format(2**-11).replace("e-0", "e-"))

given("four of 64 × 64 elements, one of scores, and m, d and lse of 64 rows", source="bench/attention_bench.cpp")
scratch = 4 * (5 * 64 * 64 + 3 * 64)
held = {c["name"]: c["scratch_bytes"] for c in bench["attention_bench"]["cases"]}
says("{} bytes in fp32 with H = 64, at S = 256 as at S = 4096", groups(scratch))
says("measured {} bytes where naive attention held {}", groups(held["tiled/4096"]), groups(held["naive/4096"]))
assert held["tiled/256"] == held["tiled/4096"]
scores = {s: 32 * s * s * 2 for s in (1024, 131072)}
kept = {s: 32 * s * (128 * 2 + 4) for s in (1024, 131072)}
says("of {} heads grows from {:.0f} MiB at a context of {} to {:.0f} TiB at {}", 32, scores[1024] / 2**20, 1024,
     scores[131072] / 2**40, 131072)
says("O and lse from {:.0f} MiB to {:.0f} GiB", kept[1024] / 2**20, kept[131072] / GiB)
given("For a whole layer of 32 heads, H = 128, fp16", source="chosen")
says("at a context of 131072 takes {:.0f} GiB, O and lse {:.2f} GiB", scores[131072] / GiB, kept[131072] / GiB)
says("the score matrix against the output: {:.0f} at S = 4096, H = 128", S / H)
says("4SH + 4S² against 4SH: {:.0f}.", naive_traffic(S, H) / (4 * S * H))

given("against keys 1, 3, 5, 2 with values 10, 20, 30, 40", source="chosen")
factor = exp(3 - 5)
d_first, o_first = exp(1 - 3) + 1, 10 * exp(1 - 3) + 20
d, o = d_first * factor + 1 + exp(2 - 5), o_first * factor + 30 + 40 * exp(2 - 5)
says("| 0 | 1, 3 | 3 | {:.5f} | {:.5f} |", d_first, o_first)
says("| 1 | 5, 2 | 5 | {:.5f} | {:.5f} |", d, o)
says("by e^(3-5) = {:.5f}. O = {:.5f} / {:.5f} = {:.5f}, lse = 5 + ln {:.5f} = {:.5f}.", factor, o, d, o / d, d,
     5 + log(d))

says("with the {} bits of half precision", 10 + 1)

says("{} blocks a side, {} · {} / 2 = {} tiles, so at most {} / {} = {:.2f} times", n, n, n + 1, tiles, n * n, tiles,
     n * n / tiles)
says("counts the {} in the loader", tiles)
given("row 16 is the first of the second query tile", source="the output above it")
says("{:.2f} times: 3H² = {} is just below M = {}", naive_traffic(S, 128) / flash1_traffic(S, 128, M), 3 * 128**2, M)
says("M/H² = {:.1f}, for {} against 4 costs a factor of {:.0f}. At H = 64 it is {:.1f} times", M / 128**2, 12, 12 / 4,
     naive_traffic(S, 64) / flash1_traffic(S, 64, M))
given("FlashAttention-1 with 100 KiB", source="the question")
given("Intensity of a query block of 128", source="the question")
says("{:.0f} FLOP a byte, against a ridge of {:.0f}", flash2_intensity(128), P / W)
says("an intensity near S/b = {:.0f}", S / b)
says("off by at most {} in fp32", e(max(map(max, errors.values()))))
by_name = {c["name"]: c["largest_difference"] for c in bench["attention_bench"]["cases"]}
says("differ by {} at S = 256 and by {} at S = 4096", e(by_name["tiled/256"]), e(by_name["tiled/4096"]))
