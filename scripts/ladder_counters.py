#!/usr/bin/env python3
"""What the emulator counts against what a device's profiler measures, for the kernels of the CUDA ladder.

    scripts/ladder_counters.py measure BIN FILE     on a machine with a GPU and Nsight Compute: runs BIN/cuda_*_device_profile
    scripts/ladder_counters.py count BIN FILE       adds what BIN/cuda_*_emulated_profile count in the same cases
    scripts/ladder_counters.py table FILE           prints the tables
    scripts/ladder_counters.py table FILE --write   puts them into notes/cuda/counters.md, between its markers
"""

import argparse
import csv
import json
import os
import re
import subprocess
import sys

from note_tables import put, table

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
NOTE = os.path.join(ROOT, "notes", "cuda", "counters.md")

# The rung, what its profile program takes, and whether it is large: four times the L2 and more, for the bytes of main memory.
CASES = [
    ("cuda/01_fused_elementwise", "1048576 3", False),
    ("cuda/01_fused_elementwise", "1000003 5", False),
    ("cuda/02_naive_attention", "1 2 1 256 256 64 0", False),
    ("cuda/02_naive_attention", "1 2 1 200 331 40 1", False),
    ("cuda/03_flash_forward", "1 2 1 512 512 64 0", False),
    ("cuda/03_flash_forward", "1 2 1 200 331 40 1", False),
    ("cuda/03_flash_forward", "1 1 1 256 256 128 0", False),
    ("cuda/04_flash_decode", "1 8 2 1000 128 4", False),
    ("cuda/04_flash_decode", "2 6 2 331 40 3", False),
    ("cuda/05_flash_backward", "1 2 1 256 256 64 0", False),
    ("cuda/05_flash_backward", "1 2 1 200 331 40 1", False),
    ("cuda/01_fused_elementwise", "67108864 1", True),
    ("cuda/02_naive_attention", "4 8 8 2048 2048 64 0", True),
    ("cuda/03_flash_forward", "4 32 32 4096 4096 64 0", True),
    ("cuda/04_flash_decode", "16 32 8 8192 128 2", True),
    ("cuda/05_flash_backward", "4 32 32 2048 2048 64 0", True),
]
METRICS = {
    "load sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "load conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "store conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "read": "dram__bytes_read.sum",
    "written": "dram__bytes_write.sum",
}


