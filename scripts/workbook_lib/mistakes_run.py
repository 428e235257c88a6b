"""Builds mistakes as shared objects that stand in for a lesson's own, and runs the lesson's test program with each."""

import contextlib
import functools
import os
import re
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from . import build_folder, fingerprints, mistakes_bank, processes
from .console import Problem, end_progress, progress
from .week import ROOT

REFERENCE = os.path.join(ROOT, "reference")
FLAGS = ["-std=c++20", "-fPIC", "-fopenmp-simd", "-w", "-I", os.path.join(ROOT, "include")]
# The program that loads the object brings the libraries; to look for them takes the linker longer than all the rest.
LINK = ["-shared", "-nodefaultlibs", "-Wl,-Bsymbolic"]
SUITE_SECONDS = 60  # for all tests of a lesson with one mistake; the answers take 3 at most
TEST_SECONDS = 10


def build_tests(machine, folder, stems):
    """The test programs, linked with the answers."""
    build_folder.configure(machine, folder, REFERENCE)
    command = [machine["cmake"], "--build", folder, "--parallel", str(build_folder.cores()), "--target"]
    lines = []
    targets = [stem + "_test" for stem in stems]
    code = processes.stream(command + targets, lambda line: (lines.append(line), progress(line)))
    end_progress()
    if code != 0:
        raise Problem("the tests do not build:\n%s" % "\n".join(lines[-20:]), status=1)


def reference_text(stem):
    with open(os.path.join(REFERENCE, stem + ".cpp"), encoding="utf-8") as file:
        return file.read()


def quickest(machine):
    """clang++ where it is here and nobody chose another: with a precompiled header it takes two thirds of g++'s time."""
    return "clang++" if not os.environ.get("CXX") and shutil.which("clang++") else machine["compiler"]


class Compiler:
    """Compiles versions of these lessons. What the lessons include is compiled once, for all of them."""

    def __init__(self, command, stems, scratch, flags=("-O1",)):
        self.words, self.scratch = shlex.split(command) + list(flags) + FLAGS, scratch
        os.makedirs(scratch, exist_ok=True)
        header = os.path.join(scratch, "included.h")
        found = [line for stem in stems for line in re.findall(r"^#include .*$", reference_text(stem), re.MULTILINE)]
        with open(header, "w", encoding="utf-8") as file:
            file.write("\n".join(dict.fromkeys(found)) + "\n")
        suffix, once = (".pch", ["-fpch-instantiate-templates"]) if "clang" in command else (".gch", [])
        made = _run(self.words + once + ["-x", "c++-header", header, "-o", header + suffix])
        self.words += ["-include", header] if made.returncode == 0 else []

    def library(self, stem, name, text):
        """The folder that holds the lesson's library made of this text."""
        folder = os.path.join(self.scratch, stem, name)
        os.makedirs(folder, exist_ok=True)
        source = os.path.join(folder, stem + ".cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        done = _run(self.words + LINK + [source, "-o", os.path.join(folder, "lib%s.so" % stem)])
        if done.returncode != 0:
            raise Problem("%s does not compile:\n%s" % (name, done.stdout[:2000]), status=1)
        return folder


@contextlib.contextmanager
def workers():
    """A pool with a thread a core. What it has not begun when the block fails, it never begins."""
    pool = ThreadPoolExecutor(build_folder.cores())
    futures = []

    def submit(*call):
        futures.append(pool.submit(*call))
        return futures[-1]

    try:
        yield submit
    finally:
        for future in futures:
            future.cancel()
        pool.shutdown()


def observe_mistake(compiler, stem, program, mistake):
    """What the tests say of a mistake: {id, slug, says, says_ru, twins, marks, tests}; the tests that pass are left out."""
    text = mistakes_bank.apply(mistake, reference_text(stem))
    said = observe(program, compiler.library(stem, mistake.id, text))
    entry = {name: getattr(mistake, name) for name in ("id", "slug", "says", "says_ru", "twins", "marks")}
    entry["tests"] = {test: what for test, what in said.items() if what != "passed"}
    return entry


def observe(program, library_folder):
    """{test: "passed", "crashed", "timed out" or its failures}. One process; after one that ends early, one a test."""
    tests = names(program)
    output = _test(program, library_folder, SUITE_SECONDS)
    said = {}
    for test in tests:
        part = _part(output, test)
        if part is not None:
            said[test] = part
    if len(said) < len(tests):
        for test in tests:
            if test in said:
                continue
            output = _test(program, library_folder, TEST_SECONDS, test)
            said[test] = _part(output, test) or ("timed out" if output.endswith("\ntimed out") else "crashed")
    return said


def _part(output, test):
    """What a test came to, by GoogleTest's lines; None where it did not come to its end."""
    match = re.search(r"^\[ RUN      \] %s$(.*?)^\[( *OK|  FAILED ) *\] %s\b" % ((re.escape(test),) * 2), output,
                      re.MULTILINE | re.DOTALL)
    if not match:
        return None
    return "passed" if "OK" in match[2] else fingerprints.failures_of(match[1])


@functools.lru_cache(maxsize=None)
def names(program):
    """Suite.Name of the tests of a GoogleTest program."""
    found, suite = [], ""
    for line in _run([program, "--gtest_list_tests"]).stdout.splitlines():
        if re.match(r"\w+\.$", line):
            suite = line
        elif re.match(r"  (?!DISABLED_)\w+", line):
            found.append(suite + line.strip())
    return found


def _test(program, library_folder, seconds, name="*"):
    env = processes.environment()
    env.pop("NANOLM_SEED", None)
    env["LD_LIBRARY_PATH"] = library_folder
    try:
        return _run([program, "--gtest_color=no", "--gtest_filter=" + name], env=env, timeout=seconds).stdout
    except subprocess.TimeoutExpired as expired:
        return (expired.stdout or b"").decode("utf-8", "replace") + "\ntimed out"


def _run(words, env=None, timeout=None):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", errors="replace", env=env or processes.environment(), timeout=timeout)
