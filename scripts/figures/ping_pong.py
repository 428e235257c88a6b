#!/usr/bin/env python3
"""Products and softmax of two warpgroups on an H100: one after the other, and in ping-pong.

Lengths are those of notes/flash_versions.md at H = 128: a tile's exponentials take half the time of its products.
"""

from svg import Picture

RATIO = 989e12 / (132 * 16 * 1.83e9) / (4 * 128)  # exponentials in the time of the products
WIDTH, LEFT, UNIT, HIGH, ROUNDS = 760, 150, 92, 34, 3

picture = Picture(WIDTH, 304, "Ping-pong scheduling",
                  "Above: one warpgroup does products, then softmax, and the tensor cores wait a third of the time. "
                  "Below: two warpgroups take turns, softmax of one runs under the products of the other, and the tensor "
                  "cores do not wait.")


def bar(row_y, start, length, label, fill):
    picture.rect(LEFT + start * UNIT, row_y, length * UNIT, HIGH, fill, "line")
    picture.text(LEFT + (start + length / 2) * UNIT, row_y + 22, label, size=13, anchor="middle")


def row(y, name, offset, period, until):
    picture.text(LEFT - 12, y + 22, name, anchor="end")
    start = offset
    while start + 1 <= until + 1e-9:
        bar(y, start, 1, "QKᵀ, PV", "blue-pale")
        if start + 1 + RATIO <= until + 1e-9:
            bar(y, start + 1, RATIO, "exp", "orange-pale")
        start += period


def busy(y, share):
    picture.text(LEFT, y, f"tensor cores busy: {100 * share:.0f} %", "grey")


end = 2 * ROUNDS
picture.text(20, 28, "one after the other", weight="bold")
row(42, "warpgroup 1", 0, 1 + RATIO, end)
busy(98, 1 / (1 + RATIO))
picture.text(20, 146, "ping-pong", weight="bold")
row(160, "warpgroup 1", 0, 2, end)
row(160 + HIGH + 8, "warpgroup 2", 1, 2, end)
busy(160 + 2 * HIGH + 30, 1)
picture.arrow(LEFT, 284, LEFT + end * UNIT, 284, "grey")
picture.text(LEFT - 12, 289, "time", "grey", anchor="end")
picture.write(__file__)
