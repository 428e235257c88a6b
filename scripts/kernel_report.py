#!/usr/bin/env python3
"""What ptxas says of each kernel: registers, shared memory, stack, spills.

    cmake --build build/cuda --target cuda_03_flash_forward_device 2>&1 | scripts/kernel_report.py
    scripts/kernel_report.py LOG...

The rungs are compiled with -Xptxas -v, so the log of a build has it; what was not compiled anew is not in it. Ends with
status 1 when a kernel spills registers to local memory or a remark says that instructions were serialised, and with
status 2 when the text holds no kernel.
"""

import re
import shutil
import subprocess
import sys
from collections import namedtuple

Kernel = namedtuple("Kernel", "name architecture registers shared stack spill_stores spill_loads")
ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(sm_\w+)'")
PROPERTIES = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(.*)")
# C7508 to C7519: wgmma was serialised, or registers could not be reassigned. No -Werror catches them.
REMARK = re.compile(r"^.*\(?\bC75(?:0[89]|1\d)\b.*$", re.MULTILINE)


def read(text):
    """The kernels in the text of a build, in order."""
    found, entry, properties = [], None, (0, 0, 0)
    for line in text.splitlines():
        match = ENTRY.search(line)
        if match:
            entry, properties = match.groups(), (0, 0, 0)
        match = PROPERTIES.search(line)
        if match:
            properties = tuple(map(int, match.groups()))
        match = USED.search(line)
        if match and entry:
            shared = re.search(r"(\d+) bytes smem", match[2])
            found.append(Kernel(*entry, int(match[1]), int(shared[1]) if shared else 0, *properties))
            entry = None
    return found


def demangled(names):
    """As a person writes them, without their parameters; as they are where there is no c++filt."""
    if not shutil.which("c++filt"):
        return names
    text = subprocess.run(["c++filt"], input="\n".join(names), stdout=subprocess.PIPE, text=True, check=True).stdout
    return [re.sub(r"^void |nanolm::cuda::|\(anonymous namespace\)::|\(int\)|\((?!.*>).*$|(?<=>)\(.*$", "", name)
            for name in text.splitlines()]


def main(paths):
    text = "".join(open(path, encoding="utf-8", errors="replace").read() for path in paths) if paths else sys.stdin.read()
    kernels, remarks = read(text), REMARK.findall(text)
    if not kernels:
        print("no kernel in this text; it must be the log of a build that compiled one", file=sys.stderr)
        return 2
    names = demangled([kernel.name for kernel in kernels])
    width = max(map(len, names))
    print("%-*s  %-7s %9s %12s %8s %12s" % (width, "kernel", "arch", "registers", "shared bytes", "stack", "spills"))
    for name, k in zip(names, kernels):
        print("%-*s  %-7s %9d %12d %8d %12s" % (width, name, k.architecture, k.registers, k.shared, k.stack,
                                               "%d + %d" % (k.spill_stores, k.spill_loads)))
    for remark in remarks:
        print(remark.strip())
    spilled = sum(k.spill_stores + k.spill_loads > 0 for k in kernels)
    print("%d kernels, %d with spills; dynamic shared memory is not in these numbers" % (len(kernels), spilled))
    return 1 if spilled or remarks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
