#!/usr/bin/env python3
"""What each step of lesson 10 is worth: the kernel is built with its steps undone, one more each time, down to lesson 05's.

    scripts/fast_steps.py --out notes/data/fast_steps_cpu.json     measures, some minutes on a quiet machine
    scripts/fast_steps.py --from notes/data/fast_steps_cpu.json    prints the table of a record
    ... --write                                                    puts it into the note, between its markers

The second table has the parts of a block of queries, in calls so short that the quietest of them were not disturbed.

bench/fast_steps.edits says how a step is undone. Each round calls every state once, on the same tensors, forwards and
backwards in turn; a gain is the median of the rounds' ratios to the state before, with the 95 % interval of that median.
"""

import array
import ctypes
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from note_tables import table
from side_by_side import ROOT, Problem, compiler, milliseconds, parser, processor, ratio_text, run

NOTE = "notes/10_fast_attention.md"
EDITS = os.path.join(ROOT, "bench", "fast_steps.edits")
FIRST = "lesson 05's kernel"
SECOND = "packed panels, vectors, sums in registers"
SOURCES = ["reference/10_fast_attention.cpp", "reference/05_tiled_attention.cpp", "bench/fast_steps_c.cpp",
           "bench/multiply_add.cpp"]
PARTS = ["Q Kᵀ", "softmax", "P V", "multiply-adds in registers"]
HEADS = 8
CASES = [(256, 64, False), (2048, 64, False), (256, 64, True), (2048, 64, True)]


def read_edits():
    """[(step, [(file, old lines, new lines)])] in the file's order."""
    steps = []
    with open(EDITS, encoding="utf-8") as file:
        for line in file:
            if line.startswith("= "):
                steps.append((line[2:].strip(), []))
            elif line.startswith("@ "):
                path, in_new = line[2:].strip(), True
            elif line[0] == "-":
                if in_new:
                    steps[-1][1].append((path, "", ""))
                    in_new = False
                _, old, new = steps[-1][1].pop()
                steps[-1][1].append((path, old + line[1:], new))
            elif line[0] == "+":
                in_new = True
                _, old, new = steps[-1][1].pop()
                steps[-1][1].append((path, old, new + line[1:]))
    return steps


def undo(folder, edits):
    for path, old, new in edits:
        path = os.path.join(folder, path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if text.count(old) != 1:
            raise Problem("%s has %d times\n%s" % (path, text.count(old), old))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))


def build(folder, command, flags):
    """The whole, and the kernel in all states from lesson 05's to the whole, as [(name, function)]."""
    tree = os.path.join(folder, "tree")
    for part in ("include", "reference", "bench"):
        shutil.copytree(os.path.join(ROOT, part), os.path.join(tree, part))
    names, libraries, steps = [], [], read_edits()
    for number in range(len(steps) + 1):
        library = os.path.join(folder, "%d.so" % number)
        sources = [os.path.join(tree, name) for name in SOURCES]
        words = [command, "-std=c++20", "-O3", "-shared", "-fPIC", "-pthread", "-I" + os.path.join(tree, "include")]
        done = subprocess.run(words + flags + sources + ["-o", library], stderr=subprocess.PIPE, encoding="utf-8")
        if done.returncode:
            raise Problem("state %d does not compile:\n%s" % (number, done.stderr[-2000:]))
        names.append(steps[number][0] if number < len(steps) else SECOND)
        libraries.append(ctypes.CDLL(library).nanolm_fast_attention)
        if number == 0:
            whole = ctypes.CDLL(library)
        if number < len(steps):
            undo(tree, steps[number][1])
    return whole, [(FIRST, whole.nanolm_tiled_attention)] + list(zip(names, libraries))[::-1]


def measure_parts(library, head_dim):
    """Seconds of many short calls of each part, and its FLOP."""
    library.nanolm_part.restype = ctypes.c_double
    library.nanolm_part.argtypes = [ctypes.c_int, ctypes.c_int64]
    samples, flop = [[] for _ in PARTS], [0] * len(PARTS)
    for _ in range(1500):
        for number in range(len(PARTS)):
            library.nanolm_part(0, head_dim)
            start = time.perf_counter()
            flop[number] = library.nanolm_part(number + 1, head_dim)
            samples[number].append(round(time.perf_counter() - start, 8))
    return {"head_dim": head_dim, "flop": flop, "seconds": samples}


