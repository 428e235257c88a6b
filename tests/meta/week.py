"""The week's table in CMakeLists.txt, the files of each lesson, and README's table agree."""

import re
import unittest

import workbook


class Week(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = workbook.export()
        cls.week = workbook.week()
        cls.lessons = workbook.lessons()

    def test_hours(self):
        self.assertEqual(sum(row.hours for row in self.week if row.tier == "core"), 11)
        self.assertEqual(sum(row.hours for row in self.week), 22)

    def test_stems_are_numbered_in_order(self):
        self.assertEqual([stem[:3] for stem in self.lessons], [f"{n:02}_" for n in range(1, len(self.lessons) + 1)])

    def test_each_lesson_is_whole(self):
        for stem in self.lessons:
            for path in (f"reference/{stem}.cpp", f"exercises/{stem}.cpp", f"tests/{stem}_test.cpp", f"notes/{stem}.md",
                         f"include/nanolm/{stem[3:]}.h"):
                with self.subTest(path):
                    self.assertTrue((self.root / path).is_file(), f"{path} is missing")
                    if path.startswith("reference/"):
                        self.assertIn(f'\n#include "nanolm/{stem[3:]}.h"\n', (self.root / path).read_text())

    def test_each_rung_is_whole(self):
        rungs = workbook.ladder()
        hours = re.findall(r'^  "cuda/\S+ +\w+ +([\d.]+)"\)?$', (self.root / "CMakeLists.txt").read_text(), re.M)
        self.assertEqual(sum(map(float, hours)), next(row.hours for row in self.week if row.stem == "cuda"))
        self.assertEqual([stem[5:8] for stem in rungs], [f"{n:02}_" for n in range(1, len(rungs) + 1)])
        declared = re.findall(r"\w+", re.search(r"^extern const Rung (.*);$", (
            self.root / "include/nanolm/cuda/ladder.h").read_text(), re.M)[1])
        self.assertEqual(declared, [stem[8:] for stem in rungs])
        for stem, kind in rungs.items():
            for path in (f"reference/{stem}.cu", f"exercises/{stem}.cu", f"notes/{stem}.md", f"tests/cuda/{kind}_test.cpp"):
                with self.subTest(path):
                    self.assertTrue((self.root / path).is_file(), f"{path} is missing")
                    if path.endswith(".cu"):
                        self.assertIn(f'r.name = "{stem}";', (self.root / path).read_text())

    def test_each_triton_exercise_is_whole(self):
        hours = re.findall(r'^  "triton/\S+ +([\d.]+)"\)?$', (self.root / "CMakeLists.txt").read_text(), re.M)
        self.assertEqual(sum(map(float, hours)), next(row.hours for row in self.week if row.stem == "triton"))
        self.assertEqual([stem[7:10] for stem in workbook.triton()], [f"{n:02}_" for n in range(1, len(hours) + 1)])
        for stem in workbook.triton():
            for path in (f"reference/{stem}.py", f"exercises/{stem}.py", f"tests/{stem}_test.py", "notes/triton.md"):
                with self.subTest(path):
                    self.assertTrue((self.root / path).is_file(), f"{path} is missing")

    def test_trees_hold_answers_and_nothing_else(self):
        rungs = {f"{stem}.cu" for stem in workbook.ladder()}
        files = rungs | {f"{stem}.py" for stem in workbook.triton()}
        folders = {row.stem for row in self.week} - set(self.lessons) - {"cuda", "triton"}
        for tree in ("reference", "exercises"):
            paths = [p.relative_to(self.root / tree) for p in (self.root / tree).rglob("*") if p.is_file()]
            strays = [str(p) for p in paths if p.parts[0] not in folders and str(p) not in
                      files | {f"{stem}.cpp" for stem in self.lessons}]
            self.assertEqual(strays, [], f"{tree}/ holds files of no lesson")

    def test_readmes_have_the_same_table(self):
        russian = {"core": "ядро", "depth": "глубина"}
        for name in ("README.md", "README.ru.md"):
            readme = self.root / name
            text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
            block = re.search(r"<!-- lessons -->\n(.*?)<!-- /lessons -->", text, re.S)
            if not block:
                self.skipTest(f"{name} has no <!-- lessons --> block")
            rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
                    for line in block.group(1).splitlines() if line.startswith("|")][2:]
            self.assertEqual(len(rows), len(self.week), f"{name} has another number of lessons than CMakeLists.txt")
            for row, cells in zip(self.week, rows):
                with self.subTest(page=name, lesson=row.stem):
                    self.assertIn(row.stem, re.findall(r"\w+", cells[0]))
                    if name == "README.md":
                        wanted = [row.tier, f"{row.hours:g}", row.title]
                    else:
                        wanted = [russian[row.tier], f"{row.hours:g}".replace(".", ",")]
                    for expected in wanted:
                        self.assertIn(expected, cells)


if __name__ == "__main__":
    unittest.main()
