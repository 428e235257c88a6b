"""Builds rungs with a mistake in them as the emulator runs them, and finds what `check` tells first of their tests."""

import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess

from . import build_folder, check, mistakes_run, processes, setup_machine, verdicts
from .console import Problem, end_progress, progress
from .week import ROOT

# CPU time, which other programs on the machine do not use up: of all tests in one process, and of one alone. The answers
# take up to 15 s and 5 s, checked 32 s and 7 s.
ALL_SECONDS, CHECKED_ALL_SECONDS = 40, 90
TEST_SECONDS, CHECKED_TEST_SECONDS = 12, 30
SILENT_SECONDS = 120  # for a program that waits for ever, and uses none
# CTest's words for the signals that a crash ends with.
ENDINGS = {signal.SIGSEGV: "Exception: SegFault", signal.SIGABRT: "Subprocess aborted",
           signal.SIGFPE: "Exception: Numerical", signal.SIGILL: "Exception: Illegal"}


def reference_text(stem):
    with open(os.path.join(mistakes_run.REFERENCE, stem + ".cu"), encoding="utf-8") as file:
        return file.read()


def build(machine, folder, stems, scratch, back_end="emulated", options=None):
    """{stem: Builder}, once the tests are built with the answers."""
    if options is None:
        options = ([] if setup_machine.has_gpu() else ["-DNANOLM_CUDA=OFF"]) + ["-DNANOLM_EMULATOR=ON"]
    build_folder.configure(machine, folder, mistakes_run.REFERENCE, options)
    targets = ["%s_%s_test" % (stem.replace("/", "_"), back_end) for stem in stems]
    targets += ["emulator_rewrite"] * (back_end == "emulated")
    command, lines = [machine["cmake"], "--build", folder, "--parallel", str(build_folder.cores()), "--target"], []
    code = processes.stream(command + targets, lambda line: (lines.append(line), progress(line)))
    end_progress()
    if code != 0:
        raise Problem("the rungs' tests do not build:\n%s" % "\n".join(lines[-20:]), status=1)
    return {stem: Builder(machine, folder, stem, scratch, back_end) for stem in stems}


