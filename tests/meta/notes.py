"""Each lesson has a note with a worked example and its command; the tables of the records are in them."""

import json
import re
import sys
import unittest

import workbook


class Notes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = workbook.export()

    def test_each_lesson_has_its_note(self):
        for stem in workbook.lessons():
            with self.subTest(stem):
                note = self.root / "notes" / f"{stem}.md"
                self.assertTrue(note.is_file(), f"notes/{stem}.md is missing")
                text = note.read_text()
                tests = (self.root / "tests" / f"{stem}_test.cpp").read_text()
                examples = re.findall(r"^<!-- example: (\w+)\.(\w+) -->$", text, re.M)
                self.assertTrue(examples, "no `<!-- example: Suite.Name -->` stands before a worked example")
                for suite, name in examples:
                    self.assertTrue(f"TEST({suite}, {name})" in tests, f"no TEST({suite}, {name}) recomputes it")
                self.assertTrue(re.search(rf"^scripts/workbook check {stem[:2]}$", text, re.M), "no command")

    def test_each_rung_has_its_note(self):
        for stem, kind in workbook.ladder().items():
            with self.subTest(stem):
                text = (self.root / "notes" / f"{stem}.md").read_text()
                tests = "".join(p.read_text() for p in (self.root / "tests/cuda").glob(f"{kind}*_test.cpp"))
                for suite, name in re.findall(r"^<!-- example: (\w+)\.(\w+) -->$", text, re.M):
                    self.assertTrue(f"TEST({suite}, {name})" in tests, f"no TEST({suite}, {name}) recomputes it")
                self.assertTrue(re.search(rf"^scripts/workbook check {stem[:7]}$", text, re.M), "no command")

    def test_the_note_of_triton_shows_the_kernels_and_both_twins_as_they_are(self):
        note = (self.root / "notes/triton.md").read_text(encoding="utf-8")
        self.assertGreater(len(re.findall(r"^<!-- from: \S+ -->$", note, re.M)), 6)  # check_notes.py compares them
        for kernel in re.findall(r"^def (\w+)", (self.root / "tests/triton/kernels.py").read_text(encoding="utf-8"), re.M):
            self.assertIn(f"def {kernel}(", note)
        self.assertTrue(re.search(r"^scripts/workbook check triton$", note, re.M), "no command")
        tests = set(re.findall(r'^@test\("(\S+)"\)$', "".join(
            path.read_text(encoding="utf-8") for path in (self.root / "tests/triton").glob("*_test.py")), re.M))
        for page in [self.root / "notes/triton.md", *(self.root / "notes/hints/triton").glob("*.md")]:
            for name in re.findall(r"`([A-Z]\w*\.[A-Z]\w*)`", page.read_text(encoding="utf-8")):
                self.assertIn(name, tests | {"Builds"}, page.name)

    def test_tests_that_notes_and_hints_name_exist(self):
        stems = workbook.lessons() + list(workbook.ladder())
        named = 0
        for stem in stems:
            files = (self.root / "tests").glob(f"{stem}_test.cpp") if "/" not in stem else (
                self.root / "tests/cuda").glob(f"{workbook.ladder()[stem]}_*test.cpp")
            tests = set(re.findall(r"TEST\((\w+), (\w+)\)", "".join(p.read_text(encoding="utf-8") for p in files)))
            for page in (self.root / "notes" / f"{stem}.md", self.root / "notes/hints" / f"{stem}.md"):
                for suite, name in re.findall(r"`([A-Z]\w*)\.([A-Z]\w*)`", page.read_text(encoding="utf-8")):
                    named += 1
                    with self.subTest(page=str(page.relative_to(self.root)), test=f"{suite}.{name}"):
                        self.assertIn((suite, name), tests)
        self.assertGreater(named, len(stems))

    def test_tables_are_those_of_their_records(self):
        for page, name, command in (
                ("cuda/ladder.md", "ladder", "ladder_tables.py ladder_h200.json"),
                ("cuda/ladder.md", "compare_torch_cuda", "compare_torch_cuda.py --from compare_torch_h200.json"),
                ("01_roofline.md", "elementwise_share", "elementwise_share.py --from elementwise_share_h200.json"),
                ("ru/01_roofline.md", "elementwise_share", "elementwise_share.py --from elementwise_share_h200.json"),
                ("cuda/04_flash_decode.md", "decode_counters", "decode_counters.py --from decode_counters_h200.json"),
                ("ru/cuda/04_flash_decode.md", "decode_counters", "decode_counters.py --from decode_counters_h200.json"),
                ("cuda/counters.md", "counters", "ladder_counters.py table ladder_counters_h200.json"),
                ("10_fast_attention.md", "compare_torch", "compare_torch.py --from fast_attention_cpu.json"),
                ("10_fast_attention.md", "fast_steps", "fast_steps.py --from fast_steps_cpu.json")):
            script, *arguments, record = command.split()
            with self.subTest(f"{page}: {name}"):
                printed = workbook.run(sys.executable, self.root / "scripts" / script, *arguments,
                                       self.root / "notes/data" / record).text
                note = (self.root / "notes" / page).read_text(encoding="utf-8")
                block = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", note, re.S)
                self.assertEqual(block[1], printed, f"scripts/{command} --write puts them there")

    def test_racecheck_sees_the_hazards_that_the_emulator_sees(self):
        record = json.loads((self.root / "notes/data/cuda_hazards_h200.json").read_text(encoding="utf-8"))["mistakes"]
        hazards = set()
        for path in (self.root / "tests/mistakes/cuda").glob("*.edits"):
            for entry in re.split(r"^# ", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
                # A rung is new until its mistakes were run on a device: C04 of C04-11.
                if "\n@ hazard" in entry and entry[:3] in {name[:3] for name in record}:
                    hazards.add(entry.split()[0])
        self.assertEqual(hazards, {name for name, one in record.items() if "hazard" in one["marks"]})
        self.assertGreater(len(hazards), 5)
        for name, one in record.items():
            with self.subTest(name):
                self.assertEqual(bool(one["racecheck"]), name in hazards)


if __name__ == "__main__":
    unittest.main()
