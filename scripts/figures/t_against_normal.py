#!/usr/bin/env python3
"""What 1.96 does with n samples: how much wider the honest interval is, and how often the narrow one holds the mean."""

import math
import sys
from pathlib import Path

from svg import Picture

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from note_statistics import critical, tail  # noqa: E402

COUNTS = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100]
ZERO, MARKED = 1.96, 5
TOP, BOTTOM, WIDE = 62, 262, 280  # of both panels


def panel(picture, left, title, low, high, ticks, unit, values, honest):
    def x(n):
        return left + WIDE * math.log(n / COUNTS[0]) / math.log(COUNTS[-1] / COUNTS[0])

    def y(value):
        return BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low)

    picture.text(left, TOP - 34, title, weight="bold")
    for tick in ticks:
        picture.line(left, y(tick), left + WIDE, y(tick), "line")
        picture.text(left - 8, y(tick) + 4, f"{tick}{unit}", "grey", 13, "end")
    for n in (2, 5, 10, 30, 100):
        picture.text(x(n), BOTTOM + 20, str(n), "grey", 13, "middle")
        picture.line(x(n), BOTTOM, x(n), BOTTOM + 5, "grey")
    picture.line(left, BOTTOM, left + WIDE, BOTTOM, "grey")
    picture.text(left + WIDE / 2, BOTTOM + 40, "samples n", "grey", 13, "middle")
    picture.line(left, y(honest), left + WIDE, y(honest), "green", 2, stroke_dasharray="6 4")
    picture.path([(x(n), y(v)) for n, v in zip(COUNTS, values)], stroke="orange")
    for n, v in zip(COUNTS, values):
        picture.circle(x(n), y(v), 3.5, fill="orange")
    return x, y


def main():
    picture = Picture(
        760, 320, "1.96 against Student's t",
        "Left: t(n - 1) / 1.96 falls from 6.5 at 2 samples over 1.42 at 5 to 1 for many. Right: the true coverage of "
        "the interval with 1.96 rises from 70 % at 2 samples over 87.8 % at 5 towards 95 %.")
    ratios = [critical(n - 1) / ZERO for n in COUNTS]
    shares = [100 * (1 - tail(ZERO, n - 1)) for n in COUNTS]
    at = COUNTS.index(MARKED)
    x, y = panel(picture, 56, "t(n - 1) / 1.96", 0, 7, range(0, 8), "", ratios, 1)
    picture.text(x(MARKED) + 4, y(2.4), f"n = {MARKED}: {ratios[at]:.2f}")
    x, y = panel(picture, 446, "coverage of mean ± 1.96 s / √n", 70, 100, range(70, 101, 5), " %", shares, 95)
    picture.text(x(MARKED) + 14, y(86.5), f"n = {MARKED}: {shares[at]:.1f} %")
    picture.text(x(COUNTS[-1]), y(95) - 8, "95 %", "green", 13, "end")
    picture.write(__file__)


if __name__ == "__main__":
    main()
