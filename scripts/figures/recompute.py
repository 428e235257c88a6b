#!/usr/bin/env python3
"""What the backward pass keeps, and what P costs on an H100: stored and read back, or computed again.

The numbers are those of notes/06_attention_backward.md: S = 4096, 32 heads, H = 128, two bytes an element.
"""

from svg import Picture

S, N, H, B = 4096, 32, 128, 2
FLOP_S, BYTES_S, EXP_S = 989e12, 3.35e12, 132 * 16 * 1.83e9
WIDTH, LEFT = 760, 150

P_bytes, lse_bytes = N * S * S * B, N * S * 4
once = P_bytes / BYTES_S * 1e6
matmul = 2 * S * S * H * N / FLOP_S * 1e6
exps = S * S * N / EXP_S * 1e6

picture = Picture(WIDTH, 362, "Recomputing P against storing it",
                  "Above: the forward pass leaves only O and lse in main memory; the backward pass reads them with Q, "
                  "K, V and dO and makes S and P again on the chip. Below: writing and reading P takes "
                  f"{2 * once:.0f} microseconds on an H100, computing the scores again {matmul:.0f} and the "
                  f"exponentials again {exps:.0f}.")


def box(x, y, width, height, title, lines, fill):
    picture.rect(x, y, width, height, fill, "line", rx=6)
    picture.text(x + width / 2, y + 22, title, anchor="middle", weight="bold")
    for i, line in enumerate(lines):
        picture.text(x + width / 2, y + 44 + 19 * i, line, anchor="middle")


# Three boxes in a row with gaps for the arrows between them.
gap, y, height = 46, 20, 106
width = (WIDTH - 2 * 20 - 2 * gap) / 3
xs = [20 + i * (width + gap) for i in range(3)]
box(xs[0], y, width, height, "forward", ["S = scale · Q Kᵀ", "P = softmax(S)", "O = P V"], "blue-pale")
box(xs[1], y, width, height, "HBM",
    ["Q, K, V, O", f"lse: {lse_bytes / 2**20:g} MiB", f"no P ({P_bytes / 2**30:g} GiB)"], "pale")
box(xs[2], y, width, height, "backward", ["S = scale · Q Kᵀ", "P = exp(S − lse)", "dV, dP, dS, dQ, dK"], "green-pale")
for i, label in enumerate(("O, lse", "+ dO")):
    x = xs[i] + width
    picture.arrow(x + 3, y + height / 2, x + gap - 3, y + height / 2)
    picture.text(x + gap / 2, y + height / 2 - 10, label, size=13, anchor="middle")

# Bars to one scale.
top, high, step = 178, 30, 48
scale = (WIDTH - LEFT - 30) / (2 * once)
rows = [("store P", [("write", once, "red-pale"), ("read", once, "red-pale")]),
        ("Q Kᵀ again", [("", matmul, "blue-pale")]),
        ("exp again", [("", exps, "orange-pale")])]
for r, (label, bars) in enumerate(rows):
    y, x = top + r * step, LEFT
    picture.text(LEFT - 12, y + 20, label, anchor="end")
    for name, us, fill in bars:
        picture.rect(x, y, us * scale, high, fill, "line")
        inside = f"{name} {us:.0f} µs".strip()
        picture.text(x + us * scale / 2, y + 20, inside, anchor="middle")
        x += us * scale
axis = top + len(rows) * step + 4
picture.line(LEFT, axis, LEFT + 2 * once * scale, axis, "grey")
for us in range(0, int(2 * once) + 1, 100):
    picture.line(LEFT + us * scale, axis, LEFT + us * scale, axis + 6, "grey")
    picture.text(LEFT + us * scale, axis + 22, f"{us}", "grey", 13, "middle")
picture.text(LEFT - 12, axis + 22, "µs", "grey", 13, "end")
picture.write(__file__)
