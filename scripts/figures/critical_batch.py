"""The time of a pass through Llama-3-8B on an H100 against the tokens in it, in three formats."""

from math import log2

from svg import Picture

W, N = 3.35e12, 8030261248
LEFT, RIGHT, TOP, BOTTOM = 60, 740, 30, 370
X, Y = (1, 4096), (1e-3, 100e-3)
FORMATS = (("bf16", 2, 989e12, "blue"), ("int8 weights, bf16 arithmetic", 1, 989e12, "orange"),
           ("int8 weights, int8 arithmetic", 1, 1979e12, "green"))

picture = Picture(760, 440, "Time of a pass against the tokens in it",
                  "Log axes. For each format the time is flat while the weights are read and rises in proportion to "
                  "the tokens above the critical batch: 295 tokens in bf16, 148 with int8 weights, 295 with int8 "
                  "arithmetic too, there in half the time. Marked are 64 sequences in decode, 320 tokens of "
                  "speculation and a prompt of 2000.")


def px(tokens):
    return LEFT + (RIGHT - LEFT) * log2(tokens / X[0]) / log2(X[1] / X[0])


def py(seconds):
    return BOTTOM - (BOTTOM - TOP) * log2(seconds / Y[0]) / log2(Y[1] / Y[0])


for tokens, what in ((64, "decode"), (320, "speculation"), (2000, "prefill")):
    picture.line(px(tokens), TOP, px(tokens), BOTTOM, "line", 1.5, stroke_dasharray="3 4")
    picture.text(px(tokens), TOP - 10, f"{what} {tokens}", fill="grey", size=13, anchor="middle")
for tick in (1, 4, 16, 64, 256, 1024, 4096):
    picture.line(px(tick), BOTTOM, px(tick), BOTTOM + 5, "grey")
    picture.text(px(tick), BOTTOM + 21, str(tick), fill="grey", size=13, anchor="middle")
for tick in (1, 3, 10, 30, 100):
    picture.line(LEFT - 5, py(tick * 1e-3), LEFT, py(tick * 1e-3), "grey")
    picture.text(LEFT - 9, py(tick * 1e-3) + 5, str(tick), fill="grey", size=13, anchor="end")
picture.line(LEFT, BOTTOM, RIGHT, BOTTOM, "grey")
picture.line(LEFT, TOP, LEFT, BOTTOM, "grey")
picture.text((LEFT + RIGHT) / 2, BOTTOM + 44, "B, tokens", anchor="middle")
picture.text(LEFT + 8, TOP + 12, "ms")

for row, (name, b, peak, colour) in enumerate(FORMATS):
    reading, critical = N * b / W, peak * b / (2 * W)
    shift = {0: 0, 1: -1.5, 2: 1.5}[row]  # so that lines on one another stay visible
    points = [(X[0], reading), (critical, reading), (X[1], 2 * N * X[1] / peak)]
    picture.path([(px(x), py(y) + shift) for x, y in points], stroke=colour, width=2.5)
    picture.circle(px(critical), py(reading) + shift, 5, fill=colour)
    picture.text(px(critical) + (8 if row == 2 else 0), py(reading) + (18 if row == 2 else -11),
                 f"B* = {critical:.0f}", fill=colour, weight="bold", anchor=None if row == 2 else "end")
    picture.text(px(1.3), py(reading) + (-12, -12, 22)[row], name, fill=colour)

picture.write(__file__)
