"""Each exercise has three hints and a test that shows it; no hint is of another function, or the answer itself."""

import re
import sys
import unittest

import workbook

sys.dont_write_bytecode = True
sys.path.insert(0, str(workbook.ROOT / "scripts"))
from workbook_lib import gaps, hint, week  # noqa: E402


class Hints(unittest.TestCase):
    def test_each_exercise_has_three_and_none_is_of_a_function_that_does_not_exist(self):
        for entry in week.units():
            functions = [gap.function for gap in gaps.all_gaps(entry.stem)]
            mark = "// TODO: " if week.is_rung(entry.stem) else "# TODO: " if week.is_triton(entry.stem) else "  todo();"
            self.assertEqual(len(functions), gaps.stub(entry.stem).count(mark), entry.stem)
            functions = list(dict.fromkeys(functions))  # a function of a rung may have two gaps
            hints = hint.read_hints(entry.stem)
            self.assertEqual(list(hints), functions, entry.stem)
            for function, levels in hints.items():
                with self.subTest(function):
                    self.assertEqual(len(levels), 3)
                    self.assertTrue(all(len(level) > 10 for level in levels), levels)
                    self.assertEqual(len(set(levels)), 3)
        folder = workbook.ROOT / "notes" / "hints"
        named = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.md")}
        self.assertEqual(named, {entry.stem for entry in week.units()})

    def test_none_holds_a_line_of_the_answer(self):
        for entry in week.units():
            text = " ".join(sum(hint.read_hints(entry.stem).values(), []))
            for line in (workbook.ROOT / "reference" / week.source_name(entry.stem)).read_text().splitlines():
                line = re.split("// |# ", line)[0].strip().rstrip(";{")
                if len(line) > 25:
                    self.assertNotIn(line, text)

    def test_each_exercise_has_a_test_that_shows_it(self):
        for entry in week.lessons():
            tests = (workbook.ROOT / "tests" / (entry.stem + "_test.cpp")).read_text()
            for gap in gaps.all_gaps(entry.stem):
                name = gaps.test_for(entry.stem, gap.function)
                self.assertTrue(name, gap.function)
                self.assertIn("TEST(%s)" % name.replace(".", ", "), tests)
                self.assertTrue(gap.sentence and gap.about, gap)
        for entry in week.members("triton"):
            tests = (workbook.ROOT / "tests" / (entry.stem + "_test.py")).read_text()
            for gap in gaps.all_gaps(entry.stem):
                self.assertIn('@test("%s")' % gaps.test_for(entry.stem, gap.function), tests, gap)
                self.assertTrue(gap.sentence and gap.about, gap)
        self.assertEqual(gaps.test_for("09_bench", "dominates").split(".")[0], "ParetoFrontier")  # tests cannot call it


if __name__ == "__main__":
    unittest.main()
