"""The week's lessons and the CUDA ladder, read from the tables in CMakeLists.txt, and the trees that hold answers."""

import os
import re
from collections import namedtuple

from .console import Problem

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
Entry = namedtuple("Entry", "stem tier hours title")


def read_week():
    """Every line of `set(week ...)`: lessons, and what has no tests of its own (attention_bench, triton, cuda)."""
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        table = file.read().split("set(week", 1)[1]
    entries = []
    for line in table.splitlines()[1:]:
        match = re.match(r'\s*"(\S+)\s+(\S+)\s+([0-9.]+)\s+(.*)"(\)?)\s*$', line)
        if not match:
            break
        entries.append(Entry(match[1], match[2], float(match[3]), match[4]))
        if match[5]:
            break
    return entries


def lessons():
    """The entries that a suite grades: their stems start with a number."""
    return [entry for entry in read_week() if entry.stem[0].isdigit()]


def rungs():
    """The rungs of the CUDA ladder, which share the hours of the week's entry `cuda`."""
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        table = file.read().split("set(ladder", 1)[1].split(")", 1)[0]
    return [Entry(stem, "depth", float(hours), _rung_title(stem))
            for stem, hours in re.findall(r'"(cuda/\S+) +\w+ +([0-9.]+)"', table)]


def units():
    """All that has tests of its own."""
    return lessons() + rungs()


def is_rung(stem):
    return stem.startswith("cuda/")


def source_name(stem):
    """The name of its source in a tree of answers."""
    return stem + (".cu" if is_rung(stem) else ".cpp")


def _rung_title(stem):
    """The first line of its source, up to its note."""
    try:
        with open(os.path.join(ROOT, "exercises", source_name(stem)), encoding="utf-8") as file:
            return file.readline().lstrip("/ ").split(" (notes/")[0].rstrip(".\n")
    except OSError:
        return stem


def find_lesson(text):
    """The lesson or rung meant by "3", "03", "03_online_softmax", "softmax", "cuda/03" or the path of its source."""
    wanted = re.sub(r"\.cpp$", "", os.path.basename(text)).lower().replace("-", "_").replace(" ", "_")
    found = []
    of_rung = re.search(r"(?:^|/)cuda/([^/]+?)(?:\.cu)?$", text)
    if of_rung and of_rung[1].isdigit():
        found = [entry for entry in rungs() if int(entry.stem[5:].split("_")[0]) == int(of_rung[1])]
    elif of_rung or text.endswith(".cu"):
        wanted = re.sub(r"\.cu$", "", wanted)
        found = [entry for entry in rungs() if entry.stem == "cuda/" + wanted]
        found = found or [entry for entry in rungs() if wanted in entry.stem]
    elif wanted.isdigit():
        found = [entry for entry in lessons() if int(entry.stem.split("_")[0]) == int(wanted)]
    elif wanted:
        found = [entry for entry in lessons() if entry.stem == wanted]
        found = found or [entry for entry in lessons() if wanted in entry.stem]
        found = found or [entry for entry in rungs() if wanted in entry.stem]
    if len(found) == 1:
        return found[0]
    says = "fits %d lessons" % len(found) if found else "is no lesson"
    raise Problem("%r %s. The lessons: %s" % (text, says, ", ".join(e.stem for e in found or units())))


def find_tree(text):
    """The real path of a tree of answers, by the rules of IMPL in CMake: absolute, else in the workbook, else here."""
    choices = "Choose reference, exercises, or a folder that holds files like 03_online_softmax.cpp."
    if not text:
        raise Problem("--impl is empty. " + choices)
    check_path("--impl %r" % text, text)
    if text.startswith("~"):
        raise Problem("--impl %r: the shell did not replace ~. Write the whole path. %s" % (text, choices))
    candidates = [os.path.realpath(os.path.join(base, text)) for base in (ROOT, os.getcwd())]
    candidates = [path for path in candidates if os.path.exists(path)]
    if not candidates:
        raise Problem("--impl %r does not exist. %s" % (text, choices))
    tree = next(filter(_holds_lesson, candidates), candidates[0])
    if not os.path.isdir(tree):
        raise Problem("--impl %r is a file. %s" % (text, choices))
    if not _holds_lesson(tree):
        raise Problem("--impl %r holds no lesson. %s" % (text, choices))
    check_path("--impl %r" % text, tree)
    return tree


def check_path(name, path):
    """Refuses what CMake or make cannot have in a path. A lone bracket holds the items of a CMake list together."""
    found = re.search(r'[][;:"\\]|\$[{<]', re.sub(r"\[[^][]*\]", "", path))
    if found:
        raise Problem("%s: CMake or make cannot have %s in the path %s" % (name, found[0], path))


def _holds_lesson(tree):
    return any(os.path.exists(os.path.join(tree, entry.stem + ".cpp")) for entry in lessons())


def shown(path):
    """A path as a person in the workbook's folder would write it."""
    return os.path.relpath(path, ROOT) if path.startswith(ROOT + os.sep) else path
