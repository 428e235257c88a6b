"""The plots of attention_bench as PNG and SVG. Needs matplotlib.

    attention_plots.py RESULTS.json FOLDER [--device-row NAME] [--recorded]
"""

import argparse
import json
import sys

from matplotlib.ticker import FuncFormatter, NullLocator

from attention_record import Bench, needs
from attention_tables import rate, significant, size
from plot_style import COLOUR, empty, frame, legend_below, log_axis, plt, powers, save

MARKER = {"naive": "o", "tiled": "s", "fast": "P", "flash": "s", "matmul": "D", "elementwise": "^", "decode": "v"}


def where(bench, recorded):
    return "%s, one thread, %s%s" % (bench.host["cpu"], bench.context.get("date", "")[:10], ", recorded" if recorded else "")


def against_seqlen(axes, bench, recorded, title, value, axis_label, tick_label, base, also=()):
    """The kernels, with and without the mask, against S on log axes; `also` holds (label, of seqlen) to compare."""
    settings = bench.settings
    frame(axes, "%s, N = %d, H = %d" % (title, settings["heads"], settings["head_dim"]), where(bench, recorded))
    drawn = []
    for kernel in ("naive", "tiled", "fast"):
        for causal in (False, True):
            cases = [c for c in bench.cases.values()
                     if c["kernel"] == kernel and c["causal"] == causal and not c["for_frontier"] and value(c)[0]]
            if not cases:
                continue
            heights = [value(c)[0] for c in cases]
            bars = [min(value(c)[1], 0.9 * value(c)[0]) for c in cases]  # a log axis has no place for less than 0
            drawn += heights
            # Large and hollow over small and solid: both show where they coincide.
            axes.errorbar([c["seqlen"] for c in cases], heights, bars if any(bars) else None, color=COLOUR[kernel],
                          marker=MARKER[kernel], linestyle="--" if causal else "-", capsize=3,
                          markerfacecolor="none" if causal else COLOUR[kernel], markersize=10 if causal else 5,
                          label="%s%s" % (kernel, ", causal" if causal else ""))
    if not drawn:
        empty(axes, "nothing measured: see tables.md")
        return
    seqlens = sorted({c["seqlen"] for c in bench.cases.values()})
    for label, of in also:
        drawn += map(of, seqlens)
        axes.plot(seqlens, list(map(of, seqlens)), color=COLOUR["other"], linestyle=":", label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(min(seqlens) / 1.3, max(seqlens) * 1.3)
    axes.set_ylim(min(drawn) / 2, max(drawn) * 2)
    log_axis(axes.xaxis, seqlens)
    ticks = powers(min(drawn), max(drawn), base if max(drawn) > 20 * min(drawn) else 2)
    log_axis(axes.yaxis, [t for t in ticks if min(drawn) / 2 <= t <= max(drawn) * 2], tick_label)
    axes.set_xlabel("S, tokens")
    axes.set_ylabel(axis_label)
    legend_below(axes, 5)


def time(axes, bench, recorded):
    against_seqlen(axes, bench, recorded, "Time of one call", lambda c: (c["ms"], c["half_width"] or 0),
                   "median time, ms (bars: 95 % interval)", None, 10)


def memory(axes, bench, recorded):
    output = 4 * bench.settings["heads"] * bench.settings["head_dim"]
    against_seqlen(axes, bench, recorded, "Peak scratch memory of one call", lambda c: (c["scratch_bytes"], 0),
                   "peak scratch memory", lambda value, _: size(value), 4,
                   [("O, for comparison", lambda seqlen: output * seqlen)])


def roofline(axes, bench, recorded, device):
    row = bench.device_row(device)
    name = bench.host["cpu"] + ", one thread" if device == "host" else device
    frame(axes, "Roofline: %s" % name, where(bench, recorded))
    if row is None:
        empty(axes, needs(bench.roofline) or "no such device")
        return
    axes.texts[0].set_text("%s, %s, ridge at %s FLOP/byte%s" % (
        rate(row["flop_per_s"], "FLOP/s in " + row["format"]), rate(row["bytes_per_s"], "B/s"),
        significant(row["ridge"]), ", recorded" if recorded and device == "host" else ""))
    low, high = 1 / 32, 8192
    axes.plot([low, row["ridge"], high], [low * row["bytes_per_s"], row["flop_per_s"], row["flop_per_s"]],
              color=COLOUR["roof"], linewidth=1.8, label="roof")
    bottom = low * row["bytes_per_s"]
    if device == "host":
        scalar = bench.host["scalar_flop_per_s"]
        axes.plot([scalar / row["bytes_per_s"], high], [scalar, scalar], color=COLOUR["other"], linestyle="--",
                  linewidth=1.2, label="without vector instructions")
    for point in row["points"]:
        axes.plot([point["intensity"]] * 2, [bottom / 10, point["attainable_flop_per_s"]], linestyle=":",
                  color=COLOUR[point["name"]], linewidth=1)
        axes.plot(point["intensity"], point["attainable_flop_per_s"], MARKER[point["name"]], markersize=8,
                  color=COLOUR[point["name"]], linestyle="none",
                  label="%s: %s FLOP/byte, at most %s" % (point["name"], significant(point["intensity"]),
                                                          rate(point["attainable_flop_per_s"], "FLOP/s")))
    if device == "host":
        measured_rates(bench, axes)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(bottom, row["flop_per_s"] * 3)
    log_axis(axes.xaxis, [2.0 ** e for e in range(-4, 14, 2)], lambda v, _: "%g" % v if v >= 1 else "1/%g" % (1 / v))
    axes.yaxis.set_major_formatter(FuncFormatter(
        lambda value, _: "%g TFLOP/s" % (value / 1e12) if value >= 1e12 else "%g GFLOP/s" % (value / 1e9)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("arithmetic intensity, FLOP / byte of main memory")
    axes.set_ylabel("attainable rate")
    legend_below(axes, 2)


def measured_rates(bench, axes):
    """What the longest calls without a mask reached, under the roof."""
    for kernel, key in (("naive", "naive_intensity"), ("tiled", "flash_intensity")):
        cases = [c for c in bench.cases.values()
                 if c["kernel"] == kernel and not c["causal"] and not c["for_frontier"] and c["ms"]]
        if not cases:
            continue
        case = max(cases, key=lambda c: c["seqlen"])
        prediction = bench.prediction(case["seqlen"])
        if not prediction:
            continue
        reached = prediction["flop"] * bench.settings["heads"] / (case["ms"] / 1e3)
        axes.plot(prediction[key], reached, MARKER[kernel], markersize=8, markerfacecolor="white",
                  markeredgecolor=COLOUR[kernel], markeredgewidth=1.6, linestyle="none",
                  label="%s, measured at S = %d: %s" % (kernel, case["seqlen"], rate(reached, "FLOP/s")))


def pareto(axes, bench, recorded):
    frame(axes, "Time against memory, no mask", where(bench, recorded))
    if needs(bench.frontier):
        empty(axes, needs(bench.frontier))
        return
    points = [bench.cases[name] for name in bench.frontier["points"]]
    if not points:
        empty(axes, "nothing measured: see tables.md")
        return
    axes.set_title("Time against memory, S = %d, no mask\n" % bench.frontier["seqlen"], loc="left", fontsize=12)
    best = sorted((c for c in points if c["name"] in bench.frontier["frontier"]), key=lambda c: c["scratch_bytes"])
    axes.step([c["scratch_bytes"] for c in best], [c["ms"] for c in best], where="post", color=COLOUR["roof"],
              linewidth=1.2, label="Pareto frontier", zorder=1)
    for kernel, label in (("naive", "naive"), ("tiled", "tiled (number: block size)"), ("fast", "lesson 10")):
        for on in (True, False):
            some = [c for c in points if c["kernel"] == kernel and (c in best) == on]
            if some:
                axes.plot([c["scratch_bytes"] for c in some], [c["ms"] for c in some], MARKER[kernel], markersize=8,
                          linestyle="none", color=COLOUR[kernel], markerfacecolor=COLOUR[kernel] if on else "white",
                          label=label + ("" if on else ", not on it"))
    for case in points:
        if case["block"]:  # the frontier comes to its own points from above, and passes below the others
            below = case in best
            axes.annotate("%d" % case["block"], (case["scratch_bytes"], case["ms"]), xytext=(0, -8 if below else 8),
                          textcoords="offset points", ha="center", va="top" if below else "bottom", fontsize=9)
    bytes_drawn = [c["scratch_bytes"] for c in points]
    axes.set_xscale("log")
    log_axis(axes.xaxis, powers(min(bytes_drawn), max(bytes_drawn), 4), lambda value, _: size(value))
    axes.set_xlim(min(bytes_drawn) / 1.6, max(bytes_drawn) * 1.6)
    axes.set_ylim(0, 1.18 * max(c["ms"] for c in points))
    axes.set_xlabel("peak scratch memory")
    axes.set_ylabel("median time, ms")
    legend_below(axes, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", metavar="RESULTS.json")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--device-row", metavar="NAME", default="H100 SXM")
    parser.add_argument("--recorded", action="store_true", help="say in the pictures that the data are recorded")
    options = parser.parse_args()
    with open(options.results, encoding="utf-8") as file:
        bench = Bench(json.load(file))
    plots = {"time": time, "memory": memory, "pareto": pareto,
             "roofline": lambda *given: roofline(*given, options.device_row)}
    for name, plot in plots.items():
        fig, axes = plt.subplots(figsize=(7.2, 4.8), layout="constrained")
        plot(axes, bench, options.recorded)
        save(fig, options.folder, name)
    fig, panels = plt.subplots(2, 2, figsize=(14.4, 9.6), layout="constrained")
    for axes, name in zip(panels.flat, ("time", "memory", "roofline", "pareto")):
        plots[name](axes, bench, options.recorded)
    save(fig, options.folder, "overview")
    return 0


if __name__ == "__main__":
    sys.exit(main())
