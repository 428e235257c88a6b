"""What scripts/workbook remembers for a student, in .workbook/ of the checkout, which git ignores."""

import contextlib
import json
import os
import tempfile

from .console import Problem
from .processes import exclusive
from .week import ROOT, find_tree, shown, source_name

FOLDER = os.path.join(ROOT, ".workbook")
SETTINGS = os.path.join(FOLDER, "settings.json")


def read(path):
    """The object in a JSON file; empty where there is none, or none that can be read."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


@contextlib.contextmanager
def changed(path):
    """`with changed(path) as content:` reads a JSON file, lets the caller change the object, and writes it back."""
    try:
        with exclusive(path + ".lock", shown(path)):
            content = read(path)
            yield content
            handle, new = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-")
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=1, sort_keys=True)
                file.write("\n")
            os.replace(new, path)
    except OSError as failure:
        raise Problem("%s cannot be written: %s" % (shown(path), failure.strerror), status=1)


def tree_of(impl):
    """The tree that a verb works on: the one that is asked for, else the one of `start`, else exercises/."""
    if impl is not None:
        return find_tree(impl)
    remembered = read(SETTINGS).get("tree")
    if not isinstance(remembered, str):
        return find_tree("exercises")
    try:
        return find_tree(remembered)
    except Problem:
        raise Problem("your answers are no longer in %s, where `start` put them. Where are they now? scripts/workbook "
                      "start --use DIR (or once: check --impl TREE)" % remembered)


def source(tree, stem):
    return os.path.join(tree, source_name(stem))


def place(path, line=None):
    """file:line as an editor's terminal can open it: from the current folder, or in full."""
    with contextlib.suppress(OSError):
        current = os.getcwd()
        if path.startswith(current + os.sep):
            path = os.path.relpath(path, current)
    return path if line is None else "%s:%d" % (path, line)


def read_text(path):
    """A file with the line ends it has; None where there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise Problem("%s cannot be read: %s" % (shown(path), failure.strerror), status=1)


def write_new(path, text):
    """Writes a file that must not exist yet."""
    with open(path, "x", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)
