import math

from check_notes import given, groups, says, sup

P, W, P_int8 = 989e12, 3.35e12, 1979e12
R = P / W
n8, kv_token = 8030261248, 2 * 32 * 8 * 128 * 2  # Llama-3-8B: weights, bytes of cache a token
us = 1e6


def matmul(m, n, k, b):
    flop, moved = 2 * m * n * k, b * (m * k + k * n + m * n)
    return flop, moved, flop / moved


# D17
given("P = 989 TFLOP/s, W = 3.35 TB/s", source="the programme, NVIDIA H100 datasheet")
says("P / W = {:.0f} FLOP a byte.", R)

# 1
flop, moved, I = matmul(512, 512, 512, 2)
given("Two matrices of 512 × 512 are multiplied", source="chosen")
given("(1979 TOP/s)", source="the programme")
says("2 · 512³ = {} FLOP and 3 · 512² · 2 = {} bytes: {:.1f} FLOP a byte, below {:.0f}, so memory-bound",
     groups(flop), groups(moved), I, R)
says("Attainable are {:.1f} · 3.35 = {:.0f} TFLOP/s, {:.1f} % of the peak", I, I * W / 1e12, 100 * I * W / P)
I8 = matmul(512, 512, 512, 1)[2]
says("doubles to {:.1f}, but so does the peak, and with it the ridge: {:.0f}. The part of the peak stays {:.1f} %",
     I8, P_int8 / W, 100 * I8 * W / P_int8)

# 2
D, F = 4096, 14336
given("A linear layer of 4096 × 14336 weights gets B tokens. Compute the intensity for B = 1, 64 and 512, and the time "
      "bound for 1 and for 64", source="Llama-3-8B's MLP")
says("It is a matmul of B × {} by {} × {}:", D, D, F)
time = {}
for B, digits in ((1, 2), (64, 1), (512, 0)):
    flop, moved, I = matmul(B, F, D, 2)
    time[B] = max(flop / P, moved / W)
    says("| {} | {:.{}f} | {} | {:.2f} µs |", B, I, digits, "memory" if I < R else "compute", time[B] * us)
says("Sixty-four tokens take {:.0f} % longer than one", 100 * (time[64] / time[1] - 1))
says("reached at B = {:.1f}, later than the {:.0f} of the rule", R * 2 * D * F / (2 * D * F - R * 2 * (D + F)), R)

# 3
S, H = 4096, 128
given("S = 4096 and H = 128, the scores written", source="chosen")
given("have to be at S = 4096?", source="chosen")
says("give SH / (2H + S) = {:.1f}. For S → ∞ that goes to H = {}", matmul(S, S, H, 2)[2], H)
says("= R with R = {:.1f}: H = RS / (S - 2R) = {:.0f}", R, R * S / (S - 2 * R))
given("Heads are 64 to 128 wide", source="the programme: H = 64 ... 128")

# 4
N, K, S = 32, 8, 8192
given("Llama-3-8B has 32 query heads, 8 kv heads and H = 128. One new token attends to 8192 cached ones",
      source="Llama-3-8B's configuration")
given("Then for 64 sequences at once", source="chosen")
flop, moved = 4 * N * S * H, 2 * (2 * K * S * H + 2 * N * H)
says("4NSH = {} FLOP and 2 (2KSH + 2NH) = {} bytes: {:.3f} FLOP a byte", groups(flop), groups(moved), flop / moved)
says("The bytes take {:.2f} µs, the FLOP {:.2f} µs", moved / W * us, flop / P * us)
says("Attainable are {:.1f} TFLOP/s, {:.2f} % of the peak", flop / moved * W / 1e12, 100 * flop / moved * W / P)
says("With 64 sequences FLOP and bytes both grow 64 times: {:.0f} µs", 64 * moved / W * us)

# 5
B, context = 295, 1024
says("({} weights, {} bytes of cache a token) decodes B = {:.0f} sequences", groups(n8), groups(kv_token), R)
given("with 1024 cached tokens each. Do they fit into 80 GB?", source="chosen; an H100's memory")
weights, caches = 2 * n8, B * kv_token * context
says("The caches are {:.1f} GB and the weights {:.1f} GB, so they fit", caches / 1e9, weights / 1e9)
says("The step moves both: {:.2f} ms. Its arithmetic, 2nB, takes {:.2f} ms. The intensity is {:.0f}:",
     (weights + caches) / W * 1e3, 2 * n8 * B / P * 1e3, 2 * n8 * B / (weights + caches))
says("over the cache of one sequence, {:.1f} at this context", 2 * n8 / (kv_token * context))
says("fewer than {:.0f} cached tokens", 2 * n8 / (kv_token * R))

# 6
says("Which of them can reach {:.0f}?", R)
says("with Q and O in bf16: {:.2f}. One kv head (MQA): {:.1f}", flop / (2 * K * S * H + 2 * 2 * N * H),
     flop / (2 * (2 * S * H + 2 * N * H)))
