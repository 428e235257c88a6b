"""Figures of notes/gpu_model.md."""

from math import sqrt

from check_notes import given, groups, record, says, sup

KIB, SMS, CLOCK = 1024, 132, 1.98e9
P, V, W, HBM = 989e12, 66.9e12, 3.35e12, 80e9
WARP, WARPS, THREADS, REGISTERS = 32, 64, 2048, 65536
SRAM_KIB, REGISTERS_KIB, L2_MIB = 228, 256, 50
H100 = "NVIDIA, H100 datasheet; include/nanolm/devices.h"
GUIDE = "NVIDIA, CUDA C++ Programming Guide, compute capability 9.0"

given("1 h of the 2.5 h of", source="CMakeLists.txt, the week")
given("of an H100, 80 GB, as a square with sides of 40 cm", source=H100 + "; the side is chosen")
given("The chip has 132 processors (SMs), each with 256 KiB of registers and 228 KiB of shared memory", source=H100)
given("two vectors of 2²⁶ fp32 numbers", source="chosen")
given("The main memory gives 3.35 TB/s, and the arithmetic units could do 66.9 TFLOP/s", source=H100)
given("An SM has 65536 registers and room for 64 warps, which are groups of 32 threads", source=GUIDE)
given("A kernel has 256 threads a block and needs 64 registers a thread", source="chosen")

given("| SM, streaming multiprocessor | 132 |", source=H100)
given("| warp | 32 threads, up to 64 warps an SM |", source=GUIDE)
given("| registers | 256 KiB an SM |", source=H100)
given("| SRAM (shared memory) | 228 KiB an SM |", source=H100)
given("| L2 cache | 50 MiB |", source=H100)
given("| 80 GB at 3.35 TB/s |", source=H100)
given("| vector units | 66.9 TFLOP/s | fp32", source=H100)
given("| tensor cores | 989 TFLOP/s | bf16", source=H100)
given("there are 128 of those in an SM", source="NVIDIA, H100 Tensor Core GPU Architecture")

chip = (REGISTERS_KIB + SRAM_KIB) * KIB * SMS
says("(256 + 228) KiB · 132 = {:.0f} MB, {:.2f} % of the 80 GB. The L2 is another {:.0f} MB", chip / 1e6,
     100 * chip / HBM, L2_MIB * KIB**2 / 1e6)
says("a tile of 128 × 128 numbers in bf16 is {:.0f} KiB", 128 * 128 * 2 / KIB)
registers, shared = 128 * 4 * 4, 32 * 4
says("can do 128 multiply-adds, each with three operands and one result of 4 bytes: {} bytes from and to registers, "
     "which at 132 SMs and 1.98 GHz is {:.0f} TB/s. Shared memory gives 32 words of 4 bytes in a clock: {:.1f} TB/s. "
     "Main memory gives 3.35 TB/s", registers, registers * SMS * CLOCK / 1e12, shared * SMS * CLOCK / 1e12)
assert registers == 16 * shared and round(shared * SMS * CLOCK / W) == 10  # a sixteenth, then a tenth

given("at most 1024", source=GUIDE)
given("runs on 132 SMs or on 40", source="devices.h: H100, T4")
given("A warp is 32 threads with consecutive indices.* The scheduler issues one instruction for all 32", source=GUIDE)

given("waits 15 clocks for what it has loaded", source="chosen, scripts/figures/latency_hiding.py")
assert 5 / (5 + 15) == 1 / 4
given("an SM has room for 64 warps", source=GUIDE)
flight = W * 500e-9
says("With 3.35 TB/s and, say, 500 ns that is {:.1f} MB, {:.1f} KB an SM, or {:.1f} bytes for each of the {} threads",
     flight / 1e6, flight / SMS / 1e3, flight / SMS / THREADS, WARP * WARPS)
assert 16 * THREADS / 2 > flight / SMS > 4 * THREADS
given("one load of 16 bytes", source="float4")
given("the share of the 64 warps", source=GUIDE)


def row(resource, there, takes):
    blocks = there // takes
    return blocks, blocks * 256 // WARP


