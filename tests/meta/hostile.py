"""Answers that exit, loop or do not compile are failed, and cost no other lesson."""

import shutil
import unittest

import workbook

LESSON = workbook.LESSON
OTHER = "02_critical_batch"
FIRST_LINE = "  check_finish(state, out);\n"  # of finish()


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = workbook.export()
        cls.tree, cls.build = workbook.WORK / "tree", workbook.WORK / "build"
        shutil.copytree(cls.root / "reference", cls.tree)
        configured = workbook.configure(cls.root, cls.build, f"-DIMPL={cls.tree}", "-DCMAKE_BUILD_TYPE=Debug")
        assert configured.returncode == 0, configured.text

    def graded(self, put, in_place_of=FIRST_LINE, tests=""):
        """Grades LESSON with a changed line, and OTHER, which must pass; returns LESSON's verdicts by short name."""
        answer = (self.root / "reference" / f"{LESSON}.cpp").read_text()
        self.assertEqual(answer.count(in_place_of), 1)
        (self.tree / f"{LESSON}.cpp").write_text("#include <cstdlib>\n" + answer.replace(in_place_of, put))
        verdicts, console = workbook.ctest(self.build, "-R", f"^({LESSON}.*{tests}|{OTHER}[.])", "-j", "2")
        others = {name: verdict for name, verdict in verdicts.items() if name.startswith(OTHER)}
        self.assertGreater(len(others), 5)
        self.assertEqual({verdict.status for verdict in others.values()}, {"run"}, console)
        return {name.split(".")[-1]: verdict for name, verdict in verdicts.items() if name not in others}

    def test_exit_in_a_function(self):
        verdicts = self.graded(FIRST_LINE + "  std::exit(0);\n")
        self.assertEqual(verdicts["FinishDividesByTheSum"].status, "fail")
        self.assertEqual(verdicts["MatchesDirectComputation"].status, "fail")
        self.assertEqual(verdicts["UpdateKeepsMaximumSumAndOutput"].status, "run", "it does not call finish()")

    def test_exit_before_main(self):
        for call in ("std::exit(0)", "std::_Exit(0)", "std::abort()"):
            with self.subTest(call):
                verdicts = self.graded(f"namespace nanolm {{\n[[maybe_unused]] const int at_start = ({call}, 0);\n",
                                       "namespace nanolm {\n")
                self.assertEqual(verdicts.pop("Builds").status, "run")
                self.assertGreater(len(verdicts), 10)
                self.assertEqual({verdict.status for verdict in verdicts.values()}, {"fail"})

    def test_crash(self):
        verdicts = self.graded(FIRST_LINE + "  std::abort();\n")
        self.assertEqual(verdicts["FinishDividesByTheSum"].status, "fail")
        self.assertEqual(verdicts["UpdateKeepsMaximumSumAndOutput"].status, "run")

    def test_syntax_error(self):
        verdicts = self.graded(FIRST_LINE + "  this is no C++;\n")
        self.assertEqual(verdicts["Builds"].status, "fail")
        self.assertIn(f"{LESSON}.cpp:", verdicts.pop("Builds").output)
        self.assertGreater(len(verdicts), 10)
        self.assertEqual({verdict.status for verdict in verdicts.values()}, {"notrun"})

    def test_function_that_is_not_defined(self):
        verdicts = self.graded("float logsumexp_(const OnlineSoftmax& state) {\n",
                               "float logsumexp(const OnlineSoftmax& state) {\n")
        self.assertEqual(verdicts.pop("Builds").status, "fail")
        self.assertEqual({verdict.status for verdict in verdicts.values()}, {"notrun"})

    def test_endless_loop(self):
        verdicts = self.graded(FIRST_LINE + "  for (volatile int i = 0;; i = i + 1) {\n  }\n",
                               tests="[.](Builds|FinishDividesByTheSum|UpdateKeepsMaximumSumAndOutput)$")
        self.assertEqual(verdicts["FinishDividesByTheSum"].status, "fail")
        self.assertTrue(9 < verdicts["FinishDividesByTheSum"].seconds < 60, "the limit is 10 s")
        self.assertEqual(verdicts["UpdateKeepsMaximumSumAndOutput"].status, "run")

    def test_z_the_answer_itself_passes(self):
        verdicts = self.graded(FIRST_LINE)
        self.assertEqual({verdict.status for verdict in verdicts.values()}, {"run"})


if __name__ == "__main__":
    unittest.main()
