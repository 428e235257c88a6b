"""Finds what a build needs, and installs what is missing: by apt, else by pip into .venv, else it names it."""

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from .console import Problem, say
from .language import translate
from .processes import capture, environment, exclusive, stream
from .week import ROOT

BUILD = os.path.join(ROOT, "build")
VENV = os.path.join(ROOT, ".venv")
CMAKE_MINIMUM = (3, 22)
# What may be missing: the package of Debian and Ubuntu, and what it is for.
NEEDS = {
    "C++ compiler": ("g++", "compiles the lessons"),
    "CMake": ("cmake", "configures the builds and runs the tests"),
    "Ninja": ("ninja-build", "runs the compiler"),
    "make": ("make", "what plain `cmake` uses, without this command"),
    "GoogleTest": ("libgtest-dev", "the tests are written with it"),
    "Boost.Context": ("libboost-context-dev", "CUDA threads are its fibers in the emulator"),
    "Google Benchmark": ("libbenchmark-dev", "attention_bench is timed with it"),
    "matplotlib": ("python3-matplotlib", "draws the plots"),
}
BY_PIP = {"CMake": "cmake>=3.22,<5", "Ninja": "ninja", "matplotlib": "matplotlib"}
TRITON = ("triton", "numpy")  # its interpreter needs numpy, and no PyTorch
# The generator of the notes' site: tried with MkDocs 1.6.1, Material 9.8.2, latex2mathml 3.81.1.
MKDOCS = ("mkdocs>=1.6,<2", "mkdocs-material>=9.5,<10", "latex2mathml>=3.77,<4")
COMPILER_COMMANDS = (("dnf", "dnf install gcc-c++"), ("zypper", "zypper install gcc-c++"), ("pacman", "pacman -S gcc"),
                     ("apk", "apk add g++"))
PROBE = """cmake_minimum_required(VERSION 3.22)
project(probe LANGUAGES CXX)
find_package(GTest QUIET)
find_package(benchmark QUIET)
find_package(Boost 1.74 QUIET COMPONENTS context)
message(STATUS "GoogleTest=${GTest_FOUND}; Google Benchmark=${benchmark_FOUND}; Boost.Context=${Boost_FOUND};")
"""


def prepare(bench=False):
    """Paths of compiler, cmake, ctest, ninja (None: make is used) and, for bench, of a Python with matplotlib."""
    check_compiler_variable()
    found = _stamped(bench)
    if found:
        return found
    found, missing = _look(bench)
    if os.environ.get("NANOLM_NO_INSTALL"):
        _refuse([name for name in missing if name != "make"])
        missing = []
    if "C++ compiler" in missing and not _apt():
        _refuse([name for name in missing if name != "make"])
    with exclusive(os.path.join(BUILD, ".setup.lock"), "it sets the machine up"):
        if missing and _apt():
            _install_by_apt(missing)
            found, missing = _look(bench)
        if "C++ compiler" in missing:
            _refuse([name for name in missing if name != "make"])
        if set(missing) & set(BY_PIP):
            _install_by_pip([name for name in missing if name in BY_PIP], found)
            found, missing = _look(bench)
        if not (found["ninja"] or shutil.which("make")) or "CMake" in missing or "matplotlib" in missing:
            _refuse([name for name in missing if name != "make"])
        for name in missing:
            if name in ("GoogleTest", "Google Benchmark", "Boost.Context"):
                say("Set-up: %s is not installed here; CMake downloads and builds it." % name)
        _write_stamp(found, bench)
    return found


def install_triton():
    """Puts Triton into .venv, where the tests in tests/triton look for it."""
    python = os.path.join(VENV, "bin", "python")
    if _has_triton(python):
        say("Set-up: Triton is in .venv already.")
        return
    if os.environ.get("NANOLM_NO_INSTALL"):
        raise Problem("Triton is not in .venv, and NANOLM_NO_INSTALL is set")
    with exclusive(os.path.join(BUILD, ".setup.lock"), "it sets the machine up"):
        say("Set-up: installing Triton and numpy with pip into .venv (about 1 GB)")
        _pip(TRITON)
    if not _has_triton(python):
        raise Problem("Triton could not be installed. Its packages are for Linux; the reading exercise, triton/01, "
                      "needs none.", status=1)


