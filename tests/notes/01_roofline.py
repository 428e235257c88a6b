"""Figures of notes/01_roofline.md, by the formulas of include/nanolm/roofline.h."""

from statistics import median

from check_notes import given, record, says, sup
from elementwise_share import KINDS, kind_of

P, V, W, SPARSE = 989e12, 66.9e12, 3.35e12, 1979e12  # tensor cores, vector units, bytes/s, with sparsity
S, H, BF16, FP32 = 4096, 128, 2, 4
H100 = "NVIDIA, H100 datasheet; include/nanolm/devices.h"
KIB, MICRO, MILLI = 1024, 1e6, 1e3
SHAPE = "chosen; the shape of the programme's example"


def matmul(m, n, k, b):
    return 2 * m * n * k, b * (m * k + k * n + m * n)


def unary(n, b):
    return n, b * 2 * n


def binary(n, b):
    return n, b * 3 * n


def chain(ops, n, b):
    return ops * n, b * 2 * ops * n


def naive(s, h, b):
    return 4 * s * s * h, b * (4 * s * h + 4 * s * s)


def flash(s, h, b):
    return 4 * s * s * h, b * 4 * s * h


def intensity(cost):
    return cost[0] / cost[1]


def seconds(cost, peak=P):
    return max(cost[0] / peak, cost[1] / W)


def decode(n, k, s, h, b):
    return 4 * n * s * h, b * (2 * k * s * h + 2 * n * h)


ridge = P / W
softmax = 5 / (2 * BF16)
QKT = intensity(matmul(S, S, H, BF16))

given("2.5 h with the GPU model", source="CMakeLists.txt, the week")
given("An H100 does 989 TFLOP/s in bf16 but reads only 3.35 TB/s", source=H100)
says("so it can do {:.0f} operations in the time in which it reads one byte", ridge)

given("all in bf16: the addition of two vectors, a softmax, QKᵀ with H = 128, a product of two 4096 × 4096 matrices, "
      "FlashAttention at S = 4096", source=SHAPE)
given("Five elementwise operations on 2²⁶ fp32 numbers", source="chosen")
given("At S = 4096 attention with its scores in memory is memory-bound. Is it still at S = 1 000 000", source="chosen")
given("of a transformer block of width 1024", source="chosen")
given("nearer to 0.3 %, 3 % or 30 %?", source="chosen: guesses, a factor of ten apart")

says("| {:.0f} MB on 132 SMs |", (256 + 228) * KIB * 132 / 1e6)
given("| 80 GB at 3.35 TB/s |", source=H100)
given("| 66.9 TFLOP/s | fp32", source=H100)
given("| 989 TFLOP/s | bf16", source=H100)
says("here 132 · 4096 · 1.83 GHz = {:.0f} TFLOP/s", 132 * 4096 * 1.83e9 / 1e12)
given("Datasheets print 1979 TFLOP/s \"with sparsity\"", source="NVIDIA, H100 datasheet")
says("989 / 3.35 = {:.0f} FLOP/byte", 989 / 3.35)

ladder, H200 = record("ladder_h200.json"), 4.8e12  # bytes/s; the vector units are an H100's
fused = next(e for e in ladder["elementwise"] if e["kernels"] == "fused" and e["operations"] == 1)
plain = next(f for f in ladder["forward"] if (f["rung"], f["seqlen"], f["head_dim"], f["causal"]) == (
    "cuda/02_naive_attention", 4096, 64, False))
bound, took = fused["bytes"] / H200, median(fused["samples_ms"]) / MILLI
says("On an H200 with its {} TB/s the fused kernel of rung 01, which moves {:.2f} GB, has a bound of {:.3f} ms and "
     "took {:.3f} ms, {:.2f} times that", H200 / 1e12, fused["bytes"] / 1e9, bound * MILLI, took * MILLI, took / bound)
heads, least = 4 * 8, naive(4096, 64, FP32)
bound, took = max(heads * least[0] / V, heads * least[1] / H200), median(plain["samples_ms"]) / MILLI
assert round(plain["flop"] / 1e9) == round(heads * least[0] / 1e9) and took > 2 * bound
says("(fp32, {} heads of S = 4096, H = 64) has a bound of {:.2f} ms and took {:.1f} ms, {:.0f} times that", heads,
     bound * MILLI, took * MILLI, took / bound)

