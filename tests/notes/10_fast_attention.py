"""Figures of notes/10_fast_attention.md; its tables are those of the records."""

from math import exp, log, log2
from statistics import mean, median

from check_notes import ROOT, code, given, record, says, sup

CONTRACT, ANSWER = "include/nanolm/fast_attention.h", "reference/10_fast_attention.cpp"
UNITS, LATENCY, LANES, REGISTERS = 2, 4, {"AVX2": 8, "AVX-512": 16}, 16
OPTIMIZE = "Fog, Optimizing software in C++; The microarchitecture of Intel, AMD and VIA CPUs"
rows, panel, tile_columns = (code(CONTRACT, name + " = {};") for name in ("kTileRows", "kPanel", "kTileColumns"))
block_q, block_k = code(CONTRACT, "kBlockQ = {};"), code(CONTRACT, "kBlockK = {};")
H = 64

given("for head_dim 64", source="chosen")
given("units of 8 lanes (AVX2)", source="the instructions")
avx2, avx512 = (UNITS * lanes * 2 for lanes in LANES.values())
says("does {} · {} · 2 = {} FLOP a cycle, with {} lanes (AVX-512) {}", UNITS, LANES["AVX2"], avx2, LANES["AVX-512"],
     avx512)

vectors = 2
sums = rows * vectors
says("Six rows of A against two vectors of B are {} sums. A step loads {} vectors of B and {} numbers of A, each "
     "copied to all lanes, and does {} multiply-adds: {} loads in the {} cycles", sums, vectors, rows, sums,
     vectors + rows, sums // UNITS)


def registers(rows, vectors):
    """The sums, all of the fewer factors, and one of the others."""
    return rows * vectors + min(rows, vectors) + 1


assert LATENCY * UNITS == 8 <= sums
says("The sums, the two vectors and one factor are {} registers of the {} that AVX2 has", registers(rows, vectors),
     REGISTERS)
says("A tile of another shape with {} sums (4 × 3, 3 × 4) needs {} registers", sums, registers(4, 3))
assert registers(4, 3) == registers(3, 4)

says("In K those are {0} numbers of {0} different rows, head_dim apart: {0} cache lines", vectors * LANES["AVX2"])
says("into panels of {} columns", panel)
given("some per cent for S = 128", source="chosen")

given("one vector of AVX-512, two of AVX2", source="16, 8 and 4 lanes of a panel's 16 columns")

steps = code("include/nanolm/tiles.h", "kSumSteps = {};")
given("costs 15 to 20 cycles", source=OPTIMIZE)
says("of some {:.0f}. Unrolled by four it has {} rounds", round(steps * sums / UNITS, -2), steps // code(
    "include/nanolm/vectors.h", '"GCC unroll {}"'))
given("a processor remembers 16 jumps", source=OPTIMIZE)
says("sums of {} products", steps)
says("It costs an addition for {} multiply-adds", steps)

exp2 = (ROOT / ANSWER).read_text(encoding="utf-8").split("Floats exp2(Floats x)")[1].split("return")[0]
degree = exp2.split("{", 2)[2].split("}")[0].count(",") + 1
# The clamp, n, f in two, the polynomial, the shift, the product; the difference before, the sum behind.
operations = 1 + 1 + 2 + degree + 1 + 1 + 2
eight = {head_dim: 4 * head_dim * 8 / (2 * LANES["AVX2"]) for head_dim in (64, 128)}
says("With {0} vector operations for 8 lanes it costs what {0} multiply-adds cost, and the products of 8 scores cost "
     "4 · {1} · 8 / {2} = {3:.0f}: about a tenth for H = {1}, a twentieth for {4}", operations, H, 2 * LANES["AVX2"],
     eight[H], 128)
assert [round(cost / operations) for cost in eight.values()] == [9, 18]
mantissa, bits = code(ANSWER, "shift(0x{}p{}f")
says("Adding {} · 2{} to x", float.fromhex("0x%s" % mantissa), sup(bits))
says("shifted by {} they are", bits)
assert degree == 6  # "a polynomial of degree 6"
says("clamped by max(-{:.0f}, x)", code(ANSWER, "Floats(-{}f), x)"))


def in_vain(rows, columns):
    """Scores above the diagonal that a row of a long square computes, in tiles that begin with key 0."""
    return mean(-(-(i // rows + 1) * rows // columns) * columns - (i + 1) for i in range(rows * columns))


says("A tile of {} rows and {} keys is the smallest unit. Its last row computes up to {} scores above the diagonal in "
     "vain and each row before it one more, {:.1f} on average; with {} lanes, where a tile stops after {} keys when "
     "the rest is hidden, {:.1f}. Tiles of 64 × 64 compute {:.1f} a row", rows, tile_columns,
     max(-last % tile_columns for last in range(rows, rows * tile_columns + 1, rows)), in_vain(rows, tile_columns),
     LANES["AVX2"], vectors * LANES["AVX2"], in_vain(rows, vectors * LANES["AVX2"]), in_vain(64, 64))
given("Tiles of 64 × 64", source="lesson 05's")
says("A block of {} queries", block_q)
says("The triangle of {} pairs", rows * (rows - 1) // 2)

says("then take blocks of {} queries", block_q)
short = [median(run["ours_s"]) for run in record("fast_attention_cpu.json")["forward"]
         if (run["seqlen"], run["head_dim"], run["causal"], run["threads"]) == (128, H, False, 2)]
says("Attention over {} tokens takes half of that", 128)
assert 0.4e-3 < short[0] < 0.6e-3  # of a millisecond

says("reads each block of {} keys once", block_k)
says("take parts of {} keys", code(CONTRACT, "kPartKeys = {};"))

says("A tile's loop does not reach all of it: {} vectors are stored", sums)
quiet = {}
for part in record("fast_steps_cpu.json")["parts"]:
    *times, peak = (sorted(samples)[len(samples) // 50] for samples in part["seconds"])
    flop, peak = part["flop"][0] + part["flop"][2], part["flop"][3] / peak
    quiet[part["head_dim"]] = flop / peak, times[1], sum(times)


def whole(products):
    """Of the peak, when the products reach so much of it and the softmax takes its time."""
    least, softmax, _ = quiet[H]
    return least / (least / products + softmax)


softmax = {head_dim: time / total for head_dim, (_, time, total) in quiet.items()}
assert round(1 / softmax[H]) == 7 and 0.4 < softmax[128] / softmax[H] < 0.6  # "a seventh", "half of that share"
assert round(whole(0.95), 1) == 0.8 and whole(1) < 0.85
says("With head_dim {} the softmax takes a seventh of the time", H)
given("Even with both products at 95 % of the peak the whole would be at four fifths of it: with 8 lanes 85 % is out "
      "of reach for head_dim 64, whatever the blocks are. With 128", source="chosen; computed above")

given("q = ln 2; keys 0, 1, 3; values 8, 4, 10", source="FastAttention.WorkedExampleOfTheNote")
q, k, v = log(2), (0, 1, 3), (8, 4, 10)
s = [q * key * log2(exp(1)) for key in k]
m = max(s)
p = [2 ** (one - m) for one in s]
d, o = sum(p), sum(weight * value for weight, value in zip(p, v))
says("m = {:.0f}; the weights are 2^-3, 2^-2 and 2^0; d = {:.3f}; o = 8/8 + 4/4 + 10 = {:.0f}. O = {:.0f} / {:.3f} = "
     "{:.5f}; lse = ln 2 · ({:.0f} + log2 {:.3f}) = ln {:.0f}.", m, d, o, o, d, o / d, m, d,
     exp(log(2) * (m + log2(d))))
