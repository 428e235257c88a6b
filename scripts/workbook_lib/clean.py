"""`scripts/workbook clean`: removes build folders and what an in-source build leaves behind."""

import glob
import os
import shutil
import subprocess

from .console import Problem, say
from .processes import exclusive
from .week import ROOT

# What `cmake` and `ctest` in the source folder leave there and in the folders with a CMakeLists.txt of their own.
IN_SOURCE_FILES = ("CMakeCache.txt", "CTestCustom.cmake", "CTestTestfile.cmake", "DartConfiguration.tcl", "Makefile",
                   "build.ninja", ".build.lock", ".ninja_deps", ".ninja_log", "cmake_install.cmake",
                   "compile_commands.json", ".workbook.json")
IN_SOURCE_FOLDERS = ("CMakeFiles", "Testing", "_deps", "bin", "generated", "ids", "lib")
# Names that a person may use too: removed only with CMake's mark in their first line.
MARKED = {"Makefile": "CMAKE generated file", "build.ninja": "CMAKE generated file",
          "cmake_install.cmake": "Install script for directory", "CTestTestfile.cmake": "CMake generated Testfile"}


def run(_options):
    tracked = _tracked()
    doomed = _build_folders() + _in_source()
    kept = [path for path in doomed if any(t == path or t.startswith(path + os.sep) for t in tracked)]
    removed = [path for path in doomed if path not in kept]
    for path in removed:
        _check_unused(path)
    for path in removed:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)
        say("removed %s" % os.path.relpath(path, ROOT))
    for path in kept:
        say("kept %s: git tracks it" % os.path.relpath(path, ROOT))
    if not removed:
        say("nothing to remove")
    return 0


def _tracked():
    """Every file that git tracks. Without git, or outside a clone, none: the names above are none of the workbook's."""
    try:
        done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return [os.path.join(ROOT, os.fsdecode(name)) for name in done.stdout.split(b"\0") if name]


def _build_folders():
    """build/, and every other build*/ that CMake has configured."""
    found = []
    for path in sorted(glob.glob(os.path.join(glob.escape(ROOT), "build*"))):
        is_ours = os.path.basename(path) == "build" or os.path.exists(os.path.join(path, "CMakeCache.txt"))
        if os.path.isdir(path) and is_ours:
            found.append(path)
    return found


def _in_source():
    if not any(os.path.exists(os.path.join(ROOT, name)) for name in ("CMakeCache.txt", "CMakeFiles")):
        return []
    found = [os.path.join(ROOT, name) for name in IN_SOURCE_FILES + IN_SOURCE_FOLDERS]
    for folder in ("bench", "emulator", os.path.join("tests", "meta")):
        found += [os.path.join(ROOT, folder, name) for name in ("CMakeFiles", *MARKED)]
    return [path for path in found if os.path.lexists(path) and _is_generated(path)]


def _is_generated(path):
    mark = MARKED.get(os.path.basename(path))
    if mark is None:
        return True
    with open(path, encoding="utf-8", errors="replace") as file:
        return mark in file.readline()


def _check_unused(folder):
    for lock in glob.glob(os.path.join(glob.escape(folder), ".*.lock")):
        if os.path.basename(lock) == ".build.lock":
            continue
        with exclusive(lock, "", wait=False) as free:
            if not free:
                raise Problem("%s is in use by another scripts/workbook; nothing was removed"
                              % os.path.relpath(folder, ROOT), status=1)
