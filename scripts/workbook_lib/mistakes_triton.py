"""`scripts/workbook mistakes --triton`: each known mistake in a Triton exercise fails a test, in words that help."""

import json
import os
import shutil
import sys
import time

from . import mistakes_bank, mistakes_run, setup_machine, verdicts
from .console import Problem, cross, say, tick
from .processes import capture
from .settings import read_text, source
from .week import ROOT, find_lesson, is_triton, members

SKIPPED = 77


def run(options):
    chosen = [find_lesson(options.lesson)] if options.lesson is not None else members("triton")
    if not all(is_triton(entry.stem) for entry in chosen):
        raise Problem("--triton is about Triton exercises: scripts/workbook mistakes --triton triton/03")
    started, entries, problems, untold = time.monotonic(), [], [], 0
    scratch = os.path.join(setup_machine.BUILD, "mistakes_triton", "reference")
    for stem in (entry.stem for entry in chosen):
        bank, answers = mistakes_bank.read_bank(stem), read_text(source(mistakes_run.REFERENCE, stem))
        texts = {mistake.id: mistakes_bank.apply(mistake, answers) for mistake in bank}
        code, told = _first_failure(stem, source(mistakes_run.REFERENCE, stem))
        if code == SKIPPED:
            say("%s: %d mistakes not looked at: %s" % (stem, len(bank), told))
            untold += len(bank)
            continue
        if code:
            raise Problem("%s fails with the answers themselves: %s" % (stem, told), status=1)
        for mistake in bank:
            told, found = _try(stem, mistake, texts[mistake.id], source(scratch, stem))
            say("%s %s %s\n      %s" % (cross() if found else tick(), mistake.id, mistake.slug, told))
            problems += found
            entries.append({"id": mistake.id, "slug": mistake.slug, "says": mistake.says, "told": told})
    shutil.rmtree(os.path.dirname(scratch), ignore_errors=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(entries, file, indent=1, ensure_ascii=False)
    for problem in problems:
        say("%s %s" % (cross(), problem))
    say("%s %d mistakes in Triton exercises: %d problems, %d not looked at (%d s)." % (
        cross() if problems else tick(), len(entries), len(problems), untold, time.monotonic() - started))
    return 1 if problems else 0


def _try(stem, mistake, text, path):
    """What a student with this mistake is told, and what is wrong with that."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    code, told = _first_failure(stem, path)
    name = "%s %s" % (mistake.id, mistake.slug)
    if code == 0:
        return told, ["%s survives: no test fails" % name]
    return told, ["%s: the message does not say %r" % (name, words) for words in mistake.words["says"]
                  if words not in told]


def _first_failure(stem, path):
    """The exit status of the exercise's tests, and what `check` would say of the first that fails, in one line."""
    code, output = capture([sys.executable, os.path.join(ROOT, "tests", "triton", "runner.py"),
                            os.path.join(ROOT, "tests", stem + "_test.py"), path, "--first"])
    if code == 0:
        return 0, ""
    name, output = output.rsplit("[ RUN      ] ", 1)[1].split("\n", 1)
    status = "notrun" if code == SKIPPED else "fail"
    verdict = verdicts.verdict(name, status, "", "[ RUN      ] %s\n%s" % (name, output))
    return code, " ".join([name + ":"] + verdict.lines)
