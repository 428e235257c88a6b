#!/usr/bin/env python3
"""Do compute-sanitizer and the tests on a GPU see what the emulator sees of the known mistakes in the CUDA rungs?

    scripts/cuda_mistakes_on_device.py build DIR [--arch 90]     needs nvcc, no GPU
    DIR/cuda_mistakes_on_device.py run DIR --json OUT            needs a GPU and compute-sanitizer, nothing else; what OUT
                                                                 holds of other rungs stays

`build` makes a test program of every mistake in tests/mistakes/cuda and of the answers, packs them and copies itself
beside them. `run` runs each: the device tests, then compute-sanitizer's four tools on the tests that are made for them
(Sanitize.*).
A program that hangs costs its time limit; what has not begun when the time for all is over is left out and said. OUT:

    {"device", "sanitizer", "seconds", "mistakes": {"C03-02": {"slug", "rung", "says", "marks",
       "tests": {"ended", "failed": [names], "says"}, "racecheck": a finding, null, "timed out" or "not run", ...}}}
"""

import argparse
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

TOOLS = ("racecheck", "memcheck", "initcheck", "synccheck")
FILTERS = {"tests": "-Device.*", **{tool: "Sanitize.*" for tool in TOOLS}}
PACKED, LIST = "programs.tar.xz", "mistakes.json"
# Of compute-sanitizer's output: what is no finding.
FRAME = re.compile(r"COMPUTE-SANITIZER|(ERROR|RACECHECK|LEAK) SUMMARY|Target application|Process didn't|^ |^$|"
                   r"No attachable|Internal Sanitizer")


def build(options):
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    sys.dont_write_bytecode = True
    from workbook_lib import build_folder, console, mistakes_bank, mistakes_cuda_run, mistakes_run, setup_machine, week
    try:
        banks = {entry.stem: mistakes_bank.read_bank(entry.stem) for entry in week.rungs()
                 if not options.rung or entry.stem.startswith(tuple(options.rung))}
        machine, folder = setup_machine.prepare(), os.path.join(setup_machine.BUILD, "mistakes_device")
        os.makedirs(options.dir, exist_ok=True)
        known, work = {}, os.path.join(folder, "wrong")
        with build_folder.held(folder), mistakes_run.workers() as submit:
            builders = mistakes_cuda_run.build(machine, folder, list(banks), work, "device",
                                               ["-DNANOLM_CUDA=ON", "-DNANOLM_EMULATOR=OFF",
                                                "-DCMAKE_CUDA_ARCHITECTURES=%d-real" % options.arch])
            made = []
            for stem, bank in banks.items():
                answers = "answers-" + os.path.basename(stem)[:2]
                known[answers] = {"slug": "", "rung": stem, "says": "The answers.", "marks": []}
                made.append((answers, submit(lambda builder: builder.answers, builders[stem])))
                for m in bank:
                    if options.marked and options.marked not in m.marks:
                        continue
                    known[m.id] = {"slug": m.slug, "rung": stem, "says": m.says, "marks": m.marks}
                    text = mistakes_bank.apply(m, mistakes_cuda_run.reference_text(stem))
                    made.append((m.id, submit(builders[stem].program, m.id, text)))
            _pack(options.dir, made)
    except console.Problem as problem:
        sys.exit("error: %s" % problem)
    shutil.rmtree(work)
    with open(os.path.join(options.dir, LIST), "w", encoding="utf-8") as file:
        json.dump(known, file, indent=1)
    shutil.copy2(os.path.realpath(__file__), options.dir)
    size = sum(entry.stat().st_size for entry in os.scandir(options.dir))
    print("%d programs in %s, %.1f MB packed" % (len(known), options.dir, size / 1e6))
    return 0


def _pack(folder, made):
    """The programs differ in one kernel: a dictionary that holds some of them leaves little of each."""
    filters = [{"id": 0x21, "preset": 2, "dict_size": 1 << 26}]  # lzma.FILTER_LZMA2
    import lzma
    with lzma.open(os.path.join(folder, PACKED), "wb", filters=filters) as packed, \
            tarfile.open(fileobj=packed, mode="w|") as archive:
        for name, future in made:
            program = future.result()
            stripped = os.path.join(folder, name)
            subprocess.run(["strip", "-o", stripped, program], check=True)
            archive.add(stripped, arcname=name)
            os.remove(stripped)
            print("%s packed" % name, flush=True)


def run(options):
    with open(os.path.join(options.dir, LIST), encoding="utf-8") as file:
        known = json.load(file)
    started, found = time.monotonic(), collections.defaultdict(dict)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(os.path.join(options.dir, PACKED), "r:xz") as archive:
            archive.extractall(folder)
        runs = [(name, kind) for kind in FILTERS for name in known]
        pool = ThreadPoolExecutor(options.jobs)
        futures = [pool.submit(_observe, os.path.join(folder, name), kind, options.seconds, started + options.total)
                   for name, kind in runs]
        for (name, kind), future in zip(runs, futures):
            found[name][kind] = future.result()
            print("%4.0f s  %s %s: %s" % (time.monotonic() - started, name, kind, found[name][kind]), flush=True)
        pool.shutdown()
    earlier = {}  # of rungs that were not run now
    if os.path.exists(options.json):
        with open(options.json, encoding="utf-8") as file:
            earlier = {name: entry for name, entry in json.load(file)["mistakes"].items()
                       if entry["rung"] not in {one["rung"] for one in known.values()}}
    record = {"device": _first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
              "sanitizer": _last_line("compute-sanitizer", "--version"),
              "seconds": round(time.monotonic() - started),
              "mistakes": {**earlier, **{name: {**entry, **found[name]} for name, entry in known.items()}}}
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1)
        file.write("\n")
    return _summary(record["mistakes"])


