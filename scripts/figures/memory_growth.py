"""Bytes of the score matrix, and of what FlashAttention keeps (O and lse), up to a context of 131072; log axes."""

from math import log2

from svg import Picture

HEADS, HEAD_DIM, BYTES, LSE_BYTES = 32, 128, 2, 4  # of one layer and one example: fp16, lse in fp32
LENGTHS = [2**power for power in range(10, 18)]
SIZES = [2**power for power in range(22, 42, 2)]  # 4 MiB to 1 TiB
HBM = 80e9
X, Y, RIGHT, TOP = 92, 344, 620, 40

scores = [HEADS * length**2 * BYTES for length in LENGTHS]  # score_matrix_bytes()
kept = [HEADS * length * (HEAD_DIM * BYTES + LSE_BYTES) for length in LENGTHS]


def x(length):
    return X + (RIGHT - X) * log2(length / LENGTHS[0]) / log2(LENGTHS[-1] / LENGTHS[0])


def y(size):
    return Y - (Y - TOP) * log2(size / SIZES[0]) / log2(SIZES[-1] / SIZES[0])


def shown(size):
    for unit, scale in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"


picture = Picture(760, 400, "Memory of attention against the context",
                  f"Log axes. The score matrix grows with slope 2, from {shown(scores[0])} at a context of 1024 "
                  f"through {shown(scores[2])} at 4096 to {shown(scores[-1])} at 131072, and passes the 80 GB of an "
                  f"H100 between 32768 and 65536. O and lse grow with slope 1, from {shown(kept[0])} to "
                  f"{shown(kept[-1])}.")
for size in SIZES:
    picture.line(X, y(size), RIGHT, y(size), "line")
    picture.text(X - 8, y(size) + 5, shown(size), "grey", 13, "end")
for length in LENGTHS:
    picture.line(x(length), Y, x(length), Y + 5, "grey")
    picture.text(x(length), Y + 22, str(length), "grey", 13, "middle")
picture.text((X + RIGHT) / 2, Y + 46, "S", anchor="middle", weight="bold")
picture.line(X, y(HBM), RIGHT, y(HBM), "red", 1.5, stroke_dasharray="6 4")
picture.text(X + 6, y(HBM) - 7, "H100: 80 GB HBM", "red", 13)
for colour, sizes, label in (("orange", scores, "S × S"), ("blue", kept, "O + lse")):
    picture.path([(x(length), y(size)) for length, size in zip(LENGTHS, sizes)], stroke=colour, width=2.5)
    for length, size in zip(LENGTHS, sizes):
        picture.circle(x(length), y(size), 4, colour)
    picture.text(RIGHT + 12, y(sizes[-1]) + 5, label, colour, 15, weight="bold")
    picture.text(RIGHT + 12, y(sizes[-1]) + 24, shown(sizes[-1]), colour, 13)
    at = LENGTHS.index(4096)
    above = sizes is scores
    picture.text(x(4096) + (-10 if above else 10), y(sizes[at]) + (-6 if above else 18), shown(sizes[at]), colour, 13,
                 "end" if above else None)
picture.write(__file__)
