"""The week's lessons and the CUDA ladder, read from the tables in CMakeLists.txt, and the trees that hold answers."""

import os
import re
from collections import namedtuple

from .console import Problem

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
Entry = namedtuple("Entry", "stem tier hours title")
# Entries of the week whose hours are those of several files, in a folder of this name: their table, and the files' end.
GROUPS = {"cuda": ("ladder", ".cu"), "triton": ("triton_units", ".py")}


def read_week():
    """Every line of `set(week ...)`: lessons, attention_bench, which has no tests, and triton and cuda, which are GROUPS."""
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
    return members("cuda")


def members(group):
    """The files of one of GROUPS, as entries."""
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        table = file.read().split("set(%s" % GROUPS[group][0], 1)[1].split(")", 1)[0]
    return [Entry(stem, "depth", float(hours), _title(stem))
            for stem, hours in re.findall(r'"(%s/\S+) +(?:\w+ +)?([0-9.]+)"' % group, table)]


def units():
    """All that has tests of its own."""
    return lessons() + [entry for group in GROUPS for entry in members(group)]


def is_rung(stem):
    return stem.startswith("cuda/")


def is_triton(stem):
    return stem.startswith("triton/")


def source_name(stem):
    """The name of its source in a tree of answers."""
    return stem + GROUPS.get(stem.split("/")[0], ("", ".cpp"))[1]


def note_of(stem):
    """Its note: the Triton exercises share one."""
    return "notes/%s.md" % ("triton" if is_triton(stem) else stem)


def _title(stem):
    """The first line of its source, up to its note."""
    try:
        with open(os.path.join(ROOT, "exercises", source_name(stem)), encoding="utf-8") as file:
            return file.readline().lstrip('/" ').split(" (notes/")[0].rstrip(".\n")
    except OSError:
        return stem


def find_lessons(text):
    """What a verb that takes several is to work on: all of a group for "triton" or "cuda", else one lesson."""
    return members(text) if text in GROUPS else [find_lesson(text)]


def find_lesson(text):
    """The lesson or rung meant by "3", "03", "03_online_softmax", "softmax", "cuda/03" or the path of its source."""
    wanted = re.sub(r"\.cpp$", "", os.path.basename(text)).lower().replace("-", "_").replace(" ", "_")
    found = []
    grouped = [entry for group in GROUPS for entry in members(group)]
    of_group = re.search(r"(?:^|/)(cuda|triton)/([^/]+?)(?:\.cu|\.py)?$", text)
    if of_group or text.endswith((".cu", ".py")):
        group = of_group[1] if of_group else "cuda" if text.endswith(".cu") else "triton"
        wanted = re.sub(r"\.(cu|py)$", "", wanted)
        found = [entry for entry in members(group) if re.search(r"/0*%s_" % int(wanted), entry.stem)] if (
            wanted.isdigit()) else [entry for entry in members(group) if entry.stem == "%s/%s" % (group, wanted)]
        found = found or [entry for entry in members(group) if wanted in entry.stem and not wanted.isdigit()]
    elif wanted.isdigit():
        found = [entry for entry in lessons() if int(entry.stem.split("_")[0]) == int(wanted)]
    elif wanted:
        found = [entry for entry in lessons() if entry.stem == wanted]
        found = found or [entry for entry in lessons() if wanted in entry.stem]
        found = found or [entry for entry in grouped if entry.stem.split("/")[1] == wanted]
        found = found or [entry for entry in grouped if wanted in entry.stem]
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
