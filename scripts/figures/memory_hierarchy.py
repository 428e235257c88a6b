"""An H100's memories to scale: capacities as areas, bandwidths as lengths."""

from math import sqrt

from svg import Picture

KIB, SMS, CLOCK = 1024, 132, 1.98e9
HBM, L2, SRAM, REGISTERS = 80e9, 50 * KIB**2, 228 * KIB * SMS, 256 * KIB * SMS
# A clock of an SM: 128 multiply-adds with three operands and a result of 4 bytes; 32 banks of 4 bytes.
REGISTERS_PER_S, SRAM_PER_S, HBM_PER_S = 128 * 16 * SMS * CLOCK, 32 * 4 * SMS * CLOCK, 3.35e12

picture = Picture(760, 590, "The memories of an H100, to scale",
                  "Areas: main memory of 80 GB is a large square; L2, the shared memory of all SMs and their registers "
                  "are specks beside it. Lengths: the registers' bandwidth is a long bar, shared memory's a sixteenth "
                  "of it, main memory's a tenth of that.")

SIDE = 370  # of the square that is main memory
LEFT, TOP = 20, 40


def side(size):
    return SIDE * sqrt(size / HBM)


def megabytes(size):
    return f"{size / 1e6:.0f} MB"


picture.text(LEFT, 24, "bytes: area", weight="bold")
picture.rect(LEFT, TOP, SIDE, SIDE, fill="blue-pale", stroke="blue")
picture.text(LEFT + SIDE / 2, TOP + SIDE / 2, "HBM", fill="blue", size=20, anchor="middle", weight="bold")
picture.text(LEFT + SIDE / 2, TOP + SIDE / 2 + 24, f"{HBM / 1e9:.0f} GB", fill="blue", size=16, anchor="middle")

x = LEFT + SIDE + 40
for row, (name, size, colour) in enumerate((
        ("L2", L2, "violet"), (f"shared memory (SRAM), {SMS} SM", SRAM, "orange"),
        (f"registers, {SMS} SM", REGISTERS, "green"))):
    y = TOP + 70 + 80 * row
    picture.rect(x + (side(L2) - side(size)) / 2, y - side(size) / 2, side(size), side(size), fill=colour)
    picture.text(x + 24, y, name, fill=colour, weight="bold")
    picture.text(x + 24, y + 20, f"{megabytes(size)} = {100 * size / HBM:.3f} %", fill=colour)

# Bars, one length for one rate.
top = TOP + SIDE + 50
picture.text(LEFT, top, "bytes/s: length", weight="bold")
full = 720
for row, (name, rate, colour) in enumerate((("registers", REGISTERS_PER_S, "green"),
                                            ("shared memory", SRAM_PER_S, "orange"), ("HBM", HBM_PER_S, "blue"))):
    y = top + 14 + 36 * row
    length = full * rate / REGISTERS_PER_S
    picture.rect(LEFT, y, length, 24, fill=colour)
    label = f"{name} {rate / 1e12:.3g} TB/s"
    if length > 300:
        picture.text(LEFT + length / 2, y + 17, label, fill="paper", anchor="middle", weight="bold")
    else:
        picture.text(LEFT + length + 10, y + 17, label, fill=colour, weight="bold")

picture.write(__file__)