T = R * K * S / (N * (S - R))
says("It reaches R = {:.1f} at", R)
says("(S - R)}} = {:.1f} $$ so with {} tokens a sequence", T, math.ceil(T))
T = R * S / (N * (S - R))
says("With one kv head {} tokens are enough ({:.2f})", math.ceil(T), T)

# D18, 1
given("A is 1000 × 20, B is 20 × 1000, C is 1000 × 20", source="chosen")
left, right = 2 * (1000 * 20 * 1000 + 1000 * 1000 * 20), 2 * (20 * 1000 * 20 + 1000 * 20 * 20)
says("(AB)C: 2 · 2 · 1000 · 20 · 1000 = {} FLOP, with 1000 × 1000 numbers in the middle. A(BC): 2 · 2 · 20 · 1000 · "
     "20 = {}, with 20 × 20 in the middle. The ratio is 1000 / 20 = {:.0f}", groups(left), groups(right), left / right)


# 2
def scores_first(S, H, Hv):
    return 2 * S * S * (H + Hv)


def state_first(S, H, Hv):
    return 4 * S * H * Hv


S = 16384
given("S = 16384, H = Hv = 128. FLOP", source="chosen")
says("4S²H = {} FLOP and S × S scores, {:.0f} GiB. Q(KᵀV): 4SH² = {} FLOP and a state of H × H, {} bytes",
     groups(scores_first(S, H, H)), S * S * 4 / 2**30, groups(state_first(S, H, H)), groups(H * H * 4))
