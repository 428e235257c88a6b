"""The tables of attention_bench as Markdown and CSV. What is not known prints as n/a."""

import csv
import io
import json
import math
import os

from attention_record import known, needs

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "notes", "data")
NA = "n/a"


def significant(value, digits=3):
    if value is None:
        return NA
    if value == 0:
        return "0"
    return "%.*f" % (max(0, digits - 1 - math.floor(math.log10(abs(value)))), value)


def rate(value, unit):
    """A decimal rate: 3350e9, "B/s" gives 3.35 TB/s."""
    prefix, scale = ("T", 1e12) if value >= 1e12 else ("G", 1e9)
    return "%s %s%s" % (significant(value / scale), prefix, unit)


def size(count):
    if count is None:
        return NA
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return "%s %s" % (("%.1f" % (count / scale)).removesuffix(".0"), unit)
    return "%d B" % count


def problem(case):
    """Short enough for a cell; the line under the table holds the rest."""
    text = case["problem"]
    for short in ("not implemented yet", "does not fit"):
        if text and text.startswith(short):
            return short
    return "failed" if text else None


def time_cell(bench, case):
    if problem(case):
        return problem(case)
    if case["ms"] is None:
        return NA
    if bench.statistics["needs_summary"]:
        return "%s ± needs 09_bench" % significant(case["ms"])
    if case["half_width"] is None:
        return "%s ± %s" % (significant(case["ms"]), NA)
    if case["half_width"] == 0:
        return "%s ± 0" % significant(case["ms"])
    places = max(0, 1 - math.floor(math.log10(case["half_width"])))  # two digits of the half-width decide
    return "%.*f ± %.*f" % (places, case["ms"], places, case["half_width"])


def p95_cell(bench, case):
    return "needs 09_bench" if bench.statistics["needs_percentile"] else significant(known(case.get("p95")))


def ratio(naive, tiled):
    return naive["ms"] / tiled["ms"] if naive["ms"] and tiled["ms"] else None


def difference_cell(naive, tiled):
    if not (naive["output_is_finite"] and tiled["output_is_finite"]):
        return "NaN or inf in O"
    value = tiled["largest_difference"]
    return NA if value is None else "%.1e" % value


def predicted_cell(bench, seqlen, causal):
    if causal:
        return "no mask in the model"
    return needs(bench.predictions) or significant(bench.prediction(seqlen).get("ratio"))


def table(header, rows):
    lines = ["| %s |" % " | ".join(header), "|%s" % ("---|" * len(header))]
    return "\n".join(lines + ["| %s |" % " | ".join(map(str, row)) for row in rows])


def yes(flag):
    return "yes" if flag else "no"


def time_table(bench):
    return table(["S", "causal", "naive, ms", "p95", "tiled, ms", "p95", "naive / tiled", "predicted"],
                 [[seqlen, yes(causal), time_cell(bench, naive), p95_cell(bench, naive), time_cell(bench, tiled),
                   p95_cell(bench, tiled), significant(ratio(naive, tiled)), predicted_cell(bench, seqlen, causal)]
                  for seqlen, causal, naive, tiled in bench.rows()])


def fast_table(bench):
    """Lesson 10 beside the others; FLOP are 4 S^2 H a head, with the mask half of that."""
    peak = known(bench.host.get("native_flop_per_s"))
    rows = []
    for seqlen, causal, naive, tiled, fast in bench.fast_rows():
        flop = 4 * bench.settings["heads"] * seqlen ** 2 * bench.settings["head_dim"] * (0.5 if causal else 1)
        per_s = flop / fast["ms"] * 1e3 if fast["ms"] else None
        rows.append([seqlen, yes(causal), time_cell(bench, fast), significant(ratio(naive, fast)),
                     significant(ratio(tiled, fast)), NA if per_s is None else rate(per_s, "FLOP/s"),
                     NA if per_s is None or not peak else "%.0f %%" % (100 * per_s / peak), size(fast["scratch_bytes"]),
                     difference_cell(naive, fast)])
    return table(["S", "causal", "fast, ms", "naive / fast", "tiled / fast", "rate", "of the peak", "scratch",
                  "largest difference"], rows)


