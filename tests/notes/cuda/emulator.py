"""Figures of notes/cuda/emulator.md."""

from check_notes import code, given, record, says

OUTPUT = "the emulator's output, on wrong versions of the rungs"

says("a fiber with a stack of {} KiB", code("emulator/block.h", "kStack = {} * 1024"))
says("{} bytes free between two arrays", code("emulator/shared_memory.cpp", "kGap = {};"))
says("aligned to {} bytes and no more", code("emulator/memory.cpp", "kOffset = {};"))

given("exercises/cuda/03_flash_forward.cu:112: thread 31, 0, 0 of block 4, 0, 0 reads 4 bytes 12 bytes behind the end "
      "of K of 5120 bytes exercises/cuda/02_naive_attention.cu:71: __syncthreads(): the block's threads wait in "
      "different places and none can go on: threads 0 to 31 at line 71 in __syncthreads(); threads 32 to 63 at line "
      "74 in __syncthreads()", source=OUTPUT)
given("on every device since compute capability 7.0", source="NVIDIA, CUDA C++ Programming Guide")
says("A launch with more than {} threads a block, more than {} KiB of shared memory", code(
    "emulator/launch.cpp", "product(b) > {})"), code("emulator/runtime.cpp", "dynamic_limits_.end() ? {} * 1024"))
given("overflowed 32 bits. Of a grid over more than 2^31 elements", source="int")

given("exercises/cuda/03_flash_forward.cu:60 (called at line 66, at line 196): race on the shared array shared, "
      "element [9180]: thread 112, 0, 0 writes here what thread 103, 0, 0 reads at "
      "exercises/cuda/03_flash_forward.cu:46 (called at line 115, at line 189)", source=OUTPUT)
mistakes = record("cuda_hazards_h200.json")["mistakes"]
races = [m for m in mistakes.values() if m["rung"][5:7] in ("02", "03") and "hazard" in m["marks"]]
assert all("Race reported" in m["racecheck"] for m in races)
assert not any(m["racecheck"] for name, m in mistakes.items() if name.startswith("answers"))
says("found each of the {} known mistakes in rungs 02 and 03 that are races within a block", len(races))
unseen = [m for m in races if all(test.startswith("Streams.") for test in m["tests"]["failed"])]
assert (len(unseen), len(races)) == (5, 11)  # "Five of the eleven"
