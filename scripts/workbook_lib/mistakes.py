"""`scripts/workbook mistakes`: every known mistake must be found by the suite, by a wrong value, and named rightly."""

import json
import os
import shutil
import string
import sys
import time

from . import build_folder, diagnosis, fingerprints, mistakes_bank, mistakes_run, setup_machine
from .console import Problem, cross, end_progress, progress, say, tick
from .week import find_lesson, lessons

# How many of the bank, spread over it, are compiled once more by another compiler or with another optimisation.
OTHERWISE = 12


def run(options):
    if not sys.platform.startswith("linux"):
        raise Problem("mistakes runs on Linux: it puts wrong libraries before the right ones (LD_LIBRARY_PATH)")
    if options.json and not os.path.isdir(os.path.dirname(os.path.abspath(options.json))):
        raise Problem("--json %r: its folder does not exist" % options.json)
    chosen = [find_lesson(options.lesson)] if options.lesson is not None else lessons()
    banks = {entry.stem: mistakes_bank.read_bank(entry.stem) for entry in chosen}
    for stem, mistakes in banks.items():
        for mistake in mistakes:
            mistakes_bank.apply(mistake, mistakes_run.reference_text(stem))
    machine = setup_machine.prepare()
    folder = build_folder.folder_for(mistakes_run.REFERENCE)
    started, matrix, problems = time.monotonic(), {}, []
    with build_folder.held(folder), build_folder.held(diagnosis.FOLDER):
        say("Building the tests, then %d mistakes" % sum(map(len, banks.values())))
        mistakes_run.build_tests(machine, folder, list(banks))
        for stem, mistakes in banks.items():
            program = os.path.join(folder, "bin", stem + "_test")
            tests, bank = _observe(machine, stem, program, mistakes)
            diagnosis.write(stem, tests, bank)
            matrix[stem] = {"tests": tests, "mistakes": bank}
            problems += _print_lesson(stem, tests, bank)
        sample = [(stem, m) for stem, mistakes in banks.items() for m in mistakes]
        problems += _compiled_otherwise(machine, folder, sample[::-(-len(sample) // OTHERWISE) or 1], matrix)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(matrix, file, indent=1, ensure_ascii=False)
    count = sum(map(len, banks.values()))
    for problem in problems:
        say("%s %s" % (cross(), problem))
    if not problems:
        say("%s %d mistakes in %d lessons: 0 survive, each is named as itself or a twin, no test is idle (%d s)."
            % (tick(), count, len(banks), time.monotonic() - started))
    return 1 if problems else 0


def _observe(machine, stem, program, mistakes):
    done = []

    def on_done(mistake):
        done.append(mistake)
        progress("%s: %d of %d" % (stem, len(done), len(mistakes)))

    scratch = os.path.join(diagnosis.FOLDER, stem)
    compiler = mistakes_run.Compiler(machine["compiler"], stem, scratch)
    right = mistakes_run.observe(program, compiler.library("answers", mistakes_run.reference_text(stem)))
    wrong = [test for test, said in right.items() if said != "passed"]
    if wrong:
        raise Problem("%s fails with the answers themselves: %s" % (stem, ", ".join(wrong)), status=1)
    bank = mistakes_run.observe_bank(compiler, program, mistakes, on_done)
    end_progress()
    shutil.rmtree(scratch)
    return list(right), bank


def _print_lesson(stem, tests, bank):
    """The matrix: a row a mistake, a column a test; x a wrong value, ! a crash, t a time-out."""
    problems = []
    letters = dict(zip(tests, string.ascii_letters + string.digits))
    say("%s: %d mistakes, %d tests" % (stem, len(bank), len(tests)))
    for test in tests:
        kills = [entry for entry in bank if test in entry["tests"]]
        alone = sum(len(entry["tests"]) == 1 for entry in kills)
        say("  %s %-58s kills %2d%s" % (letters[test], test, len(kills), ", %d alone" % alone if alone else ""))
        if not kills and not test.split(".")[1].startswith("Given"):
            problems.append("%s: %s kills no mistake: remove it, or add the mistake that it is there for"
                            % (stem, test))
    for entry in bank:
        row = "".join(_mark(entry["tests"].get(test)) for test in tests)
        say("  %s %-36s %s" % (entry["id"], entry["slug"], row))
        problems += _judge(entry, tests, bank)
    return problems


def _mark(said):
    return {None: ".", "crashed": "!", "timed out": "t"}[said] if not isinstance(said, list) else "x"


def _judge(entry, tests, bank):
    name = "%s %s" % (entry["id"], entry["slug"])
    if not entry["tests"]:
        return ["%s survives: no test fails" % name]
    if not any(isinstance(said, list) for said in entry["tests"].values()):
        return ["%s is found only by a crash or a time-out: a wrong value should tell" % name]
    return _misnamed(name, entry, entry["tests"], tests, bank)


def _misnamed(name, entry, failed, tests, bank):
    """Failing tests whose diagnosis is not this mistake, or names more than its twins."""
    answer = {test: failed.get(test, "passed") for test in tests}
    named = fingerprints.diagnose(answer, bank)
    right = {entry["id"], *entry["twins"]}
    problems = []
    seen = sorted({other for ids in named.values() for other in ids} - right)
    if seen:
        problems.append("%s is also taken for %s: if they give the same results, say `@ twin:` in both"
                        % (name, ", ".join(seen)))
    unnamed = [test for test, said in failed.items()
               if isinstance(said, list) and entry["id"] not in named.get(test, [])]
    if unnamed:
        problems.append("%s is not recognised in %s" % (name, ", ".join(unnamed)))
    never = sorted(set(entry["twins"]) - {other for ids in named.values() for other in ids})
    if never:
        problems.append("%s: %s gives other results and is no twin" % (name, ", ".join(never)))
    return problems


def _compiled_otherwise(machine, folder, sample, matrix):
    """A student's compiler need not be the one that the record was made with."""
    ways = [(machine["compiler"], ("-O3",))] + [("clang++", ("-O2",))] * bool(shutil.which("clang++"))
    problems, compilers = [], {}
    for number, (stem, mistake) in enumerate(sample):
        command, flags = ways[number % len(ways)]
        progress("compiled otherwise: %s" % mistake.id)
        if (stem, command) not in compilers:
            scratch = os.path.join(diagnosis.FOLDER, "otherwise", stem + "_" + os.path.basename(command))
            compilers[stem, command] = mistakes_run.Compiler(command, stem, scratch, flags)
        compiler = compilers[stem, command]
        text = mistakes_bank.apply(mistake, mistakes_run.reference_text(stem))
        program = os.path.join(folder, "bin", stem + "_test")
        said = mistakes_run.observe(program, compiler.library(mistake.id, text))
        failed = {test: what for test, what in said.items() if what != "passed"}
        bank = matrix[stem]["mistakes"]
        entry = next(entry for entry in bank if entry["id"] == mistake.id)
        name = "%s %s, compiled with %s %s," % (mistake.id, mistake.slug, os.path.basename(command), " ".join(flags))
        problems += _misnamed(name, entry, failed, matrix[stem]["tests"], bank)
    shutil.rmtree(os.path.join(diagnosis.FOLDER, "otherwise"), ignore_errors=True)
    say("%d of them compiled otherwise (%s): %s" % (
        len(sample), ", ".join("%s %s" % (os.path.basename(c), " ".join(f)) for c, f in ways),
        "each is named as before" if not problems else "%d problems" % len(problems)))
    return problems