def fast_section(bench):
    if not bench.fast_rows():
        return ""
    peak = known(bench.host.get("native_flop_per_s"))
    return ("## Lesson 10\n\nThe fast kernel on one thread. The peak is that of its own instructions, which the others are not "
            "compiled for: %s. PyTorch's kernel beside it: `scripts/compare_torch.py`, which says how to get PyTorch.\n\n%s"
            % (rate(peak, "FLOP/s") if peak else NA, fast_table(bench)))


def memory_table(bench):
    return table(["S", "causal", "naive, measured", "by formula", "tiled, measured", "by formula", "S × S / O = S/H",
                  "largest difference"],
                 [[seqlen, yes(causal), size(naive["scratch_bytes"]), size(naive["scratch_formula_bytes"]),
                   size(tiled["scratch_bytes"]), size(tiled["scratch_formula_bytes"]),
                   NA if naive["saving"] is None else "%g" % naive["saving"],
                   difference_cell(naive, tiled)] for seqlen, causal, naive, tiled in bench.rows()])


def growth_table(bench):
    if needs(bench.growth):
        return needs(bench.growth)
    return table(["S", "S × S scores", "O", "lse", "scores / (O + lse)"],
                 [[row["seqlen"], size(row["score_matrix_bytes"]), size(row["O_bytes"]), size(row["lse_bytes"]),
                   significant(row["score_matrix_bytes"] / (row["O_bytes"] + row["lse_bytes"]), 4)]
                  for row in bench.growth["rows"]])


def roofline_table(bench, name):
    row = bench.device_row(name)
    if row is None:
        return needs(bench.roofline) or NA
    return "%s: %s in %s, %s, ridge at %s FLOP/byte (%s).\n\n%s" % (
        name, rate(row["flop_per_s"], "FLOP/s"), row["format"], rate(row["bytes_per_s"], "B/s"),
        significant(row["ridge"]), row["source"],
        table(["kernel", "shape", "FLOP/byte", "at most", "bound by"],
              [[point["name"], point["shape"], significant(point["intensity"]),
                rate(point["attainable_flop_per_s"], "FLOP/s"), point["bound"]] for point in row["points"]]))


def frontier_table(bench):
    if needs(bench.frontier):
        return needs(bench.frontier)
    if not bench.frontier["points"]:
        return NA
    best = bench.frontier["frontier"]
    points = sorted((bench.cases[name] for name in bench.frontier["points"]), key=lambda case: case["scratch_bytes"])
    return table(["kernel", "block", "peak scratch", "median, ms", "on the frontier"],
                 [[case["kernel"], case["block"] or "", size(case["scratch_bytes"]), significant(case["ms"]),
                   yes(case["name"] in best)] for case in points])


def problems(bench):
    """One line for each reason, with the cases or parts it stops."""
    told = {}
    for case in bench.cases.values():
        if case["problem"]:
            told.setdefault(case["problem"], []).append(case["name"])
    for section in (bench.predictions, bench.frontier, bench.growth, bench.roofline):
        if needs(section):
            told.setdefault(section["because"], [needs(section)])
    for why in (bench.statistics["needs_percentile"], bench.statistics["needs_summary"]):
        if why:
            told.setdefault(why, ["needs 09_bench"])
    return "\n".join("- %s: %s" % (", ".join(names) if len(names) < 4 else
                                   "%s and %d more" % (names[0], len(names) - 1), why) for why, names in told.items())