class Builder:
    """Compiles versions of a rung and links them with its tests, by the commands of the build folder."""

    def __init__(self, machine, folder, stem, scratch, back_end):
        self.folder, self.stem, self.is_emulated = folder, stem, back_end == "emulated"
        self.scratch = os.path.join(scratch, os.path.basename(stem))
        os.makedirs(self.scratch, exist_ok=True)
        target = "%s_%s" % (stem.replace("/", "_"), back_end)
        self.answers = os.path.join(folder, "bin", target + "_test")
        self.tests = mistakes_run.names(self.answers)
        compiled = "/generated/%s.cpp" % target if self.is_emulated else "/reference/%s.cu" % stem
        with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as file:
            found = [entry for entry in json.load(file) if entry["file"].endswith(compiled)]
        self.compile, self.cwd = shlex.split(found[0]["command"]), found[0]["directory"]
        self.object = os.path.basename(compiled) + ".o"
        self.link = self._link_command(machine, target + "_test")
        if self.is_emulated:
            self._precompile()

    def _link_command(self, machine, target):
        if os.path.exists(os.path.join(self.folder, "build.ninja")):
            code, output = processes.capture([machine["ninja"], "-C", self.folder, "-t", "commands", target])
            text = output.splitlines()[-1] if code == 0 else ""
        else:
            with open(os.path.join(self.folder, "CMakeFiles", target + ".dir", "link.txt"), encoding="utf-8") as file:
                text = file.read()
        words = [word for word in shlex.split(text) if word not in (":", "&&")]
        if "-o" not in words or self.object not in map(os.path.basename, words):
            raise Problem("the build folder does not say how %s is linked" % target, status=1)
        return words

    def _precompile(self):
        """What the rung includes takes half of a compiler's time; it is compiled once."""
        header = os.path.join(self.scratch, "included.h")
        with open(header, "w", encoding="utf-8") as file:
            file.write("\n".join(re.findall(r"^#include .*$", reference_text(self.stem), re.MULTILINE)) + "\n")
        words = self.compile[:self.compile.index("-o")] + ["-w"]
        suffix = ".pch" if "clang" in os.path.basename(os.path.realpath(words[0])) else ".gch"
        if self._run(words + ["-x", "c++-header", header, "-o", header + suffix]).returncode == 0:
            self.compile[1:1] = ["-include", header]

    def _run(self, words):
        return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              encoding="utf-8", errors="replace", env=processes.environment(), cwd=self.cwd)

    def program(self, name, text):
        """The test program with this text in the rung's place."""
        base = os.path.join(self.scratch, name, os.path.basename(self.stem))
        os.makedirs(os.path.dirname(base), exist_ok=True)
        source, code, compiled, program = (base + end for end in (".cu", ".cpp", ".o", "_test"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        steps = []
        if self.is_emulated:
            rewrite = os.path.join(self.folder, "bin", "emulator_rewrite")
            steps.append([rewrite, source, code, "reference/%s.cu" % self.stem])
        steps.append(self.compile + ["-w"])
        steps[-1][self.compile.index("-o") + 1] = compiled
        steps[-1][self.compile.index("-c") + 1] = code if self.is_emulated else source
        steps.append([compiled if os.path.basename(word) == self.object else word for word in self.link])
        steps[-1][self.link.index("-o") + 1] = program
        for words in steps:
            done = self._run(words)
            if done.returncode != 0:
                raise Problem("%s does not compile:\n%s" % (name, done.stdout[:2000]), status=1)
        os.remove(compiled)
        return program


def observe(program, tests, is_checked):
    """The verdict that `check` tells first of a program's tests, or None."""
    # One process says which tests fail. What they say counts only alone, as `check` runs them; so does that none fails.
    return (told_first(program, _suspects(program, tests, is_checked), is_checked)
            or told_first(program, tests, is_checked))


def first_failure(program, tests):
    """The verdict on the first test that fails; what `check` tells may be a later one, which names a line."""
    test, _ = _next_failure(program, tests, False)
    verdict = _verdict(program, test, False) if test else None
    return verdict if verdict and verdict.kind != "passed" else None


def told_first(program, tests, is_checked):
    """The same of these tests, each in a process of its own."""
    first = None
    for name in tests:
        verdict = _verdict(program, name, is_checked)
        if verdict.kind != "passed" and check.names_a_line(verdict):
            return verdict
        if verdict.kind != "passed":
            first = first or verdict
        if verdict.kind == "timed out":
            break  # it may be in every test
    return first


def _suspects(program, tests, is_checked):
    """The first test that fails, and the first that names a line of the kernel or comes to no end, in few processes."""
    suspects = []
    while tests:
        test, is_last = _next_failure(program, tests, is_checked)
        if test and (is_last or not suspects):
            suspects.append(test)
        if not test or is_last:
            break
        tests = tests[tests.index(test) + 1:]
    return suspects


def _next_failure(program, tests, is_checked):
    """(test, whether it names a line of the kernel or comes to no end) of one process, or (None, False)."""
    said, test = "", None
    seconds = CHECKED_ALL_SECONDS if is_checked else ALL_SECONDS
    with _started(program, ":".join(tests), is_checked, seconds) as child:
        for line in _lines(child):
            started = re.match(r"\[ RUN      \] (\S+)", line)
            if started:
                said, test = "", started[1]
            elif re.match(r"\[       OK \]", line):
                test = None
            elif test and re.match(r"\[  FAILED  \]", line):
                return test, check.names_a_line(verdicts.verdict(test, "fail", "", said))
            said += line + "\n"
    return test, test is not None


def _lines(child):
    """Lines of its output, until it ends or says nothing new."""
    rest = b""
    while select.select([child.stdout], [], [], SILENT_SECONDS)[0]:
        read = os.read(child.stdout.fileno(), 1 << 16)
        if not read:
            break
        *lines, rest = (rest + read).split(b"\n")
        yield from (line.decode("utf-8", "replace").replace(ROOT + "/", "") for line in lines)


@contextlib.contextmanager
def _started(program, tests, is_checked, seconds):
    """A test program with so much CPU time; it is over, with all that it started, when the block is left."""
    env = processes.environment()
    env.pop("NANOLM_SEED", None)
    env.update(NANOLM_EMULATOR_CHECKED="1" if is_checked else "0", NANOLM_EMULATOR_THREADS="1")
    limited = ["sh", "-c", 'ulimit -t "$0" && exec "$@"', str(seconds)]
    child = subprocess.Popen(limited + [program, "--gtest_color=no", "--gtest_filter=" + tests], env=env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             start_new_session=True)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.stdout.close()
        child.wait()


def _verdict(program, test, is_checked):
    with _started(program, test, is_checked, CHECKED_TEST_SECONDS if is_checked else TEST_SECONDS) as child:
        try:
            output, ending = child.communicate(timeout=SILENT_SECONDS)[0], ""
        except subprocess.TimeoutExpired:
            output, ending = b"", "Timeout"
    text = output.decode("utf-8", "replace").replace(ROOT + "/", "")
    passed = re.search(r"\[  PASSED  \] [1-9]", text) and not ending
    if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):  # over the soft limit, and the hard one
        ending = "Timeout"
    elif not ending and child.returncode < 0:
        ending = ENDINGS.get(-child.returncode, "Exception: Other")
    return verdicts.verdict(test, "run" if passed else "fail", ending, text)
