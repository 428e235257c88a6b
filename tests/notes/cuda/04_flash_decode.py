"""Figures of notes/cuda/04_flash_decode.md."""

from math import ceil, exp, log, log2
from statistics import median

from check_notes import code, given, record, says
from decode_counters import steps

SMS, V = 132, 66.9e12  # include/nanolm/devices.h, H200 SXM
FLOAT, BF16, PIECE = 4, 2, 16
RUNG = "reference/cuda/04_flash_decode.cu"

ladder = record("ladder_h200.json")
W = round(ladder["copy"]["bytes"] / median(ladder["copy"]["samples_ms"]) / 1e9, 1) * 1e12
says("Rung 03 gives each block {} queries",
     code("reference/cuda/03_flash_forward.cu", "launch_larger<Tile<64, {}, 64>"))
says("with batch 1 and 8 kv heads that is 8 pieces of work for {} multiprocessors", SMS)

N, K, S, H = 32, 8, 8192, 128
given("with 32 query heads, 8 kv heads, 8192 keys, H = 128 and bf16", source="chosen")
says("how long does an H200 take for them at {:.1f} TB/s, and does the time change with 8 query heads instead of {}?",
     W / 1e12, N)
moved, flop = BF16 * (2 * K * S * H + 2 * N * H), 4 * N * S * H
given("32 and 8 heads, 8192 keys, H = 128, bf16", source="chosen")
says("{:.1f} MB and {:.2f} GFLOP, {:.0f} µs of the memory of an H200 and {:.0f} µs of its vector units", moved / 1e6,
     flop / 1e9, moved / W * 1e6, flop / V * 1e6)
says("8 query heads on 8 kv heads take as long as {}", N)

