"""The bank of mistakes: its reader, its edits, and what counts as the same wrong answer.

That each mistake is found and named is proved by `scripts/workbook mistakes`, which takes minutes.
"""

import os
import sys
import threading
import unittest

import workbook

sys.dont_write_bytecode = True
sys.path.insert(0, str(workbook.ROOT / "scripts"))
from workbook_lib import fingerprints, mistakes_bank, mistakes_run  # noqa: E402
from workbook_lib.console import Problem  # noqa: E402

HEAD = "# M03-01 one: A sentence.\nru: Предложение.\n"
STEM = workbook.LESSON


class Reader(unittest.TestCase):
    def read(self, text):
        path = workbook.WORK / (STEM + ".edits")
        path.write_text(text, encoding="utf-8")
        return mistakes_bank.read_bank(STEM, str(workbook.WORK))

    def refused(self, says, text):
        with self.subTest(text), self.assertRaises(Problem) as caught:
            for mistake in self.read(text):
                mistakes_bank.apply(mistake, "a\nb\nb\nc\n")
        self.assertIn(says, str(caught.exception))
        self.assertRegex(str(caught.exception), r"\A\S+edits:\d+: .*\Z")

    def test_edits_are_applied_in_their_places(self):
        mistakes = self.read(HEAD + "-a\n+x\n+y\n-c\n\n# M03-02 two: Another.\nru: Другая.\n-a\n\n-c\n+\n")
        texts = [mistakes_bank.apply(mistake, "a\nb\nb\nc\n") for mistake in mistakes]
        self.assertEqual(texts, ["x\ny\nb\nb\n", "b\nb\n\n"])

    def test_a_bad_format_is_refused_in_one_line(self):
        self.refused("edits:1: a mistake begins with", "# 03-01 one: A sentence.\n-a\n")
        self.refused("a mistake begins with", "# M03-01 one: no full stop\n-a\n")
        self.refused("no mistake of lesson 03", "# M04-01 one: A sentence.\n")
        self.refused("edits:1: a line before the first", "-a\n" + HEAD)
        self.refused("edits:3: a line begins with", HEAD + "a\n")
        self.refused("a + line without", HEAD + "+a\n")
        self.refused("only `@ twin", HEAD + "@ sibling: M03-02\n-a\n")
        self.refused("has no edit", HEAD)
        self.refused("no sentence in Russian", "# M03-01 one: A sentence.\n-a\n")
        self.refused("was there before", HEAD + "-a\n" + HEAD + "-b\n")
        self.refused("does not name it", HEAD + "@ twin: M03-02\n-a\n")

    def test_an_edit_stands_exactly_once(self):
        self.refused("the edit of 'd' is not found in the reference", HEAD + "-d\n+x\n")
        self.refused("the edit of 'b' is found 2 times", HEAD + "-b\n+x\n")

    def test_every_edit_of_the_bank_applies(self):
        count = 0
        for stem in workbook.lessons():
            text = (workbook.ROOT / "reference" / (stem + ".cpp")).read_text(encoding="utf-8")
            bank = mistakes_bank.read_bank(stem)
            self.assertGreaterEqual(len(bank), 5, stem)
            for mistake in bank:
                self.assertNotEqual(mistakes_bank.apply(mistake, text), text)
            count += len(bank)
        self.assertGreaterEqual(count, 60)
        self.assertIn("- 0 of %d wrong versions of the lessons" % count,
                      (workbook.ROOT / "README.md").read_text(encoding="utf-8"))


class Fingerprints(unittest.TestCase):
    OUTPUT = ("[ RUN      ] A.B\n/x/t.cpp:7: Failure\nValue of: all_close(a)\n  Actual: false (%s of 40 elements are "
              "wrong, the worst at [row 3]: %s, expected 2, tolerance 1e-06)\nExpected: true\nGoogle Test trace:\n"
              "/x/t.cpp:5: n = 4\n[  FAILED  ] A.B (0 ms)\n")

    def said(self, count, value):
        return fingerprints.failures_of(self.OUTPUT % (count, value))

    def test_close_numbers_at_the_same_line_are_the_same_answer(self):
        known = self.said(30, 1.5)
        for count, value, same in ((30, 1.5, True), (30, 1.5001, True), (30, 1.51, False), (30, "nan", False),
                                   (30, "inf", False), (20, 1.5, False)):
            self.assertEqual(fingerprints.same_failures(self.said(count, value), known), same, (count, value))
        self.assertTrue(fingerprints.same_failures(self.said(9, "nan"), self.said(9, "nan")))
        self.assertFalse(fingerprints.same_failures([], known))

    def test_a_mistake_fits_when_all_that_it_fails_is_failed_alike(self):
        wrong, other = self.said(30, 1.5), self.said(30, 9)
        bank = [{"id": "M1", "tests": {"a": wrong, "b": wrong}}, {"id": "M2", "tests": {"a": wrong}},
                {"id": "M3", "tests": {"c": "crashed"}}, {"id": "M4", "tests": {"d": other}}]
        for answer, named in (({"a": wrong, "b": wrong, "c": "passed"}, {"a": ["M1"], "b": ["M1"]}),
                              ({"a": wrong, "b": "not implemented"}, {"a": ["M1", "M2"]}),
                              ({"a": wrong, "b": "passed"}, {"a": ["M2"]}),
                              ({"a": wrong, "b": other, "d": other}, {"a": ["M2"], "d": ["M4"]}),
                              ({"a": other, "b": other}, {}), ({"c": "crashed"}, {}),
                              ({"a": "passed", "b": "not implemented", "c": "passed"}, {})):
            self.assertEqual(fingerprints.diagnose(answer, bank), named, answer)


class Workers(unittest.TestCase):
    def test_what_is_not_begun_when_something_fails_never_begins(self):
        begun, gate = [], threading.Event()

        def work(number):
            begun.append(number)
            gate.wait(60)

        with self.assertRaises(Problem):
            with mistakes_run.workers() as submit:
                for number in range(100):
                    submit(work, number)
                threading.Timer(0.2, gate.set).start()
                raise Problem("something failed")
        self.assertLess(len(begun), 100)

    def test_what_lessons_include_is_compiled_once_for_all(self):
        compiler = mistakes_run.Compiler(os.environ.get("CXX", "c++"), workbook.lessons(), str(workbook.WORK / "scratch"))
        self.assertIn("-include", compiler.words)
        header = (workbook.WORK / "scratch" / "included.h").read_text()
        for stem in workbook.lessons():
            self.assertIn('#include "nanolm/%s.h"' % stem[3:], header)


if __name__ == "__main__":
    unittest.main()