def machine(bench):
    context, host, settings = bench.context, bench.host, bench.settings
    lines = [
        "- Measured %s on one thread of %s: %s, flags `%s`, answers from `%s`, commit %s." % (
            context.get("date", "at an unknown time"), host["cpu"], context.get("compiler", "unknown compiler"),
            " ".join(context.get("flags", "unknown").split()), context.get("impl", "unknown"),
            context.get("commit", "unknown")),
        "- Batch 1, N = %d, H = %d, fp32. Samples a case: %d, each one call; calls before the first: %s." % (
            settings["heads"], settings["head_dim"], settings["samples"], context.get("warmup", "unknown")),
        "- What one thread reaches with these flags: %s of fp32 multiply-adds (%s without vector instructions), %s in "
        "STREAM's triad." % (rate(host["vector_flop_per_s"], "FLOP/s"), rate(host["scalar_flop_per_s"], "FLOP/s"),
                             rate(host["bytes_per_s"], "B/s"))]
    if context.get("library_build_type") == "debug":
        lines.append("- Google Benchmark is a debug build (Debian's package is). It adds microseconds to a sample.")
    if context.get("build_type") not in ("Release", "RelWithDebInfo"):
        lines.append("- **attention_bench is a %s build: its times are those of unoptimised code.**"
                     % (context.get("build_type") or "nameless"))
    if context.get("cpu_scaling_enabled"):
        lines.append("- CPU frequency scaling is on: times may move with temperature and load.")
    share = bench.core_share()
    if share is not None and share < 0.9:
        lines.append("- **Other programs were running: this one had %.0f %% of a core. Read no ratio closer than that.**"
                     % (100 * share))
    return "\n".join(lines)


def peers():
    with open(os.path.join(DATA, "peers_cpu.json"), encoding="utf-8") as file:
        cpu = json.load(file)
    with open(os.path.join(DATA, "peers_h200.json"), encoding="utf-8") as file:
        h200 = json.load(file)
    return cpu, h200


def versions(peer):
    return ", ".join("%s %s" % item for item in peer["versions"].items())


def peer_tables(cpu, h200):
    gpu = h200["naive_against_sdpa"]
    return "### PyTorch on a CPU (recorded)\n\n%s; %s. %s.\n\n%s\n\n### PyTorch on an H200 (recorded)\n\n" \
        "%s; %s. %s; %s.\n\n%s" % (
            cpu["machine"][0].upper() + cpu["machine"][1:], versions(cpu), cpu["method"],
            table(["threads", "S", "causal", "naive, ms", "SDPA, ms", "ratio", "largest difference"],
                  [[row["threads"], row["seqlen"], yes(row["causal"]), row["naive_ms"], row["sdpa_ms"], row["ratio"],
                    "%.1e" % row["largest_difference"]] for row in cpu["rows"] if row["head_dim"] == 64]),
            h200["machine"][0].upper() + h200["machine"][1:], versions(h200),
            h200["method"][0].upper() + h200["method"][1:], gpu["method"],
            table(["type", "S", "naive, ms", "SDPA, ms", "ratio", "extra memory, naive", "SDPA", "largest difference"],
                  [[row["type"], row["seqlen"], row["naive_ms"], row["sdpa_ms"], row["ratio"],
                    "%g MiB" % row["naive_extra_mib"], "%g MiB" % row["sdpa_extra_mib"],
                    "%.1e" % row["largest_difference"]] for row in gpu["rows"]]))


def why_the_ratio(bench, cpu, h200):
    ridge = bench.device_row("host")
    prediction = bench.prediction(max((row[0] for row in bench.rows()), default=0))
    here = ""
    if ridge and prediction:
        side = "more" if prediction["naive_intensity"] >= ridge["ridge"] else "less"
        verdict = ("so even naive attention is bound by arithmetic here, and leaving out its memory traffic gains "
                   "little" if side == "more" else "so naive attention is bound by memory here, but not by much")
        here = (" Naive attention does %s FLOP for each byte it moves, %s than this thread's ridge of %s: %s." % (
            significant(prediction["naive_intensity"]), side, significant(ridge["ridge"]), verdict))
    large = [row["ratio"] for row in cpu["rows"]
             if row["head_dim"] == 64 and row["seqlen"] >= 1024 and not row["causal"]]
    half = [row["ratio"] for row in h200["naive_against_sdpa"]["rows"] if row["type"] == "bfloat16"]
    return ("The model predicts max(FLOP / P, bytes / W) of naive over that of tiled; both do the same multiply-adds."
            + here +
            " What is measured beyond the prediction is what the model leaves out: caches (a tile of K stays in the "
            "nearest one, all of K does not), the pages of a fresh score matrix in every call, exponentials.\n\n"
            "The programme's ratio of about 4 needs arithmetic that is much faster than memory. PyTorch's matmuls run at "
            "the speed of the widest vector units (%d GFLOP/s on one thread in the run below), so its naive attention "
            "waits for the score matrix once that leaves the caches: the ratio is %.1f to %.1f from S = 1024 on without "
            "a mask, and up to %.1f in bf16 on an H200.\n\n"
            "With the causal mask the tiled kernel skips the tiles above the diagonal. A naive kernel that computes "
            "every score and leaves out masked values does 3/4 of the multiply-adds against about 1/2, which makes a "
            "ratio of 1.5." % (cpu["ceilings"]["matmul_gflop_per_s_1_thread"], min(large), max(large), max(half)))


