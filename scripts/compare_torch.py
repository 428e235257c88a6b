#!/usr/bin/env python3
"""Lesson 10 against PyTorch on the CPU, in one process, in turn.

    scripts/compare_torch.py --out notes/data/fast_attention_cpu.json     measures; needs PyTorch in this Python
    scripts/compare_torch.py --from notes/data/fast_attention_cpu.json    prints the tables of a record
    ... --write                                                           puts them into the note, between its markers

Each round times both once, in alternating order, on the same tensors; with two threads after a pause and calls that
are not timed, since a pool's threads spin for some milliseconds behind their last call and take a core from the other
side. A ratio is PyTorch's time over ours in one round;
a table has the median of the rounds' ratios, and the 95 % interval of that median from order statistics. PyTorch is no
part of the workbook; it is one line to install:

    python3 -m venv torch_venv && torch_venv/bin/pip install torch --index-url https://download.pytorch.org/whl/cpu
"""

import ctypes
import math
import os
import platform
import re
import statistics
import sys
import time

from note_tables import table
from side_by_side import (ROOT, Problem, build, commit, compiler, milliseconds, numbers, parser, processor, ratio_text,
                          ratios, run)

NOTE = "notes/10_fast_attention.md"
HOW = ("PyTorch is not installed in this Python: python3 -m venv torch_venv && torch_venv/bin/pip install torch "
       "--index-url https://download.pytorch.org/whl/cpu, then torch_venv/bin/python scripts/compare_torch.py")
HEADS = 8
PAUSE, WARM = 0.03, 0.01  # seconds; libgomp's threads spin for about 5 ms


def load_library(folder):
    """The built reference with its C functions."""
    folder = folder or os.path.join(ROOT, "build", "compare_torch")
    build(folder, ["-DIMPL=reference", "-DNANOLM_CUDA=OFF", "-DNANOLM_EMULATOR=OFF"], "fast_attention_c")
    name = "libfast_attention_c" + (".dylib" if sys.platform == "darwin" else ".so")
    library = ctypes.CDLL(os.path.join(folder, "lib", name))
    library.nanolm_multiply_adds.restype = ctypes.c_double
    library.nanolm_multiply_adds.argtypes = [ctypes.c_int64]
    with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as file:
        cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))
    return library, cache


def seconds(call, threads=1):
    """Time of one call. Threads that spin behind the other side's call have stopped before it, and its own are awake."""
    if threads > 1:
        time.sleep(PAUSE)
        start = time.perf_counter()
        while time.perf_counter() < start + WARM:
            call()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


