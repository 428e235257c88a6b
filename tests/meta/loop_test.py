"""The loop of a student, scripts/workbook start to reset. Run alone: python3 tests/meta/loop_test.py"""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import workbook
from workbook_test import Run, copy, git_status

from workbook_lib import gaps, hint, progress, next_exercise, watch, week  # workbook_test put scripts/ on the path

STEM = "03_online_softmax"
ANSWER = (workbook.ROOT / "reference" / (STEM + ".cpp")).read_text()
STUB = (workbook.ROOT / "exercises" / (STEM + ".cpp")).read_text()
HANGS = re.sub(r"^  check_\w+\(", r"  for (volatile bool yes = true; yes;) {}\n\g<0>", ANSWER, flags=re.MULTILINE)
FUNCTIONS = ["update", "merge", "finish", "logsumexp", "online_softmax_weighted_sum"]


def written(*functions):
    """The stub with these gaps filled in."""
    parts = re.split(r"^  // TODO: .*\n  todo\(\);\n  // end\n", STUB, flags=re.MULTILINE)
    text = parts[0]
    gap_texts = re.findall(r"^  // TODO: .*\n  todo\(\);\n  // end\n", STUB, flags=re.MULTILINE)
    place = len(parts[0])
    for function, part, gap in zip(FUNCTIONS, parts[1:], gap_texts):
        end = ANSWER.index(part, place)
        text += (ANSWER[place:end] if function in functions else gap) + part
        place = end + len(part)
    return text


class Gaps(unittest.TestCase):
    def test_what_is_left(self):
        self.assertEqual([gap.function for gap in gaps.find_gaps(STUB)], FUNCTIONS)
        self.assertEqual([gap.function for gap in gaps.find_gaps(written("update", "finish"))],
                         ["merge", "logsumexp", "online_softmax_weighted_sum"])
        self.assertEqual(gaps.find_gaps(ANSWER), [])
        self.assertEqual(gaps.find_gaps(STUB.replace("  todo();", "  // todo();")), [])
        self.assertEqual(written(*FUNCTIONS), ANSWER)


class Watched(unittest.TestCase):
    """Saves as editors make them."""

    def setUp(self):
        self.tree = workbook.WORK / "watched"
        shutil.rmtree(self.tree, ignore_errors=True)
        self.tree.mkdir()
        self.file = self.tree / (STEM + ".cpp")
        self.file.write_text("one")
        self.entry = week.find_lesson(STEM)
        self.watched = watch.Watched(str(self.tree), [self.entry])

    def looks(self):
        return [bool(self.watched.saved()) for _ in range(3)]

    def test_a_save_counts_once_and_when_it_lies_still(self):
        self.assertEqual(self.looks(), [False, False, False])
        self.file.write_text("two")
        self.assertEqual(self.looks(), [False, True, False])
        os.utime(self.file)
        self.assertEqual(self.looks(), [False, False, False], "touched, not changed")
        self.file.write_text("half")
        self.assertIsNone(self.watched.saved())
        self.file.write_text("half and half")
        self.assertEqual(self.looks(), [False, True, False])

    def test_replaced_removed_and_empty(self):
        time_before = self.file.stat().st_mtime_ns
        self.file.unlink()
        self.assertEqual(self.looks(), [False, False, False])
        self.file.write_text("")
        self.assertEqual(self.looks(), [False, False, False])
        (self.tree / "new").write_text("six")  # as long and as old as before
        os.utime(self.tree / "new", ns=(time_before, time_before))
        (self.tree / "new").rename(self.file)
        self.assertEqual(self.looks(), [False, True, False])


