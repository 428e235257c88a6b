#!/usr/bin/env python3
"""Writes notes/explore/devices.js, the rows of include/nanolm/devices.h for the page that notes/explore.md describes.

    scripts/explore_devices.py           prints it
    scripts/explore_devices.py --write   puts it there

A program of a few lines that includes the header prints the rows, so nothing is parsed. It needs a C++20 compiler:
$CXX, or c++.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = r"""
#include <charconv>
#include <iostream>
#include "nanolm/devices.h"
std::string shortest(double value) {  // the fewest digits that give this double again
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
int main() {
  for (const nanolm::Device& d : nanolm::devices()) {
    std::cout << "    {name: \"" << d.name << "\",\n     peaks: {";
    for (const nanolm::Peak& p : d.peaks)
      std::cout << (&p == &d.peaks.front() ? "" : ", ") << name(p.format) << ": " << shortest(p.flop_per_s);
    std::cout << "},\n     bytes_per_s: " << shortest(d.bytes_per_s) << ", memory_bytes: " << shortest(d.memory_bytes)
              << ", sram_bytes_sm: " << shortest(d.sram_bytes_sm) << "},\n";
  }
}
"""


def devices_js():
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "rows"
        subprocess.run([os.environ.get("CXX") or "c++", "-std=c++20", "-O0", "-I", ROOT / "include", "-x", "c++", "-",
                        "-o", program], input=PROGRAM, text=True, check=True)
        rows = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return ("// Written by scripts/explore_devices.py from include/nanolm/devices.h, where the sources are named.\n"
            "// Peaks in FLOP/s, dense; main memory in bytes/s and bytes; shared memory of one SM in bytes.\n"
            "(function (explore) {\n  explore.devices = [\n" + rows +
            "  ];\n})((globalThis.explore = globalThis.explore || {}));\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write notes/explore/devices.js")
    if parser.parse_args().write:
        (ROOT / "notes/explore/devices.js").write_text(devices_js(), encoding="utf-8", newline="\n")
    else:
        sys.stdout.write(devices_js())


if __name__ == "__main__":
    main()
