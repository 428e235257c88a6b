"""Figures of notes/cuda/03_flash_forward.md."""

from math import exp, log, log2

from check_notes import code, given, says

GUIDE = "NVIDIA, CUDA C++ Programming Guide, compute capability 9.0"
FLOAT, WARP, BANKS = 4, 32, 32
RUNG = "reference/cuda/03_flash_forward.cu"

block_q, block_k = code(RUNG, "launch_larger<Tile<64, {}, {}>")
H, rows = 64, code(RUNG, "kRows = {},")
across = H // code(RUNG, "? 8 : head_dim / {};")
down, keys, padding = block_q // rows, block_k // across, code(RUNG, "kStride = kHeadDim + {},")
threads = across * down
columns = H // across
says("a block has {} queries", block_q)
says("how do {} threads share the work", threads)

FMA, BYTES = 128, 128  # a clock of an SM
given("An SM does 128 multiply-adds a clock and moves 128 bytes a clock from shared memory", source=GUIDE)
says("8 bytes, so {} threads want {} a clock", threads, threads * 2 * FLOAT)
says("With {0} rows and {1} keys a thread loads {0} + {1} float4, and does {0} · {1} · 4 = {2} multiply-adds with "
     "them: {3} a load", rows, keys, rows * keys * 4, rows * keys * 4 // (rows + keys))
says("{} scores and {} elements of O are {} of the {} that a thread can have", rows * keys, rows * columns,
     rows * keys + rows * columns, 255)
whole = WARP * 4 * FLOAT // BYTES  # clocks of a warp's float4 load, all addresses different
for side in (1, 4, 8):
    products, loads = 4 * side**2, 2 * side
    says("| {0} × {0} | {1} | {2}, {3} to {4} |", side, products // loads, WARP * products // FMA, loads * whole // 2,
         loads * whole)
says("A warp's float4 load takes {} clocks when all addresses differ, {} when lanes share them", whole, whole // 2)

says("Thread (x, y) of {0} × {1} has the rows y, y + {1}, ..., the keys x, x + {0}, ... of a tile, and columns of O in "
     "groups of four, {0} groups apart", across, down)
says("with rows of {} elements all would begin in bank 0. Four elements of padding move each row by four banks, and {} "
     "rows cover all {}", H, across, len({x * (H + padding) % BANKS + i for x in range(across) for i in range(4)}))
assert {x * H % BANKS for x in range(across)} == {0} and padding == 4

says("block for (batch, query head, {} queries)", block_q)
given("scores near 10⁵", source="Logits.TheLargestOf100000HasTheWeightOne")

given("One query 2, keys 1 and 3 with values 10 and 20, scale 0.5", source="Ragged.WorkedExampleOfTheNote")
q, k, v, scale = 2, (1, 3), (10, 20), 0.5
s, factor = [q * key for key in k], scale * log2(exp(1))
m = max(s)
p = [2 ** ((one - m) * factor) for one in s]
d = sum(p)
o = p[0] * v[0] + p[1] * v[1]
says("scale · log2 e = {:.5f}", factor)
says("| (S - m) · {:.5f}, m = {} | {:.5f} | {:.0f} |", factor, m, (s[0] - m) * factor, (s[1] - m) * factor)
says("| P | {:.5f} | {:.0f} |", *p)
says("d = {:.5f}, O = ({:.5f} · {} + {}) / {:.5f} = {:.5f}, lse = {} · {} + ln {:.5f} = {:.5f}.", d, p[0], *v, d, o / d,
     m, scale, d, m * scale + log(d))

given("shared memory above 48 KiB without `cudaFuncSetAttribute`", source=GUIDE)
given("offsets in 32 bits", source="int")
