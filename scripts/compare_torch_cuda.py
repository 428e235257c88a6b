#!/usr/bin/env python3
"""The ladder against PyTorch on a GPU, in one process, in turn, on the same tensors.

    scripts/compare_torch_cuda.py --out notes/data/compare_torch_h200.json     measures; needs PyTorch and a GPU
    scripts/compare_torch_cuda.py --from notes/data/compare_torch_h200.json    prints the tables of a record
    ... --write                                                                puts them into notes/cuda/ladder.md

Each round calls everyone once, forwards and backwards in turn, behind a write of twice the L2, so that nothing is found
there. A ratio is a peer's time over ours in one round; a table has the median of the rounds, and the 95 % interval of
that median. Decode is launched from CUDA graphs, ours and the peers'. --library: a libladder_c.so that was built elsewhere
(cmake -DNANOLM_CUDA=ON, target ladder_c).
"""

import ctypes
import math
import os
import statistics
import subprocess
import sys
import time

from compare_torch_cuda_tables import report
from side_by_side import ROOT, Problem, build, commit, numbers, parser, run

NOTE = "notes/cuda/ladder.md"
HEADS, HEAD_DIM = 8, 64
CHAIN, NAIVE, FLASH, DECODE, BACKWARD = (b"cuda/01_fused_elementwise", b"cuda/02_naive_attention",
                                         b"cuda/03_flash_forward", b"cuda/04_flash_decode", b"cuda/05_flash_backward")
ELEMENTS = 2 ** 26  # of a chain


class Tensors(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("Q", "K", "V", "O", "lse", "workspace", "stream")]


def load_library(path):
    if not path:
        folder = os.path.join(ROOT, "build", "compare_torch_cuda")
        build(folder, ["-DIMPL=reference", "-DNANOLM_CUDA=ON", "-DNANOLM_EMULATOR=OFF"], "ladder_c")
        path = os.path.join(folder, "lib", "libladder_c.so")
    library = ctypes.CDLL(path)
    library.nanolm_workspace.restype = ctypes.c_int64
    return library