def _observe(program, kind, seconds, deadline):
    seconds = min(seconds, deadline - time.monotonic())
    if seconds < 1:
        return {"ended": "not run", "failed": [], "says": None} if kind == "tests" else "not run"
    words = [program, "--gtest_color=no", "--gtest_filter=" + FILTERS[kind]]
    if kind != "tests":
        words = ["compute-sanitizer", "--tool", kind, "--print-limit", "3"] + words
    code, text = _run(words, seconds)
    return _of_tests(code, text) if kind == "tests" else _of_tool(code, text)


def _run(words, seconds):
    """(exit status, None where it was stopped; output). Ends all that it started."""
    with tempfile.TemporaryFile() as output:
        try:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                     start_new_session=True)
        except OSError as error:
            return 127, str(error)
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        # A process that waits for the driver may not die; it is left behind rather than waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
        output.seek(0)
        return code, output.read(1 << 22).decode("utf-8", "replace")


def _of_tests(code, text):
    failed = list(dict.fromkeys(re.findall(r"^\[  FAILED  \] (\w+\.\w+) \(", text, re.M)))
    says = re.search(r"^C\+\+ exception with description \"(.*)\" thrown|^.*: Failure\n(.*)$", text, re.M)
    ended = ("timed out" if code is None else "crashed, signal %d" % -code if code < 0 else
             "skipped" if "GpuEnvironment: skipped: " in text else
             "passed" if code == 0 and re.search(r"\[  PASSED  \] [1-9]", text) else "failed")
    return {"ended": ended, "failed": failed, "says": (says[1] or says[2]) if says else None}


def _of_tool(code, text):
    """The first finding and its first place in a .cu file; None where there is none."""
    lines = [line[10:] for line in text.splitlines() if line.startswith("=========")]
    finding = next((line for line in lines if not FRAME.search(line)), None)
    if finding:
        place = re.search(r"[\w.]+\.cu:\d+", " ".join(lines[lines.index(finding):]))
        return finding.strip() + (", %s" % place[0] if place and place[0] not in finding else "")
    if code is None:
        return "timed out"
    return None if lines else "no report: status %d, %s" % (code, (text.strip().splitlines() or [""])[-1])


def _first_line(*words):
    return (_run(words, 20)[1].strip().splitlines() or [""])[0]


def _last_line(*words):
    return (_run(words, 20)[1].strip().splitlines() or [""])[-1]


def _summary(mistakes):
    def finds(entry, kind):
        if kind == "tests":
            return entry["tests"]["ended"] not in ("passed", "not run", "skipped")
        return entry[kind] is not None and not entry[kind].startswith(("timed out", "not run", "no report"))

    wrong = {name: entry for name, entry in mistakes.items() if not name.startswith("answers")}
    for kind in FILTERS:
        print("%-9s finds %2d of %d" % (kind, sum(finds(entry, kind) for entry in wrong.values()), len(wrong)))
    hazards = {name: entry for name, entry in wrong.items() if "hazard" in entry["marks"]}
    found = [name for name, entry in wrong.items() if finds(entry, "racecheck")]
    print("racecheck finds %d of %d hazards; not: %s; and besides: %s" % (
        len(hazards.keys() & found), len(hazards), ", ".join(name for name in hazards if name not in found) or "none",
        ", ".join(name for name in found if name not in hazards) or "none"))
    unseen = [name for name, entry in wrong.items() if not any(finds(entry, kind) for kind in FILTERS)]
    print("seen by nothing on the device: %s" % (", ".join(unseen) or "none"))
    bad = [name for name, entry in mistakes.items() if name.startswith("answers") and
           (entry["tests"]["ended"] != "passed" or any(entry[tool] is not None for tool in TOOLS))]
    print("the answers: %s" % ("NOT clean: " + ", ".join(bad) if bad else "clean"))
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("build")
    one.set_defaults(function=build)
    one.add_argument("dir", metavar="DIR")
    one.add_argument("--marked", metavar="MARK", help="only the mistakes with `@ MARK`: hazard, say")
    one.add_argument("--rung", action="append", help="cuda/04, say: only those of this rung; may be given again")
    one.add_argument("--arch", type=int, default=90, help="compute capability, 90 for 9.0 (default: %(default)s)")
    two = verbs.add_parser("run")
    two.set_defaults(function=run)
    two.add_argument("dir", metavar="DIR")
    two.add_argument("--json", required=True, metavar="OUT")
    two.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at once (default: one a core)")
    two.add_argument("--seconds", type=float, default=60, help="for one program (default: %(default)s)")
    two.add_argument("--total", type=float, default=330, help="for all; what has not begun then is left out")
    options = parser.parse_args()
    return options.function(options)


if __name__ == "__main__":
    sys.exit(main())
