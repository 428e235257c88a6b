"""`scripts/workbook check`: builds and tests some lessons or all, and says of each what is wrong first."""

import contextlib
import json
import os
import re
import shlex
import tempfile
import time

from . import build_folder, console, diagnosis, gaps, last_checks, setup_machine, verdicts
from .console import Problem, cross, end_progress, progress, say, tick
from .settings import place, source, tree_of
from .week import find_lessons, is_rung, is_triton, shown, units

MOST_SAID = 3  # different failures of a rung that are shown in full
JSON = """\
--json prints one object and nothing else: "tree", "passed", and "lessons", a list of objects with "lesson", "title",
"passed", "says" (one line), "errors" (of a lesson that does not compile) and "tests", each with "name", "result"
(passed, not implemented, failed, crashed, timed out, ended early, skipped, not run), "lines" (what is wrong) and "place"
(file:line of the gap, or null). With --checked also "findings", all that was found in CUDA rungs and not only what ended a
test: "kind" (race, unwritten, fault), "kernel", "array", "element", "places" and "threads" (the later access first), "says".
"""


def run(options):
    console.only_errors(options.json)
    tree = tree_of(options.impl)
    chosen = list(dict.fromkeys(entry for text in options.lesson for entry in find_lessons(text))) or units()
    machine = setup_machine.prepare()
    if options.install:
        if not any(is_triton(entry.stem) for entry in chosen):
            raise Problem("--install is about Triton: scripts/workbook check triton --install")
        setup_machine.install_triton()
    folder = build_folder.folder_for(tree)
    if options.json:
        with _findings(options.checked) as findings:
            by_lesson = check_lessons(machine, folder, tree, chosen, options.jobs, options.checked)
            _print_json(chosen, by_lesson, tree, findings())
        return 0 if all(_passed(found) for found in by_lesson.values()) else 1
    by_lesson = check_lessons(machine, folder, tree, chosen, options.jobs, options.checked)
    if options.lesson:
        for entry in chosen:
            print_lesson(entry, by_lesson[entry.stem], tree, folder)
    else:
        _print_all(chosen, by_lesson, tree)
    return 0 if all(_passed(found) for found in by_lesson.values()) else 1


def check_lessons(machine, folder, tree, chosen, jobs=None, checked=False):
    """{stem: (build, tests)} as _of_lesson gives them; what `check` and `watch` do."""
    digests = {entry.stem: last_checks.source_digest(tree, entry.stem) for entry in chosen}
    with build_folder.held(folder):
        results = _run_tests(machine, folder, tree, chosen, jobs, checked)
    by_lesson = {}
    for entry in chosen:  # outside the lock: to name a mistake may take a build in the same folder
        build, tests = _of_lesson(results, entry.stem)
        by_lesson[entry.stem] = build, diagnosis.explain(machine, entry.stem, tests)
    _remember(tree, by_lesson, digests)
    return by_lesson


def _run_tests(machine, folder, tree, chosen, jobs, checked):
    """The verdicts on the tests of these lessons; checked: rungs by the emulator that looks for races."""
    names = "all lessons" if len(chosen) == len(units()) > 1 else ", ".join(entry.stem for entry in chosen)
    say("Building and testing %s of %s in %s" % (names, shown(tree), shown(folder)))
    # Device code takes a minute to compile for every architecture, and is of no use without a GPU.
    defines = ([] if setup_machine.has_gpu() else ["-DNANOLM_CUDA=OFF"]) + (
        ["-DNANOLM_CHECKED=ON", "-DNANOLM_EMULATOR=ON"] if checked else [])
    build_folder.configure(machine, folder, tree, defines)
    back_ends = "[.](%s)" % ("checked" if checked else "emulated|device")
    arguments = ["-R", "^(%s)[.]" % "|".join(entry.stem + back_ends * is_rung(entry.stem) for entry in chosen)]
    # Alone, a lesson's tests may all wait for an endless loop at the same time.
    arguments += ["-j", str(jobs or build_folder.cores() * (4 if len(chosen) == 1 else 1))]
    how, number, started = {}, {}, time.monotonic()

    def on_line(line):
        verdicts.ended_how(line, how)
        match = re.match(r"\s*Start\s+(\d+): (\S+)", line)
        if match:
            number[match[2]] = int(match[1])
            progress("%3.0f s  %s" % (time.monotonic() - started, match[2]))

    code, junit = build_folder.run_ctest_for_results(machine, folder, arguments, on_line)
    end_progress()
    if junit is None:
        raise Problem("ctest ended with status %d and no results in %s" % (code, shown(folder)), status=1)
    # CTest tells them as they end; the suite's order is that in which a lesson is written.
    return sorted(verdicts.read(junit, how, os.path.dirname(tree)), key=lambda verdict: number.get(verdict.name, 0))