class Bench:
    def __init__(self, torch, library, rounds):
        self.torch, self.library, self.rounds = torch, library, rounds
        self.flush = torch.empty(2 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.int8, device="cuda")

    def normal(self, *shape, dtype=None):
        return self.torch.randn(*shape, device="cuda", dtype=dtype or self.torch.float32)

    def seconds(self, call):
        """The device's time between two events. A pause of the device lets the host get ahead."""
        torch = self.torch
        self.flush.zero_()
        torch.cuda._sleep(2000000)  # about a millisecond
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e3

    def graph(self, call):
        call()
        self.torch.cuda.synchronize()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            call()
        return graph.replay

    def compare(self, case, calls):
        """Fills the case with {who: samples}."""
        samples = {who: [] for who in calls}
        for call in calls.values():
            call(), call()
        for number in range(self.rounds):
            for who in list(calls) if number % 2 == 0 else list(calls)[::-1]:
                samples[who].append(self.seconds(calls[who]))
        case["seconds"] = samples
        what = ["%s %s" % item for item in case.items() if not isinstance(item[1], dict)]
        times = ["%s %.3f ms" % (who, 1e3 * statistics.median(values)) for who, values in samples.items()]
        print("%s: %s" % (", ".join(what), ", ".join(times)), file=sys.stderr, flush=True)
        return case

    def tensors(self, rung, sizes, Q, K, V, O, lse, is_decode=0):
        bytes_ = self.library.nanolm_workspace(rung, sizes, is_decode)
        workspace = self.torch.empty(max(bytes_, 1), dtype=self.torch.int8, device="cuda")
        return workspace, Tensors(*(t.data_ptr() for t in (Q, K, V, O, lse, workspace)), None), bytes_

    def launcher(self, function, rung, sizes, scale, flag, tensors, *more):
        def call():
            tensors.stream = self.torch.cuda.current_stream().cuda_stream
            if function(rung, sizes, ctypes.c_float(scale), flag, ctypes.byref(tensors), *more):
                raise Problem("%s refused the shape" % rung.decode())
        return call

    def checked(self, what, actual, expected, tolerance):
        error = (actual.double() - expected.double()).abs().max().item()
        if not error <= tolerance:
            raise Problem("%s differs by %g" % (what, error))
        return error

    def peak_bytes(self, call):
        """What PyTorch holds at most during a call, beyond what it held before."""
        self.torch.cuda.synchronize()
        self.torch.cuda.reset_peak_memory_stats()
        before = self.torch.cuda.memory_allocated()
        call()
        self.torch.cuda.synchronize()
        return self.torch.cuda.max_memory_allocated() - before

    def roofs(self):
        """What this device does at most: bytes copied and read, FLOP of matrix products; samples of each."""
        torch, size = self.torch, 2 ** 30
        a, b = (torch.empty(size, device="cuda").normal_() for _ in range(2))
        left, right = (self.normal(8192, 8192) for _ in range(2))
        low = [left.bfloat16(), right.bfloat16()]
        calls = {"copy": lambda: b.copy_(a), "read": lambda: torch.sum(a), "read, largest": lambda: torch.amax(a),
                 "fp32 matmul": lambda: left @ right, "bf16 matmul": lambda: low[0] @ low[1]}
        case = self.compare({"what": "roofs"}, calls)
        case["work"] = {"copy": 8.0 * size, "read": 4.0 * size, "read, largest": 4.0 * size,
                        "fp32 matmul": 2.0 * 8192 ** 3, "bf16 matmul": 2.0 * 8192 ** 3}
        return case

    def clocks(self, seqlen):
        """Rung 03 by the host's clock without and with a wait, by events, and its first call of all."""
        torch, batch, case = self.torch, 4, {"seqlen": seqlen}
        Q, K, V = (self.normal(batch, HEADS, seqlen, HEAD_DIM) for _ in range(3))
        O, lse = torch.empty_like(Q), torch.empty(batch * HEADS * seqlen, device="cuda")
        sizes = (ctypes.c_int64 * 6)(batch, HEADS, HEADS, seqlen, seqlen, HEAD_DIM)
        _, tensors, _ = self.tensors(FLASH, sizes, Q, K, V, O, lse)
        call = self.launcher(self.library.nanolm_forward, FLASH, sizes, HEAD_DIM ** -0.5, 0, tensors)

        def by_host(wait):
            torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            if wait:
                torch.cuda.synchronize()
            spent = time.perf_counter() - start
            torch.cuda.synchronize()
            return spent

        case["first_s"] = by_host(True)
        by_host(True)
        case["seconds"] = {"no wait": [by_host(False) for _ in range(self.rounds)],
                           "wait": [by_host(True) for _ in range(self.rounds)],
                           "events": [self.seconds(call) for _ in range(self.rounds)]}
        return case

    def caches(self, seqlen):
        """Decode of a cache that fits the L2, behind a write of twice its size and behind itself."""
        case, call = self.decode_call(1, seqlen)
        flush, rounds = self.flush, range(self.rounds)
        call(), call()
        case["seconds"] = {"flushed": [self.seconds(call) for _ in rounds]}
        self.flush = self.flush[:1]
        case["seconds"]["warm"] = [self.seconds(call) for _ in rounds]
        self.flush = flush
        return case

    def chain(self, operations):
        """k multiply-adds of an array, by k kernels and by one."""
        torch = self.torch
        x = self.normal(ELEMENTS)
        y = torch.full_like(x, math.nan)
        factors, terms = ([start + i / 64 for i in range(operations)] for start in (0.5, -1.0))
        in_c = [(ctypes.c_float * operations)(*values) for values in (factors, terms)]

        def ours(is_fused):
            def call():
                if self.library.nanolm_elementwise(
                        CHAIN, is_fused, ctypes.c_int64(ELEMENTS), operations, *in_c,
                        ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()),
                        ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)):
                    raise Problem("rung 01 refused the chain")
            return call

        def peer(z=x):
            for factor, term in zip(factors, terms):
                z = torch.rsub(z, term, alpha=-factor)  # one kernel: term + factor * z
            return z

        calls = {"chain": ours(0), "fused": ours(1), "PyTorch": peer}
        case = {"operations": operations, "error": 0.0}
        for who in ("chain", "fused"):
            y.fill_(math.nan)
            calls[who]()
            case["error"] = max(case["error"], self.checked("rung 01, " + who, y, peer(), 1e-5))
        try:
            compiled = torch.compile(peer, dynamic=False, fullgraph=True)
            self.checked("the compiled chain", compiled(x), y, 1e-5)
            calls["PyTorch, compiled"] = lambda: compiled(x)
        except Exception as why:  # it needs Triton and a C compiler: the column stays empty
            print("torch.compile: %s" % str(why).strip().split("\n")[-1], file=sys.stderr)
        return self.compare(case, calls)

    def forward(self, batch, seqlen, causal):
        torch = self.torch
        Q, K, V = (self.normal(batch, HEADS, seqlen, HEAD_DIM) for _ in range(3))
        low = [t.bfloat16() for t in (Q, K, V)]
        O, lse = torch.full_like(Q, math.nan), torch.empty(batch * HEADS * seqlen, device="cuda")
        sizes = (ctypes.c_int64 * 6)(batch, HEADS, HEADS, seqlen, seqlen, HEAD_DIM)
        scale = HEAD_DIM ** -0.5
        hidden = None
        if causal and seqlen <= 4096:
            hidden = torch.ones(seqlen, seqlen, dtype=torch.bool, device="cuda").triu(1)

        def naive():
            scores = Q @ K.transpose(-1, -2) * scale
            if causal:
                scores = scores.masked_fill(hidden, -math.inf)
            return scores.softmax(-1) @ V

        def fused(tensors):
            return torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)

        case = {"batch": batch, "seqlen": seqlen, "causal": causal, "bytes": {}, "errors": {}}
        keep, calls = [], {}
        for who, rung in (("03", FLASH), ("02", NAIVE)):
            if who == "02" and seqlen > 4096:
                continue
            workspace, tensors, case["bytes"][who] = self.tensors(rung, sizes, Q, K, V, O, lse)
            keep.append(workspace)
            calls[who] = self.launcher(self.library.nanolm_forward, rung, sizes, scale, int(causal), tensors)
            calls[who]()
            case["errors"][who] = self.checked("rung " + who, O, fused([Q, K, V]), 1e-4)
        if seqlen <= 4096:
            calls["PyTorch, naive"] = naive
        calls["PyTorch, fp32"], calls["PyTorch, bf16"] = lambda: fused([Q, K, V]), lambda: fused(low)
        for who, call in calls.items():
            if who not in case["bytes"]:
                case["bytes"][who] = self.peak_bytes(call)
        return self.compare(case, calls)

    def decode_call(self, batch, seqlen):
        """The case, checked, and rung 04 as a CUDA graph; its tensors live as long as it does."""
        torch, q_heads, kv_heads, head_dim = self.torch, 32, 8, 128
        Q = self.normal(batch, q_heads, 1, head_dim, dtype=torch.bfloat16)
        K, V = (self.normal(batch, kv_heads, seqlen, head_dim, dtype=torch.bfloat16) for _ in range(2))
        O, lse = torch.full_like(Q, math.nan), torch.empty(batch * q_heads, device="cuda")
        sizes = (ctypes.c_int64 * 6)(batch, q_heads, kv_heads, 1, seqlen, head_dim)
        workspace, tensors, bytes_ = self.tensors(DECODE, sizes, Q, K, V, O, lse, 1)
        ours = self.launcher(self.library.nanolm_decode, DECODE, sizes, head_dim ** -0.5, 1, tensors)
        ours()
        truth = torch.nn.functional.scaled_dot_product_attention(*(t[:1].double() for t in (Q, K, V)), enable_gqa=True)
        case = {"batch": batch, "seqlen": seqlen, "cache_bytes": 2 * K.numel() * K.element_size(), "workspace": bytes_,
                "error": self.checked("rung 04", O[:1], truth, 3e-3)}
        replay = self.graph(ours)
        self.kept = Q, K, V, O, lse, workspace
        return case, replay

    def decode(self, batch, seqlen):
        torch = self.torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        case, ours = self.decode_call(batch, seqlen)
        Q, K, V = self.kept[:3]

        def peer(backend):
            def call():
                with sdpa_kernel(backend):
                    return torch.nn.functional.scaled_dot_product_attention(Q, K, V, enable_gqa=True)
            return self.graph(call)

        return self.compare(case, {"04": ours, "cuDNN": peer(SDPBackend.CUDNN_ATTENTION),
                                   "FlashAttention-2": peer(SDPBackend.FLASH_ATTENTION)})

    def backward(self, seqlen, causal):
        torch, batch = self.torch, 4
        Q, K, V, dO = (self.normal(batch, HEADS, seqlen, HEAD_DIM) for _ in range(4))
        O, lse = torch.empty_like(Q), torch.empty(batch * HEADS * seqlen, device="cuda")
        sizes = (ctypes.c_int64 * 6)(batch, HEADS, HEADS, seqlen, seqlen, HEAD_DIM)
        scale = HEAD_DIM ** -0.5
        _, before, _ = self.tensors(FLASH, sizes, Q, K, V, O, lse)
        self.launcher(self.library.nanolm_forward, FLASH, sizes, scale, int(causal), before)()
        workspace, tensors, _ = self.tensors(BACKWARD, sizes, Q, K, V, O, lse)
        gradients = [torch.full_like(Q, math.nan) for _ in range(3)]
        ours = self.launcher(self.library.nanolm_backward, BACKWARD, sizes, scale, int(causal), tensors,
                             *(ctypes.c_void_p(t.data_ptr()) for t in [dO] + gradients))
        leaves = [t.clone().requires_grad_() for t in (Q, K, V)]
        out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)

        def peer():
            return torch.autograd.grad(out, leaves, dO, retain_graph=True)

        ours()
        error = max(self.checked("rung 05", a, b, 1e-3) for a, b in zip(gradients, peer()))
        return self.compare({"seqlen": seqlen, "causal": causal, "batch": batch, "error": error},
                            {"05": ours, "PyTorch, fp32": peer})


