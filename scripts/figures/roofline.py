"""The roofline of an H100, and where the operations of attention stand on it."""

from math import log10

from svg import Picture

P, V, W = 989e12, 66.9e12, 3.35e12
S, H, B = 4096, 128, 2  # tokens, width of a head, bytes an element
LEFT, RIGHT, TOP, BOTTOM = 70, 740, 30, 400
X, Y = (0.1, 5000), (0.3e12, 2000e12)

picture = Picture(760, 460, "Roofline of an H100",
                  "Log axes, FLOP a byte against FLOP a second. A slope of 3.35 TB/s ends in a flat roof of 989 "
                  "TFLOP/s at 295 FLOP a byte. Vector addition, mask, decode, softmax, naive attention and Q times K "
                  "transposed lie on the slope, FlashAttention and a large matrix product on the flat roof.")


def px(intensity):
    return LEFT + (RIGHT - LEFT) * log10(intensity / X[0]) / log10(X[1] / X[0])


def py(rate):
    return BOTTOM - (BOTTOM - TOP) * log10(rate / Y[0]) / log10(Y[1] / Y[0])


ridge = P / W
picture.path([(px(X[0]), BOTTOM), (px(X[0]), py(X[0] * W)), (px(ridge), py(P)), (px(ridge), BOTTOM)],
             fill="blue-pale", stroke=None, width=None, close=True)
picture.path([(px(ridge), BOTTOM), (px(ridge), py(P)), (px(X[1]), py(P)), (px(X[1]), BOTTOM)],
             fill="orange-pale", stroke=None, width=None, close=True)

for tick in (0.1, 1, 10, 100, 1000):
    picture.line(px(tick), BOTTOM, px(tick), BOTTOM + 5, "grey")
    picture.text(px(tick), BOTTOM + 21, f"{tick:g}", fill="grey", size=13, anchor="middle")
for tick in (1e12, 10e12, 100e12, 1000e12):
    picture.line(LEFT - 5, py(tick), LEFT, py(tick), "grey")
    picture.text(LEFT - 9, py(tick) + 5, f"{tick / 1e12:g}", fill="grey", size=13, anchor="end")
picture.line(LEFT, BOTTOM, RIGHT, BOTTOM, "grey")
picture.line(LEFT, TOP, LEFT, BOTTOM, "grey")
picture.text((LEFT + RIGHT) / 2, BOTTOM + 44, "I, FLOP / byte", anchor="middle")
picture.text(LEFT + 8, TOP + 4, "TFLOP/s")

picture.path([(px(V / W), py(V)), (px(X[1]), py(V))], stroke="grey", width=1.5, stroke_dasharray="6 4")
picture.text(px(X[1]) - 6, py(V) + 18, f"vector units {V / 1e12:g}", fill="grey", size=13, anchor="end")
picture.path([(px(X[0]), py(X[0] * W)), (px(ridge), py(P)), (px(X[1]), py(P))], stroke="ink", width=2.5)
picture.text(px(ridge) - 4, py(P) - 10, f"P = {P / 1e12:.0f} TFLOP/s", weight="bold", anchor="end")
picture.line(px(ridge), py(P), px(ridge), BOTTOM, "ink", stroke_dasharray="2 4")
picture.text(px(ridge) + 6, BOTTOM - 10, f"P / W = {ridge:.0f}", size=13)
picture.text(px(2) - 12, py(2 * W) - 6, f"I · W,  W = {W / 1e12:g} TB/s", weight="bold", anchor="end")
picture.text(px(10), BOTTOM - 34, "memory-bound", fill="blue", size=16, anchor="middle", weight="bold")
picture.text(px(1250), BOTTOM - 34, "compute-bound", fill="orange", size=16, anchor="middle", weight="bold")

heads = 32 / 8  # query heads over kv heads of Llama-3-8B
for name, intensity, peak, dx, dy, anchor in (
        ("z = x + y", 1 / (3 * B), V, 10, 14, None),
        ("mask", 1 / (2 * B), V, 10, 14, None),
        ("softmax", 5 / (2 * B), V, 10, 14, None),
        ("decode", heads * S / (heads + S), P, 10, 14, None),
        ("naive attention", S * H / (B * (S + H)), P, -10, -6, "end"),
        ("QKᵀ", 2 * S * H / (B * (S + 2 * H)), P, -10, -6, "end"),
        ("matmul", 4096 / (1.5 * B), P, 0, 22, "middle"),
        ("FlashAttention", S / B, P, 8, -10, "middle")):
    rate = min(peak, intensity * W)
    colour = "blue" if intensity < ridge else "orange"
    picture.circle(px(intensity), py(rate), 5, fill=colour)
    picture.text(px(intensity) + dx, py(rate) + dy, name, fill=colour, anchor=anchor)

picture.write(__file__)
