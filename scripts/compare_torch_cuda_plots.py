#!/usr/bin/env python3
"""The plots of scripts/compare_torch_cuda.py as PNG and SVG. Needs matplotlib.

    compare_torch_cuda_plots.py RECORD.json FOLDER [--recorded]
"""

import argparse
import json
import statistics
import sys

from compare_torch_cuda_tables import roof
from plot_style import COLOUR, frame, legend_below, log_axis, plt, powers, save

# One colour for one thing: ours by its idea, PyTorch's in grey and its own two.
SERIES = {"02": ("02, naive", "#D55E00", "o"), "03": ("03, flash", "#0072B2", "s"), "04": ("04, decode", "#0072B2", "s"),
          "05": ("05, backward", "#0072B2", "s"), "chain": ("01, k kernels", "#D55E00", "o"),
          "fused": ("01, one kernel", "#0072B2", "s"), "PyTorch": ("PyTorch, k calls", "#767676", "^"),
          "PyTorch, compiled": ("PyTorch, compiled", "#009E73", "D"), "PyTorch, naive": ("PyTorch, naive", "#767676", "^"),
          "PyTorch, fp32": ("PyTorch, fp32", "#009E73", "D"), "PyTorch, bf16": ("PyTorch, bf16", "#CC79A7", "v"),
          "cuDNN": ("cuDNN", "#009E73", "D"), "FlashAttention-2": ("FlashAttention-2", "#CC79A7", "v")}


def draw(axes, cases, of, value):
    """A line for each of those timed: value(case, median seconds) against of(case)."""
    drawn = []
    for who in dict.fromkeys(who for case in cases for who in case["seconds"]):
        label, colour, marker = SERIES[who]
        points = sorted((of(case), value(case, statistics.median(case["seconds"][who])))
                        for case in cases if who in case["seconds"])
        axes.plot(*zip(*points), color=colour, marker=marker, markersize=5, label=label)
        drawn += [height for _, height in points]
    ticks = sorted({of(case) for case in cases})
    axes.set_xscale("log", base=2)
    log_axis(axes.xaxis, ticks)
    return drawn


def log_heights(axes, drawn):
    axes.set_yscale("log")
    log_axis(axes.yaxis, powers(min(drawn), max(drawn), 10))
    axes.set_ylim(min(drawn) / 2, max(drawn) * 2)


def forward(axes, record):
    cases = [case for case in record["forward"] if case["batch"] == 4 and not case["causal"]]
    log_heights(axes, draw(axes, cases, lambda case: case["seqlen"], lambda _, seconds: 1e3 * seconds))
    axes.set_xlabel("S, tokens")
    axes.set_ylabel("median time, ms")
    return "Forward, fp32, batch 4, N = %d, H = %d" % (record["heads"], record["head_dim"])


def chain(axes, record):
    draw(axes, record["chain"], lambda case: case["operations"], lambda _, seconds: 1e3 * seconds)
    axes.set_ylim(0)
    axes.set_xlabel("k, operations")
    axes.set_ylabel("median time, ms")
    return "A chain of k multiply-adds of 2²⁶ floats"


def decode(axes, record):
    read = roof(record, "read", "read, largest")
    # Two shapes have a cache of 0.5 GB: the one of many sequences is drawn, as it is in practice.
    cases = list({case["cache_bytes"]: case for case in sorted(record["decode"], key=lambda case: case["batch"])}.values())
    draw(axes, cases, lambda case: case["cache_bytes"] / 2 ** 20,
         lambda case, seconds: case["cache_bytes"] / seconds / 1e12)
    axes.axhline(read / 1e12, color=COLOUR["roof"], linewidth=1.2, label="reading, measured")
    axes.set_ylim(0, 1.15 * read / 1e12)
    axes.set_xlabel("cache, MiB")
    axes.set_ylabel("TB/s of the cache")
    return "Decode, bf16, 32 query heads, 8 kv heads, H = 128"


def backward(axes, record):
    cases = [case for case in record["backward"] if not case["causal"]]
    drawn = draw(axes, cases, lambda case: case["seqlen"], lambda case, seconds: 10 * case["batch"] * record["heads"]
                 * case["seqlen"] ** 2 * record["head_dim"] / seconds / 1e12)
    axes.axhline(roof(record, "fp32 matmul") / 1e12, color=COLOUR["roof"], linewidth=1.2, label="PyTorch's fp32 matmul")
    axes.set_ylim(0, 1.15 * max(drawn + [roof(record, "fp32 matmul") / 1e12]))
    axes.set_xlabel("S, tokens")
    axes.set_ylabel("TFLOP/s, 10 · batch · N · S² · H")
    return "Backward, fp32, batch 4, N = %d, H = %d" % (record["heads"], record["head_dim"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record", metavar="RECORD.json")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--recorded", action="store_true", help="say in the picture that the data are recorded")
    options = parser.parse_args()
    with open(options.record, encoding="utf-8") as file:
        record = json.load(file)
    where = "%s, PyTorch %s%s" % (record["device"], record["torch"], ", recorded" if options.recorded else "")
    fig, panels = plt.subplots(2, 2, figsize=(14.4, 9.6), layout="constrained")
    for axes, plot in zip(panels.flat, (forward, chain, decode, backward)):
        frame(axes, plot(axes, record), where)
        legend_below(axes, 4)
    save(fig, options.folder, "compare_torch_cuda")
    return 0


if __name__ == "__main__":
    sys.exit(main())