given("S = 4096 tokens, a head of H = 128, and matrices of n = 4096", source=SHAPE)
says("| 1 / (3b) | {:.3f} |", intensity(binary(1, BF16)))
says("| 1 / (2b) | {:.2f} |", intensity(unary(1, BF16)))
says("| below 2 / b | {:.2f} |", intensity(matmul(1, S, S, BF16)))
says("| 5 / (2b) | {:.2f} |", softmax)
says("| decode attention, N = 32 heads, K = 8 | 4NSH | 2KSH + 2NH | below 2N / (bK) | {:.2f} |",
     intensity(decode(32, 8, S, H, BF16)))
says("| SH / (b (S + H)), below H / b | {:.1f} |", intensity(naive(S, H, BF16)))
says("| below 2H / b | {:.0f} |", QKT)
says("| 2n / (3b) | {:.0f} |", intensity(matmul(S, S, S, BF16)))
says("| S / b | {:.0f} |", intensity(flash(S, H, BF16)))
assert QKT < 2 * H / BF16 and intensity(matmul(S, H, S, BF16)) == QKT

square = [next(n for n in range(1, 4096) if intensity(matmul(n, n, n, BF16)) >= peak / W) for peak in (P, 989.4e12)]
says("compute-bound on an H100 from n = {} on, with P as 989e12; with 989.4e12, as `devices.h` has it, it is {}",
     *square)
assert f"{intensity(matmul(1, S, S, BF16)):.0f}" == "1"
add = intensity(binary(1, BF16)) * W
says("At 3.35 TB/s that is {:.2f} TFLOP/s: {:.3f} % of the tensor peak, and {:.2f} % of the vector units' peak",
     add / 1e12,
     100 * add / P, 100 * add / V)
says("an elementwise kernel looks {:.0f} times worse than it is", P / V)

given("only H, 64 to 128; in PV", source="the week's programme")
says("Both stay below 2H / b = {:.0f} FLOP/byte at H = 128 in bf16, and the ridge is {:.0f}", 2 * H / BF16, ridge)
says("H / b = {:.0f} at H = 128 in bf16", H / BF16)
arithmetic, traffic = naive(S, H, BF16)[0] / P, naive(S, H, BF16)[1] / W
says("At S = 4096 one head has {:.1f} µs of arithmetic and {:.1f} µs of traffic", arithmetic * MICRO, traffic * MICRO)
says("took no time at all would leave {:.1f} µs", traffic * MICRO)
says("The scores of one head alone, {:.1f} MB, would fit the L2. A layer has 32 heads, whose scores are {:.0f} GiB and "
     "do not; the bound is meant for those, and one head is its 32nd part", S * S * BF16 / 1e6,
     32 * S * S * BF16 / KIB**3)
assert S * S * BF16 < 50 * KIB**2 < 32 * S * S * BF16

apart, fused = chain(5, 2**26, FP32), (5 * 2**26, FP32 * 2 * 2**26)
says("for 2%s fp32 elements {:.2f} GB against {:.2f} GB, {:.3f} ms against {:.3f} ms" % sup(26), apart[1] / 1e9,
     fused[1] / 1e9, seconds(apart, V) * MILLI, seconds(fused, V) * MILLI)