def output(command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout


def program(folder, rung, back_end):
    return os.path.join(folder, "%s_%s_profile" % (rung.replace("/", "_"), back_end))


def measure(folder):
    name, driver = output(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).strip().split(", ")[:2]
    record = {"device": name, "driver": driver, "profiler": output(["ncu", "--version"]).split("\n")[-2], "cases": []}
    for rung, arguments, large in CASES:
        text = output(["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
                       "--print-kernel-base", "function", "--metrics", ",".join(METRICS.values()),
                       program(folder, rung, "device")] + arguments.split())
        heads, _units, *rows = csv.reader(line for line in text.splitlines() if line.startswith('"'))
        kernels = {}
        for row in rows:
            values = dict(zip(heads, row))
            sums = kernels.setdefault(re.sub(r".*::|<.*|\(.*", "", values["Kernel Name"]), dict.fromkeys(METRICS, 0))
            for name, metric in METRICS.items():
                sums[name] += int(float(values[metric].replace(",", "")))
        record["cases"].append({"rung": rung, "arguments": arguments, "large": large, "measured": kernels})
    return record


def count(folder, case):
    """{kernel: counts}, by the emulator."""
    kernels = {}
    for call in json.loads(output([program(folder, case["rung"], "emulated")] + case["arguments"].split()))["calls"]:
        for kernel in call["kernels"]:
            sums = kernels.setdefault(re.sub("<.*", "", kernel["kernel"]), dict.fromkeys([*METRICS, "passes"], 0))
            sums["passes"] += sum(array[way]["passes"] for array in kernel["shared"] for way in ("loads", "stores"))
            for arrays, ways in (("global", {"load sectors": ("loads", "sectors"), "store sectors": ("stores", "sectors"),
                                             "read": ("loads", "compulsory"), "written": ("stores", "compulsory")}),
                                 ("shared", {"load conflicts": ("loads", "conflicts"),
                                             "store conflicts": ("stores", "conflicts")})):
                for name, (way, counter) in ways.items():
                    sums[name] += sum(array[way][counter] for array in kernel[arrays])
    return kernels


def formulas(case):
    """{kernel: (bytes read, bytes written)}, each byte once: lessons 01, 05, 06 and 07, a kernel at a time, and lse."""
    numbers = [int(word) for word in case["arguments"].split()]
    if len(numbers) == 2:
        kernels = numbers[1] + 1  # the chain, then one
        return {"elementwise_kernel": (4 * numbers[0] * kernels, 4 * numbers[0] * kernels)}
    if len(numbers) == 6:  # in fp32, then in bf16; the states of the splits are fp32 in both
        batch, q_heads, kv_heads, keys, head_dim, splits = numbers
        rows, both = batch * q_heads, 4 + 2
        Q, KV, lse = both * rows * head_dim, both * batch * kv_heads * keys * head_dim, 2 * 4 * rows
        parts = 2 * 4 * rows * splits * (head_dim + 2)
        if splits == 1:
            return {"decode_kernel": (Q + 2 * KV, Q + lse)}
        return {"decode_kernel": (Q + 2 * KV, parts), "combine_kernel": (parts, Q + lse)}
    batch, q_heads, kv_heads, seqlen_q, seqlen_k, head_dim, _causal = numbers
    Q, KV = 4 * batch * q_heads * seqlen_q * head_dim, 4 * batch * kv_heads * seqlen_k * head_dim
    S, lse = 4 * batch * q_heads * seqlen_q * seqlen_k, 4 * batch * q_heads * seqlen_q
    if "naive" in case["rung"]:
        return {"scores_kernel": (Q + KV, S), "softmax_kernel": (S, S + lse), "values_kernel": (S + KV, Q)}
    if "backward" in case["rung"]:
        return {"delta_kernel": (2 * Q, lse), "keys_kernel": (2 * Q + 2 * KV + 2 * lse, 2 * KV),
                "queries_kernel": (2 * Q + 2 * KV + 2 * lse, Q)}
    return {"flash_kernel": (Q + 2 * KV, Q + lse)}


def number(value):
    return "{:,}".format(value).replace(",", " ")


def pair(case, kernel, name):
    counted, measured = case["counted"][kernel][name], case["measured"][kernel][name]
    if counted == measured:
        return number(counted)
    whole = case["counted"][kernel]["passes"] if "conflicts" in name else counted
    return "%s, there %s (%+.3f %%%s)" % (number(counted), number(measured), 100 * (measured - counted) / whole,
                                          " of the passes" if "conflicts" in name else "")


def tables(record):
    small, large = [], []
    for case in record["cases"]:
        for kernel, (read, written) in formulas(case).items():
            who = [case["rung"].split("/")[1][:2], kernel, case["arguments"]]
            if case["large"]:
                measured = case["measured"][kernel]
                large.append(who + [text for formula, name in ((read, "read"), (written, "written")) for text in (
                    "%.1f" % (formula / 1e6), "%.1f" % (measured[name] / 1e6), "%+.1f %%" % (
                        100 * (measured[name] / formula - 1)))])
                continue
            counted = case["counted"][kernel]
            once = "%s + %s" % (number(read), number(written))
            if (read, written) != (counted["read"], counted["written"]):
                once += ", counted %s + %s" % (number(counted["read"]), number(counted["written"]))
            small.append(who + [once] + [pair(case, kernel, name) for name in
                                         ("load sectors", "store sectors", "load conflicts", "store conflicts")])
    return "\n\n".join([
        "%s, driver %s, Nsight Compute %s." % (record["device"], record["driver"], record["profiler"].replace("Version ", "")),
        "**Sectors and bank conflicts.** One number where both counted the same; the difference in conflicts as a share of all "
        "passes to shared memory.",
        table(["rung", "kernel", "arguments", "bytes read + written, each once: formula", "load sectors", "store sectors",
               "bank conflicts, loads", "bank conflicts, stores"], small),
        "**Bytes of main memory, in MB**, where Q, K, V, the scores and O together are at least four times the L2.",
        table(["rung", "kernel", "arguments", "read: formula", "measured", "", "written: formula", "measured", ""], large),
    ]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("verb", choices=["measure", "count", "table"])
    parser.add_argument("folder", nargs="?", help="of the programs")
    parser.add_argument("record", metavar="FILE")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.verb == "measure":
        record = measure(options.folder)
    else:
        with open(options.record, encoding="utf-8") as file:
            record = json.load(file)
    if options.verb == "count":
        for case in record["cases"]:
            if not case["large"]:
                case["counted"] = count(options.folder, case)
    if options.verb != "table":
        with open(options.record, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")
        return
    text = tables(record)
    if not options.write:
        print(text, end="")
        return
    put(NOTE, "counters", text)


if __name__ == "__main__":
    sys.exit(main())
