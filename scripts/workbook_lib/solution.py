"""`scripts/workbook solution`: the reference's answer as a diff against the student's, once that passes."""

import difflib
import os

from . import last_checks
from .console import Problem, faint, green, red, say
from .settings import place, read_text, source, tree_of
from .week import ROOT, find_lesson, source_name


def run(options):
    tree = tree_of(options.impl)
    entry = find_lesson(options.lesson)
    short = entry.stem.split("_")[0]
    answers = os.path.join(ROOT, "reference")
    answer = read_text(source(answers, entry.stem))
    if answer is None:
        raise Problem("this edition of the workbook holds no answers (no reference/%s)" % source_name(entry.stem), status=1)
    mine = read_text(source(tree, entry.stem))
    if mine is None:
        raise Problem("%s is missing" % place(source(tree, entry.stem)), status=1)
    last = last_checks.recall(tree).get(entry.stem)
    if not options.give_up:
        why = ("has not been checked" if last is None else "has changed since its last check" if last["stale"] else
               "does not pass yet (%s)" % last["says"] if not last["passed"] else None)
        if why:
            raise Problem("%s %s. First: scripts/workbook check %s. A hint: scripts/workbook hint %s. To see the "
                          "answer all the same: scripts/workbook solution %s --give-up"
                          % (entry.stem, why, short, short, short), status=1)
    lines = list(difflib.unified_diff(mine.splitlines(), answer.splitlines(), place(source(tree, entry.stem)),
                                      place(source(answers, entry.stem)), lineterm=""))
    for number, line in enumerate(lines):
        colour = faint if number < 2 or line.startswith("@@") else {"-": red, "+": green}.get(line[:1], str)
        say(colour(line))
    if not lines:
        say("%s is the reference's answer, line for line." % place(source(tree, entry.stem)))
    return 0