class Loop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = copy("a copy", (STEM,))
        cls.mine = cls.root / "mine"

    def setUp(self):
        shutil.rmtree(self.root / ".workbook", ignore_errors=True)
        shutil.rmtree(self.mine, ignore_errors=True)
        self.file = self.mine / (STEM + ".cpp")

    def done(self, *arguments, code=0, cwd=None, **env):
        run = Run(self.root, *arguments, cwd=str(cwd or self.root), **env)
        self.assertEqual(run.code, code, run.text)
        self.assertEqual(run.err == "", code == 0 or run.out != "", run.text)
        self.assertNotIn("\033", run.text)
        return run.out if code in (0, 1) and run.out else run.err

    def start(self):
        return self.done("start", "mine")

    def test_start(self):
        for wrong, says in (("", "empty"), ("LICENSE", "no folder"), ("..", "holds the workbook"), (".", "holds the"),
                            ("exercises", "at its top"), ("notes/mine", "at its top"), ("build", "at its top"),
                            ("build-mine", "at its top"), (".mine", "at its top"), ("lib", "at its top"),
                            ("~/mine", "did not replace ~"), ("a;b", "cannot have ;")):
            with self.subTest(wrong):
                before = git_status(self.root, "--ignored")
                self.assertIn(says, self.done("start", wrong, code=2))
                self.assertEqual(git_status(self.root, "--ignored"), before)
        stubs = [path for path in (self.root / "exercises").rglob("*.*") if path.suffix in (".cpp", ".cu", ".py")]
        self.assertIn(f"{len(stubs)} stubs copied", self.start())
        self.assertEqual(self.file.read_text(), STUB)
        self.assertEqual(git_status(self.root), "", "git shows what is the student's")
        self.assertIn("start --use mine", self.done("start", "mine", code=2))
        self.file.write_text("mine")
        (self.mine / "01_roofline.cpp").unlink()
        self.assertIn("1 stubs copied", self.done("start", "--use", "mine"))
        self.assertEqual(self.file.read_text(), "mine")
        # Elsewhere, named from another folder; and in the checkout under a name that git would show.
        elsewhere = self.root.parent / "else where"
        shutil.rmtree(elsewhere, ignore_errors=True)
        elsewhere.mkdir()
        self.done("start", "answers [1]", cwd=elsewhere)
        self.assertEqual(json.loads(self.done("next", "--json"))["tree"], str(elsewhere / "answers [1]"))
        (elsewhere / "full").mkdir()
        (elsewhere / "full" / "x").write_text("")
        self.assertIn("Choose a new folder", self.done("start", "full", cwd=elsewhere, code=2))
        self.assertIn("holds no lesson", self.done("start", "--use", "full", cwd=elsewhere, code=2))
        self.assertIn("echo '/answers/' >> .git/info/exclude", self.done("start", "answers"))
        shutil.rmtree(self.root / "answers")
        for verb in (["next"], ["check"], ["progress"], ["solution", "3"], ["reset", "3"]):
            self.assertIn("start --use DIR", self.done(*verb, code=2))

    def write_in_exercises(self, text):
        stub = self.root / "exercises" / (STEM + ".cpp")
        stub.write_text(text)
        self.addCleanup(stub.write_text, STUB)

    def test_when_exercises_was_written_in(self):
        begun, name = written("update"), "exercises/%s.cpp" % STEM
        for text, left in ((begun, 4), (ANSWER, 0)):
            self.write_in_exercises(text)
            shutil.rmtree(self.mine, ignore_errors=True)
            stubs = [path for path in (self.root / "exercises").rglob("*.*") if path.suffix in (".cpp", ".cu", ".py")]
            says = self.done("start", "mine")
            self.assertIn("%d stubs copied" % (len(stubs) - 1), says)
            self.assertIn("No stubs any more, copied as they are, as the beginning of your work: %s\n" % name, says)
            self.assertEqual(self.file.read_text(), text)
            self.assertIn("%d of 5 gaps left, not checked yet" % left, self.done("progress"))
            says = self.done("reset", "3")
            self.assertIn("%s is no stub any more: git's is taken." % name, says)
            kept = self.root / re.search(r"is kept in (.*)\n", says)[1]
            self.assertEqual((kept.read_text(), self.file.read_text()), (text, STUB))
            self.assertIn("is the stub already", self.done("reset", "3"))
            self.assertIn("5 of 5 gaps left", self.done("progress"))
        self.assertIn("to do   Fold the block into", self.done("next"))
        self.assertIn("Уже не заготовки, скопированы как есть, как начало вашей работы: %s" % name,
                      self.done("start", "other", "--lang", "ru"))
        shutil.rmtree(self.root / "other")

    def test_the_stub_is_found_behind_a_commit_and_gone_without_git(self):
        git = ["git", "-C", str(self.root), "-c", "user.name=x", "-c", "user.email=x@example.org"]
        self.write_in_exercises(ANSWER)
        self.start()
        subprocess.run(git + ["commit", "-qam", "mine"], check=True)
        self.addCleanup(subprocess.run, git + ["reset", "-q", "--hard", "HEAD~1"], check=True)
        for tree in ("mine", "exercises"):
            self.done("reset", "3", "--impl", tree)
            self.assertEqual((self.root / tree / (STEM + ".cpp")).read_text(), STUB)
        (self.root / "exercises" / (STEM + ".cpp")).write_text(written("update"))
        self.file.write_text(written("update"))
        (self.root / ".git").rename(self.root / "away")
        try:
            self.assertIn("4 of 5 gaps left, not checked yet", self.done("progress"))
            self.assertIn("  update", self.done("hint", "--list"))
            for tree in ("mine", "exercises"):
                says = self.done("reset", "3", "--impl", tree, code=1)
                self.assertIn("is no stub any more, and git has none here: a fresh copy of the workbook has it", says)
                self.assertEqual((self.root / tree / (STEM + ".cpp")).read_text(), written("update"))
        finally:
            (self.root / "away").rename(self.root / ".git")

    def test_next_and_hint(self):
        self.start()
        for number, function in enumerate(FUNCTIONS):
            self.file.write_text(written(*FUNCTIONS[:number]))
            says = self.done("next")
            line = int(re.search(r"mine/%s\.cpp:(\d+)  %s\(\)" % (STEM, function), says)[1])
            self.assertEqual(self.file.read_text().splitlines()[line - 1].strip(), "todo();")
            self.assertRegex(says, r"shown by OnlineSoftmax\.\w+\n")
            self.assertIn("notes/%s.md" % STEM, says)
        found = json.loads(self.done("next", "--json", cwd="/"))
        self.assertLessEqual(set(next_exercise.EMPTY) | {"tree", "done"}, set(found))
        self.assertEqual((found["why"], found["function"], found["about_lines"]), ("todo", function, 6))
        for key in re.findall(r'"(\w+)"', next_exercise.JSON):
            self.assertIn(key, found)
        self.file.write_text(STUB)
        levels = hint.read_hints(STEM)["update"]
        for number in (1, 2, 3, 3):
            says = " ".join(self.done("hint", *(["3"] if number < 3 else ["softmax", "upd"])).split())
            for level in range(3):
                self.assertEqual(levels[level] in says, level < number)
        self.assertIn("solution 03 --give-up", says)
        self.assertIn("no hint on merge() was shown", self.done("hint", "3", "merge", "--again", code=2))
        self.assertIn("is no exercise in", self.done("hint", "3", "frob", code=2))
        table = self.done("hint", "--list")
        self.assertRegex(table, r"update +3 of 3 shown\n +merge +none yet\n")
        self.file.unlink()
        self.assertIn("start --use", self.done("next", code=2))

    def test_check_progress_solution_reset(self):
        self.start()
        table = self.done("progress")
        self.assertRegex(table, r"%s +core +2.25 h  ░{20}  5 of 5 gaps left, not checked yet" % STEM)
        self.assertIn("has not been checked", self.done("solution", "3", code=1))
        self.file.write_text(ANSWER)
        self.assertIn("not checked since", self.done("next"))
        self.file.write_text(written("update").replace("for (float& a : state.acc) a *= rescale;", ""))
        found = json.loads(self.done("check", "--json", code=1))
        self.assertEqual(set(found), {"tree", "passed", "lessons"})
        self.assertEqual((found["tree"], found["passed"], len(found["lessons"])), (str(self.mine), False, 1))
        results = {test["name"]: test for test in found["lessons"][0]["tests"]}
        self.assertEqual(results["OnlineSoftmax.MergeEqualsOnePass"]["result"], "not implemented")
        self.assertRegex(results["OnlineSoftmax.MergeEqualsOnePass"]["place"], r"^mine/%s\.cpp:\d+$" % STEM)
        rescale = results["OnlineSoftmax.UpdateRescalesWhatWasSummedWhenTheMaximumGrows"]
        self.assertEqual(rescale["result"], "failed")
        self.assertRegex(rescale["lines"][0], r"^this equals mistake M03-02: ")
        self.assertIn("\n      this equals mistake M03-02: ", self.done("check", code=1))
        self.assertRegex(self.done("next"), r"UpdateRescales.* failed\n +this equals .*\n +tests/03")  # before the gaps behind it
        self.assertIn("does not pass yet", self.done("solution", "3", code=1))
        row = json.loads(self.done("progress", "--json"))["lessons"][0]
        self.assertTrue(0 < row["share"] < 1 and row["state"] == "begun" and not row["stale"], row)

        self.file.write_text(ANSWER.replace("own * ", "own*"))
        self.assertIn("has changed since its last check", self.done("solution", "3", code=1))
        found = json.loads(self.done("progress", "--json"))
        self.assertTrue(found["lessons"][0]["stale"])
        self.assertEqual(found["tiers"]["core"]["done"], 0)
        self.assertIn("edited since", self.done("progress"))
        self.assertIn("✓ %s" % STEM, self.done("check", "3"))
        self.assertRegex(self.done("progress"), r"█{20}  passed \(\d+ tests\)  \(just now\)\n")
        self.assertIn("Every lesson in", self.done("next"))
        found = json.loads(self.done("progress", "--json", "--done", "attention_bench"))
        for key in re.findall(r'"(\w+)"', progress.JSON):
            self.assertTrue(key in found or key in found["lessons"][0] or key in found["tiers"] or
                            key in found["tiers"]["core"], key)
        self.assertEqual(found["tiers"]["core"], {"hours": 3.25, "done": 3.25, "left": 0, "stale": 0})
        diff = self.done("solution", "3")
        self.assertTrue(diff.startswith("--- mine/%s.cpp\n+++ reference/%s.cpp\n@@" % (STEM, STEM)), diff)
        self.assertRegex(diff, r"\n-.*own\*state.row_sum.*\n")
        self.file.write_text(STUB)
        self.assertIn("+++ reference", self.done("solution", "3", "--give-up"))
        (self.root / "reference").rename(self.root / "away")
        try:
            self.assertIn("holds no answers", self.done("solution", "3", "--give-up", code=1))
        finally:
            (self.root / "away").rename(self.root / "reference")

        self.assertIn("is the stub already", self.done("reset", "3"))
        texts = ["first", "second", "third"]
        for text in texts:
            self.file.write_text(text)
            says = self.done("reset", "3")
            kept = self.root / re.search(r"is kept in (.*)\n", says)[1]
            self.assertEqual((kept.read_text(), self.file.read_text()), (text, STUB))
        self.assertEqual(sorted(path.read_text() for path in kept.parent.iterdir()), texts)
        stub = self.root / "exercises" / (STEM + ".cpp")
        stub.write_text("edited in place")
        self.done("reset", "3", "--impl", "exercises")
        self.assertEqual(stub.read_text(), STUB)
        self.assertEqual(git_status(self.root), "")

    def test_watch(self):
        self.start()
        watching = subprocess.Popen([str(self.root / "scripts" / "workbook"), "watch"], cwd=str(self.root),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        self.addCleanup(watching.stdout.close)
        self.addCleanup(watching.stderr.close)
        self.addCleanup(watching.kill)

        def screen():
            lines = []
            while not lines or lines[-1]:
                line = watching.stdout.readline()
                self.assertTrue(line, "".join(lines))
                lines.append(line.rstrip("\n"))
            return "\n".join(lines)

        self.assertRegex(screen(), r"2 of \d+ tests pass.\nnext: mine/%s\.cpp:17  update\(\)\n" % STEM)
        self.file.write_text(ANSWER.replace("for (float& a : state.acc) a *= rescale;", ""))
        self.assertIn("✗ OnlineSoftmax.UpdateRescales", screen())
        new = self.mine / "new"
        new.write_text(ANSWER)
        new.replace(self.file)
        self.assertRegex(screen(), r"✓ %s: (\d+) of \1 tests" % STEM)
        # What is saved while tests hang ends them.
        self.file.write_text(HANGS)
        self.wait_for_tests(True)
        self.file.write_text(STUB)
        self.assertRegex(screen(), r"2 of \d+ tests pass\.")
        self.wait_for_tests(False)
        self.file.write_text(HANGS)
        self.wait_for_tests(True)
        watching.send_signal(signal.SIGINT)
        self.assertEqual(watching.wait(20), 130)
        self.assertEqual(watching.stderr.read(), "")
        self.wait_for_tests(False)
        self.assertTrue((self.root / "build" / "watch-mine" / "bin").is_dir())

    def wait_for_tests(self, running):
        """Until test programs of this copy have run for a while, or none is left."""
        needle, ends = str(self.root / "build" / "watch-mine" / "bin"), time.monotonic() + 60
        seen = 0
        while time.monotonic() < ends:
            listed = subprocess.run(["ps", "-axwwo", "args"], stdout=subprocess.PIPE).stdout
            seen = seen + 1 if (needle.encode() in listed) == running else 0
            if seen > (5 if running else 0):
                return
            time.sleep(0.2)
        self.fail("tests are %s" % ("not running" if running else "still running"))

    def test_colours(self):
        self.start()

        def on_terminal(**env):
            outer, inner = pty.openpty()
            subprocess.run([str(self.root / "scripts" / "workbook"), "progress"], stdout=inner, stdin=inner,
                           stderr=inner, env={**os.environ, "TERM": "xterm", **env}, check=True)
            os.close(inner)
            text = os.read(outer, 100000).decode()
            os.close(outer)
            return text

        self.assertIn("\033[", on_terminal())
        self.assertNotIn("\033", on_terminal(NO_COLOR="1"))
        self.assertNotIn("\033", on_terminal(TERM="dumb"))


if __name__ == "__main__":
    sys.exit(unittest.main())
