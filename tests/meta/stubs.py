"""The exercises as shipped, graded by the line `cmake -DIMPL=exercises && ctest` in the source folder: every test but
Given* and Builds fails, at a todo() that it names."""

import re
import shutil
import unittest

import workbook

MESSAGE = re.compile(r"exercises/(\w+)\.cpp:(\d+): \w+\(\) is not implemented yet")


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
        for path in (cls.root / "exercises").glob("*.cpp"):
            lines = enumerate(path.read_text().splitlines(), 1)
            cls.todos[path.stem] = {number for number, line in lines if line.strip() == "todo();"}

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
        for lesson in workbook.lessons():
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
                        self.assertEqual(stem, lesson)
                        self.assertIn(int(line), self.todos[lesson], f"line {line} is no todo()")

    def test_plain_ctest_names_what_is_not_written(self):
        summary = self.console[self.console.rfind("\nThe following tests FAILED"):]
        for lesson in workbook.lessons():
            with self.subTest(lesson):
                self.assertRegex(summary, rf"\n *{lesson} +exercises/{lesson}\.cpp:\d+: \w+\(\) is not implemented yet")

    def test_git_status_stays_clean(self):
        if not shutil.which("git"):
            self.skipTest("git is not installed")
        self.assertIn("CMakeCache.txt", self.git("status", "--porcelain", "--ignored"))
        changed = [line for line in self.git("status", "--porcelain").splitlines() if not line.startswith("A  ")]
        self.assertEqual(changed, [])


if __name__ == "__main__":
    unittest.main()
