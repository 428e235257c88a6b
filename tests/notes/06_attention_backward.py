"""Figures of notes/06_attention_backward.md."""
from math import exp, log
from statistics import median

from check_notes import given, record, says

S, N, H, b = 4096, 32, 128, 2
P, W, EXP = 989e12, 3.35e12, 132 * 16 * 1.83e9  # H100 SXM: bf16, HBM3; exponentials of all SMs
GiB, MiB = 2 ** 30, 2 ** 20


def sci(x):
    return f"{x:.2e}".replace("e+0", "e").replace("e+", "e")


given("*Time: 2.5 h", source="the week, in CMakeLists.txt")

P_bytes = N * S * S * b
says("{:.0f} GiB for each layer and example at S = 4096, 32 heads and fp16", P_bytes / GiB)
given("1. S = 4096, 32 heads, H = 128, two bytes an element", source="the programme of the week")

product = 2 * S * S * H * N  # FLOP of one matrix product of all heads
again, exps, stored = product / P * 1e6, N * S * S / EXP * 1e6, 2 * P_bytes / W * 1e6
says("With H = 128 the scores take 2·S²·H FLOP a head: 2 · 4096² · 128 · 32 = {} for 32 heads, {:.0f} µs at 989 "
     "TFLOP/s", sci(product), again)
says("16 a clock and SM, 132 SMs at 1.83 GHz, so {} a second, and S² of them for each of the 32 heads take {:.0f} µs "
     "too", sci(EXP), exps)
says("Writing {:.0f} GiB and reading it back is {} bytes, {:.0f} µs at 3.35 TB/s", P_bytes / GiB,
     sci(2 * P_bytes), stored)
says("computing P again takes {:.0f} µs, less than half", again + exps)
assert again + exps < stored / 2
moved = 1 + 1 + 3 + 1 + 1  # P; dP; P, dP and dS; dS; dS
says("| P kept, a kernel for each step | 4 | {} | {:.0f} µs | {:.0f} µs | memory |", moved, 4 * again,
     moved * P_bytes / W * 1e6)
says("| P recomputed, one loop over tiles | 5 | 0 | {:.0f} µs | {:.0f} µs | arithmetic |", 5 * again,
     8 * S * H * N * b / W * 1e6)
traffic = moved * P_bytes / W * 1e3, 8 * S * H * N * b / W * 1e3
says("It adds {:.0f} µs of arithmetic and takes {:.2f} ms of traffic away: the bound falls from {:.0f} to {:.0f} µs",
     again, traffic[0] - traffic[1], 1e3 * traffic[0], 5 * again)
says("{:.1f} MiB in place of 1 GiB", N * S * 4 / MiB)
says("In a model of 32 layers that is {:.0f} GiB for each example against {:.0f} MiB", 32 * P_bytes / GiB,
     32 * N * S * 4 / MiB)
says("the factor {} in published FLOP counts", 5 / 2)

scale, Q, K, V, dO = 0.5, (1, 0), (0, 2 * log(3)), (4, 8), (1, 2)
given("head_dim 1, scale 0.5. Q = (1, 0), K = (0, 2 ln 3), V = (4, 8), dO = (1, 2)", source="chosen")
scores = [[scale * q * k for k in K] for q in Q]
given("| S | 0, ln 3 | 0, 0 | 0.5 · Q K |", source="the scale, chosen")
lse = [log(sum(map(exp, row))) for row in scores]
weights = [[exp(s - l) for s in row] for row, l in zip(scores, lse)]
O = [sum(p * v for p, v in zip(row, V)) for row in weights]
delta = [o * d for o, d in zip(O, dO)]
dS = [[p * (d * v - e) for p, v in zip(row, V)] for row, d, e in zip(weights, dO, delta)]
says("| P | {:.2f}, {:.2f} | {:.1f}, {:.1f} | exp(S - lse) |", *weights[0], *weights[1])
says("| delta | {:.0f} | {:.0f} | O · dO |", *delta)
says("| dP | 4, 8 | {:.0f}, {:.0f} | dO · V |", dO[1] * V[0], dO[1] * V[1])
says("| dS | {:.2f}, {:.2f} | {:.0f}, {:.0f} | P · (dP - delta); each row adds up to 0 |", *dS[0], *dS[1])
dQ = [scale * sum(s * k for s, k in zip(row, K)) for row in dS]
says("| dQ | {:.2f} ln 3 = {:.5f} | {:.0f} ln 3 = {:.5f} | 0.5 · dS K |", dQ[0] / log(3), dQ[0], dQ[1] / log(3), dQ[1])
says("dV = ({:.2f} · 1 + {} · 2, {:.2f} · 1 + {} · 2) = ({:.2f}, {:.2f})", weights[0][0], weights[1][0], weights[0][1],
     weights[1][1], *(sum(weights[i][j] * dO[i] for i in (0, 1)) for j in (0, 1)))
says("dK = 0.5 · ({:.2f} · 1 - 2 · 0, {:.2f} · 1 + 2 · 0) = ({:.3f}, {:.3f})", *dS[0],
     *(scale * sum(dS[i][j] * Q[i] for i in (0, 1)) for j in (0, 1)))

says("written and read back it is {} bytes, {:.0f} µs at 3.35 TB/s. The scores again are {:.0f} µs of the tensor "
     "cores, the exponentials {:.0f} µs of their own units, at most {:.0f} µs together.", sci(2 * P_bytes), stored,
     again, exps, again + exps)
says("it is {:.0f} µs of traffic against {:.0f} µs of arithmetic", moved * P_bytes / W * 1e6, 5 * again)
says("Five products, {} forward passes", 5 / 2)
says("S, dP, dV, dQ, dK against S and P V: {} forward passes at the same rate", 5 / 2)
says("seven products in two kernels, {} forward passes", 7 / 2)
ladder = record("ladder_h200.json")


def ms(kind, rung):
    return next(median(one["samples_ms"]) for one in ladder[kind] if one["rung"] == "cuda/" + rung and one["seqlen"] == 8192
                and one["head_dim"] == 64 and not one["causal"])


says("on an H200 it takes {:.2f} times as long as rung 03 at S = 8192 and H = 64",
     ms("backward", "05_flash_backward") / ms("forward", "03_flash_forward"))
