"""scripts/check_notes.py: the notes pass it, and it finds what was changed in one place, with the right value."""

import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import workbook

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import check_notes  # noqa: E402
from note_pages import Page, plain, slug_of  # noqa: E402

ENGLISH = """# 99 Trial
<!-- a comment with 17 -->
## Why

An H100 does 989 TFLOP/s and reads 3.35 TB/s: 295 operations
a byte, for S = 4096. [Map](00_map.md#order), `Suite.Name`, `77` and lesson 05.

```text
scripts print 1234
```

## The exercise

Of 69 206 016 elements 2²⁶ remain, 97.0 %; `exercises/99_trial.cpp`. Student, 1908.
"""
RUSSIAN = """# 99 Проба

<a id="why"></a>

## Зачем

H100 делает 989 TFLOP/с и читает 3,35 ТБ/с: 295 операций на байт при S = 4096. [Карта](00_map.md#order),
`Suite.Name`, `77` и урок 05.

```text
scripts print 1234
```

<a id="the-exercise"></a>

## Упражнение

Из 69 206 016 элементов остаётся 2²⁶, то есть 97,0 %; `exercises/99_trial.cpp`. Student, 1908.
"""
CLAIMS = """from check_notes import given, groups, says, sup
says("989 TFLOP/s and reads 3.35 TB/s: {:.0f} operations a byte, for S = 4096", 989 / 3.35)
says("Of {} elements 2{} remain, {:.1f} %", groups(69206016), sup(26), 100 * 2 ** 26 / 69206016)
given("Student, 1908", source="Student")
"""


