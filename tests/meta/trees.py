"""Any tree of answers is graded, under any name, and what was built is always what is there now."""

import os
import shutil
import subprocess
import unittest

import workbook

LESSON = workbook.LESSON
OTHER = "02_critical_batch"
OLD = 1_000_000_000  # 2001, older than any build
NAMES = ("it's [1] c#", "p$HOME m(n), o>p", "e=f per%cent&st*r")


class Trees(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = workbook.export()
        cls.build = workbook.WORK / "build"

    def tree(self, name, source="reference", seconds=None):
        target = workbook.WORK / "trees" / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.root / source, target)
        for path in target.iterdir() if seconds else ():
            os.utime(path, (seconds, seconds))
        return target

    def configure(self, tree, build=None, generator=None):
        result = workbook.configure(self.root, build or self.build, f"-DIMPL={tree}", "-DCMAKE_BUILD_TYPE=Debug",
                                    "-G", generator or workbook.generators()[0])
        self.assertEqual(result.returncode, 0, result.text)
        return result.text

    def passed(self, build=None):
        """Whether LESSON's tests (a few are enough) passed; the stubs must fail in the known way."""
        verdicts, console = workbook.ctest(build or self.build, "-R", f"^{LESSON}[.](Builds$|.*(Finish|Merge))")
        self.assertGreater(len(verdicts), 5)
        if all(verdict.status == "run" for verdict in verdicts.values()):
            return True
        self.assertIn("is not implemented yet", "".join(verdict.output for verdict in verdicts.values()), console)
        return False

    def test_any_name_in_any_generator(self):
        self.assertTrue(workbook.generators())
        for generator in workbook.generators():
            build = self.build if generator == workbook.generators()[0] else workbook.WORK / generator
            for name in NAMES:
                with self.subTest(f"{generator}: {name}"):
                    self.configure(self.tree(name), build, generator)
                    self.assertTrue(self.passed(build))
            self.configure("exercises", build, generator)
            self.assertFalse(self.passed(build))

    def test_a_tree_that_is_switched_is_built_again_though_it_is_older(self):
        for name, source, expected in (("new", "reference", True), ("stubs", "exercises", False),
                                       ("old", "reference", True), ("old", "reference", True),
                                       ("old stubs", "exercises", False), ("new", "reference", True)):
            with self.subTest(name):
                self.configure(self.tree(name, source, seconds=OLD if name.startswith("old") else None))
                self.assertEqual(self.passed(), expected)

    def test_a_file_that_is_put_back_with_its_old_time_is_built_again(self):
        answer = self.tree("restored") / f"{LESSON}.cpp"
        self.configure(answer.parent)
        self.assertTrue(self.passed())
        backup = shutil.copy2(answer, answer.with_suffix(".bak"))
        for source, seconds in ((self.root / "exercises" / answer.name, OLD), (backup, OLD - 1)):
            shutil.copyfile(source, answer)
            os.utime(answer, (seconds, seconds))
            self.assertEqual(self.passed(), source == backup)

    def test_a_missing_lesson_costs_that_lesson_until_it_appears(self):
        answer = self.tree("incomplete") / f"{LESSON}.cpp"
        answer.unlink()
        text = " ".join(self.configure(answer.parent).split())
        self.assertIn("CMake Warning at", text)
        self.assertIn(f"{LESSON}.cpp is missing in {answer.parent}", text)
        verdicts, _ = workbook.ctest(self.build, "-R", f"^({LESSON}|{OTHER})[.]")
        for name, verdict in verdicts.items():
            with self.subTest(name):
                self.assertEqual(verdict.status, "run" if name.startswith(OTHER) else
                                 "fail" if name.endswith(".Builds") else "notrun", verdict.output)
        self.assertIn(f"error: {answer} is missing", " ".join(verdicts[f"{LESSON}.Builds"].output.split()))
        shutil.copy2(self.root / "reference" / answer.name, answer)
        self.assertTrue(self.passed())

    def test_two_ctests_at_once_are_safe(self):
        answer = self.tree("shared") / f"{LESSON}.cpp"
        self.configure(answer.parent)
        self.assertTrue(self.passed())
        for number in range(3):
            with answer.open("a") as file:
                file.write(f"// change {number}\n")
            runs = [subprocess.Popen([workbook.CTEST, "-R", f"^{LESSON}[.]"], cwd=self.build, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)]
            for console in [run.communicate()[0] for run in runs]:
                self.assertIn("100% tests passed", console)


if __name__ == "__main__":
    unittest.main()