def _of_lesson(results, stem):
    """(build, tests): the verdict on the lesson's build, and those on its tests, their names without the stem. A rung
    that is tested emulated and on a device as well has the tests of both, and the build that failed, if one did."""
    if is_rung(stem) and "." not in stem:
        back_ends = sorted({verdict.name.split(".")[1] for verdict in results if verdict.name.startswith(stem + ".")})
        found = [_of_lesson(results, "%s.%s" % (stem, back_end)) for back_end in back_ends]
        builds = [build for build, _ in found if build]
        return (next((build for build in builds if build.kind != "passed"), builds[0] if builds else None),
                [test for _, tests in found for test in tests])
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
    skipped = next((test for test in tests if test.kind == "skipped"), None)
    if skipped:
        return "%d of %d pass; %s" % (passed, len(tests), skipped.lines[0]) if passed else skipped.lines[0]
    places = sorted({test.place for test in tests if test.place}, key=lambda place: int(place.rsplit(":", 1)[1]))
    other = next((test for test in tests if test.kind not in ("passed", "not implemented")), None)
    if places and not other and all(test.name.split(".")[1].startswith("Given") for test in tests
                                    if test.kind == "passed"):
        return "not implemented at %s" % places[0]
    first = "%s %s" % (other.name, other.kind) if other else "not implemented at %s" % places[0]
    return "%d of %d pass; %s" % (passed, len(tests), first)


def _print_all(chosen, by_lesson, tree):
    for entry in chosen:
        say("%s %-25s %s" % (tick() if _passed(by_lesson[entry.stem]) else cross(), entry.stem,
                             _summary(by_lesson[entry.stem])))
        named = [line for test in by_lesson[entry.stem][1] for line in test.lines if diagnosis.names_a_mistake(line)]
        for line in named[:diagnosis.MOST_NAMED]:
            say("      " + line)
    done = sum(map(_passed, by_lesson.values()))
    say("%d of %d lessons of %s pass." % (done, len(chosen), shown(tree))
        + ("" if done == len(chosen) else " More on one: scripts/workbook check 03"))


def print_lesson(entry, found, tree, folder):
    build, tests = found
    say("%s: %s" % (entry.stem, entry.title))
    if build is None or build.kind != "passed":
        for line in build.lines if build else []:
            say("    " + line)
        says = "was not built" if _summary(found).endswith(" is missing") else "does not compile"
        say("%s %s %s: no test was run." % (cross(), shown(source(tree, entry.stem)), says))
        return
    if is_rung(entry.stem):
        tests_of_rung(tests)
    for test in tests if not is_rung(entry.stem) else []:
        if test.kind == "passed":
            say("  %s %s" % (tick(), test.name))
            continue
        if test.kind == "skipped":
            continue  # all of a file, for one reason
        if test.kind == "not implemented":
            say("  %s %s  %s" % (cross(), test.name, test.lines[0]))
            continue
        say("  %s %s" % (cross(), test.name))
        for line in test.lines:
            say("        " + line)
    for line in verdicts.warnings(build.output)[:5]:
        say("    " + line)
    passed = sum(test.kind == "passed" for test in tests)
    skipped = next((test for test in tests if test.kind == "skipped"), None)
    if skipped:
        say("  %s" % skipped.lines[0])
    say("%s %s: %d of %d tests pass." % (tick() if _passed(found) else cross(), entry.stem, passed, len(tests)))
    first = next((test for test in tests if test.kind not in ("passed", "not implemented", "skipped")), None)
    if first and is_triton(entry.stem):
        say("  One test alone: %s" % " ".join(map(shlex.quote, (
            "python3", "tests/triton/runner.py", "tests/%s_test.py" % entry.stem, shown(source(tree, entry.stem)), first.name))))
    elif first:
        target = _program(build.name)
        program = shlex.quote(os.path.join(shown(folder), "bin", target))
        say("  One test alone: %s --gtest_filter=%s" % (program, first.name))
        say("  That runs what was built last. After an edit, first: %s"
            % build_folder.to_build(folder, target))
    left = gaps.open_gaps(tree, entry.stem) if "/" in entry.stem else None
    if left:
        say("  next gap: %s  %s(): %s" % (place(source(tree, entry.stem), left[0].line), left[0].function,
                                          left[0].sentence))
    elif first and is_rung(entry.stem) and not build.name.endswith(".checked.Builds"):
        say("  A barrier missing, memory read before it was written? scripts/workbook check %s --checked"
            % entry.stem.split("_")[0])