class Bench:
    def __init__(self, torch, library, options):
        self.torch, self.library, self.options = torch, library, options
        self.scaled_dot_product = torch.nn.functional.scaled_dot_product_attention

    def peak(self):
        """FLOP/s of one core's multiply-adds: one short run."""
        start = time.perf_counter()
        flop = self.library.nanolm_multiply_adds(300000)
        return flop / (time.perf_counter() - start)

    def matmul(self):
        """FLOP/s of PyTorch's matrix product on one thread, the best of some."""
        self.torch.set_num_threads(1)
        a, b = self.torch.randn(1024, 1024), self.torch.randn(1024, 1024)
        return max(2 * 1024 ** 3 / seconds(lambda: a @ b) for _ in range(10))

    def forward(self, threads, head_dim, seqlen, causal):
        torch = self.torch
        torch.set_num_threads(threads)
        torch.manual_seed(seqlen + head_dim)
        Q, K, V = (torch.randn(1, HEADS, seqlen, head_dim) for _ in range(3))
        O, lse = torch.empty_like(Q), torch.empty(1, HEADS, seqlen)
        sizes = (ctypes.c_int64 * 6)(1, HEADS, HEADS, seqlen, seqlen, head_dim)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (Q, K, V, O, lse)]
        scale = ctypes.c_float(1 / math.sqrt(head_dim))

        def ours():
            if self.library.nanolm_fast_attention(sizes, scale, int(causal), threads, *pointers):
                raise Problem("fast_attention refused the shape")

        def peer():
            return self.scaled_dot_product(Q, K, V, is_causal=causal)

        case = {"threads": threads, "head_dim": head_dim, "seqlen": seqlen, "causal": causal,
                "flop": 4.0 * HEADS * seqlen * seqlen * head_dim * (0.5 if causal else 1), "ours_s": [], "peer_s": [],
                "peak_flop_per_s": []}
        ours(), peer()
        spent, rounds = 0.0, 0
        while rounds < self.options.rounds and (spent < self.options.seconds or rounds < 7):
            case["peak_flop_per_s"].append(self.peak())
            pair = [("ours_s", ours), ("peer_s", peer)]
            for key, call in pair if rounds % 2 == 0 else pair[::-1]:
                case[key].append(seconds(call, threads))
                spent += case[key][-1]
            rounds += 1
        if seqlen <= 1024 and threads == 1:
            scores = Q.double() @ K.double().transpose(-1, -2) / math.sqrt(head_dim)
            if causal:
                scores += torch.full((seqlen, seqlen), -math.inf, dtype=torch.double).triu(1)
            truth = torch.softmax(scores, -1) @ V.double()
            case["ours_error"] = (O.double() - truth).abs().max().item()
            case["peer_error"] = (peer().double() - truth).abs().max().item()
        return case


    def decode(self, threads, seqlen):
        """One query of each head against seqlen keys, head_dim 128."""
        torch, head_dim = self.torch, 128
        torch.set_num_threads(threads)
        torch.manual_seed(seqlen)
        Q, K, V = torch.randn(1, HEADS, 1, head_dim), *(torch.randn(1, HEADS, seqlen, head_dim) for _ in range(2))
        O, lse = torch.empty_like(Q), torch.empty(1, HEADS, 1)
        sizes = (ctypes.c_int64 * 6)(1, HEADS, HEADS, 1, seqlen, head_dim)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (Q, K, V, O, lse)]

        def ours():
            if self.library.nanolm_fast_decode(sizes, ctypes.c_float(1 / math.sqrt(head_dim)), 0, threads, *pointers):
                raise Problem("fast_decode refused the shape")

        def peer():
            return self.scaled_dot_product(Q, K, V)

        def read():  # as many bytes as K and V have
            for _ in range(2):
                self.library.nanolm_read(ctypes.c_void_p(K.data_ptr()), ctypes.c_int64(K.numel()), threads)

        case = {"threads": threads, "seqlen": seqlen, "head_dim": head_dim, "bytes": 2 * K.numel() * 4, "ours_s": [],
                "peer_s": [], "read_s": []}
        ours(), peer(), read()
        calls, spent = [("ours_s", ours), ("peer_s", peer), ("read_s", read)], 0.0
        while len(case["ours_s"]) < self.options.rounds and (spent < self.options.seconds or len(case["ours_s"]) < 7):
            shift = len(case["ours_s"]) % 3
            for key, call in calls[shift:] + calls[:shift]:
                case[key].append(seconds(call, threads))
                spent += case[key][-1]
        if (O - peer()).abs().max().item() > 1e-5:
            raise Problem("fast_decode and PyTorch differ at %d keys" % seqlen)
        return case


    def backward(self, threads, seqlen, causal):
        """The backward pass alone, head_dim 64: PyTorch's from a graph that is kept."""
        torch, head_dim = self.torch, 64
        torch.set_num_threads(threads)
        torch.manual_seed(seqlen)
        Q, K, V = (torch.randn(1, HEADS, seqlen, head_dim, requires_grad=True) for _ in range(3))
        with torch.enable_grad():
            out = self.scaled_dot_product(Q, K, V, is_causal=causal)
        dO, O, lse = torch.randn_like(out), torch.empty_like(out), torch.empty(1, HEADS, seqlen)
        gradients = [torch.empty_like(out) for _ in range(3)]
        sizes = (ctypes.c_int64 * 6)(1, HEADS, HEADS, seqlen, seqlen, head_dim)
        scale = ctypes.c_float(1 / math.sqrt(head_dim))

        def pointers(*tensors):
            return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]

        self.library.nanolm_fast_attention(sizes, scale, int(causal), threads, *pointers(Q, K, V, O, lse))

        def ours():
            if self.library.nanolm_fast_backward(sizes, scale, int(causal), threads,
                                                 *pointers(Q, K, V, O, dO, lse, *gradients)):
                raise Problem("fast_backward refused the shape")

        def peer():
            return torch.autograd.grad(out, (Q, K, V), dO, retain_graph=True)

        case = {"threads": threads, "seqlen": seqlen, "head_dim": head_dim, "causal": causal,
                "flop": 10.0 * HEADS * seqlen * seqlen * head_dim * (0.5 if causal else 1), "ours_s": [], "peer_s": []}
        ours(), peer()
        spent = 0.0
        while len(case["ours_s"]) < self.options.rounds and (spent < self.options.seconds or len(case["ours_s"]) < 7):
            pair = [("ours_s", ours), ("peer_s", peer)]
            for key, call in pair if len(case["ours_s"]) % 2 == 0 else pair[::-1]:
                case[key].append(seconds(call, threads))
                spent += case[key][-1]
        if max((a - b).abs().max().item() for a, b in zip(gradients, peer())) > 1e-4:
            raise Problem("fast_backward and PyTorch differ at %d keys" % seqlen)
        return case


