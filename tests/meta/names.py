"""The tests that CTest knows are those that the built programs hold. NANOLM_BUILD: a build folder, all tests built."""

import json
import os
import re
import sys
import unittest
from pathlib import Path

import workbook

SOURCE = r"""
TEST(A, First) {}
TEST(A,
     WrappedOverTwoLines) { f(4'096, "it's TEST(No, InAString)"); }
TEST  (
    A , WrappedInFrontOfThe2ndName) {}
// TEST(No, LineComment) {}
/* TEST(No, BlockComment) **/ TEST(A, BehindABlockComment) {}
/* a * b ** /
TEST(No, SecondLineOfABlockComment) {} */
const char* s = "quote \" TEST(No, BehindAnEscapedQuote)"; char c = '"', d = '\''; TEST(A, BehindCharacters) {}
const char* r = R"(raw " TEST(No, RawString) ) )x" TEST(No, StillRaw))";TEST(A, With_Underscore) {}
const char* url = "http://x"; TEST(A, BehindAnAddress) {}
MY_TEST(No, OtherMacro)
"""
NAMES = ["A.First", "A.WrappedOverTwoLines", "A.WrappedInFrontOfThe2ndName", "A.BehindABlockComment",
         "A.BehindCharacters", "A.With_Underscore", "A.BehindAnAddress"]


def listed_by_program(program):
    names, suite = [], ""
    for line in workbook.run(program, "--gtest_list_tests").text.splitlines():
        if line.startswith("  DISABLED_"):
            continue  # slow: ctest -C slow knows it
        if line.startswith("  "):
            names.append(suite + line.split()[0])
        elif line.split("#")[0].strip().endswith("."):
            suite = line.split()[0]
    return names


class Names(unittest.TestCase):
    def test_ctest_knows_what_the_programs_hold(self):
        build = Path(os.environ["NANOLM_BUILD"])
        known = json.loads(workbook.run(workbook.CTEST, "--test-dir", build, "--show-only=json-v1").text)
        known = {test["name"] for test in known["tests"]}
        rungs = sorted({name.split(".Builds")[0] for name in known if re.fullmatch(r"cuda/\S+\.Builds", name)})
        for lesson in workbook.lessons() + rungs:
            with self.subTest(lesson):
                # The checked tests are those of the emulated program, in another environment.
                program = build / "bin" / f"{re.sub('[./]', '_', lesson.replace('.checked', '.emulated'))}_test"
                self.assertTrue(program.is_file(), f"{program} was not built")
                held = listed_by_program(program)
                self.assertTrue(held, f"{lesson}_test holds no test")
                self.assertEqual(sorted(name for name in known if name.startswith(f"{lesson}.")),
                                 sorted([f"{lesson}.Builds", *(f"{lesson}.{name}" for name in held)]))

    def test_ctest_knows_the_tests_of_triton(self):
        build = Path(os.environ["NANOLM_BUILD"])
        known = json.loads(workbook.run(workbook.CTEST, "--test-dir", build, "--show-only=json-v1").text)
        for unit in workbook.triton():
            with self.subTest(unit):
                held = workbook.run(sys.executable, workbook.ROOT / "tests/triton/runner.py", workbook.ROOT / f"tests/{unit}_test.py",
                                    "-", "--list").text.split()
                self.assertTrue(held)
                self.assertEqual(sorted(test["name"] for test in known["tests"] if test["name"].startswith(f"{unit}.")),
                                 sorted(f"{unit}.{name}" for name in ["Builds", *held]))

    def test_names_are_read_from_any_layout(self):
        source, script = workbook.WORK / "names.cpp", workbook.WORK / "names.cmake"
        source.write_text(SOURCE)
        script.write_text(f'include("{workbook.ROOT}/tests/support/test_names.cmake")\n'
                          f'read_test_names("{source}" names)\nmessage("${{names}}")\n')
        self.assertEqual(workbook.run(workbook.CMAKE, "-P", script).text.strip().split(";"), NAMES)


if __name__ == "__main__":
    unittest.main()
