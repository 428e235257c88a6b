"""`scripts/workbook mistakes`: every known mistake must be found by the suite, by a wrong value, and named rightly."""

import json
import os
import shutil
import string
import sys
import time

from . import build_folder, diagnosis, fingerprints, mistakes_bank, mistakes_cuda, mistakes_run, setup_machine
from .console import Problem, cross, end_progress, progress, say, tick
from .week import find_lesson, is_rung, lessons

# How many of the bank, spread over it, are compiled once more by another compiler or with another optimisation.
OTHERWISE = 12


def run(options):
    if options.json and not os.path.isdir(os.path.dirname(os.path.abspath(options.json))):
        raise Problem("--json %r: its folder does not exist" % options.json)
    if not os.path.isdir(mistakes_run.REFERENCE):
        raise Problem("this edition has no answers to put mistakes into")
    if options.cuda:
        return mistakes_cuda.run(options)
    if not sys.platform.startswith("linux"):
        raise Problem("mistakes runs on Linux: it puts wrong libraries before the right ones (LD_LIBRARY_PATH)")
    chosen = [find_lesson(options.lesson)] if options.lesson is not None else lessons()
    if any(is_rung(entry.stem) for entry in chosen):
        raise Problem("%r is a rung: scripts/workbook mistakes --cuda %s" % (options.lesson, options.lesson))
    banks = {entry.stem: mistakes_bank.read_bank(entry.stem) for entry in chosen}
    for stem, mistakes in banks.items():
        for mistake in mistakes:
            mistakes_bank.apply(mistake, mistakes_run.reference_text(stem))
    machine = setup_machine.prepare()
    folder, scratch = build_folder.folder_for(mistakes_run.REFERENCE), os.path.join(diagnosis.FOLDER, "scratch")
    started, matrix, problems = time.monotonic(), {}, []
    with build_folder.held(folder), build_folder.held(diagnosis.FOLDER), mistakes_run.workers() as submit:
        say("Building the tests, then %d mistakes" % sum(map(len, banks.values())))
        mistakes_run.build_tests(machine, folder, list(banks))
        ways = [(mistakes_run.quickest(machine), ("-O1",))] + _other_ways(machine)
        # Every lesson's work stands in one queue, so that no core waits for another; the slow beginnings come first.
        compilers = [submit(mistakes_run.Compiler, command, list(banks), os.path.join(scratch, str(number)), flags)
                     for number, (command, flags) in enumerate(ways)]
        observed = {stem: _submit(submit, compilers[0], stem, _program(folder, stem), bank)
                    for stem, bank in banks.items()}
        otherwise = _submit_otherwise(submit, compilers[1:], folder, banks)
        for stem in banks:
            tests, bank = _results(stem, *observed[stem])
            diagnosis.write(stem, tests, bank)
            matrix[stem] = {"tests": tests, "mistakes": bank}
            problems += _print_lesson(stem, tests, bank)
        problems += _compiled_otherwise(ways[1:], otherwise, matrix)
    shutil.rmtree(scratch)
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


def _program(folder, stem):
    return os.path.join(folder, "bin", stem + "_test")


def _other_ways(machine):
    """A student's compiler need not be the one that the record is made with."""
    return [(machine["compiler"], ("-O3",))] + [("clang++", ("-O2",))] * bool(shutil.which("clang++"))


def _submit(submit, compiler, stem, program, mistakes):
    """What will become of the answers, then of each mistake."""
    def answers():
        library = compiler.result().library(stem, "answers", mistakes_run.reference_text(stem))
        return mistakes_run.observe(program, library)

    def wrong(mistake):
        return mistakes_run.observe_mistake(compiler.result(), stem, program, mistake)

    return submit(answers), [submit(wrong, mistake) for mistake in mistakes]


def _submit_otherwise(submit, compilers, folder, banks):
    """[(stem, way, what will become of it)] for a sample of the mistakes, the ways in turn."""
    sample = [(stem, mistake) for stem, bank in banks.items() for mistake in bank if "race" not in mistake.marks]
    sample = sample[::-(-len(sample) // OTHERWISE) or 1]

    def wrong(compiler, stem, mistake):
        return mistakes_run.observe_mistake(compiler.result(), stem, _program(folder, stem), mistake)

    ways = [number % len(compilers) for number in range(len(sample))]
    return [(stem, way, submit(wrong, compilers[way], stem, mistake)) for way, (stem, mistake) in zip(ways, sample)]


def _results(stem, answers, observed):
    right, bank = answers.result(), []
    wrong = [test for test, said in right.items() if said != "passed"]
    if wrong:
        raise Problem("%s fails with the answers themselves: %s" % (stem, ", ".join(wrong)), status=1)
    for future in observed:
        bank.append(future.result())
        progress("%s: %d of %d" % (stem, len(bank), len(observed)))
    end_progress()
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
    return [] if "race" in entry["marks"] else _misnamed(name, entry, entry["tests"], tests, bank)


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


def _compiled_otherwise(ways, observed, matrix):
    problems, names = [], ["%s %s" % (os.path.basename(command), " ".join(flags)) for command, flags in ways]
    for stem, way, future in observed:
        other, bank = future.result(), matrix[stem]["mistakes"]
        progress("compiled otherwise: %s" % other["id"])
        entry = next(entry for entry in bank if entry["id"] == other["id"])
        name = "%s %s, compiled with %s," % (other["id"], other["slug"], names[way])
        problems += _misnamed(name, entry, other["tests"], matrix[stem]["tests"], bank)
    say("%d of them compiled otherwise (%s): %s" % (
        len(observed), ", ".join(names), "each is named as before" if not problems else "%d problems" % len(problems)))
    return problems
