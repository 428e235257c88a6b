#!/usr/bin/env python3
"""Tables of the CUDA ladder from what ladder_bench recorded on a device.

    scripts/ladder_tables.py notes/data/ladder_h200.json            prints them
    scripts/ladder_tables.py notes/data/ladder_h200.json --write    puts them into notes/cuda/ladder.md, between its markers

A time is the median of the samples; the figure behind +- is half the distance between the smallest and the largest, in
percent of it.
"""

import argparse
import json
import os
import statistics
import sys

from note_tables import put, table

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
NOTE = os.path.join(ROOT, "notes", "cuda", "ladder.md")


def median_ms(run):
    return statistics.median(run["samples_ms"])


def spread(run):
    return 50 * (max(run["samples_ms"]) - min(run["samples_ms"])) / median_ms(run)


def machine(record):
    peak = record["multiply_add"]["flop"] / median_ms(record["multiply_add"]) / 1e9
    copy = record["copy"]["bytes"] / median_ms(record["copy"]) / 1e6
    return ("%s, %d SMs, %s, highest SM clock %d MHz. Measured in the same run: %.1f TFLOP/s of fp32 multiply-adds, "
            "%.0f GB/s copied (read and written)." % (record["device"], record["sms"], record["compiler"],
                                                      record["highest_sm_clock_mhz"], peak, copy)), peak, copy


def elementwise(record, copy):
    rows = []
    runs = {(run["kernels"], run["operations"]): run for run in record["elementwise"]}
    for k in sorted({k for _, k in runs}):
        chain, fused = runs["chain", k], runs["fused", k]
        # Each of the k kernels of a chain reads and writes the array once.
        rates = [chain["bytes"] / median_ms(chain) / 1e6, fused["bytes"] / median_ms(fused) / 1e6]
        rows.append([str(k), "%.3f" % median_ms(chain), "%.3f" % median_ms(fused),
                     "%.2f" % (median_ms(chain) / median_ms(fused)), "%.0f" % rates[0], "%.0f" % rates[1],
                     "%.0f %%" % (100 * rates[1] / copy)])
    return table(["k", "k kernels, ms", "one kernel, ms", "ratio", "GB/s", "GB/s", "of the copy"], rows)


def forward(record, peak, head_dim, causal):
    runs = {(run["rung"], run["seqlen"]): run for run in record["forward"]
            if run["head_dim"] == head_dim and run["causal"] == causal}
    rungs = sorted({rung for rung, _ in runs})
    rows = []
    for seqlen in sorted({seqlen for _, seqlen in runs}):
        row = [str(seqlen)]
        for rung in rungs:
            run = runs.get((rung, seqlen))
            if not run:
                row += ["does not fit", "", ""]
                continue
            rate = run["flop"] / median_ms(run) / 1e9
            row += ["%.3f ± %.1f %%" % (median_ms(run), spread(run)), "%.1f" % rate, "%.0f %%" % (100 * rate / peak)]
        rows.append(row)
    heads = ["S"]
    for rung in rungs:
        heads += ["%s, ms" % rung.split("/")[1][:2], "TFLOP/s", "of the peak"]
    return table(heads, rows)


def decode(record, copy):
    rows = []
    for run in record["decode"]:
        rate = run["bytes"] / median_ms(run) / 1e6
        rows.append([run["rung"].split("/")[1][:2], run["type"], str(run["batch"]), str(run["keys"]),
                     "%.3f ± %.1f %%" % (median_ms(run), spread(run)), "%.0f" % rate, "%.0f %%" % (100 * rate / copy)])
    return table(["rung", "type", "batch", "S", "ms", "GB/s", "of the copy"], rows)


def backward(record, peak, head_dim, causal):
    """Beside rung 03's forward pass: FLOP are 2.5 times its, so that an equal rate is 2.5 times its time."""
    def runs(kind):
        return {run["seqlen"]: run for run in record[kind]
                if run["head_dim"] == head_dim and run["causal"] == causal and "naive" not in run["rung"]}
    rows = []
    for seqlen, run in sorted(runs("backward").items()):
        ahead = runs("forward")[seqlen]
        rate, ahead_rate = (one["flop"] / median_ms(one) / 1e9 for one in (run, ahead))
        rows.append([str(seqlen), "%.3f ± %.1f %%" % (median_ms(run), spread(run)), "%.1f" % rate,
                     "%.0f %%" % (100 * rate / peak), "%.3f" % median_ms(ahead), "%.2f" % (median_ms(run) / median_ms(ahead)),
                     "%.2f" % (rate / ahead_rate)])
    return table(["S", "05, ms", "TFLOP/s", "of the peak", "03, ms", "time / 03", "rate / 03"], rows)


def tables(record):
    # A record from before the rungs could decode, or go backward, has no such runs.
    checked = record["forward"] + record.setdefault("decode", []) + record.setdefault("backward", [])
    wrong = [run for run in record["elementwise"] + checked if run["problem"]]
    if wrong:
        raise SystemExit("a result was wrong: %s" % wrong[0]["problem"])
    text, peak, copy = machine(record)
    parts = [text, "**A chain of k multiply-adds, rung 01.** The bytes of a kernel are those it has to move.",
             elementwise(record, copy)]
    for head_dim in sorted({run["head_dim"] for run in record["forward"]}):
        for causal in (False, True):
            one = next(run for run in record["forward"] if run["head_dim"] == head_dim)
            parts.append("**Forward, fp32, batch %d, %d heads, H = %d%s.**" % (one["batch"], one["heads"], head_dim,
                                                                             ", causal (half the FLOP)" * causal))
            parts.append(forward(record, peak, head_dim, causal))
    if record["decode"]:
        one = record["decode"][0]
        parts.append("**Decode, %d query heads, %d kv heads, H = %d.** Bytes: K and V once, Q and O." % (
            one["q_heads"], one["kv_heads"], one["head_dim"]))
        parts.append(decode(record, copy))
    for head_dim in sorted({run["head_dim"] for run in record["backward"]}):
        for causal in (False, True):
            one = next(run for run in record["backward"] if run["head_dim"] == head_dim)
            parts.append("**Backward, fp32, batch %d, %d heads, H = %d%s.** FLOP: 2.5 times the forward's." % (
                one["batch"], one["heads"], head_dim, ", causal (half the FLOP)" * causal))
            parts.append(backward(record, peak, head_dim, causal))
    worst = max(run["error"] / run["tolerance"] for run in checked)
    parts.append("Rows drawn at random were compared with double precision: no error was above %.0f %% of its tolerance."
                 % (100 * worst))
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("record")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with open(options.record, encoding="utf-8") as file:
        text = tables(json.load(file))
    if not options.write:
        print(text, end="")
        return
    put(NOTE, "ladder", text)


if __name__ == "__main__":
    sys.exit(main())