says("The ratio of the FLOP is S / H = {}", S // H)

# 3
given("With H = 192 and Hv = 128, from which", source="chosen")
given("in a window of 128 tokens, and by how much", source="chosen")
crossover = 2 * 192 * 128 / (192 + 128)
says("H_v}} = {:.1f} $$ In a window of 128 the scores come first, by {:.1f} / 128 = {:.1f}.", crossover,
     crossover, state_first(128, 192, 128) / scores_first(128, 192, 128))

# 4
S = 4096
given("S = 4096, H = Hv = 128, bf16, H100", source="chosen")
moved = 4 * S * H * 2
bound = max(state_first(S, H, H) / P, moved / W)
says("Both move 4SH · 2 = {} bytes, {:.2f} µs", groups(moved), moved / W * us)
says("S / 2 = {:.0f} FLOP a byte, compute-bound, {:.2f} µs", scores_first(S, H, H) / moved,
     scores_first(S, H, H) / P * us)
says("over 8SH is H / 2 = {:.0f} FLOP a byte, memory-bound at any S: its arithmetic would take {:.2f} µs, the bound is "
     "{:.2f} µs. So {:.0f} times fewer FLOP make the bound {:.1f} times shorter", state_first(S, H, H) / moved,
     state_first(S, H, H) / P * us, bound * us, scores_first(S, H, H) / state_first(S, H, H),
     scores_first(S, H, H) / P / bound)

# 5
given("the smaller one (H = Hv = 128)?", source="chosen")
state = H * H * 4
says("State: 128 · 128 · 4 = {} bytes. Cache: (128 + 128) · 2 = {} bytes a token. They are equal at {:.0f} tokens",
     groups(state), (H + H) * 2, state / ((H + H) * 2))
says("the state, {} bytes, and does 4HHv = {} FLOP: {} FLOP a byte", groups(2 * state), groups(4 * H * H),
     4 * H * H / (2 * state))

# 6
q, k, v = (1, 2, 1), (1, 1, 2), (1, 2, 3)
total = sum(a * b for a, b in zip(k, v))
states = [sum(a * b for a, b in zip(k[:t], v[:t])) for t in (1, 2, 3)]
says("KᵀV = 1 + 2 + 6 = {}, and Q(KᵀV) = {}, {}, {}. The running state is {}, {}, {}, and the causal output {}, {}, "
     "{}.", total, *(a * total for a in q), *states, *(a * s for a, s in zip(q, states)))
given("What do chunks of 64 tokens cost at H = Hv = 128?", source="chosen")
chunked, recurrent = 4 * 64 * H + 4 * H * H, 4 * H * H
says("4 · 128 · (64 + 128) = {}, against {} token by token. That is {} times the FLOP", groups(chunked),
     groups(recurrent), chunked / recurrent)

# The four questions
first = next(n for n in range(1, 2000) if matmul(n, n, n, 2)[2] >= R)
says("against P / W, {:.0f} on an H100 in bf16", R)
says("passes the ridge at n = {}", first)
says("below H / b, {} for H = 128", 128 // 2)

S, heads = 4096, 32
recompute, matrix = 2 * S * S * H * heads, S * S * heads * 2
says("the scores of 32 heads at S = 4096, H = 128 takes {:.2f}e11 FLOP, {:.0f} µs of an H100", recompute / 1e11,
     recompute / P * us)
says("reading it once is {:.2f}e9 bytes, {:.0f} µs", 2 * matrix / 1e9, 2 * matrix / W * us)

says("one FLOP for {} to {} bytes", 2 * 2, 3 * 4)
says("uses {:.3f} % of an H100's tensor peak, {:.2f} % of its vector units", 100 * W / 6 / P, 100 * W / 6 / 66.9e12)

says("Equal at B* = P·b / (2W): {:.0f} in bf16; {:.0f} with int8 weights", R, P * 1 / (2 * W))
says("{:.0f} again if the arithmetic is int8 too, at 1979 TOP/s", P_int8 * 1 / (2 * W))
given("a prompt of 2000 tokens", source="the programme")
given("64 users who decode are 64 tokens, and checking γ drafted tokens makes them 64 (γ + 1)", source="the programme")

# Ten more
for number, question in ((10, "What does the causal mask"), (11, "Why does a bigger batch"), (12, "B\\* is"),
                         (13, "You time a kernel"), (14, "`add_kernel` is")):
    given("**%d. %s" % (number, question), source="the number of the question")
says("S · S against S · H elements: {} at S = 4096, H = 128", S // H)
says("the quotient is 1 + S/H = {:.0f}", (4 * S * H + 4 * S * S) / (4 * S * H))
given("a row of scores around -200", source="chosen")
assert math.exp(-200) < 2.0**-149 < 1e-40
given("some 5e-7 in fp32", source="the programme, attention_bench.py of the course")
says("one rounding is 2{} = {:.0f}e-8", sup(-24), 2**-24 / 1e-8)
says("with a query block of 128 has an intensity of {:.0f} in", 4 * S * S * H / (2 * 2 * S * H * (1 + S // 128)))
says("S / b = {} at S = 4096", S // 2)
tiles = S // 128
seen = tiles * (tiles + 1) // 2
says("At S = 4096 with tiles of 128 there remain {} of {} tiles, {:.1f} %", seen, tiles**2, 100 * seen / tiles**2)
says("{:.2f} % are seen", 100 * (S + 1) / 2 / S)
says("B\\* is {:.0f}, and at a context of 8k an H100 holds {} sequences of Llama-3-8B. Compute the {}.", R,
     *[math.floor((80e9 - 16e9) / (kv_token * 8192))] * 2)
says("2 · 32 · 8 · 128 · 2 = {} bytes, 8192 tokens {:.0f} GiB. (80e9 - 16e9) / 2{} = {:.1f}", groups(kv_token),
     kv_token * 8192 / 2**30, sup(30), (80e9 - 16e9) / (kv_token * 8192))

# Student's t with 4 degrees of freedom, in closed form.
t4 = 2 * math.sqrt(math.cos(math.acos(math.sqrt(0.0975)) / 3) / math.sqrt(0.0975) - 1)


def inside4(t):
    """P(|T| < t) for 4 degrees of freedom."""
    x = t / math.sqrt(4 + t * t)
    return x * (3 - x * x) / 2


assert abs(inside4(t4) - 0.95) < 1e-12
given("five times, and report mean ± 1.96 s / √5", source="the usual factor of the normal distribution")
says("the factor is t = {:.3f} and not 1.96, an interval {:.1f} times as wide; the one reported holds the mean in "
     "{:.1f} % of the cases, not in 95 %", t4, t4 / 1.96, 100 * inside4(1.96))
says("started for n = 10 with BLOCK = 4")
offsets = [2 * 4 + i for i in range(4)]
says("are {} to {}, and the mask `offsets < n` leaves {} and {}", offsets[0], offsets[-1],
     *[o for o in offsets if o < 10])

# The interview
long = 131072
says("989 / 3.35 = {:.0f} FLOP a byte", R)
says("below H / b = {}", 128 // 2)
says("{:.0f} µs of FLOP for {:.0f} µs of traffic", recompute / P * us, 2 * matrix / W * us)
says("context {}: {:.0f} GiB of scores a layer", long, long**2 * heads * 2 / 2**30)
given("10 to 12 points: you may go", source="the rubric: two points for each of six steps")
given("about 300 operations for each byte", source="the example answer, rounded as the programme does")
given("nothing: about 300 operations a byte is", source="the same")
says("so below H / b = {} whatever S is", 128 // 2)
says("cheaper than traffic, {:.0f} µs against {:.0f} µs", recompute / P * us, 2 * matrix / W * us)
says("{} of {}. The question itself", 6 + 3, 2 * 6)
given("An answer of 12 points", source="the rubric")
says("989 teraflops against 3.35 terabytes a second, so an operation needs about {:.0f} FLOP", R)
says("{} for heads of 128 in bf16, far below {:.0f}", 128 // 2, R)
says("Q, K, V and O: {} times less at S = 4096", 1 + S // H)
says("For 32 heads that is {:.0f} microseconds of arithmetic in place of {:.0f} of traffic", recompute / P * us,
     2 * matrix / W * us)
says("A context of {} would need {:.0f} GiB of scores a layer; O and the logsumexp are {:.0f} GiB", long,
     long**2 * heads * 2 / 2**30, long * heads * (2 * H + 4) / 2**30)
given("Dao et al. 2022, \"FlashAttention\"", source="the year of the paper")
given("Shah et al. 2024, \"FlashAttention-3\"", source="the year of the paper")