def _has_triton(python):
    return os.path.exists(python) and capture([python, "-c", "import triton, numpy"])[0] == 0


def python_with_mkdocs():
    """The Python of .venv, with what builds the notes' site; installs that where it is missing."""
    python = os.path.join(VENV, "bin", "python")
    if _has_mkdocs(python):
        return python
    if os.environ.get("NANOLM_NO_INSTALL"):
        raise Problem("MkDocs is not in .venv, and NANOLM_NO_INSTALL is set")
    with exclusive(os.path.join(BUILD, ".setup.lock"), "it sets the machine up"):
        say("Set-up: installing MkDocs, its theme and a renderer of formulas with pip into .venv (about 140 MB)")
        _pip(MKDOCS)
    if not _has_mkdocs(python):
        raise Problem("what builds the notes could not be installed. They can be read as they are, notes/00_map.md "
                      "first.", status=1)
    return python


def _has_mkdocs(python):
    return os.path.exists(python) and capture([python, "-c", "import mkdocs, material, pymdownx, latex2mathml"])[0] == 0


def has_gpu():
    """As tests/support/rung.cmake looks for one."""
    return bool(glob.glob("/dev/nvidia[0-9]*")) or os.path.exists("/dev/dxg")


def check_compiler_variable():
    """CXX, where it is set, must be a program: CMake's own message about it is long, and a build folder is left."""
    compiler = os.environ.get("CXX", "").strip()
    if compiler and not shutil.which(shlex.split(compiler)[0]):
        raise Problem("CXX=%r is no program. Unset it, or set it to a C++ compiler." % compiler)


def _look(bench):
    """What is here, and the names in NEEDS that are missing."""
    compiler = os.environ.get("CXX", "").strip() or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
    cmake = next((path for path in _candidates("cmake") if _cmake_version(path) >= CMAKE_MINIMUM), None)
    ctest = next(iter(_candidates("ctest", os.path.dirname(cmake))), None) if cmake else None
    ninja = next(iter(_candidates("ninja") + _candidates("ninja-build")), None)
    found = {"compiler": shutil.which(shlex.split(compiler)[0]) if compiler else None, "cmake": cmake, "ctest": ctest,
             "ninja": ninja, "plots": _python_with_matplotlib() if bench else None}
    missing = [name for name, there in (("C++ compiler", compiler), ("CMake", cmake), ("Ninja", ninja),
                                        ("make", shutil.which("make"))) if not there]
    if compiler:
        _check_standard(compiler)
    packages = ["GoogleTest"] + (["Google Benchmark"] if bench else [])
    packages += ["Boost.Context"] if sys.platform == "linux" else []  # the emulator runs there only
    present = _probe_packages(found) if compiler and cmake else ""
    missing += [name for name in packages if not re.search(name + "=(1|TRUE|ON);", present)]
    if bench and not found["plots"]:
        missing.append("matplotlib")
    return found, missing


def _candidates(program, *folders):
    """Where a program may be: in the folders given, on PATH, in .venv."""
    paths = [os.path.join(folder, program) for folder in folders] + [shutil.which(program) or ""]
    return list(filter(os.path.exists, paths + [os.path.join(VENV, "bin", program)]))


def _cmake_version(path):
    match = re.search(r"version (\d+)\.(\d+)", capture([path, "--version"])[1])
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _check_standard(compiler):
    program = "#include <concepts>\n#include <span>\nint main() { return 0; }\n"
    done = subprocess.run(shlex.split(compiler) + ["-std=c++20", "-x", "c++", "-fsyntax-only", "-"], input=program,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, env=environment())
    if done.returncode:
        raise Problem("the C++ compiler %r does not compile C++20. Needed: g++ 11, clang 14 or newer; CXX chooses one."
                      % compiler)


def _probe_packages(found):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CMakeLists.txt"), "w") as file:
            file.write(PROBE)
        generator = ["-G", "Ninja", "-DCMAKE_MAKE_PROGRAM=" + found["ninja"]] if found["ninja"] else []
        return capture([found["cmake"], "-S", folder, "-B", os.path.join(folder, "build")] + generator)[1]


def _python_with_matplotlib():
    for python in (sys.executable, "/usr/bin/python3", os.path.join(VENV, "bin", "python")):
        if os.path.exists(python) and capture([python, "-c", "import matplotlib.pyplot"])[0] == 0:
            return python
    return None


