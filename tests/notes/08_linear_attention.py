"""Figures of notes/08_linear_attention.md."""
from check_notes import given, groups, says


def two_products(m, k, n, p):
    """FLOP of m × k, k × n and n × p: the left pair first, the right pair first."""
    return 2 * (m * k * n + m * n * p), 2 * (k * n * p + m * k * p)


given("For 10 × 100, 100 × 5 and 5 × 50", source="chosen")
left, right = two_products(10, 100, 5, 50)
says("the left pair first takes 2 · (10·100·5 + 10·5·50) = {} FLOP, the right pair first 2 · (100·5·50 + 10·100·50) = "
     "{}.", groups(left), groups(right))
given("the matrix in the middle: 10 × 5 or 100 × 50", source="the sizes above")

S, H, Hv = 4096, 128, 128
scores, state = 2 * S * S * (H + Hv), 4 * S * H * Hv
assert (scores, state) == two_products(S, H, S, Hv)
given("S = 4096, H = Hv = 128. How many FLOP", source="chosen")
given("Decoding token 100 000", source="chosen")
given("| order | middle | FLOP a head | at S = 4096, H = Hv = 128 |", source="chosen")
says("2 S² H + 2 S² Hv = 2 S² (H + Hv) | {} |", groups(scores))
says("2 S H Hv + 2 S H Hv = 4 S H Hv | {} |", groups(state))


def crossover(h, hv):
    return 2 * h * hv / (h + hv)


says("{:.2f} for (128, 64), {:.1f} for (192, 128)", crossover(128, 64), crossover(192, 128))
says("when the dimensions are equal: {:.0f} times in the table", scores / state)
given("1e30 · 1e30 is infinite in fp32, and 1e30 · 1e-30 is not", source="the tests")
given("At H = Hv = 128", source="chosen")
cache = H + Hv
says("that is {} elements, what a cache holds after {:.0f} tokens; after 4096 tokens the cache is {:.0f} times as "
     "large", groups(H * Hv), H * Hv / cache, S * cache / (H * Hv))
given("chunks of, say, 64 tokens", source="chosen")

says("{:.1f} GFLOP with the scores, {:.2f} GFLOP with the state, {:.0f} times less. Equal at S = {:.0f}, where H = Hv "
     "= 128", scores / 1e9, state / 1e9, scores / state, crossover(H, Hv))
says("With H = Hv = 128 the cache of a head holds 100 000 · {} = {} elements, {:.1f} MB in bf16. The state holds {}, "
     "{:.0f} KB, for token 1 as for token 100 000.", cache, groups(100000 * cache), 2 * 100000 * cache / 1e6,
     groups(H * Hv), 2 * H * Hv / 1e3)
