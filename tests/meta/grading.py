"""`scripts/workbook grade` on hostile submissions, on right ones in an unusual style, and on bad archives.

Hostile programs run inside the judge alone, and only where its whole isolation works: elsewhere this is skipped. The
sandbox's limits are tried first, with harmless programs (sandbox.py).
"""

import csv
import io
import json
import os
import subprocess
import sys
import tarfile
import time
import unittest
import zipfile

import sandbox
import workbook

ROOT = workbook.ROOT
HOSTILE = sorted(path for path in (ROOT / "tests" / "hostile").iterdir() if path.is_dir())
UNUSUAL = sorted(path for path in (ROOT / "tests" / "unusual").iterdir() if list(path.glob("*.cpp")))
LEFT_BEHIND = ["/tmp/nanolm_hostile_was_here", "/tmp/nanolm_hostile_link", "/tmp/results.json"]


def archives(folder):
    """Archives that try to leave their folder, or to bring in a file of the grader's."""
    answer = (ROOT / "reference" / "03_online_softmax.cpp").read_bytes()
    made = []

    def tar(name, add):
        made.append(folder / (name + ".tar.gz"))
        with tarfile.open(made[-1], "w:gz") as archive:
            add(archive)

    def member(name, kind=tarfile.REGTYPE, target="", content=b""):
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = kind, target, len(content)
        return info, io.BytesIO(content)

    target = str(ROOT / "reference" / "03_online_softmax.cpp")
    tar("tar_dotdot", lambda a: a.addfile(*member("../../03_online_softmax.cpp", content=answer)))
    tar("tar_absolute", lambda a: a.addfile(*member("/tmp/nanolm_hostile_was_here", content=answer)))
    tar("tar_symlink", lambda a: a.addfile(*member("03_online_softmax.cpp", tarfile.SYMTYPE, target)))
    tar("tar_hardlink", lambda a: a.addfile(*member("03_online_softmax.cpp", tarfile.LNKTYPE, target)))
    tar("tar_fifo", lambda a: a.addfile(*member("03_online_softmax.cpp", tarfile.FIFOTYPE)))
    tar("tar_twice", lambda a: (a.addfile(*member("03_online_softmax.cpp", content=b"x")),
                                a.addfile(*member("b/03_online_softmax.cpp", content=answer))))
    made.append(folder / "zip_dotdot.zip")
    with zipfile.ZipFile(made[-1], "w") as archive:
        archive.writestr("../03_online_softmax.cpp", answer)
    made.append(folder / "zip_symlink.zip")
    with zipfile.ZipFile(made[-1], "w") as archive:
        info = zipfile.ZipInfo("03_online_softmax.cpp")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, target)
    made.append(folder / "zip_bomb.zip")
    with zipfile.ZipFile(made[-1], "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(3):
            archive.writestr("filler%d" % i, bytes(30 << 20))
        archive.writestr("03_online_softmax.cpp", answer)
    made.append(folder / "no_archive.zip")
    made[-1].write_bytes(b"this is no archive")
    linked = folder / "folder_of_links"
    linked.mkdir()
    for entry in workbook.lessons():
        (linked / (entry + ".cpp")).symlink_to(ROOT / "reference" / (entry + ".cpp"))
    return made + [linked]


def processes():
    """Those of the unprivileged user."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat("/proc/" + pid).st_uid == 65534:
                found.append(pid)
        except OSError:
            pass
    return found


class Grading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.before = set(os.listdir("/tmp")), processes()
        bad = workbook.WORK / "archives"
        bad.mkdir(parents=True)
        good = workbook.WORK / "packed.zip"
        with zipfile.ZipFile(good, "w") as archive:
            archive.write(ROOT / "reference" / "03_online_softmax.cpp", "mine/exercises/03_online_softmax.cpp")
        cls.out = workbook.WORK / "grades"
        cls.hostile = HOSTILE + archives(bad)
        paths = cls.hostile + UNUSUAL + [good, ROOT / "exercises"]
        cls.done = cls.grade(*paths, "--seed", "20261129", "--out", cls.out)

    @staticmethod
    def grade(*arguments):
        words = [str(word) for word in (ROOT / "scripts" / "workbook", "grade", *arguments)]
        environment = dict(os.environ, NANOLM_JUDGE_BUILD=os.path.dirname(sandbox.BIN))
        return subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")

    def rows(self, out=None):
        with open((out or self.out) / "grades.csv", encoding="utf-8", newline="") as file:
            return {row["submission"]: row for row in csv.DictReader(file)}

    def test_hostile_submissions_score_nothing(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout)
        self.assertGreaterEqual(len(self.hostile), 30)
        rows = self.rows()
        scored = {}
        for path in self.hostile:
            name = path.name.replace(".tar.gz", "").replace(".zip", "")
            if float(rows[name]["core"]) > 0 or float(rows[name]["bonus"]) > 0:
                scored[name] = (self.out / name / "report.txt").read_text(encoding="utf-8")
        self.assertEqual(scored, {})
        self.assertEqual((float(rows["exercises"]["core"]), float(rows["exercises"]["bonus"])), (0, 0))

    def test_right_answers_in_an_unusual_style_get_all_points(self):
        for name in [path.name for path in UNUSUAL] + ["packed"]:
            self.assertEqual(float(self.rows()[name]["03_online_softmax"]), 25,
                             (self.out / name / "report.txt").read_text(encoding="utf-8"))

    def test_nothing_is_left_behind(self):
        time.sleep(1)
        self.assertEqual(processes(), self.before[1])
        for path in LEFT_BEHIND:
            self.assertFalse(os.path.lexists(path), path)
        left = [name for name in set(os.listdir("/tmp")) - self.before[0] if name.startswith("nanolm_grade_")]
        self.assertEqual(left, [])

    def test_the_report_says_how_it_ended(self):
        for name, says in (("exit_in_function", "ended itself with exit status 0"),
                           ("abort_in_function", "crashed: aborted"),
                           ("deep_recursion", "segmentation fault"),
                           ("endless_loop", "no result in time"),
                           ("endless_output", "wrote or printed too much"),
                           ("template_bomb", "does not compile: the compiler"),
                           ("includes_gtest", "does not compile: "),
                           ("writes_outside", "wrote outside an array"),
                           ("changes_the_input", "changed an input"),
                           ("keyed_on_the_tests", "wrong for others of the same kind"),
                           ("tar_dotdot", "a path that leaves the archive"),
                           ("zip_symlink", "a link or a special file"),
                           ("folder_of_links", "is a link")):
            with self.subTest(name):
                self.assertIn(says, (self.out / name / "report.txt").read_text(encoding="utf-8"))

    def test_gradescope_results(self):
        with open(self.out / "packed" / "results.json", encoding="utf-8") as file:
            results = json.load(file)
        self.assertAlmostEqual(results["score"], 25, places=3)
        self.assertAlmostEqual(sum(test["score"] for test in results["tests"]), 25, places=1)
        self.assertEqual(results["extra_data"]["seed"], 20261129)
        self.assertTrue(all(test["visibility"] == "visible" for test in results["tests"]))

    def test_the_same_seed_gives_the_same(self):
        again = workbook.WORK / "again"
        path = UNUSUAL[0]
        self.grade(path, "--seed", "20261129", "--out", again)
        for name in ("report.txt", "results.json"):
            self.assertEqual((again / path.name / name).read_text(), (self.out / path.name / name).read_text())

    def test_list_tasks(self):
        listed = self.grade(*UNUSUAL, "--seed", "5", "--list-tasks").stdout.splitlines()
        self.assertEqual(len(listed), len(UNUSUAL))
        for line, path in zip(listed, UNUSUAL):
            self.assertRegex(line, r"workbook grade \S*%s --jobs 1 --seed 5 --out \S+$" % path.name)


if __name__ == "__main__":
    reason = sandbox.probe()
    if reason:
        print("Skipped: " + reason)
        sys.exit(77)
    unittest.main()