def _apt():
    """The words before `apt-get` that make it root's; None where it cannot be."""
    if not shutil.which("apt-get"):
        return None
    words = ["env", "DEBIAN_FRONTEND=noninteractive"]
    if os.geteuid() == 0:
        return words
    if not shutil.which("sudo"):
        return None
    if sys.stdin.isatty() and sys.stderr.isatty():
        return ["sudo"] + words  # it may ask for its password
    return ["sudo", "-n"] + words if capture(["sudo", "-n", "true"])[0] == 0 else None


def _install_by_apt(missing):
    packages = [NEEDS[name][0] for name in missing]
    say("Set-up: installing %s" % "; ".join("%s (%s)" % (NEEDS[name][0], translate(NEEDS[name][1])) for name in missing))
    say("        %s" % " ".join(_apt()[:-2] + ["apt-get", "install"] + packages))
    lines = []
    options = ["-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]
    # An update that fails for one source of many may still let the packages be found.
    stream(_apt() + ["apt-get"] + options + ["update"], lines.append, own_session=False)
    install = ["apt-get"] + options + ["-y", "--no-install-recommends", "install"]
    if stream(_apt() + install + packages, lines.append, own_session=False) != 0:
        say("Set-up: apt-get failed: %s" % " | ".join(lines[-3:]))


def _install_by_pip(names, found):
    say("Set-up: installing %s with pip into .venv" % ", ".join(map(_what_for, names)))
    _pip([BY_PIP[name] for name in names])


def _pip(packages):
    python = os.path.join(VENV, "bin", "python")
    if not os.path.exists(python) or capture([python, "-m", "pip", "--version"])[0] != 0:
        code, output = capture([sys.executable, "-m", "venv", "--clear", VENV])
        if code != 0:
            shutil.rmtree(VENV, ignore_errors=True)
            say("Set-up: `%s -m venv` failed (on Debian and Ubuntu it needs the package python3-venv): %s"
                % (sys.executable, output.strip().split("\n")[-1]))
            return
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    code, output = capture(install + list(packages))
    if code != 0:
        say("Set-up: pip failed: %s" % output.strip().split("\n")[-1])


def _what_for(name):
    return "%s (%s)" % (name, translate(NEEDS[name][1]))


def _refuse(missing):
    if not missing:
        return
    says = "missing: %s." % ", ".join(map(_what_for, missing))
    if sys.platform == "darwin":
        brew = {"CMake": "cmake", "Ninja": "ninja", "GoogleTest": "googletest", "Google Benchmark": "google-benchmark",
                "matplotlib": "python-matplotlib"}
        commands = ["xcode-select --install"] if "C++ compiler" in missing else []
        packages = [brew[name] for name in missing if name in brew]
        commands += ["brew install " + " ".join(packages)] if packages else []
        raise Problem("%s Run: %s" % (says, " and ".join(commands)))
    if shutil.which("apt-get"):
        command = "apt-get install " + " ".join(NEEDS[name][0] for name in missing)
        raise Problem("%s Run, or ask an administrator to run: sudo %s" % (says, command))
    command = next((command for program, command in COMPILER_COMMANDS if shutil.which(program)), None)
    if command and "C++ compiler" in missing:
        raise Problem("%s Run, or ask an administrator to run: sudo %s" % (says, command))
    raise Problem("%s Install it with this system's package manager." % says)


def _stamp_path(bench):
    return os.path.join(BUILD, ".setup_bench.json" if bench else ".setup.json")


def _stamp_key():
    return {"path": os.environ.get("PATH"), "compiler": os.environ.get("CXX"), "root": ROOT, "needs": sorted(NEEDS)}


def _stamped(bench):
    """What an earlier set-up found, if it still stands."""
    try:
        with open(_stamp_path(bench), encoding="utf-8") as file:
            stamp = json.load(file)
        paths = [path for path in stamp["found"].values() if path]
        good = stamp["key"] == _stamp_key() and all(map(os.path.exists, paths))
        return stamp["found"] if good else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _write_stamp(found, bench):
    path = _stamp_path(bench)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump({"key": _stamp_key(), "found": found}, file, indent=1)
    os.replace(path + ".new", path)