def markdown(bench, device, plots):
    cpu, h200 = peers()

    def picture(name, title):
        return "![%s](%s.svg)\n" % (title, name) if plots else ""

    recorded = ("**Recorded data** from `%s`: nothing was measured for this page.\n" %
                os.path.basename(bench.recorded_in) if bench.recorded_in else "")
    unfinished = problems(bench)
    parts = [
        "# Naive against tiled attention", recorded, machine(bench),
        "Unfinished or left out:\n\n" + unfinished if unfinished else "",
        "## Time", "Median of the samples ± half-width of the 95 % interval of their mean; p95 in ms.",
        time_table(bench), why_the_ratio(bench, cpu, h200), picture("time", "Time against S"),
        fast_section(bench),
        "## Memory and result",
        "Peak scratch memory of one call beyond inputs and outputs. The saving is computed, not measured: the score "
        "matrix holds S × S elements a head, the output S × H. Both kernels give the same numbers up to rounding, on "
        "unit-normal inputs.", memory_table(bench), picture("memory", "Peak scratch memory against S"),
        "## Roofline", roofline_table(bench, device), picture("roofline", "Roofline of %s" % device),
        "## Time against memory",
        "Other block sizes (block_q = block_k), without a mask. A point is on the Pareto frontier when no other is at "
        "least as good on both axes and better on one.", frontier_table(bench),
        picture("pareto", "Pareto frontier of time against memory"),
        "## Growth of the score matrix",
        "" if needs(bench.growth) else "One layer, one sequence, %d heads, scores and O in fp16, H = %d, lse in fp32. "
        "FlashAttention keeps O and lse; the scores are what the naive kernel writes." % (
            bench.growth["heads"], bench.growth["head_dim"]), growth_table(bench),
        "## Others", peer_tables(cpu, h200)]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def summary(bench):
    """The time table for a terminal."""
    rows = [["S", "causal", "naive, ms", "tiled, ms", "naive / tiled", "largest difference"]]
    rows += [[str(seqlen), yes(causal), time_cell(bench, naive), time_cell(bench, tiled),
              significant(ratio(naive, tiled)), difference_cell(naive, tiled)]
             for seqlen, causal, naive, tiled in bench.rows()]
    fast = {(seqlen, causal): [time_cell(bench, fast), significant(ratio(tiled, fast))]
            for seqlen, causal, _, tiled, fast in bench.fast_rows()}
    if fast:
        rows[0] += ["fast, ms", "tiled / fast"]
        for (seqlen, causal, _, _), row in zip(bench.rows(), rows[1:]):
            row += fast.get((seqlen, causal), [NA, NA])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)


def cases_csv(bench):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kernel", "seqlen", "causal", "block", "samples", "median_ms", "p95_ms", "half_width_95_ms",
                     "scratch_bytes", "scratch_formula_bytes", "saving", "largest_difference", "problem"])
    for case in bench.cases.values():
        values = [case["ms"], known(case.get("p95")), case["half_width"], case["scratch_bytes"],
                  case["scratch_formula_bytes"], case["saving"], case["largest_difference"]]
        writer.writerow([case["kernel"], case["seqlen"], yes(case["causal"]), case["block"] or NA,
                         len(case["samples"])] + [NA if v is None else "%.9g" % v for v in values]
                        + [case["problem"] or ""])
    return out.getvalue()


def growth_csv(bench):
    rows = [] if needs(bench.growth) else bench.growth["rows"]
    lines = ["seqlen,score_matrix_bytes,O_bytes,lse_bytes"]
    return "\n".join(lines + ["%d,%d,%d,%d" % (row["seqlen"], row["score_matrix_bytes"], row["O_bytes"],
                                                row["lse_bytes"]) for row in rows]) + "\n"