def measure(options):
    try:
        import torch
    except ImportError:
        raise Problem("PyTorch is not installed in this Python: pip install torch") from None
    if not torch.cuda.is_available():
        raise Problem("PyTorch finds no GPU here; --from notes/data/compare_torch_h200.json shows a recorded run")
    torch.backends.cuda.matmul.allow_tf32 = False
    bench = Bench(torch, load_library(options.library), options.rounds)
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm", "--format=csv,noheader"],
                            stdout=subprocess.PIPE, encoding="utf-8").stdout.strip()
    record = {"device": torch.cuda.get_device_name(), "driver_and_highest_clock": driver, "torch": torch.__version__,
              "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "commit": options.commit or commit(),
              "heads": HEADS, "head_dim": HEAD_DIM, "elements": ELEMENTS, "forward": [], "decode": [], "backward": []}
    with torch.no_grad():
        record["clocks"] = [bench.clocks(seqlen) for seqlen in (256, 1024, 4096)]
        record["caches"] = [bench.caches(seqlen) for seqlen in (1024, 4096, 8192)]
        record["roofs"] = bench.roofs()
        record["chain"] = [bench.chain(operations) for operations in (1, 2, 4, 8, 16)]
        for batch in (1, 4):
            for seqlen in options.sizes:
                for causal in (False, True):
                    record["forward"].append(bench.forward(batch, seqlen, causal))
        for batch, seqlen in ((16, 8192), (64, 8192), (1, 131072), (1, 8192), (16, 1024), (1, 1024)):
            record["decode"].append(bench.decode(batch, seqlen))
    for seqlen in (1024, 2048, 4096, 8192):
        for causal in (False, True):
            record["backward"].append(bench.backward(seqlen, causal))
    return record


def main():
    arguments = parser(__doc__, NOTE)
    arguments.add_argument("--library", metavar="FILE", help="libladder_c.so, built elsewhere")
    arguments.add_argument("--commit", help="what the library was built from, where this is no clone")
    arguments.add_argument("--sizes", type=numbers, default=[256, 512, 1024, 2048, 4096, 8192, 16384], metavar="256,...")
    arguments.add_argument("--rounds", type=int, default=11)
    return run(arguments.parse_args(), NOTE, "compare_torch_cuda", measure, report)


if __name__ == "__main__":
    sys.exit(main())
