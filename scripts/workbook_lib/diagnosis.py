"""Names the misconception behind a wrong answer: what the suite says of it is compared with the bank of mistakes."""

import hashlib
import json
import os
import re
import shutil
import sys
import time

from . import build_folder, fingerprints, language, mistakes_bank, mistakes_run
from .console import Problem, end_progress, progress, say
from .setup_machine import BUILD
from .week import ROOT, is_triton

# The record, a file a lesson; a release without answers ships it in SHIPPED.
FOLDER = os.path.join(BUILD, "mistakes")
SHIPPED = os.path.join(ROOT, "tests", "mistakes", "recorded")
MOST_NAMED = 3  # of mistakes with the same results
MOST_LINES = 12  # on a test


def explain(machine, stem, tests):
    """The verdicts on a lesson's tests; those that a known mistake explains begin with its sentence."""
    if is_triton(stem):
        return tests  # an error of Python's, or a message that says what is wrong
    answer = {test.name: fingerprints.failures_of(test.output) if test.kind == "failed" else test.kind
              for test in tests}
    if not any(isinstance(said, list) for said in answer.values()):
        return tests
    bank = _record(machine, stem)
    by_id = {entry["id"]: entry for entry in bank}
    named = fingerprints.diagnose(answer, bank)
    explained, said_before = [], set()
    for test in tests:
        lines = []
        for name in named.get(test.name, [])[:MOST_NAMED]:
            sentence = "" if name in said_before else ": " + by_id[name]["says_ru" if language.russian() else "says"]
            front = "or, with the same results, mistake %s%s" if lines else "this equals mistake %s%s"
            lines.append(front % (name, sentence))
            said_before.add(name)
        explained.append(test._replace(lines=(lines + test.lines)[:MOST_LINES]))
    return explained


def names_a_mistake(line):
    """Whether the line is a sentence of explain(), not only its number again."""
    return re.match(r"(this equals|or, with the same results,) mistake M\S+: ", line) is not None


def write(stem, tests, bank):
    os.makedirs(FOLDER, exist_ok=True)
    path = _path(FOLDER, stem)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump({"made_from": _digest(stem), "tests": tests, "mistakes": bank}, file, ensure_ascii=False)
    os.replace(path + ".new", path)


def is_recorded(stem):
    return _read(FOLDER, stem).get("made_from") == _digest(stem)


def _record(machine, stem):
    """The lesson's record, made now where the bank is here and has changed since; an empty one where there is none."""
    mistakes = mistakes_bank.read_bank(stem) if os.path.isdir(mistakes_run.REFERENCE) else []
    if not mistakes:
        return _read(SHIPPED, stem).get("mistakes", [])
    if is_recorded(stem):
        return _read(FOLDER, stem)["mistakes"]
    if not sys.platform.startswith("linux"):
        return []
    say("Recording what %d known mistakes of %s do, once, to name yours: some seconds ..." % (len(mistakes), stem))
    started, scratch = time.monotonic(), os.path.join(FOLDER, stem)
    folder = build_folder.folder_for(mistakes_run.REFERENCE)
    try:
        with build_folder.held(folder), build_folder.held(FOLDER):
            mistakes_run.build_tests(machine, folder, [stem])
            compiler = mistakes_run.Compiler(mistakes_run.quickest(machine), [stem], scratch)
            program = os.path.join(folder, "bin", stem + "_test")
            with mistakes_run.workers() as submit:
                observed = [submit(mistakes_run.observe_mistake, compiler, stem, program, m) for m in mistakes]
                bank = []
                for future in observed:
                    bank.append(future.result())
                    progress("%3.0f s  %s" % (time.monotonic() - started, bank[-1]["id"]))
            write(stem, [], bank)
    except Problem as problem:  # the verdicts stand without it
        say("No mistake can be named: %s" % str(problem).splitlines()[0])
        return []
    finally:
        end_progress()
        shutil.rmtree(scratch, ignore_errors=True)
    return bank


def _read(folder, stem):
    try:
        with open(_path(folder, stem), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def _path(folder, stem):
    return os.path.join(folder, stem + ".json")


def _digest(stem):
    """Of everything that a record is made from."""
    files = [os.path.join("reference", stem + ".cpp"), os.path.join("tests", "mistakes", stem + ".edits"),
             os.path.join("tests", stem + "_test.cpp"), os.path.join("scripts", "workbook_lib", "fingerprints.py")]
    for folder in (os.path.join("tests", "support"), os.path.join("include", "nanolm")):
        names = sorted(os.listdir(os.path.join(ROOT, folder)))
        files += [os.path.join(folder, name) for name in names if name.endswith((".h", ".cpp"))]
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.encode())
        with open(os.path.join(ROOT, path), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()