says("| threads | {} | 256 | {} | {} |", THREADS, *row("threads", THREADS, 256))
given("a block of 256 threads takes", source="chosen")
for each in (32, 64, 128):
    says("| registers, at %d a thread | {} | {} | {} | {} |" % each, REGISTERS, 256 * each,
         *row("registers", REGISTERS, 256 * each))
says("| shared memory, at 100 KiB a block | 228 KiB | {} KiB | {} | {} |", 100 + 1, *row("shared", SRAM_KIB, 101))
given("at most 227 KiB", source="CUDA 13.0, cuda_occupancy.h")
given("8 to 16 warps an SM", source="FlashAttention-3 and cuDNN: one block of 256 to 512 threads an SM")

given("The 32 lanes of a warp", source=GUIDE)
says("in **sectors** of 32 bytes. Lanes that read neighbouring floats need {} bytes, which are {} sectors",
     WARP * 4, WARP * 4 // 32)
says("Lanes that read every 32nd float need {} sectors", WARP)
given("Shared memory consists of 32 banks; the word at byte address a is in bank (a / 4) mod 32", source=GUIDE)
given("32 lanes that read 32 neighbouring words are served at once. 32 lanes that read down a column of a 32 × 32 tile "
      "of floats", source=GUIDE)
says("are served in {} passes. A tile with 33 columns puts the column's words into {} different banks",
     max(sum(row * 32 % 32 == bank for row in range(32)) for bank in range(32)),
     len({row * 33 % 32 for row in range(32)}))

n, resident = 2**26, SMS * THREADS // 256
says("with n = 2%s elements in fp32" % sup(26))
says("with {} blocks of 256 threads", groups(n / 256))
says("A block is {} warps and an SM holds 64, so {} blocks an SM, {} blocks in all. The other {:.1f} % wait",
     256 // WARP, THREADS // 256, resident, 100 * (1 - resident / (n / 256)))
says("Each warp computes its 32 indices, then executes the load of x: one instruction, {} bytes, {} sectors", WARP * 4,
     WARP * 4 // 32)
says("Soon 64 warps of each SM have 2 loads out: {:.0f} KiB an SM, which is more than the {:.1f} KB",
     WARPS * 2 * WARP * 4 / KIB, flight / SMS / 1e3)
given("one instruction for 32 additions", source=GUIDE)
says("the next block comes. {:.0f} times over", n / 256 / resident)
waits = 1 - 2 * n / V / (12 * n / W)
says("{} bytes an element are {:.0f} MB, which at 3.35 TB/s take {:.3f} ms. The additions are 2²⁶ FLOP, {:.0f} µs", 12,
     12 * n / 1e6, 12 * n / W * 1e3, n / V * 1e6)
says("so it is rather {:.0f} µs. Either way the arithmetic waits for {:.0f} % of the time", 2 * n / V * 1e6,
     100 * waits)

says("{:.2f} cm: {:.0f} MB of 80 GB is {:.2f} % of the area, and the root of that is {:.1f} % of the side",
     40 * sqrt(chip / HBM), chip / 1e6, 100 * chip / HBM, 100 * sqrt(chip / HBM))
says("{:.3f} ms. Three arrays of 2²⁶ · 4 bytes are {:.0f} MB, and the main memory's 3.35 TB/s decide", 12 * n / W * 1e3,
     12 * n / 1e6)
fused = next(e for e in record("ladder_h200.json")["elementwise"] if e["kernels"] == "fused" and e["operations"] == 1)
ms = sorted(fused["samples_ms"])[len(fused["samples_ms"]) // 2]
rate = fused["bytes"] / ms * 1e3
says("whose main memory has 4.8 TB/s, rung 01 of the ladder moves {:.2f} GB in {:.3f} ms, {:.2f} TB/s or {:.0f} % of "
     "the datasheet", fused["bytes"] / 1e9, ms, rate / 1e12, 100 * rate / 4.8e12)
says("{} warps. 65536 registers over 256 · 64 are {} blocks of {} warps: half of the 64", 32, REGISTERS // (256 * 64),
     256 // WARP)
given("`cuda_occupancy.h` of CUDA 13.0", source="NVIDIA")
