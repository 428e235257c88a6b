"""`scripts/workbook next`: the first exercise that is not done, with its file and line, its test and its note."""

import json
import os

from . import console, gaps, last_checks
from .console import say
from .settings import place, source, tree_of
from .week import ROOT, find_lessons, note_of, units

JSON = """\
--json prints one object: "tree", "done" (true when every lesson passes), and of the next exercise "lesson", "why"
(missing, failed, todo, unchecked), "file", "line", "function", "what" (one sentence), "about_lines", "test", "messages"
(a failed test's), "note"; null where there is none.
"""


def run(options):
    console.only_errors(options.json)
    tree = tree_of(options.impl)
    found = find(tree, find_lessons(options.lesson) if options.lesson is not None else None)
    if options.json:
        print(json.dumps(dict({"tree": tree, "done": found is None}, **(found or EMPTY)), indent=1))
        return 0
    if found is None and options.lesson is not None:
        known = last_checks.recall(tree)
        for entry in find_lessons(options.lesson):
            if known[entry.stem]["passed"]:
                say("%s passes." % entry.stem)
            else:
                say("%s is written, and was not tested here: %s" % (entry.stem, known[entry.stem]["says"]))
        return 0
    if found is None:
        say("Every lesson in %s passes. What is left has no tests: scripts/workbook bench, then "
            "notes/attention_bench.md. See scripts/workbook progress." % tree)
        return 0
    where = place(found["file"], found["line"])
    say("%s: %s" % (found["lesson"], found["title"]))
    if found["why"] == "todo":
        about = " About %d line%s." % (found["about_lines"], "s" * (found["about_lines"] != 1))
        say("  %s  %s()" % (where, found["function"]))
        say("  to do   %s%s" % (found["what"], about if found["about_lines"] else ""))
        if found["test"]:
            say("  shown by %s" % found["test"])
    else:
        say("  %s" % where)
        say("  %s" % found["what"])
        for line in found["messages"]:
            say("      " + line)
    say("  note    %s" % place(found["note"]))
    number = found["lesson"].split("_")[0]
    hint = "" if found["why"] != "todo" else "   stuck: scripts/workbook hint %s" % number
    say("  then    scripts/workbook %s%s" % ("start --use %s" % tree if found["why"] == "missing" else "check "
                                             + number, hint))
    return 0


EMPTY = dict.fromkeys(("lesson", "title", "why", "file", "line", "function", "what", "about_lines", "test", "messages",
                       "note"))


def find(tree, only=None):
    """What is to be done next, a dictionary with EMPTY's keys; None when every lesson passes (or `only` these)."""
    known = last_checks.recall(tree)
    for entry in only or units():
        found = _of_lesson(tree, entry.stem, known.get(entry.stem))
        if found:
            note = os.path.join(ROOT, note_of(entry.stem))
            return {**EMPTY, "messages": [], "lesson": entry.stem, "title": entry.title, "note": note,
                    "file": source(tree, entry.stem), **found}
    return None


def _of_lesson(tree, stem, last):
    """What is left to do in one lesson. A test that failed comes before the gaps behind it."""
    missing = gaps.open_gaps(tree, stem)
    if missing is None:
        return {"why": "missing", "what": "The file is missing."}
    fresh = last and not last["stale"]
    if fresh and last["passed"]:
        return None
    if fresh and not missing and any(test["result"] == "skipped" for test in last["tests"]):
        return None  # written, and this machine cannot tell
    wrong = next((test for test in last["tests"] if test["result"] not in (
        "passed", "not implemented", "skipped", "not run")), None) if fresh else None
    if fresh and wrong:
        return {"why": "failed", "what": "%s %s" % (wrong["name"], wrong["result"]), "test": wrong["name"],
                "messages": wrong["lines"]}
    if fresh and not last["tests"] or fresh and last["says"].startswith("does not compile"):
        return {"why": "failed", "what": last["says"]}
    if missing:
        gap = missing[0]
        sentence = gap.sentence[:1].upper() + gap.sentence[1:] + "." if gap.sentence else "Write it."
        return {"why": "todo", "line": gap.line, "function": gap.function, "what": sentence, "about_lines": gap.about,
                "test": gaps.test_for(stem, gap.function)}
    if fresh:
        return {"why": "failed", "what": last["says"]}
    return {"why": "unchecked", "what": "Written, and not checked since."}
