#!/usr/bin/env python3
"""Decode: the cache cut into parts, attended to apart and merged; the row sees no key of the third part.

The numbers are those of the worked example of notes/07_decode_attention.md, with a part more.
"""

import math

from svg import Picture

SCORES = [[(0.0, "0"), (math.log(3), "ln 3")], [(math.log(2), "ln 2"), (math.log(6), "ln 6")], []]
VALUES = [[4, 8], [3, 9], []]
HIDDEN = 2  # keys of the last part
LEFT, CELL, HIGH, GAP, WIDTH = 118, 78, 34, 46, 760


def attend(scores, values):
    d = sum(math.exp(s) for s, _ in scores)
    O = sum(math.exp(s) * v for (s, _), v in zip(scores, values)) / d if d else 0
    return d, O


def log(d):
    return f"ln {d:.0f}" if d else "−∞"


picture = Picture(WIDTH, 340, "Split-KV decode",
                  "A cache of six keys in three parts. Each part gives O and lse; the third, whose keys the row does not "
                  "see, gives O = 0 and lse = minus infinity. The merge weighs the parts by exp(lse - max) and divides "
                  "by the sum of the weights.")
parts = [attend(s, v) for s, v in zip(SCORES, VALUES)]
largest = max(d for d, _ in parts)
weights = [d / largest for d, _ in parts]
O = sum(w * o for w, (_, o) in zip(weights, parts)) / sum(weights)
cells_y, boxes_y, merge_y = 62, 150, 270
for label, y in (("score", cells_y), ("V", cells_y + HIGH)):
    picture.text(LEFT - 14, y + 22, label, "grey", anchor="end")
picture.text(LEFT - 14, boxes_y + 32, "partial", "grey", anchor="end")
picture.text(LEFT - 14, merge_y + 32, "merge", "grey", anchor="end")
centres = []
for p, (d, o) in enumerate(parts):
    x = LEFT + p * (2 * CELL + GAP)
    centre = x + CELL
    centres.append(centre)
    picture.text(centre, 28, f"part {p}", anchor="middle", weight="bold")
    for i in range(HIDDEN):
        seen = bool(d)
        for row, content in enumerate((SCORES[p][i][1] if seen else "−∞", str(VALUES[p][i]) if seen else "·")):
            fill = ("blue-pale", "orange-pale")[row] if seen else "pale"
            picture.rect(x + i * CELL, cells_y + row * HIGH, CELL, HIGH, fill, "line")
            picture.text(x + (i + 0.5) * CELL, cells_y + row * HIGH + 22, content, "ink" if seen else "grey",
                         anchor="middle")
    picture.arrow(centre, cells_y + 2 * HIGH, centre, boxes_y)
    picture.rect(x, boxes_y, 2 * CELL, 50, "green-pale" if d else "pale", "line", rx=5)
    picture.text(centre, boxes_y + 21, f"O = {o:g}", anchor="middle")
    picture.text(centre, boxes_y + 41, f"lse = {log(d)}", anchor="middle")
middle = (centres[0] + centres[-1]) / 2
for p, centre in enumerate(centres):
    target = middle + (p - 1) * 90
    picture.arrow(centre, boxes_y + 50, target, merge_y, "ink" if weights[p] else "grey")
    picture.text((centre + target) / 2 + 12, (boxes_y + 50 + merge_y) / 2 + (4, 4, 14)[p],
                 f"w = {weights[p]:g}", "ink" if weights[p] else "grey")
picture.rect(middle - 190, merge_y, 380, 54, "violet-pale", "line", rx=5)
terms = " + ".join(f"{w:g}·{o:g}" for w, (_, o) in zip(weights, parts) if w)
picture.text(middle, merge_y + 22, f"O = ({terms}) / {sum(weights):g} = {O:.5f}", anchor="middle")
picture.text(middle, merge_y + 43, f"lse = {log(largest)} + ln {sum(weights):g} = {log(largest * sum(weights))}",
             anchor="middle")
picture.write(__file__)
