"""What a failure says of which elements and which cases are wrong, from the C++ of the tests to the line that is shown.

NANOLM_BUILD: a build folder, where the target `messages` is built.
"""

import os
import sys
import unittest
from pathlib import Path

import workbook

sys.dont_write_bytecode = True
sys.path.insert(0, str(workbook.ROOT / "scripts"))
from workbook_lib import fingerprints, verdicts  # noqa: E402

PROGRAM = Path(os.environ["NANOLM_BUILD"]) / "bin" / "messages"


class Messages(unittest.TestCase):
    def test_elements_and_cases(self):
        run = workbook.run(PROGRAM)
        self.assertEqual(run.returncode, 0, run.text)

    def output(self, name):
        return workbook.run(PROGRAM, "--gtest_also_run_disabled_tests", "--gtest_filter=Example.DISABLED_" + name).text

    def test_which_cases_fail_is_shown_and_is_no_part_of_the_fingerprint(self):
        for name, line in (("CausalFails", "only causal cases fail: 2 of 2"),
                           ("TailFails", "only cases whose last tile of keys is partial fail: 1 of 1")):
            output = self.output(name)
            self.assertEqual(output.count(line + "\n[  FAILED  ]"), 1, output)
            self.assertIn(line, verdicts.gtest_failures(output))
            self.assertEqual(fingerprints.failures_of(output), fingerprints.failures_of(output.replace(line + "\n", "")))
        shown = verdicts.gtest_failures(self.output("CausalFails"))
        self.assertEqual(shown[-3:], ["only causal cases fail: 2 of 2", "with seqlen 4", "(and 1 more in this test)"])


if __name__ == "__main__":
    unittest.main()
