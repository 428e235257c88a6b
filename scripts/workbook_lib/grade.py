"""`scripts/workbook grade`: points for submissions, formed outside the students' processes."""

import csv
import json
import os
import re
import secrets
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from . import submissions
from .build_folder import cores
from .console import Problem, end_progress, progress, say
from .judge import Graded, Judge, Test
from .week import ROOT, lessons, shown

# Points: the core lessons make 100, the others a bonus that is shown apart.
POINTS = {"01": 15, "02": 15, "03": 25, "04": 10, "05": 35}
BONUS = {"06": 8, "07": 4, "08": 3, "09": 5, "10": 5}


def run(options):
    if not sys.platform.startswith("linux"):
        raise Problem("grade needs Linux: it relies on Landlock and namespaces")
    out = os.path.abspath(options.out or os.path.join(ROOT, "results", "grades"))
    seed = options.seed if options.seed is not None else secrets.randbits(31)
    found = submissions.read(options.paths)
    if options.list_tasks:
        for submission in found:
            words = [os.path.join(ROOT, "scripts", "workbook"), "grade", os.path.realpath(submission.path), "--jobs", "1",
                     "--seed", str(seed), "--out", os.path.join(out, submission.name)]
            say(" ".join(map(shlex.quote, words + (["--unsafe"] if options.unsafe else []))))
        return 0
    judge = Judge(options.unsafe)
    if judge.missing:
        say("Isolation is incomplete here: no %s. Grade only submissions that you trust." % ", ".join(judge.missing))
    try:
        results = _grade_all(judge, found, seed, options.jobs or cores())
    finally:
        judge.close()
    os.makedirs(out, exist_ok=True)
    for result in results:
        _write(out, result)
        say("%-32s core %5.1f of %d, bonus %4.1f of %d" % (result["name"], result["core"], sum(POINTS.values()),
                                                           result["bonus"], sum(BONUS.values())))
    _write_csv(out, results)
    say("Seed %d. Reports: %s" % (seed, shown(out)))
    return 0


def _grade_all(judge, found, seed, jobs):
    """Every lesson of every submission is a task of its own."""
    entries = lessons()
    started = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        tasks = [[pool.submit(_grade_lesson, judge, submission, entry.stem, seed) for entry in entries]
                 for submission in found]
        results = []
        try:
            for submission, row in zip(found, tasks):
                graded = []
                for entry, task in zip(entries, row):
                    progress("%3.0f s  %s %s" % (time.monotonic() - started, submission.name, entry.stem))
                    graded.append(task.result())
                results.append(_result(submission, graded, seed, judge))
        except BaseException:
            for row in tasks:
                for task in row:
                    task.cancel()
            raise
    end_progress()
    return results


def _grade_lesson(judge, submission, stem, seed):
    name = stem + ".cpp"
    problem = submission.refused.get("") or submission.refused.get(name)
    if not problem and name not in submission.files:
        problem = "%s is missing" % name
    if problem:
        return Graded(stem, problem, [Test(test, "not run", []) for test in judge.tests[stem]])
    return judge.grade(stem, submission.files[name], seed)


def _result(submission, graded, seed, judge):
    result = {"name": submission.name, "core": 0.0, "bonus": 0.0, "lessons": [],
              "sha256": submissions.digest(submission), "version": version(), "seed": seed,
              "points": {"core": POINTS, "bonus": BONUS}, "isolation_missing": judge.missing}
    for lesson in graded:
        number = lesson.stem.split("_")[0]
        most = POINTS.get(number, BONUS.get(number, 0))
        passed = sum(test.kind == "passed" for test in lesson.tests)
        points = round(most * passed / len(lesson.tests), 4)
        result["core" if number in POINTS else "bonus"] += points
        result["lessons"].append({
            "stem": lesson.stem, "points": points, "most": most, "problem": lesson.problem, "passed": passed,
            "tests": [{"name": test.name, "verdict": test.kind, "says": test.lines} for test in lesson.tests]})
    for key in ("core", "bonus"):
        result[key] = round(result[key], 3)
    return result


def version():
    """What git calls this workbook; else the first version in CHANGELOG.md."""
    try:
        done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--tags"], encoding="utf-8",
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip()
    except OSError:
        pass
    with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as file:
        return re.search(r"^## (.+)$", file.read(), re.MULTILINE)[1]


def report(result):
    lines = ["%s: core %g of %d, bonus %g of %d" % (result["name"], result["core"], sum(POINTS.values()),
                                                    result["bonus"], sum(BONUS.values())), ""]
    for lesson in result["lessons"]:
        lines.append("%-24s %6.2f of %2d   %d of %d tests" % (lesson["stem"], lesson["points"], lesson["most"],
                                                             lesson["passed"], len(lesson["tests"])))
        if lesson["problem"]:
            lines.append("    " + lesson["problem"])
            continue
        for test in lesson["tests"]:
            if test["verdict"] != "passed":
                lines.append("    %s: %s" % (test["name"], test["verdict"]))
                lines += ["        " + text for text in test["says"]]
    lines += ["", "submission sha256 %s" % result["sha256"], "workbook %s, seed %d" % (result["version"], result["seed"])]
    return "\n".join(lines) + "\n"


def gradescope(result):
    """results.json of Gradescope: https://gradescope-autograders.readthedocs.io/en/latest/specs/"""
    tests = []
    for lesson in result["lessons"]:
        for test in lesson["tests"]:
            says = [lesson["problem"]] if lesson["problem"] else test["says"]
            passed = test["verdict"] == "passed"
            share = lesson["most"] / len(lesson["tests"])
            tests.append({"name": "%s.%s" % (lesson["stem"], test["name"]), "score": round(share if passed else 0, 4),
                          "max_score": round(share, 4), "status": "passed" if passed else "failed",
                          "output": "passed" if passed else "\n".join([test["verdict"]] + says), "visibility": "visible",
                          "tags": ["core" if lesson["stem"][:2] in POINTS else "bonus"]})
    return {"score": result["core"], "output": "Core %g of %d. Bonus, shown apart: %g of %d." % (
        result["core"], sum(POINTS.values()), result["bonus"], sum(BONUS.values())), "output_format": "text",
        "visibility": "visible", "stdout_visibility": "hidden", "tests": tests,
        "extra_data": {key: result[key] for key in ("sha256", "version", "seed", "points", "bonus",
                                                    "isolation_missing")}}


def _write(out, result):
    folder = os.path.join(out, result["name"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "report.txt"), "w", encoding="utf-8") as file:
        file.write(report(result))
    with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
        json.dump(gradescope(result), file, indent=1)
        file.write("\n")


def _write_csv(out, results):
    stems = [entry.stem for entry in lessons()]
    with open(os.path.join(out, "grades.csv"), "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["submission", "core", "bonus"] + stems + ["sha256", "version", "seed"])
        for result in results:
            table.writerow([result["name"], result["core"], result["bonus"]]
                           + [lesson["points"] for lesson in result["lessons"]]
                           + [result["sha256"], result["version"], result["seed"]])