longest = next(k for k in range(1, 999) if k / (2 * FP32) >= V / W)
says("An fp32 chain would need {} operations, counted as FLOP as the peak is ({} multiply-adds)", longest, longest // 2)

# One block's training step. T tokens in sequences of LENGTH, a kernel for each operation.
T, LENGTH, HEAD = 8192, 1024, 64
given("In the training profile of the course's [week 22](00_map.md#names) elementwise operations take 39 % of "
      "the time", source="the week's programme")
given("attention with heads of 64", source="chosen")
given("T = 8192 tokens in 8 sequences of 1024", source="chosen")
says("backward {:.1f} times those FLOP (five products for two", 5 / 2)
# norm and GELU are unary forward and binary backward, an addition is binary both ways; GELU is 4 wide.
forward, backward = 2 * 2 + 4 * 2 + 2 * 3, 2 * 3 + 4 * 3 + 2 * 3
says("3 an addition, {} in all", forward)
says("where the residual parts), {} in all. So {} TD elements", backward, forward + backward)
given("*Adam*: 12 D² weights", source="4 D² of attention and 2 · 4 D² of the MLP")


def step(width, materialised=False):
    """Seconds of matmuls, attention, elementwise operations and Adam."""
    matmuls = 3 * (4 * seconds(matmul(T, width, width, BF16)) + 2 * seconds(matmul(T, 4 * width, width, BF16)))
    heads = T // LENGTH * width // HEAD
    flop, bytes_moved = flash(LENGTH, HEAD, BF16)
    attention = heads * (seconds((flop / 2, bytes_moved)) + seconds((2.5 * flop / 2, 2 * bytes_moved)))
    elementwise = (forward + backward) * T * width * BF16 / W
    if materialised:  # scale, mask and softmax in kernels of their own; six products with inner dimension HEAD
        attention = heads * 6 * seconds(matmul(LENGTH, LENGTH, HEAD, BF16))
        elementwise += heads * (6 + 7) * LENGTH**2 * BF16 / W
    return matmuls, attention, elementwise, 12 * width**2 * 7 * FP32 / W


def share(parts):
    return 100 * (parts[2] + parts[3]) / sum(parts)


for width in (512, 1024, 4096):
    says("| %d | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.0f} %% |" % width, *(t * MILLI for t in step(width)),
         share(step(width)))
given("The programme's 39 % is close to what this model says of a narrow block, 512 wide",
      source="the week's programme")
assert abs(share(step(512)) - 39) < 2
says("6 elements moved forward and 7 backward: at D = 1024 elementwise work and Adam are then {:.0f} % of a step "
     "{:.1f} times as long", share(step(1024, True)), sum(step(1024, True)) / sum(step(1024)))
says("if all of the {:.0f} % vanished into kernels that read the data anyhow, the step would be {:.2f} times as fast",
     share(step(1024)), 1 / (1 - share(step(1024)) / 100))
measured = next(case for case in record("elementwise_share_h200.json")["cases"] if case["width"] == 1024)["seconds"]
kinds = {kind: sum(median(samples) for name, samples in measured.items() if kind_of(name) == kind) for kind in KINDS}
says("At D = 1024 the products take {:.1f} times as long as at the peak. The elementwise kernels take", kinds["matmul"]
     / step(1024)[0])
whole = [sum(spent) for spent in zip(*(samples for name, samples in measured.items() if kind_of(name) == "elementwise"))]
says("kernels take {:.3f} ms, where the model says {:.3f} of an H200 with its 4.8 TB/s", median(whole) * MILLI,
     step(1024)[2] * W / 4.8e12 * MILLI)
operations = 10 * (2 * (2 + 4 + 2) * T * 1024 + 12 * 1024**2)
percent = 100 * operations / (3 * 2 * 12 * T * 1024**2)
says("The FLOP of those operations are {:.1f} % of the step's, at ten an element", percent)
says("They are about {:.1f} % of the FLOP", percent)

toy = 16
says("on a machine of 16 FLOP/s and 16 bytes/s: the ridge is {:.0f}", toy / toy)
for name, cost, cells in (("naive", naive(4, 2, 2), "4 · 16 · 2 = {} | 2 · (32 + 64) = {} | {:.3f}"),
                          ("flash", flash(4, 2, 2), "{} | 2 · 32 = {} | {:.0f}")):
    says("| %s | %s | {:.0f} s | {:.0f} s | {:.0f} s | {:.4g} |" % (name, cells), *cost, intensity(cost), cost[0] / toy,
         cost[1] / toy, max(cost) / toy, min(toy, intensity(cost) * toy))
cost = naive(S, H, BF16), flash(S, H, BF16)
says("The same on an H100 with S = 4096 and H = 128 in bf16, one head: {:.2f} GFLOP in both; {:.0f} MB against {:.1f} "
     "MB; intensity {:.0f} against {:.0f} FLOP/byte; {:.1f} µs against {:.1f} µs", cost[0][0] / 1e9, cost[0][1] / 1e6,
     cost[1][1] / 1e6, *map(intensity, cost), *(seconds(c) * MICRO for c in cost))

says("the sparse peak: ridge {:.0f} instead of {:.0f}", SPARSE / W, ridge)
says("1 GB/s as 2%s bytes/s: ridge {:.0f} %% too low" % sup(30), 100 * (1 - 1e9 / 2**30))
given("(1024^3 for 10^9)", source="tests/mistakes/01_roofline.edits")

says("Addition {:.3f}, softmax {:.2f}, QKᵀ {:.0f}, matmul {:.0f}, FlashAttention {:.0f} FLOP/byte",
     intensity(binary(1, BF16)),
     softmax, QKT, intensity(matmul(S, S, S, BF16)), intensity(flash(S, H, BF16)))
says("whose ridge is {:.0f}; QKᵀ too", ridge)
says("Five times, {:.3f} ms against {:.3f} ms", seconds(apart, V) * MILLI, seconds(fused, V) * MILLI)
says("{:.1f} at 4096, {:.2f} at a million, and never {:.0f}. The ridge is {:.0f}", intensity(naive(S, H, BF16)),
     intensity(naive(1e6, H, BF16)), H / BF16, ridge)
says("{:.0f} % in this model of a block 1024 wide, for {:.1f} % of the FLOP", share(step(1024)), percent)
