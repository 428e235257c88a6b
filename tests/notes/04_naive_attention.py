"""The figures of notes/04_naive_attention.md."""

from math import exp

from check_notes import given, groups, record, says

GiB = 2**30
P, VECTOR, W = 989e12, 66.9e12, 3.35e12  # include/nanolm/devices.h, H100 SXM
S, H, b = 4096, 128, 2


def score_matrix_bytes(batch, heads, seqlen, bytes_per_element):
    return batch * heads * seqlen**2 * bytes_per_element


given("*Time: 0.75 h, core.", source="the week in CMakeLists.txt")
given("take at S = 4096, 32 heads, fp16? And at a context of 131072?", source="chosen")
moved = b * (4 * S * H + 4 * S * S)
says("one head of S = 4096, H = 128 in bf16 needs at least {:.1f} µs", 1e6 * moved / W)
says("At S = 4096, 32 heads, fp16 that is {:.0f} GiB", score_matrix_bytes(1, 32, 4096, 2) / GiB)
says("at S = 131072 it is {:.0f} GiB", score_matrix_bytes(1, 32, 131072, 2) / GiB)
says("{:.0f} times at S = 4096, H = 64", 4096 / 64)
says("below H/b: {:.0f} FLOP a byte for H = 128 in bf16, where an H100 needs {:.0f} to be busy", H / b, P / W)

given("one head of S = 4096, H = 128 in bf16 on an H100", source="chosen")
says("The scores of one head alone are {:.1f} MB and would fit the L2 of 50 MiB; those of a layer's 32 heads are "
     "{:.0f} GiB and do not. The table is a 32nd part", b * S * S / 1e6, score_matrix_bytes(1, 32, S, b) / GiB)
matmul = 2 * S * S * H, b * (2 * S * H + S * S), P
softmax = 5 * S * S, b * 2 * S * S, VECTOR
passes = [("scores", *matmul), ("softmax", *softmax), ("values", *matmul)]
row = "| {} | {:.2f} | {:.1f} | {:.3g} | {:.1f} | {:.1f} |"
for name, flop, size, peak in passes:
    says(row, name, flop / 1e9, size / 1e6, flop / size, 1e6 * flop / peak, 1e6 * size / W)
flop, size = (sum(p[i] for p in passes) for i in (1, 2))
assert size == moved
says(row, "together", flop / 1e9, size / 1e6, flop / size, 1e6 * sum(p[1] / p[3] for p in passes), 1e6 * size / W)
says("the traffic is what takes {:.1f} µs", 1e6 * moved / W)

given("| ratio | of what to what | S = 4096, H = 64 |", source="chosen")
ratio = 4096 / 64
says("the score matrix to the output | {:.0f} |", ratio)
says("to Q, K, V and O once, 4SH | {:.0f} |", 1 + ratio)
says("PyTorch's naive formula, in outputs | {:.0f} |", 2 * ratio + 1)
measured = record("compare_torch_h200.json")
case = next(c for c in measured["forward"] if (c["batch"], c["seqlen"], c["causal"]) == (1, 4096, False))
peak, output = case["bytes"]["PyTorch, naive"], measured["heads"] * 4096 * measured["head_dim"] * 4
says("its peak was {} bytes beside an output of {}: {:.0f} outputs, to the byte", groups(peak), groups(output),
     peak / output)
assert peak == (2 * ratio + 1) * output and measured["head_dim"] == 64

given("two keys 0.5 and 1, values 10 and 20", source="chosen")
first, second = exp(1 - 2) / (exp(1 - 2) + 1), 1 / (exp(1 - 2) + 1)
says("| 0 | 0.5, -inf | 1, 0 | {} |", 10)
says("| 1 | 1, 2 | {:.5f}, {:.5f} | {:.4f} |", first, second, 10 * first + 20 * second)

says("bytes counted in {} bits", 32)
says("counts above 2^{} must not wrap", 31)
given("2022, section 2.2", source="the paper itself")

says("32 · 4096² · 2 = {} bytes, which is 1 GiB", groups(score_matrix_bytes(1, 32, 4096, 2)))
says("A context {} times as long takes 32² = {} times that", 131072 // 4096, (131072 // 4096) ** 2)
given("an H100 has 80 GB for everything", source="NVIDIA H100 datasheet")
says("Still {:.1f} µs.", 1e6 * moved / W)
says("the traffic is {:.1f} MB at 3.35 TB/s", moved / 1e6)
says("the head runs at {:.0f} % of the tensor cores' peak", 100 * 4 * S * S * H / (moved / W) / P)
says("Measured at S = 4096, H = 64: {:.0f}. S/H = {:.0f} is", peak / output, ratio)
