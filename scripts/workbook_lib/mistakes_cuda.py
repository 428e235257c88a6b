"""`scripts/workbook mistakes --cuda`: each known mistake in a rung is found without a GPU, and told in words that help."""

import json
import os
import re
import shutil
import sys
import time

from . import build_folder, check, mistakes_bank, mistakes_cuda_run, mistakes_run, setup_machine
from .console import Problem, cross, say, tick
from .week import find_lesson, is_rung, rungs

LINES = 3  # of a message that are printed
# What it takes the emulator to find a mistake: nothing, or to keep book of who touched what.
PLAIN, CHECKED = "check", "check --checked"


def run(options):
    if not sys.platform.startswith("linux"):
        raise Problem("mistakes --cuda runs on Linux, as the emulator does")
    chosen = [find_lesson(options.lesson)] if options.lesson is not None else rungs()
    if not all(is_rung(entry.stem) for entry in chosen):
        raise Problem("--cuda is about rungs: scripts/workbook mistakes --cuda cuda/03")
    banks = {entry.stem: mistakes_bank.read_bank(entry.stem) for entry in chosen}
    if options.part:
        banks = {stem: bank[options.part[0]::options.part[1]] for stem, bank in banks.items()}
    texts = {}
    for stem, bank in banks.items():
        for mistake in bank:
            texts[mistake.id] = mistakes_bank.apply(mistake, mistakes_cuda_run.reference_text(stem))
            for code in mistake.words.get("at", []):
                mistakes_bank.line_of(mistake, texts[mistake.id], code)
    machine, folder = setup_machine.prepare(), build_folder.folder_for(mistakes_run.REFERENCE)
    started, entries, problems = time.monotonic(), [], []
    scratch = os.path.join(setup_machine.BUILD, "mistakes_cuda")
    with build_folder.held(folder), build_folder.held(scratch), mistakes_run.workers() as submit:
        count = sum(map(len, banks.values()))
        say("Building the tests of %d rungs, then %d mistakes" % (len(banks), count))
        builders = mistakes_cuda_run.build(machine, folder, list(banks), scratch)
        say("  built in %d s" % (time.monotonic() - started))
        answers = [submit(_answers, builders[stem], is_checked) for stem, bank in banks.items()
                   for is_checked in {False, any("checked" in mistake.marks for mistake in bank)}]
        observed = [(stem, mistake, submit(_observe, builders[stem], mistake, texts[mistake.id], options.quick))
                    for stem, bank in banks.items() for mistake in bank]
        for future in answers:
            future.result()
        for stem, mistake, future in observed:
            entries.append(dict(future.result(), rung=stem))
            found = _problems(mistake, texts[mistake.id], entries[-1])
            _print(entries[-1], found)
            problems += found
    shutil.rmtree(scratch)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(entries, file, indent=1, ensure_ascii=False)
    for problem in problems:
        say("%s %s" % (cross(), problem))
    by = [sum(entry["back_end"] == back_end for entry in entries) for back_end in (PLAIN, CHECKED, None)]
    say("%s %d mistakes in %d rungs: %d found by `check`, %d by `check --checked` alone, %d survive (%d s)." % (
        cross() if problems else tick(), count, len(banks), *by, time.monotonic() - started))
    return 1 if problems else 0


def _answers(builder, is_checked):
    verdict = mistakes_cuda_run.told_first(builder.answers, builder.tests, is_checked)
    if verdict:
        raise Problem("%s fails with the answers themselves: %s: %s"
                      % (builder.stem, verdict.name, " ".join(verdict.lines)), status=1)


def _observe(builder, mistake, text, is_quick):
    """What comes first of the tests with a mistake: {id, slug, says, marks, back_end, test, lines, checked}."""
    program = builder.program(mistake.id, text)
    plain = checked = entry = None
    if is_quick:
        plain = mistakes_cuda_run.first_failure(program, builder.tests)
        entry = _entry(mistake, plain, None)
    # That it is found, in the right words, is known; that nothing else is told first takes the other tests.
    if not entry or mistake.words.get("checked") or _problems(mistake, text, entry):
        plain = mistakes_cuda_run.observe(program, builder.tests, False)
        if not plain or mistake.words.get("checked"):
            checked = mistakes_cuda_run.observe(program, builder.tests, True)
        entry = _entry(mistake, plain, checked)
    os.remove(program)
    return entry


def _entry(mistake, plain, checked):
    entry = {name: getattr(mistake, name) for name in ("id", "slug", "says", "says_ru", "marks")}
    found = plain or checked
    entry["back_end"] = PLAIN if plain else CHECKED if checked else None
    entry["test"], entry["lines"] = (found.name, check.told(found)) if found else (None, [])
    entry["checked"] = {"test": checked.name, "lines": check.told(checked)} if checked else None
    return entry


def _problems(mistake, text, entry):
    name = "%s %s" % (mistake.id, mistake.slug)
    if not entry["back_end"]:
        return ["%s survives: no test fails, nor with --checked" % name]
    problems = []
    if ("checked" in mistake.marks) != (entry["back_end"] == CHECKED):
        problems.append("%s is found by `%s`: `@ checked` is %s" % (
            name, entry["back_end"], "missing" if entry["back_end"] == CHECKED else "wrong"))
    told = {"says": " ".join(entry["lines"])}
    if mistake.words.get("checked"):
        told["checked"] = " ".join(entry["checked"]["lines"]) if entry["checked"] else ""
    for kind, message in told.items():
        problems += ["%s: the message does not say %r" % (name, words) for words in mistake.words[kind]
                     if words not in message]
    for code in mistake.words.get("at", []):
        line = mistakes_bank.line_of(mistake, text, code)
        if not re.search(r"(\.cu:|\bline )%d\b" % line, told.get("checked", told["says"])):
            problems.append("%s: the message does not name line %d, %r" % (name, line, code))
    return problems


def _print(entry, problems):
    say("%s %s %-42s %-15s %s" % (cross() if problems else tick(), entry["id"], entry["slug"],
                                  entry["back_end"] or "survives", entry["test"] or ""))
    messages = [entry["lines"]]
    if entry["checked"] and entry["back_end"] == PLAIN:
        messages.append(["--checked: " + entry["checked"]["lines"][0]] + entry["checked"]["lines"][1:])
    for lines in messages:
        for line in lines[:LINES]:
            say("      " + line)
