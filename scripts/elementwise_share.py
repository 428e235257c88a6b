#!/usr/bin/env python3
"""What share of a transformer block's training step is neither a product nor attention, by PyTorch's profiler.

    scripts/elementwise_share.py --out notes/data/elementwise_share_h200.json     measures; needs PyTorch and a GPU
    scripts/elementwise_share.py --from notes/data/elementwise_share_h200.json    prints the table of a record
    ... --write                                                                   puts it into notes/01_roofline.md

The block is that of the note: norm, attention with heads of 64, addition, norm, an MLP of width 4D with GELU, addition; 8
sequences of 1024 tokens; products and attention in bf16 by autocast, weights and Adam in fp32.
"""

import collections
import statistics
import sys

from note_tables import table
from side_by_side import Problem, commit, milliseconds, parser, run

NOTE = "notes/01_roofline.md"
BATCH, LENGTH, HEAD = 8, 1024, 64
WARM_UP = 5
# What the names of the libraries' kernels have in them; all others are elementwise: additions, norms, casts, copies.
KINDS = {"matmul": ("gemm", "nvjet", "cutlass", "splitk"), "attention": ("flash", "fmha", "sdpa", "cudnn"),
         "elementwise": (), "Adam": ("adam", "multi_tensor")}


def kind_of(kernel):
    return next((kind for kind, words in KINDS.items() if any(word in kernel.lower() for word in words)), "elementwise")


def block(torch, width):
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.projections = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(4))
            self.wide, self.narrow = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

        def forward(self, x):
            normed = self.norms[0](x)
            Q, K, V = (layer(normed).view(BATCH, LENGTH, -1, HEAD).transpose(1, 2) for layer in self.projections[:3])
            heads = functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
            x = x + self.projections[3](heads.transpose(1, 2).reshape(BATCH, LENGTH, width))
            return x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))

    return Block().cuda()


def profiled(torch, width, steps):
    """The seconds of each kernel, step by step."""
    from torch.profiler import ProfilerActivity, profile
    model = block(torch, width)
    adam = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(BATCH, LENGTH, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    gradient = torch.randn_like(x)

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = model(x)
        y.backward(gradient)
        adam.step()
        adam.zero_grad()
        x.grad = None

    for _ in range(WARM_UP):
        step()
    kernels = collections.defaultdict(lambda: [0.0] * steps)
    for number in range(steps):
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as found:
            step()
            torch.cuda.synchronize()
        for event in found.events():
            if event.device_type == torch.autograd.DeviceType.CUDA:
                kernels[event.name[:90]][number] += event.device_time / 1e6
    return {"width": width, "seconds": {name: [round(spent, 9) for spent in samples] for name, samples in kernels.items()}}


def measure(options):
    try:
        import torch
    except ImportError:
        raise Problem("PyTorch is not installed in this Python: pip install torch") from None
    if not torch.cuda.is_available():
        raise Problem("PyTorch finds no GPU here; --from notes/data/elementwise_share_h200.json shows a recorded run")
    return {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "commit": commit(), "batch": BATCH,
            "seqlen": LENGTH, "head_dim": HEAD,
            "cases": [profiled(torch, width, options.steps) for width in (512, 1024, 4096)]}


def report(record):
    rows = []
    for case in record["cases"]:
        steps = len(next(iter(case["seconds"].values())))
        sums = {kind: [sum(samples[i] for name, samples in case["seconds"].items() if kind_of(name) == kind)
                       for i in range(steps)] for kind in KINDS}
        shares = [(sums["elementwise"][i] + sums["Adam"][i]) / sum(sums[kind][i] for kind in KINDS) for i in range(steps)]
        rows.append([str(case["width"])] + [milliseconds(samples) for samples in sums.values()]
                    + ["%.0f %%" % (100 * statistics.median(shares))])
    return "%s, PyTorch %s, medians of %d steps:\n\n%s\n" % (
        record["device"], record["torch"], steps,
        table(["D", "matmuls, ms", "attention, ms", "elementwise, ms", "Adam, ms", "elementwise and Adam"], rows))


def main():
    arguments = parser(__doc__, NOTE)
    arguments.add_argument("--steps", type=int, default=20)
    return run(arguments.parse_args(), NOTE, "elementwise_share", measure, report)


if __name__ == "__main__":
    sys.exit(main())