latency = code(RUNG, "TB/s coming at {} ns a load")
says("Memory answers after some {} ns", latency)
warp, warps = code(RUNG, "kWarp = {}, kWarps = {},")
threads = warp * warps
lanes = {size: min(H // (PIECE // size), warp) for size in (FLOAT, BF16)}  # of a key
resident = threads * code(RUNG, "kBlocksPerSm = kGroup <= 4 ? {} : 2")
flight = W * latency * 1e-9
says("{:.1f} TB/s · {} ns = {:.1f} MB have to be asked for at any time, {:.0f} KB for each of {} SMs: with {} threads, "
     "{:.0f} bytes a thread. A thread that loads {} bytes, waits, and computes has a third of that", W / 1e12, latency,
     flight / 1e6, flight / SMS / 1e3, SMS, resident, flight / SMS / resident, PIECE)
assert round(flight / SMS / resident / PIECE) == 3
ahead, group = code(RUNG, "kAhead = {} / kVectors"), N // K
says("a step is {0} pieces of {1} bytes of K and {0} of V. That would be {2} registers a step", ahead, PIECE,
     2 * ahead * PIECE // FLOAT)

scores = group * ahead
says("kLanes threads have a key, {} bytes each: {} threads for 128 floats, {} for 128 bf16", PIECE, lanes[FLOAT],
     lanes[BF16])
says("{} scores from {} pieces", scores, ahead)
shuffles = int(log2(lanes[FLOAT]))
says("the kLanes threads of a key, say {}. {} sums by {} shuffles each would be {} shuffles for {} · {} "
     "multiply-adds. But no thread needs all {}.", lanes[FLOAT], scores, shuffles, scores * shuffles, scores,
     PIECE // FLOAT, scores)
sent = [scores >> i for i in range(1, int(log2(scores)) + 1)]
says("{} + {} + {} + {} shuffles, and one more, since {} threads share {} scores", *sent, lanes[FLOAT], scores)
assert lanes[FLOAT] == 2 * scores  # "one more"

says("to {} of what the best number does, of at least {} keys each", code(RUNG, "{} * best"),
     code(RUNG, "(keys / {}, 1"))
given("For scores near 10⁵", source="Logits.TheLargestOf100000HasTheWeightOne")

given("One query 2, keys 1, 3, 2 with values 10, 20, 40, scale 0.5", source="Splits.WorkedExampleOfTheNote")
q, k, v, scale = 2, (1, 3, 2), (10, 20, 40), 0.5
factor = scale * log2(exp(1))
says("scale · log2 e = {:.5f}.", factor)
s = [q * key for key in k]
first = ceil(len(s) / 2)
parts = []
for part in (slice(0, first), slice(first, None)):
    m = max(s[part])
    p = [2 ** ((one - m) * factor) for one in s[part]]
    parts.append((m, p, sum(p), sum(weight * value for weight, value in zip(p, v[part]))))
(m_0, p_0, d_0, o_0), (m_1, p_1, d_1, o_1) = parts
says("| split 0 | 2, 6 | {} | {:.5f}, {:.0f} | {:.5f} | {:.5f} |", m_0, *p_0, d_0, o_0)
says("| split 1 | 4 | {} | {:.0f} | {:.0f} | {:.0f} |", m_1, *p_1, d_1, o_1)
w = 2 ** ((m_1 - m_0) * factor)
d, o = d_0 + w * d_1, o_0 + w * o_1
says("m = {}: the weights are 1 and 2^((4 - 6) · {:.5f}) = {:.5f}. d = {:.5f} + {:.5f} = {:.5f}, O = ({:.5f} + {:.5f} "
     "· {}) / {:.5f} = {:.5f}, lse = {} · {} + ln {:.5f} = {:.5f}.", m_0, factor, w, d_0, w * d_1, d, o_0, w, v[2], d,
     o / d, m_0, scale, d, m_0 * scale + log(d))
says("{} bytes copied from any address", PIECE)

compared = record("compare_torch_h200.json")
longer = [1 / median(peer / own for own, peer in zip(case["seconds"]["04"], case["seconds"]["cuDNN"]))
          for case in compared["decode"]]
says("a step of this rung takes {:.2f} to {:.2f} times as long as cuDNN's", min(longer), max(longer))

profiled = record("decode_counters_h200.json")
runs = {tuple(shape): step for shape, step in zip(profiled["shapes"], steps(profiled))}


def us(shape, who, kernel=0):
    return runs[shape][who][kernel]["ns"] / 1e3


large, small = (16, 8192), (1, 8192)
says("At (16, 8192) our kernel needs {:.1f} µs and cuDNN's {:.1f}; at (64, 8192), where nothing is merged, {:.1f} and "
     "{:.1f}; at (1, 8192) {:.1f} and {:.1f}", us(large, "04"), us(large, "cuDNN"), us((64, 8192), "04"),
     us((64, 8192), "cuDNN"), us(small, "04"), us(small, "cuDNN"))
assert len(runs[64, 8192]["04"]) == 1
says("{:.1f} µs at (16, 8192), where cuDNN gives each of {:.0f} blocks a whole cache and needs none; at (1, 8192) "
     "ours takes {:.1f} µs and cuDNN's {:.1f}, most of what we lose there. It reads {:.1f} MB", us(large, "04", 1),
     runs[large]["cuDNN"][0]["blocks"], us(small, "04", 1), us(small, "cuDNN", 1), runs[large]["04"][1]["read"] / 1e6)
assert len(runs[large]["cuDNN"]) == 1 and runs[large]["cuDNN"][0]["blocks"] == 16 * K
says("We issue in {:.0f} % of the cycles, cuDNN in {:.0f} %", runs[large]["04"][0]["issued"],
     runs[large]["cuDNN"][0]["issued"])


def arithmetic(group):
    """Multiply-adds a second while the cache comes at W, over those of the chip's vector units."""
    return W / (2 * H * BF16) * 2 * H * group / (ladder["multiply_add"]["flop"] / median(
        ladder["multiply_add"]["samples_ms"]) * 1e3 / 2)


given("with 4 query heads a kv head; with 16 they would not", source="chosen")
assert arithmetic(4) < 0.3 and arithmetic(16) > 1
