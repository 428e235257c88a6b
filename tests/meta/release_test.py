"""scripts/workbook release: what a student gets, and what a later release may not change. Nothing is built."""

import re
import shutil
import sys
import unittest

import workbook
from workbook_test import Run, copy

from workbook_lib import stubs_since  # workbook_test put scripts/ on the path

STUB, HEADER = "exercises/03_online_softmax.cpp", "include/nanolm/online_softmax.h"


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = copy("a copy")
        cls.old = workbook.WORK / "old"
        cls.first = Run(cls.root, "release", str(cls.old))

    def edit(self, path, *change):
        """Replaces once, until the test ends."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        self.assertIn(change[0], text)
        self.addCleanup(file.write_text, text, encoding="utf-8")
        file.write_text(text.replace(*change, 1), encoding="utf-8")

    def release(self, code, says):
        out = workbook.WORK / "new" / self.id()
        shutil.rmtree(out, ignore_errors=True)
        run = Run(self.root, "release", str(out), "--since", str(self.old))
        self.assertEqual(run.code, code, run.text)
        self.assertIn(says, " ".join((run.out + run.err).split()))
        self.assertEqual(out.exists(), code == 0, "a release that is refused writes nothing")

    def test_what_a_student_gets(self):
        self.assertEqual(self.first.code, 0, self.first.text)
        self.assertTrue((self.old / STUB).is_file() and (self.old / "reference").is_dir())
        self.assertFalse((self.old / "tests" / "judge").exists() or (self.old / "tests" / "meta").exists())
        self.assertTrue(list((self.old / "tests" / "mistakes" / "cuda").glob("*.edits")))
        bare = workbook.WORK / "bare"
        self.assertEqual(Run(self.root, "release", str(bare), "--without-answers").code, 0)
        self.assertFalse((bare / "reference").exists() or list((bare / "tests").rglob("*.edits")))
        for verb in (["test"], ["mistakes"], ["mistakes", "--cuda"]):
            self.assertIn("this edition has no answers", Run(bare, *verb).err)

    def test_presets_name_only_what_is_there(self):
        bare = workbook.WORK / "bare presets"
        self.assertEqual(Run(self.root, "release", str(bare), "--without-answers").code, 0)
        for edition, there in ((self.old, {"reference", "exercises", "asan", "cuda", "checked"}),
                               (bare, {"exercises", "checked"})):
            listed = workbook.run(workbook.CMAKE, "--list-presets=all", cwd=edition)
            self.assertEqual(listed.returncode, 0, listed.text)
            self.assertEqual(set(re.findall(r'^  "(\w+)"', listed.text, re.M)), there)

    def test_nothing_changed(self):
        self.release(0, "Stubs that changed since %s: none. No signature did." % self.old)

    def test_a_changed_stub_has_to_stand_in_the_changelog(self):
        self.edit(STUB, "// TODO: ", "// TODO: please ")
        self.edit("CHANGELOG.md", "## Unreleased", "## 2\n\n- Nothing.\n\n## Unreleased")
        self.release(1, "does not say in its newest section that these stubs changed: 03_online_softmax")
        self.edit("CHANGELOG.md", "- Nothing.", "- Stubs that changed: 03_online_softmax.")
        self.release(0, "since %s: 03_online_softmax. No" % self.old)

    def test_stubs_of_the_ladder_count(self):
        self.edit("exercises/cuda/03_flash_forward.cu", "// TODO: ", "// TODO: please ")
        self.edit("CHANGELOG.md", "cuda/03_flash_forward", "cuda/3")
        self.release(1, "does not say in its newest section that these stubs changed: cuda/03_flash_forward")

    def test_a_signature_never_changes(self):
        self.edit(HEADER, "void merge(OnlineSoftmax& state, const OnlineSoftmax& other)",
                  "void merge(OnlineSoftmax& mine, const OnlineSoftmax& theirs)")  # names are no part of it
        self.release(0, "No signature did")
        self.edit(HEADER, "const OnlineSoftmax& theirs)", "OnlineSoftmax& theirs)")
        self.release(1, "merge() had another signature in")
        self.edit(HEADER, "void merge(", "void join(")
        self.release(1, "merge() had another signature in")

    def test_every_function_of_a_lesson_has_a_signature(self):
        for stem in workbook.lessons():
            text = (workbook.ROOT / "include" / "nanolm" / (stem[3:] + ".h")).read_text(encoding="utf-8")
            functions = re.findall(r"^(?!  |inline|static|template|using|struct|enum)[\w:<>]+[\w:<>,&* ]* (\w+)\(", text, re.M)
            self.assertTrue(functions, stem)
            self.assertLessEqual(set(functions), set(stubs_since._signatures(text)), stem)

    def test_no_release(self):
        run = Run(self.root, "release", str(workbook.WORK / "x"), "--since", str(workbook.WORK))
        self.assertEqual((run.code, run.out), (2, ""))
        self.assertIn("is no release of the workbook", run.err)


if __name__ == "__main__":
    sys.exit(unittest.main())