class Trial(unittest.TestCase):
    """One chapter in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        self.notes, self.claims = self.root / "notes", self.root / "tests" / "notes"
        (self.notes / "ru").mkdir(parents=True)
        self.claims.mkdir(parents=True)
        (self.root / "code.cpp").write_text("int one();\nint two();\n", encoding="utf-8")
        for at in (self.notes, self.notes / "ru"):
            (at / "00_map.md").write_text("# Map\n\n<a id=\"order\"></a>\n\n## Order\n", encoding="utf-8")
        (self.claims / "00_map.py").write_text("", encoding="utf-8")

    def errors(self, english=ENGLISH, russian=RUSSIAN, claims=CLAIMS):
        for path, text in ((self.notes / "99_trial.md", english), (self.notes / "ru/99_trial.md", russian),
                           (self.claims / "99_trial.py", claims)):
            if text is not None:
                path.write_text(text, encoding="utf-8")
        return [error.replace(str(self.root) + "/", "") for error in check_notes.run(self.root)]

    def test_a_right_chapter_passes(self):
        self.assertEqual(self.errors(), [])

    def test_each_figure_that_is_changed_is_named_with_the_right_one(self):
        for right, wrong, line in (("989", "988", 5), ("3.35", "3.36", 5), ("295", "296", 5), ("4096", "4095", 6),
                                   ("69 206 016", "69 206 017", 14), ("2²⁶", "2²⁵", 14), ("97.0 %", "97.1 %", 14),
                                   ("1908", "1909", 14)):
            with self.subTest(right):
                found = [e for e in self.errors(ENGLISH.replace(right, wrong)) if not e.startswith("notes/ru/")]
                self.assertRegex(found[0], r"^notes/99_trial.md:%d: %s stands there; right is %s \(.*99_trial.py:\d\)$"
                                 % (line, wrong, right))

    def test_a_figure_without_a_passage_and_a_passage_without_a_place_are_errors(self):
        added = ENGLISH.replace("Student", "And 42 more. Student")
        self.assertIn("notes/99_trial.md:14: 42 is in no passage", "\n".join(self.errors(added)))
        gone = self.errors(claims=CLAIMS + 'says("{} that nobody wrote", 6 * 7)\n')
        self.assertRegex("\n".join(gone), r"99_trial.py:5: this passage is not in .*: 42 that nobody wrote")
        self.assertRegex("\n".join(self.errors(claims="")), "989 is in no passage")

    def test_a_given_figure_needs_a_source(self):
        found = self.errors(claims='from check_notes import given\n\ngiven("Student, 1908", source="")\n')
        self.assertRegex(found[0], r"^\S*99_trial.py:3: ValueError: a source is missing for: Student, 1908")

    def test_what_one_language_lacks_is_named(self):
        for what, russian in (
                ("figure 3.35", RUSSIAN.replace("3,35", "3,36")), ("figure 295", RUSSIAN.replace("295 ", "")),
                ("link notes/00_map.md", RUSSIAN.replace("[Карта](00_map.md#order)", "Карта")),
                ("name Suite.Name", RUSSIAN.replace("`Suite.Name`", "его")),
                ("name exercises/99_trial.cpp", RUSSIAN.replace("`exercises/99_trial.cpp`", "")),
                ("code scripts print 1234", RUSSIAN.replace("1234", "1235"))):
            with self.subTest(what):
                self.assertRegex("\n".join(self.errors(russian=russian)),
                                 r"notes/ru/99_trial.md:\d+: section #\S+ lacks the " + re.escape(what))
        self.assertRegex(self.errors(russian=RUSSIAN.replace('"why"', '"who"'))[0], "the headings differ .* at #why")
        self.assertRegex(self.errors(russian=RUSSIAN.split("<a id=\"the-ex")[0])[0], "the headings differ .*the-exercise")
        (self.notes / "ru/99_trial.md").unlink()
        self.assertEqual(self.errors(russian=None), ["notes/ru/99_trial.md is missing"])
        (self.notes / "99_trial.md").unlink()
        self.assertRegex("\n".join(self.errors(english=None)), "has no English chapter")

    def test_a_page_in_a_folder_is_compared_with_its_russian_one_where_there_is_one(self):
        command = "\n```\nscripts/workbook check cuda/01%s\n```\n"
        english, russian = self.notes / "cuda/01_rung.md", self.notes / "ru/cuda/01_rung.md"
        for path, text in ((english, ENGLISH + command % ""), (russian, RUSSIAN + command % "   # и всё"),
                           (self.claims / "cuda/01_rung.py", CLAIMS)):
            path.parent.mkdir()
            path.write_text(text.replace("00_map", "../00_map"), encoding="utf-8")
        self.assertEqual(self.errors(), [])
        right = russian.read_text(encoding="utf-8")
        for what, wrong in (("figure 295", right.replace("295 ", "")),
                            ("code scripts/workbook check cuda/01", right.replace("cuda/01", "cuda/02"))):
            with self.subTest(what):
                russian.write_text(wrong, encoding="utf-8")
                self.assertRegex("\n".join(self.errors()),
                                 r"notes/ru/cuda/01_rung.md:\d+: section #\S+ lacks the " + re.escape(what))
        page = english.read_text(encoding="utf-8")
        english.unlink()
        self.assertEqual(self.errors(), ["notes/ru/cuda/01_rung.md has no English chapter"])
        russian.unlink()
        english.write_text(page, encoding="utf-8")
        self.assertEqual(self.errors(), [])
        english.write_text(page.replace("295 operations", "296 operations"), encoding="utf-8")
        self.assertRegex("\n".join(self.errors()), "notes/cuda/01_rung.md:5: 296 stands there; right is 295")
        (self.claims / "cuda/01_rung.py").unlink()
        self.assertRegex("\n".join(self.errors()), "notes/cuda/01_rung.md:5: 989 is in no passage of .*cuda/01_rung.py")

    def test_pages_for_those_who_help_claim_nothing_and_lesson_10_is_in_english(self):
        for name in ("hints/99_trial.md", "ai_tutor.md", "10_fast_attention.md"):
            (self.notes / name).parent.mkdir(exist_ok=True)
            (self.notes / name).write_text("# Hint\n\nIt is 42.\n", encoding="utf-8")
        self.assertEqual([error.split(" is in ")[0] for error in self.errors()], ["notes/10_fast_attention.md:3: 42"])

    def test_numbers_are_read_out_of_a_source(self):
        source = self.root / "code.cpp"
        source.write_text("int kTile = 16, no_kTile = 1;\nif (x < 0.95 * best) f(8, 4);\nf(1, 2);\n", encoding="utf-8")
        for template, found in (("kTile = {},", 16), ("{} * best", 0.95), ("best) f({}, {})", [8, 4])):
            self.assertEqual(check_notes.code(source, template), found)
        for template, places in (("kLost = {}", "0 different"), ("f({}, {})", "2 different")):
            with self.assertRaisesRegex(ValueError, places):
                check_notes.code(source, template)

    def test_links_lead_somewhere(self):
        self.assertRegex(self.errors(ENGLISH.replace("00_map.md#order", "01.md"))[0], "01.md leads to no file")
        self.assertRegex(self.errors(ENGLISH.replace("#order", "#disorder"))[0], "has no heading #disorder")
        self.assertEqual(self.errors(ENGLISH + "\n`[f](no.md)`\n\n```\n[g](no.md)\n```\n[h](https://e.org)\n"), [])

    def test_an_excerpt_is_the_code_of_its_file(self):
        fence = "\n<!-- from: code.cpp -->\n```cpp\n%s\n```\n"
        good, bad = fence % "int two();", fence % "int three();"
        self.assertEqual(self.errors(ENGLISH + good, RUSSIAN + good), [])
        self.assertEqual(self.errors(ENGLISH + bad, RUSSIAN + bad), [
            "notes/99_trial.md:16: this is not the code of code.cpp",
            "notes/ru/99_trial.md:20: this is not the code of code.cpp"])


class Parts(unittest.TestCase):
    def test_figures_are_numbers_that_a_reader_believes(self):
        text = ("H100, fp16, S², 2mnk, FA2, lessons 03 and 05, rung 04, 8 heads: 16 of 0.5, 12.5 %, 1e-7 and 10⁻⁷; "
                "`99`, [x](a99.md), <b c=\"98\">, Dao et al., 2022; https://e.org/97 69 206 016, урок 06\n"
                "# 96 heads\n<!-- t -->\n95\n<!-- /t -->\n\n1. one\n12. twelve\n\n```cpp\n94\n```\n\n```\nn = 93\n```\n")
        self.assertEqual([figure for _, figure in Page(text).figures()],
                         ["16", "0.5", "12.5 %", "1e-7", "10⁻⁷", "69 206 016", "93"])

    def test_both_languages_write_one_number(self):
        self.assertEqual(plain("69 206 016"), "69206016")
        self.assertEqual(plain("97,0 %"), plain("97.0 %"))

    def test_slugs_are_those_of_github(self):
        for heading, slug in (("Q(KᵀV), [a link](b.md) and `code_x`: why?", "qkᵀv-a-link-and-code_x-why"),
                              ("The GPU in one page", "the-gpu-in-one-page"), ("m, d, o: `update`", "m-d-o-update"),
                              ("Q(KᵀV) instead of (QKᵀ)V", "qkᵀv-instead-of-qkᵀv"), ("Зачем это", "зачем-это"),
                              ("A  -  b_c", "a-----b_c")):
            self.assertEqual(slug_of(heading), slug)


class Notes(unittest.TestCase):
    def test_the_notes_pass(self):
        root = workbook.export()
        done = workbook.run(sys.executable, "-B", root / "scripts/check_notes.py")
        self.assertEqual(done.text, "The notes' figures, links and languages agree.\n")

    def test_a_figure_of_the_notes_that_is_changed_is_found(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name) / "copy"
        shutil.copytree(workbook.export(), root)
        chapter = root / "notes/01_roofline.md"
        text = chapter.read_text(encoding="utf-8")
        self.assertIn("do 295 operations", text)
        chapter.write_text(text.replace("do 295 operations", "do 290 operations"), encoding="utf-8")
        done = workbook.run(sys.executable, "-B", root / "scripts/check_notes.py", "01_roofline")
        self.assertRegex(done.text, r"notes/01_roofline.md:\d+: 290 stands there; right is 295")


if __name__ == "__main__":
    unittest.main()
