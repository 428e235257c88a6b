"""A row's scores arrive block by block: the running maximum, the factor that each block brings, and the sum."""

from math import exp

from svg import Picture

BLOCKS = [[1, 3], [2, 5], [4, 0], [1, 6]]  # the first two are the worked example of notes/03_online_softmax.md
LEFT, BASE, UNIT, BLOCK, BAR = 140, 216, 24, 152, 38
M, FACTOR, PARTS, STRIP, D = BASE + 52, BASE + 82, BASE + 112, BASE + 124, BASE + 168  # rows below the bars
WIDE = 76  # pixels of a sum of 1

picture = Picture(760, D + 18, "The running maximum of a row of scores",
                  "Eight scores in four blocks as bars. The running maximum m is a step line at 3, 5, 5 and 6. Below "
                  "each block stand m, the factor e to the m old minus m new, what is left of the old sum and the "
                  "block's own terms, as numbers and as a strip, and their sum d.")
for score in range(0, 7, 2):
    y = BASE - score * UNIT
    picture.line(LEFT, y, LEFT + 4 * BLOCK, y, "line")
    picture.text(LEFT - 10, y + 5, str(score), "grey", anchor="end")
picture.text(12, BASE - 6 * UNIT + 5, "scores s")
picture.text(12, M, "m", "orange", 16, weight="bold")
picture.text(12, FACTOR, "e^(m_old − m_new)", size=13)
picture.text(12, PARTS, "d · factor", "violet", 13)
picture.text(78, PARTS, "+ terms", "green", 13)
picture.text(12, D, "d", "blue", 16, weight="bold")

maximum, total, steps = None, 0.0, []
for number, block in enumerate(BLOCKS):
    x = LEFT + number * BLOCK
    middle = x + BLOCK / 2
    if number:
        picture.line(x, 44, x, D + 10, "line", stroke_dasharray="4 4")
    picture.text(middle, 28, f"block {number}", "grey", anchor="middle")
    for place, score in enumerate(block):
        left = middle + (place - 1) * (BAR + 16) + 8
        picture.rect(left, BASE - max(score * UNIT, 2), BAR, max(score * UNIT, 2), "blue-pale", "blue")
        picture.text(left + BAR / 2, BASE + 19, str(score), anchor="middle")
    old, before = maximum, total
    maximum = max(block) if old is None else max(old, *block)
    factor = 0.0 if old is None else exp(old - maximum)
    kept, new = before * factor, sum(exp(score - maximum) for score in block)
    total = kept + new
    steps += [(x, BASE - maximum * UNIT), (x + BLOCK, BASE - maximum * UNIT)]
    grown = old is not None and maximum > old
    picture.text(middle, M, str(maximum), "orange", 16, "middle", "bold")
    picture.text(middle, FACTOR, "e^(−∞) = 0" if old is None else f"e^({old} − {maximum}) = {factor:.3g}",
                 "red" if grown else "ink", 13, "middle", "bold" if grown else None)
    picture.text(middle - 7, PARTS, f"{kept:.5f}" if kept else "0", "violet", 13, "end")
    picture.text(middle, PARTS, "+", "ink", 13, "middle")
    picture.text(middle + 7, PARTS, f"{new:.5f}", "green", 13)
    strip = x + 16
    picture.rect(strip, STRIP, kept * WIDE, 16, "violet-pale", "violet")
    picture.rect(strip + kept * WIDE, STRIP, new * WIDE, 16, "green-pale", "green")
    if grown:  # what the old sum was before the factor
        picture.rect(strip, STRIP - 3, before * WIDE, 22, None, "red", stroke_dasharray="3 3")
    picture.text(middle, D, f"{total:.5f}", "blue", 16, "middle")
picture.path(steps, stroke="orange", width=3)
picture.text(LEFT + 4 * BLOCK - 6, BASE - maximum * UNIT - 8, "m", "orange", 16, "end", "bold")
picture.write(__file__)
