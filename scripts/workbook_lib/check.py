"""`scripts/workbook check`: builds and tests one lesson or all, and says of each what is wrong first."""

import hashlib
import json
import os
import re
import time

from . import build_folder, diagnosis, setup_machine, verdicts
from .console import Problem, cross, end_progress, progress, say, tick
from .week import find_lesson, find_tree, lessons, shown


def run(options):
    tree = find_tree(options.impl)
    chosen = [find_lesson(options.lesson)] if options.lesson is not None else lessons()
    machine = setup_machine.prepare()
    folder = build_folder.folder_for(tree)
    with build_folder.held(folder):
        results = _run_tests(machine, folder, tree, chosen if options.lesson is not None else None, options.jobs)
        by_lesson = {entry.stem: _of_lesson(results, entry.stem) for entry in chosen}
        _remember(folder, tree, by_lesson)
    if options.lesson is not None:
        build, tests = by_lesson[chosen[0].stem]
        by_lesson[chosen[0].stem] = build, diagnosis.explain(machine, chosen[0].stem, tests)
        _print_lesson(chosen[0], by_lesson[chosen[0].stem], tree, folder)
    else:
        _print_all(chosen, by_lesson, tree)
    return 0 if all(_passed(found) for found in by_lesson.values()) else 1


def _run_tests(machine, folder, tree, chosen, jobs):
    names = ", ".join(entry.stem for entry in chosen) if chosen else "all lessons"
    say("Building and testing %s of %s in %s" % (names, shown(tree), shown(folder)))
    build_folder.configure(machine, folder, tree)
    arguments = ["-R", "^(%s)[.]" % "|".join(entry.stem for entry in chosen or lessons())]
    # Alone, a lesson's tests may all wait for an endless loop at the same time.
    arguments += ["-j", str(jobs or build_folder.cores() * (4 if chosen else 1))]
    how, started = {}, time.monotonic()

    def on_line(line):
        verdicts.ended_how(line, how)
        match = re.match(r"\s*Start\s+\d+: (\S+)", line)
        if match:
            progress("%3.0f s  %s" % (time.monotonic() - started, match[1]))

    code, junit = build_folder.run_ctest_for_results(machine, folder, arguments, on_line)
    end_progress()
    if junit is None:
        raise Problem("ctest ended with status %d and no results in %s" % (code, shown(folder)), status=1)
    return verdicts.read(junit, how, os.path.dirname(tree))


def _of_lesson(results, stem):
    """(build, tests): the verdict on the lesson's build, and those on its tests, their names without the stem."""
    build, tests = None, []
    for verdict in results:
        if verdict.name == stem + ".Builds":
            build = verdict
        elif verdict.name.startswith(stem + "."):
            tests.append(verdict._replace(name=verdict.name[len(stem) + 1:]))
    return build, tests


def _passed(found):
    build, tests = found
    return build is not None and build.kind == "passed" and bool(tests) and all(t.kind == "passed" for t in tests)


def _summary(found):
    """One line on a lesson."""
    build, tests = found
    if build is None or build.kind != "passed":
        errors = build.lines if build else ["its build was not run"]
        return ("" if errors[0].endswith(" is missing") else "does not compile: ") + errors[0]
    passed = sum(test.kind == "passed" for test in tests)
    if tests and passed == len(tests):
        return "passed (%d tests)" % passed
    places = sorted({test.place for test in tests if test.place}, key=lambda place: int(place.rsplit(":", 1)[1]))
    other = next((test for test in tests if test.kind not in ("passed", "not implemented")), None)
    if places and not other and all(test.name.split(".")[1].startswith("Given") for test in tests
                                    if test.kind == "passed"):
        return "not implemented at %s" % places[0]
    first = "%s %s" % (other.name, other.kind) if other else "not implemented at %s" % places[0]
    return "%d of %d pass; %s" % (passed, len(tests), first)


def _print_all(chosen, by_lesson, tree):
    for entry in chosen:
        say("%s %-22s %s" % (tick() if _passed(by_lesson[entry.stem]) else cross(), entry.stem,
                             _summary(by_lesson[entry.stem])))
    done = sum(map(_passed, by_lesson.values()))
    say("%d of %d lessons of %s pass." % (done, len(chosen), shown(tree))
        + ("" if done == len(chosen) else " More on one: scripts/workbook check 03"))


def _print_lesson(entry, found, tree, folder):
    build, tests = found
    say("%s: %s" % (entry.stem, entry.title))
    if build is None or build.kind != "passed":
        for line in build.lines if build else []:
            say("    " + line)
        says = "was not built" if _summary(found).endswith(" is missing") else "does not compile"
        say("%s %s %s: no test was run." % (cross(), shown(os.path.join(tree, entry.stem + ".cpp")), says))
        return
    for test in tests:
        if test.kind == "passed":
            say("  %s %s" % (tick(), test.name))
            continue
        if test.kind == "not implemented":
            say("  %s %s  %s" % (cross(), test.name, test.lines[0]))
            continue
        say("  %s %s" % (cross(), test.name))
        for line in test.lines:
            say("        " + line)
    for line in verdicts.warnings(build.output)[:5]:
        say("    " + line)
    passed = sum(test.kind == "passed" for test in tests)
    say("%s %s: %d of %d tests pass." % (tick() if _passed(found) else cross(), entry.stem, passed, len(tests)))
    first = next((test for test in tests if test.kind not in ("passed", "not implemented")), None)
    if first:
        program = os.path.join(shown(folder), "bin", entry.stem + "_test")
        if re.search(r"[^\w./-]", program):
            program = "'%s'" % program.replace("'", "'\\''")
        say("  One test alone: %s --gtest_filter=%s" % (program, first.name))


def _remember(folder, tree, by_lesson):
    """For `scripts/workbook status`."""
    path = os.path.join(folder, "last_check.json")
    known = last_check(folder)
    for stem, found in by_lesson.items():
        known[stem] = {"says": _summary(found), "passed": _passed(found), "source": source_digest(tree, stem)}
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(known, file, indent=1)
    os.replace(path + ".new", path)


def last_check(folder):
    try:
        with open(os.path.join(folder, "last_check.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def source_digest(tree, stem):
    try:
        with open(os.path.join(tree, stem + ".cpp"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""
