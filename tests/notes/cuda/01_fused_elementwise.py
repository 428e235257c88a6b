"""Figures of notes/cuda/01_fused_elementwise.md."""

from check_notes import code, given, says

V, W, SMS, CLOCK = 66.9e12, 3.35e12, 132, 1.98e9  # include/nanolm/devices.h, H100 SXM
GUIDE = "NVIDIA, CUDA C++ Programming Guide"
FLOAT, WARP, LINE = 4, 32, 128
RUNG = "reference/cuda/01_fused_elementwise.cu"

elements = FLOAT * code(RUNG, "kFours = {};")  # of a thread
says("8 bytes and 2 FLOP an element, an intensity of {:.2f} FLOP a byte, where an H100 needs {:.0f} before its "
     "arithmetic is what limits it ({:.0f} TFLOP/s of fp32 on {} TB/s)", 2 / (2 * FLOAT), V / W, V / 1e12, W / 1e12)
says("chain memory -> x*a+b -> memory -> x*c+d -> memory -> x*e+f -> memory {} bytes an element", 3 * 2 * FLOAT)

given("32 threads with consecutive numbers are a warp", source=GUIDE)
given("served in lines of 128 bytes", source=GUIDE)
says("a warp's {} loads of {} bytes are {} lines", WARP, 4 * FLOAT, WARP * 4 * FLOAT // LINE)
says("would touch up to {} lines, for the same {} bytes", WARP, WARP * 4 * FLOAT)
says("**{} bytes at a time.** A `float4` is loaded by one instruction, from an address that is a multiple of {}.",
     4 * FLOAT, 4 * FLOAT)

instructions = {n: (5 + n) / n for n in (1, elements)}  # two coefficients, the loop's three, and the multiply-adds
says("With one element a thread that is {:.0f} instructions for each multiply-add; with {} it is {:.1f}",
     instructions[1], elements, instructions[elements])
given("An SM issues 4 instructions of a warp a clock, and at k = 16",
      source="NVIDIA, H100 Tensor Core GPU Architecture")
n, k = 2**26, 16
memory = 2 * FLOAT * n / W
issue = {each: count * k * n / WARP / (4 * SMS * CLOCK) for each, count in instructions.items()}
assert issue[elements] < memory < issue[1]

given("1000 elements, each 3, and the operations y·2 + 1, y·0.5 - 3, y·4 + 0", source="Traffic.WorkedExampleOfTheNote")
ys = [3]
for multiply, add in ((2, 1), (0.5, -3), (4, 0)):
    ys.append(ys[-1] * multiply + add)
says("| chain | 3 | {} | {} | {}, then {}, then {:.0f} |", 3 * FLOAT * 1000, 3 * FLOAT * 1000,
     *map("{:g}".format, ys[1:3]), ys[3])
says("| fused | 1 | {} | {} | {:.0f} |", FLOAT * 1000, FLOAT * 1000, ys[3])
says("float4 from an address that is no multiple of {}", 4 * FLOAT)
given("offsets or the count in 32 bits", source="int")
