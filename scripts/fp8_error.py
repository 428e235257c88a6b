#!/usr/bin/env python3
"""What 8-bit numbers cost in attention: emulates the rounding and prints the table of notes/flash_versions.md.

Q, K, V and the weights P are rounded, sums are exact; the reference is the same attention in double precision. Errors
are root mean squares over elements of O and over seeds. Standard library only, some seconds. `--record FILE` writes
e4m3's errors for five other sets of seeds, which say how much of the table is chance: notes/data/fp8_error_seeds.json.
"""

import argparse
import json
import math
import random
from operator import mul

KEYS, QUERIES, HEAD_DIM, BLOCK = 128, 16, 64, 32
SEEDS = range(4)


def e4m3(x):
    """To the nearest with 4 bits of exponent and 3 of mantissa, ties to even: 448 at most, steps of 2^-9 at least."""
    step = 2.0 ** (max(math.frexp(x)[1] - 1, -6) - 3)
    return max(-448.0, min(448.0, round(x / step) * step))


def int8(x):
    return max(-127.0, min(127.0, float(round(x))))


FORMATS = {"e4m3": (e4m3, 448.0), "int8": (int8, 127.0)}


def rounded(rows, name, block):
    """Each `block` rows share a scale that puts their largest element at the largest number of the format."""
    to, top = FORMATS[name]
    result = []
    for first in range(0, len(rows), block):
        part = rows[first:first + block]
        scale = max(abs(x) for row in part for x in row) / top
        result += [[to(x / scale) * scale for x in row] for row in part]
    return result


def rotated(row, signs):
    """A random sign for each element, then the Walsh-Hadamard transform: an orthogonal matrix in n log2 n additions."""
    row, width = [x * s for x, s in zip(row, signs)], 1
    while width < len(row):
        for i in range(len(row)):
            if not i & width:
                row[i], row[i + width] = row[i] + row[i + width], row[i] - row[i + width]
        width *= 2
    return [x / math.sqrt(len(row)) for x in row]


def attention(Q, K, V, weight=lambda p: p):
    scale, columns, O = 1 / math.sqrt(len(Q[0])), list(zip(*V)), []
    for q in Q:
        scores = [scale * sum(map(mul, q, k)) for k in K]
        m = max(scores)
        P = [math.exp(s - m) for s in scores]
        d, P = sum(P), [weight(p) for p in P]
        O.append([sum(map(mul, P, v)) / d for v in columns])
    return O


def normal(rng, h):
    return rng.gauss(0, 1)


def outliers(rng, h):
    """As in the FlashAttention-3 paper: one element of a thousand has a second term of variance 100."""
    return rng.gauss(0, 1) + (rng.gauss(0, 10) if rng.random() < 0.001 else 0)


def loud(rng, h):
    """Two columns ten times as large as the others, the same two in Q and in K."""
    return rng.gauss(0, 1) * (10 if h < 2 else 1)


DATA = {"normal": (normal, normal), "outliers": (outliers, outliers), "two loud columns": (loud, normal)}


def errors(data, name, seeds=SEEDS):
    """RMSE with one scale a tensor, a scale a block, one scale after rotation, both, and of V and P alone."""
    squares, rounds = [0.0] * 5, 0
    to, top = FORMATS[name]
    # P is at most 1. Sums and outputs are divided by the factor again, so that it only uses the format's range.
    factor = 256.0 if name == "e4m3" else top
    def weight(p):
        return to(p * factor) / factor
    for seed in seeds:
        rng = random.Random(seed)
        of_qk, of_v = DATA[data]
        Q, K, V = ([[of(rng, h) for h in range(HEAD_DIM)] for _ in range(n)]
                   for of, n in ((of_qk, QUERIES), (of_qk, KEYS), (of_v, KEYS)))
        signs = [rng.choice((-1, 1)) for _ in range(HEAD_DIM)]
        turned = [[rotated(row, signs) for row in X] for X in (Q, K)]
        exact, near = attention(Q, K, V), {block: rounded(V, name, block) for block in (KEYS, BLOCK)}
        ways = [(*(rounded(X, name, block) for X in QK), Vr) for QK in ((Q, K), turned) for block, Vr in near.items()]
        for i, way in enumerate([*ways, (Q, K, near[KEYS])]):
            O = attention(*way, weight)
            squares[i] += sum((x - y) ** 2 for a, b in zip(O, exact) for x, y in zip(a, b))
        rounds += QUERIES * HEAD_DIM
    return [math.sqrt(s / rounds) for s in squares]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", metavar="FILE")
    path = parser.parse_args().record
    if path:
        sets = [{"seeds": [first, first + 6], **{data: errors(data, "e4m3", range(first, first + 6)) for data in DATA}}
                for first in range(10, 60, 10)]
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write("[" + ",\n ".join(map(json.dumps, sets)) + "]\n")
        return
    print("| Q and K | format | one scale | block scales | rotated | both | V and P alone |")
    print("|---|---|---|---|---|---|---|")
    for name in FORMATS:
        for data in DATA:
            print(f"| {data} | {name} | " + " | ".join(f"{error:.4f}" for error in errors(data, name)) + " |")


if __name__ == "__main__":
    main()
