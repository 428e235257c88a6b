#!/usr/bin/env python3
"""Where the time of one decode step goes: its kernels by Nsight Compute, rung 04 beside cuDNN and FlashAttention-2.

    scripts/decode_counters.py --out notes/data/decode_counters_h200.json     measures; needs ncu, PyTorch and a GPU
    scripts/decode_counters.py --from notes/data/decode_counters_h200.json    prints the table of a record
    ... --write                                                               puts it into notes/cuda/04_flash_decode.md

A kernel's time is that of it alone: the profiler runs one at a time, with an empty L2. What a step takes beyond the sum of
its kernels (scripts/compare_torch_cuda.py has the step) is the way from one kernel to the next.
"""

import csv
import re
import subprocess
import sys
import tempfile

from note_tables import table
from side_by_side import Problem, commit, parser, run

NOTE = "notes/cuda/04_flash_decode.md"
SHAPES = ((16, 8192), (64, 8192), (1, 131072), (1, 8192), (16, 1024), (1, 1024))
METRICS = {
    "ns": "gpu__time_duration.sum",
    "blocks": "launch__grid_size",
    "threads": "launch__block_size",
    "registers": "launch__registers_per_thread",
    "waves": "launch__waves_per_multiprocessor",
    "read": "dram__bytes_read.sum",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "active": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "issued": "smsp__issue_active.avg.pct_of_peak_sustained_active",
}


def calls(options):
    """What the profiler looks at: each shape's step, one after the other."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from compare_torch_cuda import Bench, load_library
    bench = Bench(torch, load_library(options.library), 1)
    bench.graph = lambda call: call
    for batch, seqlen in SHAPES:
        _, ours = bench.decode_call(batch, seqlen)
        Q, K, V = bench.kept[:3]

        def peer(backend):
            with sdpa_kernel(backend):
                torch.nn.functional.scaled_dot_product_attention(Q, K, V, enable_gqa=True)

        for call in (ours, lambda: peer(SDPBackend.CUDNN_ATTENTION), lambda: peer(SDPBackend.FLASH_ATTENTION)):
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


def measure(options):
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as log:
        command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv", "--page", "raw",
                   "--print-units", "base", "--print-kernel-base", "function", "--metrics", ",".join(METRICS.values()),
                   "--log-file", log.name, sys.executable, __file__, "--calls"]
        done = subprocess.run(command + (["--library", options.library] if options.library else []),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        if done.returncode:
            raise Problem("ncu failed:\n%s" % done.stdout[-2000:])
        heads, _units, *rows = csv.reader(line for line in log if line.startswith('"'))
    kernels = []
    for row in rows:
        values = dict(zip(heads, row))
        kernels.append({"kernel": re.sub(r".*::|<.*|\(.*", "", values["Kernel Name"]),
                        **{name: float(values[metric].replace(",", "")) for name, metric in METRICS.items()}})
    version = subprocess.run(["ncu", "--version"], stdout=subprocess.PIPE, encoding="utf-8").stdout.strip().split("\n")[-1]
    import torch
    return {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
            "profiler": version, "commit": options.commit or commit(), "shapes": SHAPES, "kernels": kernels}


def whose(kernel):
    if kernel["kernel"] in ("decode_kernel", "combine_kernel"):
        return "04"
    return "FlashAttention-2" if kernel["kernel"].startswith("flash_fwd") else "cuDNN"


def steps(record):
    """The kernels in the order of the calls, as {who: kernels}, one dictionary a shape."""
    found, last = [], None
    for kernel in record["kernels"]:
        who = whose(kernel)
        if who == "04" and last != "04":
            found.append({})
        found[-1].setdefault(who, []).append(kernel)
        last = who
    if len(found) != len(record["shapes"]):
        raise Problem("%d steps for %d shapes" % (len(found), len(record["shapes"])))
    return found


def report(record):
    rows = []
    for (batch, seqlen), step in zip(record["shapes"], steps(record)):
        for who, kernels in step.items():
            for kernel in kernels:
                name = kernel["kernel"].replace("cudnn_generated_fort_native_", "").replace("_kernel", "")
                rows.append([str(batch), str(seqlen), "%s: %s" % (who, re.sub(r"_sm80.*", "", name)),
                             "%d" % kernel["blocks"], "%.1f" % (kernel["ns"] / 1e3), "%.1f" % (kernel["read"] / 1e6),
                             "%.2f" % (kernel["read"] / 1e3 / kernel["ns"]), "%.0f %%" % kernel["active"],
                             "%.0f %%" % kernel["warps"], "%.0f %%" % kernel["issued"]])
    return "\n\n".join([
        "%s, %s, PyTorch %s, cuDNN %s. Each kernel alone, with an empty L2." % (
            record["device"], record["profiler"], record["torch"], record["cudnn"]),
        table(["batch", "S", "kernel", "blocks", "µs", "MB read", "TB/s", "SMs busy", "warps, of 64", "issuing"], rows)]
    ) + "\n"


def main():
    arguments = parser(__doc__, NOTE)
    arguments.add_argument("--library", metavar="FILE", help="libladder_c.so, built elsewhere")
    arguments.add_argument("--commit", help="what the library was built from, where this is no clone")
    arguments.add_argument("--calls", action="store_true", help="only what the profiler looks at")
    options = arguments.parse_args()
    if options.calls:
        return calls(options)
    return run(options, NOTE, "decode_counters", measure, report)


if __name__ == "__main__":
    sys.exit(main())
