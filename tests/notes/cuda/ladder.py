"""Figures of notes/cuda/ladder.md; its tables are those of the records."""

from statistics import median

from check_notes import code, given, record, says

SMS = 132  # include/nanolm/devices.h, H200 SXM
compared = record("compare_torch_h200.json")


def ratio(case, ours, who):
    return median(peer / own for own, peer in zip(case["seconds"][ours], case["seconds"][who]))


block_q = code("reference/cuda/03_flash_forward.cu", "launch_larger<Tile<64, {}, 64>")
open_ = {(case["batch"], case["seqlen"]): ratio(case, "03", "PyTorch, fp32") for case in compared["forward"]
         if not case["causal"]}
few = [shape for shape in open_ if shape[0] * compared["heads"] * shape[1] // block_q < SMS]
assert all(open_[shape] < 0.95 for shape in few) and all(open_[shape] > 0.99 for shape in open_ if shape not in few)
says("Where blocks of {} queries are fewer than the {} SMs, with batch 1 up to S = {} and with batch 4 up to S = {}, "
     "and often with the mask, PyTorch's fused kernel is faster and takes down to {:.1f} of rung 03's time", block_q,
     SMS, *(max(seqlen for batch, seqlen in few if batch == wanted) for wanted in (1, 4)),
     min(ratio(case, "03", "PyTorch, fp32") for case in compared["forward"]))
compiled = median(ratio(case, "fused", "PyTorch, compiled") for case in compared["chain"])
says("PyTorch's compiled chain has one, and is {:.0f} % faster", 100 * (1 - compiled))
held = {who: case["bytes"][who] for case in compared["forward"] if (case["batch"], case["seqlen"]) == (4, 4096)
        for who in case["bytes"]}
score, out = held["02"], held["PyTorch, fp32"]
assert held["PyTorch, naive"] == 2 * score + out and score == out * 4096 // compared["head_dim"]  # 2 · S/H + 1 outputs
assert code("reference/cuda/01_fused_elementwise.cu", "kFours = {};") == 4  # "four float4"
given("the datasheet's 4.8 TB/s is what nothing passes", source="NVIDIA, H200 datasheet; include/nanolm/devices.h")
