"""`scripts/workbook reset`: a lesson back to its stub; what was written is kept."""

import os
import tempfile
import time

from . import gaps, settings
from .console import Problem, say
from .settings import place, read_text, source, tree_of, write_new
from .week import ROOT, find_lesson, source_name


def run(options):
    tree = tree_of(options.impl)
    stem = find_lesson(options.lesson).stem
    path = source(tree, stem)
    if tree == os.path.join(ROOT, "reference"):
        raise Problem("reference/ holds the answers: there is no stub to go back to")
    stub = _stub(tree, stem)
    mine = read_text(path)
    if mine == stub:
        say("%s is the stub already." % place(path))
        return 0
    try:
        if mine is not None:
            say("What you wrote is kept in %s" % place(_keep(stem, mine)))
        handle, new = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".%s." % os.path.basename(stem))
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(stub)
        if mine is not None:
            os.chmod(new, os.stat(path).st_mode & 0o777)
        else:
            os.chmod(new, 0o644)
        os.replace(new, path)
    except OSError as failure:
        raise Problem("%s cannot be written: %s" % (failure.filename or path, failure.strerror), status=1)
    say("%s is the stub again." % place(path))
    return 0


def _keep(stem, text):
    """Writes a backup under a name that is not taken, and returns its path."""
    base, extension = os.path.splitext(os.path.join(settings.FOLDER, "backups", source_name(stem)))
    os.makedirs(os.path.dirname(base), exist_ok=True)
    base += time.strftime(".%Y-%m-%d_%H%M%S")
    number = 1
    while True:
        path = base + ("" if number == 1 else "-%d" % number) + extension
        try:
            write_new(path, text)
            return path
        except FileExistsError:
            number += 1


def _stub(tree, stem):
    """The stub: that of exercises/, or git's where a student wrote in exercises/ or works in it."""
    if tree == os.path.join(ROOT, "exercises"):
        return gaps.committed_stub(stem) or gaps.stub(stem)
    if not gaps.is_stub(stem) and gaps.committed_stub(stem):
        say("exercises/%s is no stub any more: git's is taken." % source_name(stem))
    return gaps.stub(stem)