def measure(options):
    try:
        import torch
    except ImportError:
        raise Problem(HOW) from None
    library, cache = load_library(options.build)
    bench = Bench(torch, library, options)
    peak, matmul = max(bench.peak() for _ in range(20)), bench.matmul()
    if peak < matmul:
        raise Problem("the measured peak of a core, %.1f GFLOP/s, is below PyTorch's matrix product, %.1f: the peak is "
                      "wrong" % (peak / 1e9, matmul / 1e9))
    record = {"machine": processor(), "system": "%s %s" % (platform.system(), platform.machine()), "cores": os.cpu_count(), "heads": HEADS,
              "torch": torch.__version__, "torch_instructions": torch.backends.cpu.get_cpu_capability(),
              "torch_mkl": torch.backends.mkl.is_available(), "python": platform.python_version(),
              "compiler": compiler(cache["CMAKE_CXX_COMPILER"]), "vector_flags": cache.get("NANOLM_VECTOR_FLAGS", ""),
              "lanes": library.nanolm_lanes(), "commit": commit(), "load_average": os.getloadavg(),
              "peak_flop_per_s": peak, "matmul_flop_per_s": matmul,
              "decode": [], "backward": [], "forward": []}
    with torch.no_grad():
        for threads in options.threads:
            for seqlen in options.decode_sizes:
                case = bench.decode(threads, seqlen)
                record["decode"].append(case)
                told("%d threads, decode of %d keys" % (threads, seqlen), case)
        for threads in options.threads:
            for seqlen in options.backward_sizes:
                for causal in (False, True):
                    case = bench.backward(threads, seqlen, causal)
                    record["backward"].append(case)
                    told("%d threads, backward, S %d%s" % (threads, seqlen, ", causal" * causal), case)
            for head_dim in options.head_dims:
                for seqlen in options.sizes:
                    for causal in (False, True):
                        case = bench.forward(threads, head_dim, seqlen, causal)
                        record["forward"].append(case)
                        told("%d threads, head_dim %d, S %d%s" % (threads, head_dim, seqlen, ", causal" * causal), case)
    return record


def told(what, case):
    print("%s: %s" % (what, ratio_text(case["ours_s"], case["peer_s"])), file=sys.stderr, flush=True)


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def yes(case):
    return "yes" if case["causal"] else "no"


def times(case):
    """Both sides' times and their ratio, for a table."""
    ours, peers = case["ours_s"], case["peer_s"]
    return [milliseconds(ours, 2), milliseconds(peers, 2), ratio_text(ours, peers)]


