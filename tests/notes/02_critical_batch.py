"""Figures of notes/02_critical_batch.md, by the formulas of include/nanolm/critical_batch.h."""

from math import floor

from check_notes import given, groups, says

W, P, INT8, KIB, MS = 3.35e12, 989e12, 1979e12, 1024, 1e3
A100_P, A100_W = 312e12, 2.04e12
MEMORY, CONTEXT, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 80e9, 8192, 32, 32, 8, 128
LLAMA = "Llama-3-8B: vocabulary 128256, width 4096, 32 layers, MLP 14336"
N = 2 * 128256 * 4096 + 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096) + 4096


def critical(peak, bandwidth, b):
    return peak * b / (2 * bandwidth)


def cache(layers=LAYERS, kv_heads=KV_HEADS, head_dim=HEAD_DIM, b=2):
    return 2 * layers * kv_heads * head_dim * b


def fit(memory=MEMORY, weights=2 * N, token=cache(), context=CONTEXT):
    return floor((memory - weights) / (token * context)) if weights <= memory else 0


def step(sequences, token=cache(), context=CONTEXT):
    return max(2 * N * sequences / P, (2 * N + sequences * token * context) / W)


def reading(b):
    return N * b / W


B_STAR = critical(P, W, 2)

given("1.5 h, core", source="CMakeLists.txt, the week")
given("Does a model of 70e9 weights need more of them than one of 8e9", source="chosen")
given("a pass of 64 tokens, and how much one of 2000", source="the week's programme")
given("Decode serves 64 users at a time instead of one", source="the week's programme")
given("do 64 times as many FLOP", source="64 users")
given("on an H100 of 80 GB, each user with 8192 tokens", source="the week's programme")

for name, peak, shown, bandwidth, b in (
        ("H100, bf16", P, "989 TFLOP/s", W, 2), ("A100, bf16", A100_P, "312 TFLOP/s", A100_W, 2),
        ("H100, int8 weights, bf16 arithmetic", P, "989 TFLOP/s", W, 1),
        ("H100, int4 weights, bf16 arithmetic", P, "989 TFLOP/s", W, 0.5),
        ("H100, int8 weights, int8 arithmetic", INT8, "1979 TOP/s", W, 1)):
    says("| %s | %s | {} TB/s | {} | {:.0f} |" % (name, shown), bandwidth / 1e12, b, critical(peak, bandwidth, b))
says("The last row's {:.0f} TOP/s are dense int8", INT8 / 1e12)
assert round(INT8 / P) == 2
given("at 2000 tokens int8 weights gain nothing", source="the picture")
assert reading(2) < 2 * N * 2000 / P

says("one prompt of 2000: {}, compute-bound alone", 2000 * 1)
says("64 users: {}, memory-bound", 64)
says("64 users, γ = 4 drafted: {}, above {:.0f}", 64 * (4 + 1), B_STAR)
given("and 64 users are far below it. Counted in sequences it would be 1 against 64", source="the week's programme")

says("on a machine that could do {:.0f}", B_STAR)
for name, heads in (
        ("MHA, a kv head for each query head", 32), ("GQA, Llama-3-8B", 8), ("MQA, one kv head for all", 1)):
    token = cache(kv_heads=heads)
    users = fit(token=token)
    says("| %s | 32 | %d | {:.0f} | {} bytes | {} | {:.0f} |" % (name, heads), HEADS / heads, groups(token), users,
         users / step(users, token))
    assert 2 * N * users / P + 4 * HEADS * HEAD_DIM * LAYERS * CONTEXT * users / P < step(users, token)
says("The users have {} tokens each", CONTEXT)
mha = cache(kv_heads=32)
says("For {} users a step takes {:.1f} ms with MHA and {:.1f} ms with GQA", fit(token=mha),
     step(fit(token=mha), mha) * MS, step(fit(token=mha)) * MS)
says("(γ + 1) N / K, {:.0f} with γ = 4", (4 + 1) * HEADS / KV_HEADS)

says("2 · 32 · 8 · 128 · 2 = {} bytes; 8192 tokens: {:.0f} GiB", cache(), cache() * CONTEXT / KIB**3)
says("An H100 has 80 GB, the weights take {:.0f} GB, and (80e9 - 16e9) / 2³⁰ = {:.1f}: **{}** sequences of 8k",
     2 * N / 1e9, (80e9 - 16e9) / 2**30, fit(weights=16e9))
says("That is far below {:.0f}", B_STAR)
says("{:.0f} sequences would need {:.0f} GB of cache; in what there is they have room for contexts of {} tokens",
     B_STAR, 295 * cache() * CONTEXT / 1e9, floor((MEMORY - 2 * N) / (295 * cache())))
says("to read 80 GB takes {:.1f} ms, whatever they are. The 2n FLOP of each of {:.0f} tokens take {:.1f} ms",
     MEMORY / W * MS, B_STAR,
     2 * N * B_STAR / P * MS)
