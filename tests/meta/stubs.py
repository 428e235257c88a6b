"""The exercises as shipped, graded by the line `cmake -DIMPL=exercises && ctest` in the source folder: every test but
Given* and Builds fails, at a todo() that it names."""

import re
import shutil
import unittest

import workbook

MESSAGE = re.compile(r"exercises/(\w+|cuda/\w+|triton/\w+)\.(?:cpp|cu|py):(\d+): \w+\(\) is not implemented yet")


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = workbook.export("it's a workbook")
        cls.git("init", "--quiet")
        cls.git("add", "--all")
        configured = workbook.run(workbook.CMAKE, "-DIMPL=exercises", *workbook.GTEST, cwd=cls.root)
        assert configured.returncode == 0, configured.text
        cls.verdicts, cls.console = workbook.ctest(cls.root)
        cls.todos = {}
        exercises = cls.root / "exercises"
        for path in [*exercises.glob("*.cpp"), *exercises.glob("cuda/*.cu"), *exercises.glob("triton/*.py")]:
            lines = enumerate(path.read_text().splitlines(), 1)
            stem = str(path.relative_to(cls.root / "exercises").with_suffix(""))
            cls.todos[stem] = {number for number, line in lines if re.match(r" *todo\(\)(;|$)", line)}
        # A rung may be there twice, emulated and on a device.
        cls.units = workbook.lessons() + workbook.triton() + sorted({name[:-len(".Builds")] for name in cls.verdicts
                                                 if re.fullmatch(r"cuda/\S+\.Builds", name)})

    @classmethod
    def git(cls, *arguments):
        return workbook.run("git", *arguments, cwd=cls.root).text if shutil.which("git") else ""

    def unwritten(self, lesson):
        return {name: verdict for name, verdict in self.verdicts.items()
                if name.startswith(f"{lesson}.") and not re.search(r"\.Given\w*$|\.Builds$", name)}

    def test_given_parts_pass_and_lessons_build(self):
        for name, verdict in self.verdicts.items():
            if re.search(r"\.Given\w*$|\.Builds$", name):
                with self.subTest(name):
                    self.assertEqual(verdict.status, "run", verdict.output)

    def test_all_else_fails_where_something_is_not_written(self):
        for stem in workbook.ladder():
            self.assertTrue([unit for unit in self.units if unit.startswith(f"{stem}.")], f"{stem} has no test")
        for lesson in self.units:
            with self.subTest(lesson):
                self.assertTrue(self.unwritten(lesson), "no test was found")
                self.assertIn(f"{lesson}.Builds", self.verdicts)
            for name, verdict in self.unwritten(lesson).items():
                with self.subTest(name):
                    self.assertEqual(verdict.status, "fail")
                    # Neither a crash nor a time-out nor an exit: GoogleTest came to its end.
                    self.assertRegex(verdict.reason, "^Required regular expression not found", verdict.output)
                    self.assertIn("\n[  FAILED  ] 1 test, listed below:\n", verdict.output)
                    places = MESSAGE.findall(verdict.output)
                    self.assertTrue(places, f"not a word of what is not implemented:\n{verdict.output}")
                    for stem, line in places:
                        self.assertEqual(stem, lesson.split(".")[0])
                        self.assertIn(int(line), self.todos[stem], f"line {line} is no todo()")

    def test_plain_ctest_names_what_is_not_written(self):
        summary = self.console[self.console.rfind("\nThe following tests FAILED"):]
        for unit in self.units:
            with self.subTest(unit):
                self.assertRegex(summary, rf"\n *{unit} +exercises/{unit.split('.')[0]}\.(cpp|cu|py):\d+: \w+\(\) is not "
                                          r"implemented yet")

    def test_git_status_stays_clean(self):
        if not shutil.which("git"):
            self.skipTest("git is not installed")
        self.assertIn("CMakeCache.txt", self.git("status", "--porcelain", "--ignored"))
        changed = [line for line in self.git("status", "--porcelain").splitlines() if not line.startswith("A  ")]
        self.assertEqual(changed, [])


if __name__ == "__main__":
    unittest.main()