def report(record):
    """All tables as Markdown."""
    parts = ["%s, %d cores; %s; PyTorch %s (%s%s), Python %s. Ours: %s, %d lanes. In the same run: peak of a core %.1f "
             "GFLOP/s of fp32 multiply-adds, PyTorch's matrix product %.1f on one thread. %d heads."
             % (record["machine"], record["cores"], record["compiler"], record["torch"], record["torch_instructions"],
                ", MKL" if record["torch_mkl"] else "", record["python"],
                record["vector_flags"] or "no processor flags", record["lanes"], record["peak_flop_per_s"] / 1e9,
                record["matmul_flop_per_s"] / 1e9, record["heads"])]
    rows = []
    for case in record["forward"]:
        ours = statistics.median(case["ours_s"])
        share = statistics.median(case["flop"] / t / p for t, p in zip(case["ours_s"], case["peak_flop_per_s"]))
        rows.append([str(case["threads"]), str(case["head_dim"]), str(case["seqlen"]), yes(case)] + times(case) + ["%.1f" % (case["flop"] / ours / 1e9),
                     "%.0f %%" % (100 * share / case["threads"]), str(len(case["ours_s"]))])
    parts.append(table(["threads", "head_dim", "S", "causal", "ours, ms", "PyTorch, ms", "ratio (95 %)", "GFLOP/s",
                        "of the peak", "rounds"], rows))
    for causal in (False, True):
        values = [statistics.median(ratios(case["ours_s"], case["peer_s"])) for case in record["forward"] if case["causal"] == causal]
        if values:
            parts.append("%s mask: geometric mean of the ratios %.2f, smallest %.2f." % (
                "Causal" if causal else "Without", geometric_mean(values), min(values)))
    one = {(case["head_dim"], case["seqlen"], case["causal"]): statistics.median(case["ours_s"])
           for case in record["forward"] if case["threads"] == 1}
    gains = [one[case["head_dim"], case["seqlen"], case["causal"]] / statistics.median(case["ours_s"])
             for case in record["forward"] if case["threads"] == 2 and case["seqlen"] >= 1024
             and (case["head_dim"], case["seqlen"], case["causal"]) in one]
    if gains:
        parts.append("Two threads against one, S of 1024 and more: %.2f to %.2f times as fast."
                     % (min(gains), max(gains)))
    errors = [(case["ours_error"], case["peer_error"]) for case in record["forward"] if "ours_error" in case]
    if errors:
        parts.append("Largest error against double precision, S up to 1024: ours %.1e, PyTorch's %.1e; the largest "
                     "quotient of the two in a case is %.2f." % (max(a for a, _ in errors), max(b for _, b in errors),
                                                        max(a / b for a, b in errors)))
    if record["decode"]:
        parts.append("One query of each head against S keys, head_dim 128. Reading is a sum over as many bytes, in the "
                     "same rounds.")
        rows = []
        for case in record["decode"]:
            ours = statistics.median(case["ours_s"])
            share = statistics.median(read / ours for ours, read in zip(case["ours_s"], case["read_s"]))
            rows.append([str(case["threads"]), str(case["seqlen"]), *times(case),
                         "%.1f" % (case["bytes"] / ours / 1e9), "%.0f %%" % (100 * share)])
        parts.append(table(["threads", "S", "ours, ms", "PyTorch, ms", "ratio (95 %)", "GB/s", "of reading"], rows))
    if record["backward"]:
        parts.append("The backward pass alone, head_dim 64; PyTorch's from a graph that is kept.")
        rows = []
        for case in record["backward"]:
            ours = statistics.median(case["ours_s"])
            rows.append([str(case["threads"]), str(case["seqlen"]), yes(case), *times(case),
                         "%.1f" % (case["flop"] / ours / 1e9)])
        parts.append(table(["threads", "S", "causal", "ours, ms", "PyTorch, ms", "ratio (95 %)", "GFLOP/s"], rows))
    return "\n\n".join(parts) + "\n"


def main():
    arguments = parser(__doc__, NOTE)
    arguments.add_argument("--threads", type=numbers, default=[1, 2], metavar="1,2")
    arguments.add_argument("--head-dims", type=numbers, default=[64, 128], metavar="64,128")
    arguments.add_argument("--sizes", type=numbers, default=[128, 256, 512, 1024, 2048, 4096, 8192], metavar="128,...")
    arguments.add_argument("--decode-sizes", type=numbers, default=[8192, 32768, 131072], metavar="8192,...")
    arguments.add_argument("--backward-sizes", type=numbers, default=[256, 1024, 2048], metavar="256,...")
    arguments.add_argument("--rounds", type=int, default=101, help="at most so many a case")
    arguments.add_argument("--seconds", type=float, default=4, help="a case ends after so many, but not before 7 rounds")
    arguments.add_argument("--build", metavar="DIR", help="build folder (build/compare_torch)")
    return run(arguments.parse_args(), NOTE, "compare_torch", measure, report)


if __name__ == "__main__":
    sys.exit(main())
