"""Figures of notes/07_decode_attention.md."""
from math import ceil, exp, log

from check_notes import given, says

P, W, VECTOR, SMS = 989e12, 3.35e12, 66.9e12, 132  # H100 SXM
N, K, H, S, b = 32, 8, 128, 8192, 2  # Llama-3-8B, one layer
given("Llama-3-8B has 32 query heads and 8 kv heads, H = 128. A cache of 8192 tokens in bf16",
     source="Llama 3 model card")
given("The batch grows from 1 to 64", source="chosen")
given("8 kv heads, 132 SMs", source="NVIDIA, H100 datasheet")


def intensity(q_heads, kv_heads, seqlen, size, kv_size=None):
    return 2 * q_heads * seqlen / ((kv_size or size) * kv_heads * seqlen + size * q_heads)


says("The ridge of an H100 is {:.0f}", P / W)
for name, kv_heads, size, kv_size, digits in (
        ("MHA: 32 and 32, bf16", 32, 2, 2, "{:.1f} | {:.3f} | {:.3f}"),
        ("GQA: 32 and 8, bf16", 8, 2, 2, "{:.1f} | {:.3f} | {:.3f}"),
        ("MQA: 32 and 1, bf16", 1, 2, 2, "{:.3f} | {:.1f} | {:.1f}"),
        ("GQA: 32 and 8, fp32", 8, 4, 4, "{:.1f} | {:.3f} | {:.3f}"),
        ("GQA: 32 and 8, cache in 8 bits, Q and O in bf16", 8, 2, 1, "{:.3f} | {:.3f} | {:.3f}")):
    says("| " + name + " | " + digits + " | {:.0f} |", *(intensity(N, kv_heads, s, size, kv_size) for s in (1, 128, S)),
         2 * N / (kv_size * kv_heads))
given("| heads, cache | S = 1 | S = 128 | S = 8192 | limit |", source="chosen")
says("work {:.1f} % of the time", 100 * (N / K) / (P / W))
says("the limit is T · N / K, here {:.0f}", (4 + 1) * N / K)

cache, flop = 2 * K * S * H * b, 4 * N * S * H
says("at S = 8192 reads 2 · 8 · 8192 · 128 · 2 = {:.1f} MB of cache: {:.1f} µs of an H100's memory. Its {:.3f} GFLOP "
     "are {:.2f} µs of the tensor cores, and {:.1f} µs even of the vector units. With 32 kv heads it would be {:.0f} "
     "MB and {:.1f} µs.", cache / 1e6,
     cache / W * 1e6, flop / 1e9, flop / P * 1e6, flop / VECTOR * 1e6, N / K * cache / 1e6, N / K * cache / W * 1e6)
says("{:.0f} % of 132 SMs", 100 * K / SMS)
parts = ceil(SMS / K)
says("{} parts for each of the 8 kv heads are {} blocks", parts, parts * K)


def partials(count):
    return count * 2 * 4 * N * (H + 1)


says("2 · 4 · 32 · {} bytes a part, {:.2f} MB for {} parts, {:.1f} % of the cache. With 1024 parts of {:.0f} keys it "
     "is {:.1f} MB", H + 1, partials(parts) / 1e6, parts, 100 * partials(parts) / cache, S / 1024, partials(1024) / 1e6)
assert abs(partials(1024) / cache - 1) < 0.02
says("1 / ln 2 = {:.4f}", 1 / log(2))

sums = [1 + 3, 2 + 6]
O = [(1 * 4 + 3 * 8) / sums[0], (2 * 3 + 6 * 9) / sums[1]]
says("| part 0 | 1, 3 | 4 | ln 4 = {:.5f} | (1·4 + 3·8) / 4 = {:.0f} |", log(sums[0]), O[0])
says("| part 1 | 2, 6 | 8 | ln 8 = {:.5f} | (2·3 + 6·9) / 8 = {:.1f} |", log(sums[1]), O[1])
w = [exp(log(s) - log(max(sums))) for s in sums]
total = sum(w)
says("| merged | weights 4/8, 8/8 | {:.1f} | ln 8 + ln {:.1f} = ln {:.0f} = {:.5f} | ({:.1f}·{:.0f} + 1·{:.1f}) / "
     "{:.1f} = {:.5f} |",
     total, total, 8 * total, log(8 * total), w[0], O[0], O[1], total, (w[0] * O[0] + w[1] * O[1]) / total)
says("All at once: (4 + {} + 6 + {}) / {} = {} / {} = {:.5f}", 3 * 8, 6 * 9, sum(sums), 4 + 24 + 6 + 54, sum(sums),
     88 / 12)
given("inf / inf for scores above 88, 0 / 0 below -104", source="exp of a float: ln of the largest and of half the "
     "smallest")
assert exp(88) < (2 - 2 ** -23) * 2.0 ** 127 < exp(89) and exp(-104) < 2.0 ** -150 < exp(-103)

says("{:.1f} MB, {:.1f} µs at 3.35 TB/s. {:.3f} GFLOP, {:.2f} µs at 989 TFLOP/s. Q and O are {:.0f} KB", cache / 1e6,
     cache / W * 1e6, flop / 1e9, flop / P * 1e6, 2 * N * H * b / 1e3)
given("for all 64 tokens: its intensity grows from 1 to 64. Attention stays at 4, since 64 sequences have 64 caches",
      source="chosen")
says("8 of 132 SMs. ⌈132 / 8⌉ = {} parts", parts)
