"""Builds the judge, and grades one lesson of one submission with it. Student code runs in the sandbox alone."""

import os
import re
import shutil
import subprocess
import tempfile
import zlib
from collections import namedtuple

from . import build_folder, processes, setup_machine, verdicts
from .console import Problem, say
from .setup_machine import BUILD
from .week import ROOT, lessons, shown

COMPILE_LIMITS = ["--wall", "60", "--cpu", "40", "--memory", "3072", "--file-size", "64", "--processes", "16"]
WORKER_LIMITS = ["--wall", "100", "--cpu", "60", "--memory", "1024", "--file-size", "1", "--processes", "48"]
TEST_SECONDS = 110
MAXIMUM_TIME_OUTS = 2  # after so many, a lesson's remaining tests are not run
UNPRIVILEGED = 65534
FLAGS = ["-std=c++20", "-O3", "-DNDEBUG", "-fPIC", "-fopenmp-simd", "-w", "-g1", "-shared", "-Wl,-Bsymbolic"]

# kind: passed, not implemented, failed, crashed, timed out, ended early, not run.
Test = namedtuple("Test", "name kind lines")
Graded = namedtuple("Graded", "stem problem tests")  # problem: why the lesson could not be tested, or None


class Judge:
    """The built judge, and a copy of what a worker is made from that an unprivileged user can read."""

    def __init__(self, unsafe):
        self.build = os.environ.get("NANOLM_JUDGE_BUILD") or build()
        self.bin = os.path.join(self.build, "bin")
        self.sandbox = os.path.join(self.bin, "sandbox")
        self.unsafe = ["--unsafe"] if unsafe else []
        self.compiler = os.environ.get("CXX") or "c++"
        self.missing = self._probe(unsafe)
        self.folder = tempfile.mkdtemp(prefix="nanolm_grade_")
        if self.folder.startswith("/usr/"):
            raise Problem("the temporary folder %s lies in /usr, which every submission may read" % self.folder)
        os.chmod(self.folder, 0o755)
        self.kit = os.path.join(self.folder, "kit")
        shutil.copytree(os.path.join(self.build, "kit"), self.kit)
        shutil.copytree(os.path.join(ROOT, "tests", "judge", "include"), os.path.join(self.kit, "worker_include"))
        shutil.copytree(os.path.join(ROOT, "include"), os.path.join(self.kit, "include"))
        for place, _, names in os.walk(self.kit):
            os.chmod(place, 0o755)
            for name in names:
                os.chmod(os.path.join(place, name), 0o644)
        self.tests = {entry.stem: self._tests(entry.stem) for entry in lessons()}

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def _probe(self, unsafe):
        found = subprocess.run([self.sandbox, "--probe"], stdout=subprocess.PIPE, encoding="utf-8").stdout.split()
        missing = [word for word in ("landlock", "namespaces", "user") if word not in found]
        if ROOT.startswith("/usr/"):
            raise Problem("the workbook lies in /usr, which every submission may read: move it elsewhere")
        if {"landlock", "namespaces"} <= set(missing) and not unsafe:
            raise Problem("neither Landlock nor namespaces work here, so submissions would run with your rights. "
                          "Grade on another machine, or add --unsafe for submissions that you trust.")
        return missing

    def _tests(self, stem):
        """Names of the tests that give points, in the suite's order."""
        listed = subprocess.run([os.path.join(self.bin, "judge_" + stem), "--gtest_list_tests"], encoding="utf-8",
                                stdout=subprocess.PIPE, env={"PATH": os.environ.get("PATH", "")}).stdout
        names, suite = [], ""
        for line in listed.splitlines():
            if re.match(r"\w+\.$", line):
                suite = line
            elif line.startswith("  ") and not line.strip().startswith(("Given", "DISABLED_")):
                names.append(suite + line.split("#")[0].strip())
        if not names:
            raise Problem("judge_%s lists no tests" % stem)
        return names

    def grade(self, stem, source, seed):
        """One lesson: compiled and tested in a folder of its own, which is removed."""
        work = tempfile.mkdtemp(prefix=stem + "_", dir=self.folder)
        try:
            return self._grade(stem, source, seed, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _grade(self, stem, source, seed, work):
        os.chmod(work, 0o755)
        text, made = os.path.join(work, "exercises"), os.path.join(work, "made")
        os.mkdir(text)
        os.mkdir(made)
        with open(os.path.join(text, stem + ".cpp"), "wb") as file:
            file.write(source)
        if os.geteuid() == 0:
            os.chown(made, UNPRIVILEGED, UNPRIVILEGED)
        problem = self._compile(stem, work, text, made)
        if problem:
            return Graded(stem, problem, [Test(name, "not run", []) for name in self.tests[stem]])
        tests, time_outs = [], 0
        for name in self.tests[stem]:
            if time_outs >= MAXIMUM_TIME_OUTS:
                tests.append(Test(name, "not run", ["not run: %d tests of this lesson had no result in time" % time_outs]))
                continue
            tests.append(self._test(stem, name, seed, work, made))
            time_outs += tests[-1].kind == "timed out"
        return Graded(stem, None, tests)

    def _compile(self, stem, work, text, made):
        """The first error in a line, or None."""
        library, worker = os.path.join(made, "lib%s.so" % stem), os.path.join(made, "worker")
        include = ["-I", os.path.join(self.kit, "worker_include"), "-I", os.path.join(self.kit, "include")]
        objects = [os.path.join(self.kit, name) for name in sorted(os.listdir(self.kit))
                   if name.endswith(".cpp.o") or name == "worker_%s.o" % stem]
        for arguments in (FLAGS + include + ["-fmacro-prefix-map=%s/=" % work, os.path.join(text, stem + ".cpp"), "-o",
                                             library],
                          objects + [library, "-o", worker, "-Wl,-rpath,$ORIGIN"]):
            log = os.path.join(work, "log")
            command = [self.sandbox, "--read", self.kit, "--read", text, "--write", made, "--output", log]
            command += COMPILE_LIMITS + ["--report", "1"] + self.unsafe + ["--", self.compiler] + arguments
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  encoding="utf-8", errors="replace", start_new_session=True,
                                  env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TMPDIR": made})
            with open(log, encoding="utf-8", errors="replace") as file:
                output = file.read(1 << 20).replace(work + "/", "").replace(self.folder + "/", "")
            os.remove(log)
            if done.returncode == 0:
                continue
            if done.returncode == 125:
                raise Problem("the sandbox failed: %s" % (done.stdout + output).strip())
            if "was stopped" in done.stdout or "was killed" in done.stdout:
                return "does not compile: the compiler %s" % done.stdout.strip()
            stopped = re.search(r"([\w ]+) signal terminated program", output)  # the driver lives on when a part of it is
            if stopped:
                return "does not compile: the compiler was stopped: %s" % stopped[1].strip()
            if re.search(r"(?:virtual memory exhausted|out of memory allocating|std::bad_alloc)", output):  # by itself
                return "does not compile: the compiler had no memory left"
            return "does not compile: %s" % printable(verdicts.build_errors(output)[0])
        if not all(os.path.isfile(path) and not os.path.islink(path) for path in (library, worker)):
            return "does not compile: the compiler wrote no library"
        return None

    def _test(self, stem, name, seed, work, made):
        printed = os.path.join(work, "printed")
        worker = [self.sandbox, "--read", made, "--output", printed, "--keep-fd", "3", "--report", "4"]
        worker += WORKER_LIMITS + self.unsafe + ["--", os.path.join(made, "worker")]
        library = "lib%s.so" % stem
        environment = {
            "PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "NANOLM_WORKER": "\n".join(worker),
            "NANOLM_LIBRARY": os.path.join(made, library), "NANOLM_ANSWERS": os.path.join(self.build, "lib", library),
            "NANOLM_SEED": str(zlib.crc32(("%d %s.%s" % (seed, stem, name)).encode())),
            "NANOLM_TIMEOUT_SCALE": os.environ.get("NANOLM_TIMEOUT_SCALE", "1")}
        command = [os.path.join(self.bin, "judge_" + stem), "--gtest_filter=" + name, "--gtest_color=no"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  encoding="utf-8", errors="replace", env=environment, timeout=TEST_SECONDS,
                                  start_new_session=True)
        except subprocess.TimeoutExpired:
            return Test(name, "timed out", ["no result in %d s" % TEST_SECONDS])
        if done.returncode == 0 and re.search(r"^\[  PASSED  \] 1 test\.$", done.stdout, re.MULTILINE):
            return Test(name, "passed", [])
        output = done.stdout.replace(ROOT + "/", "").replace(work + "/", "")
        return self._verdict(name, output, printed, made, stem)

    def _verdict(self, name, output, printed, made, stem):
        lost = re.search(r'"the program (.*?)" thrown', output, re.DOTALL)
        if lost:
            says = "the program " + printable(lost[1])
            kind = ("timed out" if "no result in time" in says or "its time was up" in says or "CPU time" in says
                    else "crashed" if "crashed" in says else "ended early")
            return Test(name, kind, [says + self._crash_place(printed, made, stem)])
        gap = verdicts.NOT_IMPLEMENTED.search(output)
        if gap:
            return Test(name, "not implemented", [printable("not implemented at %s: %s" % (gap[1], gap[2]))])
        lines = [printable(line) for line in verdicts.gtest_failures(output)]
        twin = re.search(r"^wrong twin: (\w+)$", output, re.MULTILINE)
        if twin and not lines:
            lines = ["%s() is right for the numbers of this test and wrong for others of the same kind" % twin[1]]
        return Test(name, "failed", lines or ["the judge failed: " + printable(output[-300:])])

    def _crash_place(self, printed, made, stem):
        """"in FUNCTION (FILE:LINE)", from the place that the worker printed last; binutils reads a student's file here."""
        try:
            with open(printed, "rb") as file:
                file.seek(max(0, os.path.getsize(printed) - 4096))
                found = re.findall(r"^crashed at (0x[0-9a-f]{16})$", file.read().decode("utf-8", "replace"), re.MULTILINE)
        except OSError:
            return ""
        if not found or not shutil.which("addr2line"):
            return ""
        log = printed + ".place"
        command = [self.sandbox, "--read", made, "--output", log, "--wall", "10"] + self.unsafe + [
            "--", "addr2line", "-f", "-C", "-s", "-e", os.path.join(made, "lib%s.so" % stem), found[-1]]
        subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = file.read(4096).splitlines()
        os.remove(log)
        if len(lines) != 2 or "?" in lines[0] or "?" in lines[1]:
            return ""
        return printable(" in %s (%s)" % (lines[0].split("(")[0], lines[1].split(" ")[0]))


def printable(text):
    """One line without control characters: part of it may be a student's."""
    return "".join(c if c.isprintable() else " " for c in text)[:2000]


def build():
    if not os.path.isdir(os.path.join(ROOT, "reference")):
        raise Problem("grading needs the answers in reference/, which this edition does not have")
    machine = setup_machine.prepare()
    folder = os.path.join(BUILD, "judge")
    with build_folder.held(folder):
        if not os.path.exists(os.path.join(folder, "bin", "sandbox")):
            say("Building the judge in %s, once; this takes a few minutes." % shown(folder))
        build_folder.configure(machine, folder, os.path.join(ROOT, "reference"), ["-DNANOLM_JUDGE=ON", *build_folder.NO_CUDA])
        code, output = processes.capture([machine["cmake"], "--build", folder, "--target", "judge", "--parallel",
                                          str(build_folder.cores())])
    if code != 0:
        raise Problem("the judge does not build:\n%s" % "\n".join(verdicts.build_errors(output)), status=1)
    return folder