def tests_of_rung(tests):
    """All tests of a rung run one kernel: a fault in it is the same in each. What is said once is not said again."""
    said, more = set(), []
    for test in sorted(tests, key=lambda test: (test.kind != "passed", not names_a_line(test))):
        text = told(test)
        key = re.sub(r"\d+", "", text[0])
        if test.kind == "passed":
            say("  %s %s" % (tick(), test.name))
        elif key in said or len(said) == MOST_SAID:
            more.append(test.name)
        else:
            said.add(key)
            say("  %s %s" % (cross(), test.name))
            for line in text:
                say("        " + line)
    if more:
        say("  %s %d more fail, the same way or later: %s" % (cross(), len(more), ", ".join(more)))


def names_a_line(test):
    """What names a line of the kernel says more than what came out of it, and is told first."""
    return re.match(r"\S+\.cu:\d+", told(test)[0]) is not None


def told(test):
    """The lines of a verdict, an exception's message without GoogleTest's words around it."""
    return [re.sub(r'^C\+\+ exception with description "(.*)" thrown in the test body\.$', r"\1", line)
            for line in test.lines] or [""]


def _program(build_name):
    """The test program that cuda/03_flash_forward.emulated.Builds builds."""
    return re.sub(r"[/.]", "_", build_name[:-len(".Builds")].replace(".checked", ".emulated")) + "_test"


def _remember(tree, by_lesson, digests):
    """For `next`, `progress` and `solution`; digests: {stem: that of the file before it was built}."""
    last_checks.remember(tree, {stem: {
        "says": _summary(found), "passed": _passed(found), "source": digests[stem],
        "tests": [_as_object(test) for test in found[1]]} for stem, found in by_lesson.items()})


def _as_object(test):
    return {"name": test.name, "result": test.kind, "lines": test.lines, "place": test.place}


@contextlib.contextmanager
def _findings(checked):
    """A function that tells what the emulator found while the block ran; None where it was not asked to look."""
    if not checked:
        yield lambda: None
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.environ["NANOLM_EMULATOR_FINDINGS"] = os.path.join(folder, "findings")
        try:
            yield lambda: _distinct(path)
        finally:
            del os.environ["NANOLM_EMULATOR_FINDINGS"]


def _distinct(path):
    """Every test is a program of its own and finds the same again."""
    try:
        with open(path, encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
    except FileNotFoundError:
        return []
    by_place = {}
    for finding in found:
        where = sorted(finding["places"]) or [re.sub(r"\d+", "", finding["says"])]  # without threads and addresses
        by_place.setdefault((finding["kind"], *where), finding)
    return list(by_place.values())


def _print_json(chosen, by_lesson, tree, findings):
    found = []
    for entry in chosen:
        build, tests = by_lesson[entry.stem]
        errors = build.lines if build and build.kind != "passed" else []
        found.append({"lesson": entry.stem, "title": entry.title, "passed": _passed((build, tests)),
                      "says": _summary((build, tests)), "errors": errors,
                      "tests": [_as_object(test) for test in tests]})
    result = {"tree": tree, "passed": all(one["passed"] for one in found), "lessons": found}
    if findings is not None:
        result["findings"] = findings
    print(json.dumps(result, indent=1))