assert round(2 * N / (cache() * CONTEXT)) == 15  # a fifteenth

says("The model has n = {} weights, {:.2f}e9 bytes", groups(N), 2 * N / 1e9)
says("(with 16e9 two rows differ: {} for 8000 tokens, {} with the layers forgotten)", fit(weights=16e9, context=8000),
     fit(weights=16e9, token=cache(layers=1)))
for name, count in (("80 GB decimal, bf16 weights and cache, 8192 tokens, nothing else in memory", fit()),
                    ("80 GiB", fit(80 * KIB**3)), ("81559 MiB, what an H100 reports", fit(81559 * KIB**2)),
                    ("80 GB but the weights as 16 GiB", fit(weights=16 * KIB**3)),
                    ("8k as 8000 tokens", fit(context=8000)), ("a tenth of 80 GB kept back", fit(0.9 * MEMORY)),
                    ("cache of all 32 query heads instead of the 8 kv heads", fit(token=mha)),
                    ("keys without values; or the cache in int8", fit(token=cache(b=1))),
                    ("int8 weights", fit(weights=N)), ("cache in fp32", fit(token=cache(b=4))),
                    ("the weights forgotten", fit(weights=0)),
                    ("the layers forgotten", fit(token=cache(layers=1)))):
    says("| %s | {} |" % name, count)
says("int8 weights bring {} sequences, an int8 cache {}", fit(weights=N) - fit(), fit(token=cache(b=1)) - fit())


def exact(d, f, b_w=2, b_a=2):
    gain = 2 * d * f - P / W * b_a * (d + f)
    return P / W * b_w * d * f / gain if gain > 0 else float("inf")


says("For Llama-3-8B's MLP (4096 × 14336, bf16, H100) the answer is {:.1f} rather than {:.1f}; for 1024 × 1024 it is "
     "{:.0f}", exact(4096, 14336), B_STAR, exact(1024, 1024))
says("a 512 × 512 layer never exceeds {:.0f} FLOP/byte", 2 * 512 * 512 / (2 * (512 + 512)))
assert exact(512, 512) == float("inf")

given("| B | Llama-3-8B, 8192 tokens, H100 |", source=LLAMA)
for sequences in (1, 15, 59):
    says("| %d | {:.2f} ms | {:.0f} |" % sequences, step(sequences) * MS, sequences / step(sequences))
says("From B = {} on the caches are more bytes than the weights",
     next(s for s in range(1, 99) if s * cache() * CONTEXT > 2 * N))
attention = 4 * HEADS * HEAD_DIM * LAYERS * CONTEXT
says("At {} the arithmetic would take {:.1f} ms ({:.2f} ms with that of attention)", fit(), 2 * N * 59 / P * MS,
     (2 * N + attention) * 59 / P * MS)
says("{} sequences make {:.1f} times as many tokens as one in {:.1f} times the time", fit(), 59 / step(59) * step(1),
     step(59) / step(1))

given("A machine of 600 FLOP/s and 10 bytes/s, 10000 bytes of memory. A model with 2000 bytes of weights, 2 layers, 1 "
      "kv head, head_dim 4, cache of 2 bytes an element, context 100", source="chosen")
says("| B*, 2 bytes a weight | {:.0f} | 600 · 2 / (2 · 10) |", critical(600, 10, 2))
says("| B*, 1 byte a weight | {:.0f} |", critical(600, 10, 1))
says("| decode of 20 sequences | {} tokens | below |", 20)
says("| with 3 drafted tokens | {} tokens | 20 · 4: above |", 20 * (3 + 1))
says("| prefill of two prompts of 100 | {} tokens | above |", 2 * 100)
toy = cache(2, 1, 4, 2)
says("| cache of a token | {} bytes |", toy)
says("| sequences that fit | {} | floor({} / {}) |", fit(10000, 2000, toy, 100), 10000 - 2000, toy * 100)
says("Two sequences where {:.0f} tokens would be needed", critical(600, 10, 2))

says("rounded instead of cut: {:.0f} sequences", (MEMORY - 2 * N) / (cache() * CONTEXT))
given("datasheets say GB, 7 % less", source="tests/mistakes/02_critical_batch.edits")

says("{:.0f} tokens. A larger model needs no more of them", B_STAR)
says("64 tokens are below both critical batches: {:.2f} ms become {:.2f} ms, twice as fast. 2000 are above both, and "
     "the {:.1f} ms are arithmetic in bf16", reading(2) * MS, reading(1) * MS, 2 * N * 2000 / P * MS)
says("{} users. They pass {} tokens at a time, a fifth of {:.0f}. A step takes {:.2f} ms, of which the arithmetic needs "
     "{:.1f} ms", fit(), fit(), B_STAR, step(59) * MS, 2 * N * 59 / P * MS)
given("64 users", source="the week's programme")
