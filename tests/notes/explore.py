"""The figures of notes/explore.md: the formulas of include/nanolm, with the device rows of devices.h."""

from math import ceil, floor

from check_notes import given, groups, says

# Llama-3-8B on an H100 SXM.
P, W, MEMORY = 989.4e12, 3350e9, 80e9
LAYERS, WIDTH, MLP, N, K, H, B_R = 32, 4096, 14336, 32, 8, 128, 128
S, LONG = 8192, 65536
RIDGE = P / W


def weights(kv_heads):
    return 2 * 128256 * WIDTH + LAYERS * (2 * WIDTH * N * H + 2 * WIDTH * kv_heads * H + 3 * WIDTH * MLP +
                                          2 * WIDTH) + WIDTH


def cache(tokens, b=2, kv_heads=K):
    return 2 * LAYERS * kv_heads * H * b * tokens


def fit(tokens, b_c=2, kv_heads=K):
    return floor((MEMORY - 2 * weights(kv_heads)) / cache(tokens, b_c, kv_heads))


def step_ms(batch, b_w=2, b_c=2):
    return 1e3 * max(2 * weights(K) * batch / P, (weights(K) * b_w + batch * cache(S, b_c)) / W)


def layer(tokens, b_w=2):
    return 2 * tokens * WIDTH * MLP / (2 * tokens * (WIDTH + MLP) + b_w * WIDTH * MLP)


def decode(kv_heads, b_c=2):
    return 4 * N * S * H / (b_c * 2 * kv_heads * S * H + 2 * 2 * N * H)


def naive(tokens):
    return 4 * tokens ** 2 * H / (2 * (4 * tokens * H + 4 * tokens ** 2))


def flash2(tokens, block_q):
    return 4 * tokens ** 2 * H / (2 * 2 * tokens * H * (1 + ceil(tokens / block_q)))


exact = RIDGE * 2 * WIDTH * MLP / (2 * WIDTH * MLP - RIDGE * 2 * (WIDTH + MLP))
rows = next(block for block in range(1, S) if flash2(S, block) >= RIDGE)

says("8192 tokens, everything in 16 bits, a decode of {} sequences", fit(S))
says("the decode step with one sequence and with {}?", fit(S))
given("You go from 8192 tokens to 65 536.", source="chosen")
given("At 8192 tokens, how many rows", source="chosen")
says("as many kv heads as query heads, 32: point 7 falls from {:.0f} to {:.0f} FLOP a byte, and {} sequences fit",
     decode(K), decode(N), fit(S, kv_heads=N))
says("a single prompt of 2048 tokens, at {:.0f} FLOP a byte", layer(2048))
says("64 sequences with 4 drafted tokens and one more are {} tokens. That is above the B\\* of {:.0f}, and point 1 "
     "still stands just left of the ridge, at {:.1f} FLOP a byte: with its activations the layer needs {:.1f} tokens",
     64 * 5, RIDGE, layer(64 * 5), exact)
says("Its ridge is {:.0f} FLOP a byte and its B\\* is {:.0f}, since", 65e12 / 320e9, 65e12 * 0.5 / (2 * 320e9))
given("has 100 KiB of shared memory", source="include/nanolm/devices.h, RTX 4090")
given("set H to 192 and to 256", source="chosen")
says("B\\* is {:.1f}; with its activations the layer needs {:.1f}, so point 1 arrives at {} sequences. At 8192 "
     "tokens {} have room.", RIDGE, exact, ceil(exact), fit(S))
says("with 1024 tokens {} fit. A cache in 4 bits alone makes room for {}", fit(1024), fit(S, 0.5))
says("halves to {:.1f}. Point 1 nearly doubles, from {:.2f} to {:.1f} FLOP", P / (2 * W), layer(59), layer(59, 1))
says("stays at {:.3f}, since", decode(K))
says("the step falls from {:.2f} to {:.2f} ms. With {} it falls only from {:.2f} to {:.2f} ms: of the {:.1f} GB that "
     "the step read, {:.1f} GB were caches", step_ms(1), step_ms(1, 1), fit(S), step_ms(59), step_ms(59, 1),
     (2 * weights(K) + 59 * cache(S)) / 1e9, 59 * cache(S) / 1e9)
says("makes it {:.2f} ms and moves point 7 to {:.3f}", step_ms(59, 1, 1), decode(K, 1))
says("from {:.0f} to {}: S / b", S / 2, groups(LONG / 2))
says("goes from {:.2f} to {:.2f} and cannot pass H / b = {:.0f}; point 5 from {:.1f} to {:.1f} and cannot pass "
     "2 B_r / b = {:.0f}", naive(S), naive(LONG), H / 2, flash2(S, B_R), flash2(LONG, B_R), B_R)
says("grow {:.0f} times and the sequences that fit fall from {} to {}", (LONG / S) ** 2, fit(S), fit(LONG))
says("it takes {} rows: (1 + ⌈8192 / B_r⌉) must not exceed 8192 / {:.1f} = {:.1f}, so there are at most {} blocks. The "
     "Q of {} rows in bf16 and their accumulators in fp32 are {:.0f} KiB",
     rows, RIDGE, S / RIDGE, floor(S / RIDGE) - 1, rows, rows * H * (2 + 4) / 1024)
given("an SM has 228 KiB of shared memory and 256 KiB of registers", source="include/nanolm/devices.h, H100 SXM")
