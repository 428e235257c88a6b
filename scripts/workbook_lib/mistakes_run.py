"""Builds mistakes as shared objects that stand in for a lesson's own, and runs the lesson's test program with each."""

import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor

from . import build_folder, fingerprints, mistakes_bank, processes
from .console import Problem, end_progress, progress
from .week import ROOT

REFERENCE = os.path.join(ROOT, "reference")
FLAGS = ["-std=c++20", "-fPIC", "-shared", "-fopenmp-simd", "-w", "-Wl,-Bsymbolic", "-I", os.path.join(ROOT, "include")]
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


class Compiler:
    """Compiles versions of one lesson. What the reference includes is compiled once."""

    def __init__(self, command, stem, scratch, flags=("-O1",)):
        self.words, self.stem, self.scratch = shlex.split(command) + list(flags) + FLAGS, stem, scratch
        os.makedirs(scratch, exist_ok=True)
        header = os.path.join(scratch, "included.h")
        with open(header, "w", encoding="utf-8") as file:
            file.write("\n".join(re.findall(r"^#include .*$", reference_text(stem), re.MULTILINE)) + "\n")
        words = [word for word in self.words if word != "-shared" and not word.startswith("-Wl,")]
        suffix = ".pch" if "clang" in command else ".gch"
        made = _run(words + ["-x", "c++-header", header, "-o", header + suffix])
        self.words += ["-include", header] if made.returncode == 0 else []

    def library(self, name, text):
        """The folder that holds the lesson's library made of this text."""
        folder = os.path.join(self.scratch, name)
        os.makedirs(folder, exist_ok=True)
        source = os.path.join(folder, self.stem + ".cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        done = _run(self.words + [source, "-o", os.path.join(folder, "lib%s.so" % self.stem)])
        if done.returncode != 0:
            raise Problem("%s does not compile:\n%s" % (name, done.stdout[:2000]), status=1)
        return folder


def observe_bank(compiler, program, mistakes, on_done=lambda mistake: None):
    """What the tests say of each mistake: [{id, slug, says, says_ru, twins, tests}], in the bank's order."""
    text = reference_text(compiler.stem)

    def one(mistake):
        said = observe(program, compiler.library(mistake.id, mistakes_bank.apply(mistake, text)))
        on_done(mistake)
        entry = {name: getattr(mistake, name) for name in ("id", "slug", "says", "says_ru", "twins")}
        entry["tests"] = {test: what for test, what in said.items() if what != "passed"}
        return entry

    with ThreadPoolExecutor(build_folder.cores()) as pool:
        return list(pool.map(one, mistakes))


def observe(program, library_folder):
    """{test: "passed", "crashed", "timed out" or its failures}. One process; after one that ends early, one a test."""
    names = _names(program)
    output = _test(program, library_folder, SUITE_SECONDS)
    said = {}
    for test in names:
        part = _part(output, test)
        if part is not None:
            said[test] = part
    if len(said) < len(names):
        for test in names:
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


def _names(program):
    names, suite = [], ""
    for line in _run([program, "--gtest_list_tests"]).stdout.splitlines():
        if re.match(r"\w+\.$", line):
            suite = line
        elif re.match(r"  \w+", line):
            names.append(suite + line.strip())
    return names


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
