"""Figures of notes/cuda/05_flash_backward.md."""

from math import ceil, exp, log

from check_notes import code, given, says

RUNG = "reference/cuda/05_flash_backward.cu"

forward, keys_kernel, queries_kernel, atomics = 2, 4, 3, 5  # products of tiles: the table's rows
ours = keys_kernel + queries_kernel
says("{} products instead of {}: {:.1f} times the work, {:.1f} forward passes at the same rate", ours, atomics,
     ours / atomics, ours / forward)
says("counted as {:.1f} times the forward's", atomics / forward)

own, visited = code(RUNG, "launch_larger<Tile<64, {}, {}>")
H, S = 64, 256
says("A tile of {0} rows is owned, so each tensor is read once as own rows and ⌈S / {0}⌉ times as visited rows. For S "
     "= {1} and H = {2}: K, V and Q at most {3} times", own, S, H, 1 + ceil(S / own))
across, down = code(RUNG, "kThreadsX = head_dim < 64 ? 8 : {}, kThreadsY = {},")
says("A thread of the first kernel has {0} x {1} scores, {0} x {1} of dP, and {0} x {2} elements of dK and of dV",
     own // down, visited // across, H // across)
says("are little against {} · {} · {} · {} multiply-adds", keys_kernel, own, visited, H)

given("Two query heads share one kv head; one query each, two keys, H = 1, scale 0.5. Q = 1 in head 0 and 0 in head "
      "1, K = 0, 2 ln 3, V = 4, 8, dO = 1 and 2", source="Heads.WorkedExampleOfTheNote")
scale, Q, K, V, dO = 0.5, (1, 0), (0, 2 * log(3)), (4, 8), (1, 2)
S = [[scale * q * k for k in K] for q in Q]
lse = [log(sum(map(exp, row))) for row in S]
P = [[exp(s - l) for s in row] for row, l in zip(S, lse)]
O = [sum(p * v for p, v in zip(row, V)) for row in P]
delta = [o * do for o, do in zip(O, dO)]
dP = [[do * v for v in V] for do in dO]
dS = [[p * (dp - x) for p, dp in zip(*rows)] for rows, x in zip(zip(P, dP), delta)]
dV, dK = ([factor * sum(w[head][key] * row[head] for head in (0, 1)) for key in (0, 1)]
          for factor, w, row in ((1, P, dO), (scale, dS, Q)))
dQ = [scale * sum(ds * k for ds, k in zip(row, K)) for row in dS]


def g(*values):
    return ["{:g}".format(round(value, 9)) for value in values]


for head, scores in enumerate(("0, ln 3", "0, 0")):
    says("| {} | {} | ln {} | {}, {} | {} | {} | {}, {} | {}, {} |", head, scores,
         *g(exp(lse[head]), *P[head], O[head], delta[head], *dP[head], *dS[head]))
says("dV = {} · 1 + {} · 2 = {} and {} · 1 + {} · 2 = {}.", *g(P[0][0], P[1][0], dV[0], P[0][1], P[1][1], dV[1]))
says("dK = {} · ({} · 1 - 2 · 0) = {} and {}.", scale, *g(dS[0][0], *dK))
says("dQ = {} · {} · 2 ln 3 = {:.5f} in head 0, and {} · 2 · 2 ln 3 = {:.5f} in head 1", scale, *g(dS[0][1]), dQ[0],
     scale, dQ[1])
given("Dao et al. 2022, algorithm 4 (appendix B); Dao 2023, section 3.2, where dQ is added by atomics",
      source="the papers")
