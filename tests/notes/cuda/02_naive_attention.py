"""Figures of notes/cuda/02_naive_attention.md."""

from math import log2

from check_notes import code, given, says

GUIDE = "NVIDIA, CUDA C++ Programming Guide"
FLOAT, BANKS = 4, 32
RUNG = "reference/cuda/02_naive_attention.cu"
tile, warp = code(RUNG, "kTile = {};"), code(RUNG, "kWarp = {};")
padded = tile + code(RUNG, "(&K_smem)[kTile][kTile + {}]")


def score_bytes(batch, heads, seqlen):
    return FLOAT * batch * heads * seqlen**2


says("At batch 4, 8 heads and S = 4096 that is {:.1f} GB", score_bytes(4, 8, 4096) / 1e9)
says("at S = 32768 it would be {:.0f} GB", score_bytes(4, 8, 32768) / 1e9)
given("an SM has 32 load units for 128 multipliers",
      source="NVIDIA, H100 Tensor Core GPU Architecture: 4 · 8 and 4 · 32")

says("A block of {0} × {0} threads computes {0} × {0} elements. Their rows of Q and of K are the same {0} and {0}. So "
     "the block goes along head_dim in steps of {0}: each thread loads one element of Q and one of K into shared "
     "memory, all wait, and then each thread takes {0} products from there. What was loaded once from main memory "
     "serves {0} threads: 1/{0} of the loads", tile)


def banks(row):
    """Those in which a column's elements lie, one of each row."""
    return len({row * x % BANKS for x in range(tile)})


given("Shared memory has 32 banks", source=GUIDE)
says("K is read by columns: {0} threads, {0} rows. With {0} elements a row, the rows begin in only {1} banks, and the "
     "load takes {2} clocks; with {3} they begin in {4}", tile, banks(tile), tile // banks(tile), padded, banks(padded))
says("takes the elements l, l + {}, ...", warp)
steps = int(log2(warp))
says("with the lane {} away, then {}, {}, {}, {}.", *(warp >> i for i in range(1, steps + 1)))
assert steps == 5  # "After five steps"

says("kernel 1, block (i, j) of {0} x {0}: kernel 3, block (i, h) of {0} x {0}:", tile)
says("for h in steps of {0}: for j in steps of {0}:", tile)
says("dot += {} products", tile)

S, H = 128, 64
given("One head, S = 128, H = 64, tiles of 16", source="Traffic.WorkedExampleOfTheNote")
product = 2 * S * S * H // tile
loads, stores = (product, 3 * S * S, product), (S * S, S * S + S, S * H)
says("| scores | 2 · 128 · 128 · 64 / 16 = {} | 128 · 128 = {} |", loads[0], stores[0])
says("| softmax | 3 · 128 · 128 = {} | 128 · 128 + 128 = {} |", loads[1], stores[1])
says("| values | 2 · 128 · 128 · 64 / 16 = {} | 128 · 64 = {} |", loads[2], stores[2])
says("| all | {} | {} |", sum(loads), sum(stores))
says("| rung 03 | 3 · 128 · 64 = {} | 128 · 64 + 128 = {} |", 3 * S * H, S * H + S)
says("the loads of both products would be {} times as many", tile)

given("`gridDim.y`, which ends at 65535", source=GUIDE)
says("K in shared memory without the column more: {} passes for a load", tile // banks(tile))
given("offsets in 32 bits", source="int")
