"""Figures of notes/cuda/counters.md."""

from check_notes import ROOT, code, given, groups, record, says
from ladder_counters import formulas

FLOAT, WARP, SECTOR, BANKS, PASS = 4, 32, 32, 32, 128
L2, L1, SMS, WARPS = 60 * 2**20, 256 * 2**10, 132, 64  # include/nanolm/devices.h, H200 SXM
GUIDE = "NVIDIA, CUDA C++ Programming Guide, compute capability 9.0"
RUNG = "reference/cuda/03_flash_forward.cu"

S, H = 512, 64
block_q, block_k = code(RUNG, "launch_larger<Tile<64, {}, {}>")
rows, across = code(RUNG, "kRows = {},"), H // code(RUNG, "? 8 : head_dim / {};")
down, keys = block_q // rows, block_k // across
threads, q_blocks, k_blocks = across * down, S // block_q, S // block_k
says("with S = {}, H = {} and {} rows a query tile: how often is K read, how many bytes of it in all, how many "
     "sectors of {} bytes is that", S, H, block_q, SECTOR)

tensor = FLOAT * S * H
says("cuda/03_flash_forward, forward: B=1 N=1 K=1 Sq={0} Sk={0} H={1}", S, H)
says("launches 1, blocks {}, threads a block {}, barriers {}", q_blocks, threads,
     q_blocks * k_blocks * (ROOT / RUNG).read_text(encoding="utf-8").count("__syncthreads()"))
says("requested sectors x {} bytes compulsory", SECTOR)


def row(name, way, requested, sectors, compulsory):
    says(name + " " + way + " {} {} {} {}", *map(groups, (requested, sectors, sectors * SECTOR, compulsory)))


row("K", "loads", q_blocks * tensor, q_blocks * tensor // SECTOR, tensor)
row("Q", "loads", tensor, tensor // SECTOR, tensor)
row("V", "loads", q_blocks * tensor, q_blocks * tensor // SECTOR, tensor)
# One float a thread, 16 bytes apart: those of a row reach across * 16 bytes, and a warp has several rows.
of_a_warp = WARP // across * across * 4 * FLOAT // SECTOR
excess = of_a_warp / (WARP * FLOAT / SECTOR)
row("O", "stores", tensor, tensor // (WARP * FLOAT) * of_a_warp, tensor)
# The first thread of each row stores its lse: a warp's rows are neighbours, in one sector.
row("lse", "stores", S * FLOAT, S // (WARP // across), S * FLOAT)
# float4 of a thread for a tile: Q and K, then P and, for each of four keys, V.
product = H // 4 * (rows + keys) + block_k // 4 * (rows + 4 * (H // across // 4))
loads = q_blocks * k_blocks * threads * product * 4 * FLOAT
stores = q_blocks * FLOAT * (block_q * H + k_blocks * (2 * block_k * H + block_q * block_k))
for way, count in (("loads", loads), ("stores", stores)):
    says("shared array shared, " + way + ": {} bytes in {} passes, bank conflicts 0", groups(count),
         groups(count / PASS))
lines = (ROOT / RUNG).read_text(encoding="utf-8").split("\n")
at = [next(i for i, line in enumerate(lines, 1) if line.lstrip().startswith(start))
      for start in ("if (T::column(c) < head_dim) O[", "store<T>(state,")]
says("reference/cuda/03_flash_forward.cu:{} (called at line {}): O, store: {:.1f} times the sectors that it needs", *at,
     excess)
says("here {} of {} rows", q_blocks, block_q)
says("{0} bytes requested, {0} counted: +0.00 %", groups(2 * tensor + 2 * q_blocks * tensor))

given("its 32 lanes execute one load together", source=GUIDE)
says("{}-byte pieces of memory", SECTOR)
says("a shared memory of {} banks, 4 bytes wide, serves a warp's 4-byte words in one pass, 8-byte ones in two, "
     "{}-byte ones in four", BANKS, 4 * FLOAT)
says("where {}-byte loads share addresses", 4 * FLOAT)


def sectors(apart):
    return len({lane * apart // SECTOR for lane in range(WARP)})


assert sectors(2 * FLOAT) == 2 * sectors(FLOAT) and WARP * FLOAT / (sectors(SECTOR) * SECTOR) == 1 / 8
says("{} neighbouring floats are {} bytes, {} sectors. Every second float: {} sectors, half of what they bring is "
     "thrown away. Floats {} bytes apart or more: {} sectors", WARP, WARP * FLOAT, sectors(FLOAT), sectors(2 * FLOAT),
     SECTOR, sectors(SECTOR))


def conflicts(width):
    banks = [lane * width % BANKS for lane in range(WARP)]
    return max(map(banks.count, banks)) - 1


assert conflicts(1) == conflicts(33) == 0
says("{} neighbouring floats are one in each bank. A column of a `[32][32]` tile is {} words of one bank: {} conflicts",
     WARP, WARP, conflicts(32))
says("would show here as {:.1f} times the sectors", sectors(32 * FLOAT) / sectors(FLOAT))

cases = record("ladder_counters_h200.json")["cases"]
large = {kernel: (formula, case["measured"][kernel], case["arguments"].split())
         for case in cases if case["large"] for kernel, formula in formulas(case).items()}
missing = {kernel: written - measured["written"] for kernel, ((_, written), measured, _) in large.items()
           if written > 20e6}
says("Written bytes are up to {:.0f} % fewer than the formula: some tens of MB are still in the L2, {:.0f} MiB large",
     max(100 * count / large[kernel][0][1] for kernel, count in missing.items()), L2 / 2**20)
assert 0 < min(missing.values()) and max(missing.values()) < L2
seqlen = int(large["softmax_kernel"][2][3])
score_row = FLOAT * seqlen
in_flight = WARPS * score_row
says("A row of {} scores is {:.0f} KiB; {} warps of an SM have {:.0f} KiB of them in flight, twice what its L1 holds, "
     "and {} SMs have {:.0f} MiB, more than the L2", seqlen, score_row / 1024, WARPS, in_flight / 1024, SMS,
     SMS * in_flight / 2**20)
assert in_flight == 2 * L1 and SMS * in_flight > L2
(read, _), measured, arguments = large["flash_kernel"]
says("reads {:.0f} % more than each byte once: the {} query tiles of a head", 100 * (measured["read"] / read - 1),
     int(arguments[3]) // block_q)
backward = [case for case in cases if case["arguments"] == "1 2 1 200 331 40 1"][-1]
says("The {} of `keys_kernel` are the emulator's", backward["counted"]["keys_kernel"]["load conflicts"])
