"""A build folder: where it lies, how it is configured, and how CTest is run in it."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import tempfile

from . import processes
from .console import Problem
from .setup_machine import BUILD
from .week import ROOT, check_path, shown

NO_CUDA = ("-DNANOLM_CUDA=OFF", "-DNANOLM_EMULATOR=OFF")  # where only lessons are built


def folder_for(tree, prefix=""):
    """build/exercises and build/reference; a tree elsewhere gets its name and a few digits of its path."""
    name = os.path.basename(tree)
    if os.path.dirname(tree) != ROOT:
        name = "%s-%s" % (re.sub(r"[^A-Za-z0-9_.-]", "_", name), hashlib.sha256(tree.encode()).hexdigest()[:8])
    return os.path.join(BUILD, prefix + name)


def check_build_dir(text):
    """The build folder that a person asks for: new, empty, or a build of this workbook."""
    folder = os.path.realpath(text)
    if not text or os.path.exists(folder) and not os.path.isdir(folder):
        raise Problem("--build-dir %r is no folder" % text)
    check_path("--build-dir %r" % text, folder)
    if (folder + os.sep) in (ROOT + os.sep, "/") or ROOT.startswith(folder + os.sep):
        raise Problem("--build-dir %r holds the workbook itself. Choose a folder like build/mine." % text)
    home = _cached(folder, "CMAKE_HOME_DIRECTORY")
    if home is None and os.path.isdir(folder) and os.listdir(folder):
        raise Problem("--build-dir %r holds files and is no build folder of the workbook" % text)
    if home is not None and os.path.realpath(home) != ROOT:
        raise Problem("--build-dir %r is the build folder of %s" % (text, home))
    return folder


@contextlib.contextmanager
def held(folder):
    """One scripts/workbook at a time in a build folder; a second waits."""
    name = hashlib.sha256(folder.encode()).hexdigest()[:16]
    lock = os.path.join(BUILD, ".%s.lock" % name)
    with processes.exclusive(lock, "it uses %s" % shown(folder)):
        yield


def configure(machine, folder, tree, options=()):
    """Runs cmake; from a clean state when the compiler, its flags or the place of the workbook have changed."""
    key = {name: os.environ.get(name) for name in ("CXX", "CXXFLAGS", "LDFLAGS")}
    key.update(source=ROOT)
    note = os.path.join(folder, ".workbook.json")
    cached = _cached(folder, "CMAKE_HOME_DIRECTORY")
    os.makedirs(folder, exist_ok=True)
    # The lock that the tests take to build (tests/support/build.cmake): cmake must not run beside a build.
    with open(os.path.join(folder, ".build.lock"), "a") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if cached is not None and (cached != ROOT or _read(note) not in (None, key)):
            for name in ("CMakeCache.txt", "CMakeFiles", "build.ninja", "Makefile"):
                path = os.path.join(folder, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
            cached = None
        generator = []
        # In the compiler's list of headers Ninja splits a path at an apostrophe, and would build everything each time.
        make = not machine["ninja"] or "'" in ROOT + folder + tree and shutil.which("make")
        if cached is None and not make:
            generator = ["-G", "Ninja", "-DCMAKE_MAKE_PROGRAM=" + machine["ninja"]]
        elif cached is None:
            generator = ["-G", "Unix Makefiles"]
        arguments = [machine["cmake"], "-S", ROOT, "-B", folder, "-DIMPL=" + tree]
        code, output = processes.capture(arguments + generator + list(options))
        failed = re.search(r"downloading '(\S+)' failed", output)
        if code != 0 and failed:
            raise Problem("%s could not be downloaded. Install the package instead (Debian, Ubuntu: apt-get install "
                          "libgtest-dev libbenchmark-dev)" % failed[1], status=1)
        if code != 0:
            raise Problem("cmake does not configure %s:\n%s" % (shown(folder), _errors(output)), status=1)
        with open(note, "w", encoding="utf-8") as file:
            json.dump(key, file)


def run_ctest(machine, folder, arguments, on_line=None):
    """CTest in the folder; no test at all is a failure."""
    command = [machine["ctest"], "--test-dir", folder, "--no-tests=error"]
    return processes.stream(command + list(arguments), on_line)


def run_ctest_for_results(machine, folder, arguments, on_line):
    """Exit status and JUnit text of a CTest run, whose lines also go to on_line."""
    with tempfile.TemporaryDirectory(prefix=".results-", dir=folder) as results:
        path = os.path.join(results, "junit.xml")
        code = run_ctest(machine, folder, list(arguments) + ["--output-junit", path], on_line)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return code, file.read()
        except FileNotFoundError:
            return code, None


def to_build(folder, target):
    """What a person at the workbook's folder types to build a target."""
    cmake = _cached(folder, "CMAKE_COMMAND") or "cmake"
    if os.path.realpath(shutil.which("cmake") or "") == os.path.realpath(cmake):
        cmake = "cmake"
    return " ".join(map(shlex.quote, (shown(cmake), "--build", shown(folder), "--target", target)))


def cores():
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def _cached(folder, name):
    try:
        with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8", errors="replace") as file:
            match = re.search(r"^%s:\w+=(.*)$" % re.escape(name), file.read(), re.MULTILINE)
            return match[1] if match else ""
    except OSError:
        return None


def _read(note):
    try:
        with open(note, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _errors(output):
    """The part of cmake's output that says what is wrong."""
    start = output.find("CMake Error")
    return output[start:].strip() if start >= 0 else "\n".join(output.splitlines()[-15:])
