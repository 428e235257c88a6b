"""SVG pictures of the notes: shapes and text whose colours follow the reader's light or dark scheme.

    picture = Picture(760, 300, title="What it is", desc="What it shows, for those who cannot see it")
    picture.rect(10, 10, 80, 40, fill="blue-pale", stroke="blue")
    picture.text(50, 35, "tile", anchor="middle")
    picture.write(__file__)                 # scripts/figures/NAME.py writes notes/figures/NAME.svg

`python3 scripts/figures/NAME.py --scheme dark FILE` writes one scheme's colours on its background to FILE, for
looking at it in a program that knows no media queries. The same calls write the same bytes.
"""

import argparse
import math
import re
from html import escape
from pathlib import Path

COLOURS = {  # name: (light, dark). -pale is for areas behind text.
    "ink": ("#1f2328", "#e6edf3"), "grey": ("#636c76", "#9198a1"), "line": ("#c4cad1", "#444c56"),
    "paper": ("#ffffff", "#0d1117"), "pale": ("#eef1f4", "#21262d"),
    "blue": ("#0a5cc4", "#6cb0ff"), "blue-pale": ("#d4e6fc", "#17375e"),
    "orange": ("#b35000", "#f0a050"), "orange-pale": ("#fde3c8", "#54320f"),
    "green": ("#1a7f37", "#5fd07a"), "green-pale": ("#d3f2da", "#153d22"),
    "red": ("#c42b2b", "#ff8a80"), "red-pale": ("#fbdada", "#5c1d1d"),
    "violet": ("#7a3fc4", "#c4a1ff"), "violet-pale": ("#e9dcfb", "#3b2462"),
}


def number(value):
    """A coordinate in at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


class Picture:
    def __init__(self, width, height, title, desc):
        self.width, self.height, self.title, self.desc = width, height, title, desc
        self.parts = []

    def add(self, tag, fill=None, stroke=None, content=None, **attributes):
        """One element. fill and stroke name a colour; of other attributes _ becomes -, numbers are rounded."""
        kinds = [f"{kind}-{colour}" for kind, colour in (("f", fill), ("s", stroke)) if colour]
        assert all(kind[2:] in COLOURS for kind in kinds), kinds
        given = {"class": " ".join(kinds)} if kinds else {}
        given.update((key.replace("_", "-"), value) for key, value in attributes.items() if value is not None)
        written = "".join(f' {key}="{escape(value if isinstance(value, str) else number(value))}"'
                          for key, value in given.items())
        self.parts.append(f"<{tag}{written}/>" if content is None else f"<{tag}{written}>{escape(content)}</{tag}>")

    def rect(self, x, y, width, height, fill=None, stroke=None, **more):
        self.add("rect", fill, stroke, x=x, y=y, width=width, height=height, **more)

    def circle(self, x, y, r, fill=None, stroke=None, **more):
        self.add("circle", fill, stroke, cx=x, cy=y, r=r, **more)

    def line(self, x1, y1, x2, y2, stroke="ink", width=1, **more):
        self.add("line", None, stroke, x1=x1, y1=y1, x2=x2, y2=y2, stroke_width=width, **more)

    def path(self, points, fill=None, stroke="ink", width=2, close=False, **more):
        d = "M" + " L".join(f"{number(x)} {number(y)}" for x, y in points) + (" Z" if close else "")
        self.add("path", fill, stroke, d=d, stroke_width=width, **more)

    def arrow(self, x1, y1, x2, y2, stroke="ink", width=1.5, head=8):
        """A line from the first point to the second, with its head there."""
        length = math.hypot(x2 - x1, y2 - y1)
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        bx, by = x2 - head * ux, y2 - head * uy
        self.line(x1, y1, bx, by, stroke, width)
        self.path([(x2, y2), (bx - uy * head / 2, by + ux * head / 2), (bx + uy * head / 2, by - ux * head / 2)],
                  stroke, None, None, close=True)

    def text(self, x, y, content, fill="ink", size=14, anchor=None, weight=None, **more):
        """y is the baseline; anchor is None (start), "middle" or "end"."""
        assert size * 760 / max(self.width, 760) >= 12, f"too small to read: {content}"
        self.add("text", fill, None, content, x=x, y=y, font_size=size, text_anchor=anchor, font_weight=weight, **more)

    def svg(self, scheme=None):
        background = ['<rect class="f-paper" width="100%" height="100%"/>'] if scheme else []
        used = set(" ".join(re.findall('class="([^"]*)"', "".join(background + self.parts))).split())

        def rules(index):
            kinds = (("f", "fill"), ("s", "stroke"))
            return " ".join(f".{k}-{name}{{{kind}:{colour[index]}}}" for name, colour in COLOURS.items()
                            for k, kind in kinds if f"{k}-{name}" in used)
        dark = ["", rules(1)][scheme == "dark"] if scheme else "@media (prefers-color-scheme: dark){%s}" % rules(1)
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" fill="none" font-family="system-ui, -apple-system, Segoe UI, Roboto, sans-serif">',
            f"<title>{escape(self.title)}</title>", f"<desc>{escape(self.desc)}</desc>",
            f"<style>{rules(0)} {dark}</style>", *background, *self.parts, "</svg>", ""])

    def write(self, script):
        """To notes/figures/NAME.svg, NAME being the script's; or as the command line says."""
        parser = argparse.ArgumentParser(description=self.title)
        parser.add_argument("--scheme", nargs=2, metavar=("light|dark", "FILE"))
        scheme, path = parser.parse_args().scheme or (
            None, Path(script).resolve().parents[2] / "notes" / "figures" / (Path(script).stem + ".svg"))
        Path(path).write_text(self.svg(scheme), encoding="utf-8", newline="\n")
