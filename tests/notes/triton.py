import re

from check_notes import ROOT, given, says, sup


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def constant(path, name):
    return int(re.search(r"\b%s = (\d+)" % name, read(path))[1])


threads = constant("reference/cuda/01_fused_elementwise.cu", "kThreads")
float4 = 4 * 4
says("Rung 01's kernel has {} threads a block, {} bytes a load", threads, float4)
rung, twin = (len(read("reference/" + path).splitlines()) for path in (
    "cuda/03_flash_forward.cu", "triton/03_flash_forward.py"))
says("Rung 03 is a file of {} lines.", rung)
says("lay out by hand how {} of them share the work", threads)

n, BLOCK = 10, 4
given("**Predict.** n = 10, BLOCK = 4.", source="chosen")
offsets = range(2 * BLOCK, 3 * BLOCK)
loaded = [i for i in offsets if i < n]
says("Program 2 has offsets {}, {}, {}, {}. It loads elements {} and {} from x", *offsets, *loaded)
says("Program 3 has offsets {} to {}: four masked lanes and no access. The grid of `triton.cdiv(10, 4)` = {} "
     "does", 3 * BLOCK, 4 * BLOCK - 1, -(-n // BLOCK))

says("| {} bytes at a time | `float4`", float4)
block, warps = constant("reference/triton/02_vector_add.py", "BLOCK"), 4
says("with BLOCK = {} and 4 warps:", block)
says("What if count is no multiple of {}?", 16)
lanes = 32 * warps
says("{} / {} = {} elements a thread.", block, lanes, block // lanes)
given("are multiples of 16, it compiles", source="Triton's specialisation of arguments; Compiles.ToLoadsOf16Bytes")
says("has {} loads of 16 bytes, two an input. Without it a mask may cut between neighbours, and the same source "
     "becomes {} loads of 4 bytes", 2 * block // lanes // 4, 2 * block // lanes)
says("the sum | `apply(chain, values)`, over the thread's {} elements",
     4 * constant("reference/cuda/01_fused_elementwise.cu", "kFours"))
given("is 32 bits wide, so the product is made 64 bits wide first", source="Triton's documentation of program_id")
says("11 bits of mantissa instead of 24, a rounding 2{} times as coarse", sup(24 - 11))
width = 1 << (80 - 1).bit_length()
says("and `tl.dot` at least 16. A head of 80 columns is a tile of {}, {} of them masked", width, width - 80)
says("{} lines. Not in it:", twin)
given("compiler for tiled neural network computations\", 2019;",
      source="the year of the paper")