def measure_case(states, seqlen, head_dim, causal, options):
    random.seed(seqlen)
    size = HEADS * seqlen * head_dim
    Q, K, V = (array.array("f", (random.gauss(0, 1) for _ in range(size))) for _ in range(3))
    sizes = (ctypes.c_int64 * 6)(1, HEADS, HEADS, seqlen, seqlen, head_dim)
    outputs = [(array.array("f", bytes(4 * size)), array.array("f", bytes(4 * HEADS * seqlen))) for _ in states]

    def seconds(number):
        arguments = [ctypes.c_void_p(tensor.buffer_info()[0]) for tensor in (Q, K, V) + outputs[number]]
        start = time.perf_counter()
        if states[number][1](sizes, ctypes.c_float(1 / math.sqrt(head_dim)), int(causal), 1, *arguments):
            raise Problem("%s refused the shape" % states[number][0])
        return time.perf_counter() - start

    for number in range(len(states)):
        seconds(number)
        if max(abs(a - b) for a, b in zip(outputs[number][0], outputs[0][0])) > 1e-5:
            raise Problem("without the steps behind %r the result is another" % states[number][0])
    samples = [[] for _ in states]
    spent = time.perf_counter() + options.seconds
    while len(samples[0]) < options.rounds and (time.perf_counter() < spent or len(samples[0]) < 7):
        order = range(len(states))
        for number in order if len(samples[0]) % 2 == 0 else reversed(order):
            samples[number].append(seconds(number))
    flop = 4.0 * HEADS * seqlen * seqlen * head_dim * (0.5 if causal else 1)
    return {"seqlen": seqlen, "head_dim": head_dim, "causal": causal, "flop": flop, "seconds": samples}


def measure(options):
    command, flags = options.compiler, options.flags.split()
    with tempfile.TemporaryDirectory() as folder:
        whole, states = build(folder, command, flags)
        record = {"machine": processor(), "compiler": compiler(command), "flags": options.flags,
                  "heads": HEADS, "load_average": os.getloadavg(), "steps": [name for name, _ in states],
                  "parts": [measure_parts(whole, head_dim) for head_dim in (64, 128)], "cases": []}
        for seqlen, head_dim, causal in CASES:
            record["cases"].append(measure_case(states, seqlen, head_dim, causal, options))
            print("S %d%s: done" % (seqlen, ", causal" * causal), file=sys.stderr, flush=True)
    return record


def report(record):
    heads = ["step"]
    for case in record["cases"]:
        heads += ["S %d%s, ms" % (case["seqlen"], ", causal" * case["causal"]), "gain (95 %)"]
    rows = []
    for number, name in enumerate(record["steps"]):
        rows.append([name])
        for case in record["cases"]:
            now, before = case["seconds"][number], case["seconds"][number - 1]
            rows[-1] += [milliseconds(now, 2), "" if number == 0 else ratio_text(now, before)]
    rates = ", ".join("%.1f" % (case["flop"] / statistics.median(case["seconds"][-1]) / 1e9) for case in record["cases"])
    return ("%s; %s %s; one thread, %d heads, head_dim %d. The whole does %s GFLOP/s.\n\n%s\n\n%s\n"
            % (record["machine"], record["compiler"], record["flags"], record["heads"],
               record["cases"][0]["head_dim"], rates, table(heads, rows), report_parts(record)))


def report_parts(record):
    """Of each part the call that 2 % are shorter than."""
    rows = []
    for parts in record["parts"]:
        quiet = [sorted(samples)[len(samples) // 50] for samples in parts["seconds"]]
        peak = parts["flop"][3] / quiet[3]
        share = [flop / t / peak for flop, t in zip(parts["flop"], quiet)]
        products = parts["flop"][0] + parts["flop"][2]
        rows.append(["%d" % parts["head_dim"]] + ["%.1f" % (1e6 * t) for t in quiet[:3]]
                    + ["%.0f %%" % (100 * share[0]), "%.0f %%" % (100 * share[2]), "%.0f %%" % (100 * quiet[1] / sum(quiet[:3])),
                       "%.0f %%" % (100 * products / sum(quiet[:3]) / peak)])
    return table(["head_dim", "Q Kᵀ, us", "softmax, us", "P V, us", "Q Kᵀ of the peak", "P V of the peak",
                  "time in the softmax", "all of the peak"], rows)


def main():
    arguments = parser(__doc__, NOTE)
    arguments.add_argument("--compiler", default="c++")
    arguments.add_argument("--flags", default="-march=native")
    arguments.add_argument("--rounds", type=int, default=41, help="at most so many a case")
    arguments.add_argument("--seconds", type=float, default=20, help="a case ends after so many, but not before 7 rounds")
    return run(arguments.parse_args(), NOTE, "fast_steps", measure, report)


if __name__ == "__main__":
    sys.exit(main())
