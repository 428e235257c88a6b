#!/usr/bin/env python3
"""Two Pareto frontiers: the five variants of lesson 09's example, and the block sizes of the recorded bench."""

import json
import math
import statistics
from pathlib import Path

from svg import Picture

RECORD = Path(__file__).resolve().parents[2] / "notes" / "data" / "attention_bench_cpu.json"
EXAMPLE = {"a": (1, 100), "b": (2, 180), "c": (3, 180), "d": (0.5, 40), "e": (2, 170)}  # latency, throughput
TOP, BOTTOM, WIDE = 62, 262, 280


def dominates(a, b, signs):
    better = [sign * (q - p) for p, q, sign in zip(a, b, signs)]  # positive: a is better
    return min(better) >= 0 and max(better) > 0


def frontier(points, signs):
    return [name for name, p in points.items() if not any(dominates(q, p, signs) for q in points.values())]


def recorded():
    """Label: (KiB of scratch, median ms) of each block size, without the naive kernel."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    cases = {case["name"]: case for case in record["attention_bench"]["cases"]}
    points = {}
    for name in record["attention_bench"]["frontier"]["points"]:
        times = [run["real_time"] for run in record["benchmarks"]
                 if run["run_type"] == "iteration" and run["name"].startswith(name + "/iterations")]
        if name.startswith("tiled"):
            points[str(cases[name]["block"] or 64)] = (cases[name]["scratch_bytes"] / 1024, statistics.median(times))
    return points


class Panel:
    def __init__(self, picture, left, title, across, up, x, y):
        self.picture, self.left, self.x, self.y = picture, left, x, y
        picture.text(left, TOP - 34, title, weight="bold")
        picture.line(left, BOTTOM, left + WIDE, BOTTOM, "grey")
        picture.line(left, TOP, left, BOTTOM, "grey")
        picture.text(left + WIDE / 2, BOTTOM + 40, across, "grey", 13, "middle")
        picture.text(left, TOP - 12, up, "grey", 13)

    def ticks(self, across, up):
        for value in across:
            self.picture.text(self.x(value), BOTTOM + 20, f"{value:g}", "grey", 13, "middle")
            self.picture.line(self.x(value), BOTTOM, self.x(value), BOTTOM + 5, "grey")
        for value in up:
            self.picture.text(self.left - 8, self.y(value) + 4, f"{value:g}", "grey", 13, "end")
            self.picture.line(self.left - 5, self.y(value), self.left, self.y(value), "grey")

    def draw(self, points, kept, labels):
        """The frontier as steps: what a point of it dominates lies beyond its step."""
        steps = sorted((points[name] for name in kept))
        corners = [steps[0]]
        for before, after in zip(steps, steps[1:]):
            corners += [(after[0], before[1]), after]
        self.picture.path([(self.x(p), self.y(q)) for p, q in corners], stroke="green", stroke_dasharray="6 4")
        for name, (p, q) in points.items():
            on = name in kept
            self.picture.circle(self.x(p), self.y(q), 6, fill="green" if on else None, stroke="green" if on else "red",
                                stroke_width=2)
            dx, dy = labels.get(name, (0, -12))
            self.picture.text(self.x(p) + dx, self.y(q) + dy, name, "ink" if on else "grey", 14, "middle")


def main():
    picture = Picture(
        760, 320, "Two Pareto frontiers",
        "Left: of five variants a, b and d are on the frontier; c and e are dominated by b. Right: scratch memory and "
        "time of lesson 05's kernel by block size; 8, 16 and 256 are on the frontier, 32, 64 and 128 are not.")
    left = Panel(picture, 56, "variants a to e", "latency (small is good)", "throughput (large is good)",
                 lambda v: 56 + WIDE * v / 3.5, lambda v: BOTTOM - (BOTTOM - TOP) * v / 200)
    left.ticks([0, 1, 2, 3], [0, 50, 100, 150, 200])
    left.draw(EXAMPLE, frontier(EXAMPLE, (1, -1)), {"e": (16, 8)})

    points = recorded()
    low, high = math.log(4), math.log(1024)
    right = Panel(picture, 446, "block size, S = 1024", "scratch, KiB", "time, ms",
                  lambda v: 446 + WIDE * (math.log(v) - low) / (high - low),
                  lambda v: BOTTOM - (BOTTOM - TOP) * (v - 280) / (440 - 280))
    right.ticks([4, 16, 64, 256, 1024], [280, 320, 360, 400, 440])
    right.draw(points, frontier(points, (1, 1)), {"8": (14, -10), "16": (-14, 20), "256": (0, 24)})
    picture.write(__file__)


if __name__ == "__main__":
    main()
