"""The bank of mistakes: its reader, its edits, and what counts as the same wrong answer.

That each mistake is found and named is proved by `scripts/workbook mistakes`, which takes minutes.
"""

import json
import os
import sys
import tarfile
import threading
import unittest

import workbook

sys.dont_write_bytecode = True
sys.path.insert(0, str(workbook.ROOT / "scripts"))
from workbook_lib import fingerprints, mistakes_bank, mistakes_cuda, mistakes_cuda_run, mistakes_run, week  # noqa: E402
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


class Rungs(unittest.TestCase):
    HEAD = "# C03-01 one: A sentence.\nru: Предложение.\nsays: words\n"

    def read(self, text):
        path = workbook.WORK / "cuda" / "03_x.edits"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return mistakes_bank.read_bank("cuda/03_x", str(workbook.WORK))

    def test_what_a_student_is_told_stands_in_the_bank(self):
        mistake, = self.read(self.HEAD + "says: more\nchecked: race\nat: b = 1\n@ hazard\n-a\n+b = 1;\n")
        self.assertEqual(mistake.words, {"says": ["words", "more"], "checked": ["race"], "at": ["b = 1"]})
        self.assertEqual(mistake.marks, ["hazard"])
        self.assertEqual(mistakes_bank.line_of(mistake, mistakes_bank.apply(mistake, "x\na\n"), "b = 1"), 2)
        with self.assertRaisesRegex(Problem, "fits 0 lines of the wrong version"):
            mistakes_bank.line_of(mistake, "x\na\n", "b = 1")

    def test_a_bad_format_is_refused_in_one_line(self):
        for says, text in (("a mistake begins with `# C03-02", "# M03-01 one: A sentence.\n-a\n"),
                           ("C02-01 is no mistake of lesson cuda/03_x", "# C02-01 one: A sentence.\n-a\n"),
                           ("lacks what a student is told", "# C03-01 one: A sentence.\nru: П.\n-a\n"),
                           ("only `@ checked` and `@ hazard`", self.HEAD + "@ twin: C03-02\n-a\n"),
                           ("a line begins with #, ru:, says:, checked:, at:, @", self.HEAD + "a\n"),
                           ("its words stand behind says:", self.HEAD + "checked: race\n@ checked\n-a\n")):
            with self.subTest(text), self.assertRaises(Problem) as caught:
                self.read(text)
            self.assertIn(says, str(caught.exception))

    def test_every_edit_of_the_bank_applies(self):
        count = 0
        for entry in week.rungs():
            text = mistakes_cuda_run.reference_text(entry.stem)
            bank = mistakes_bank.read_bank(entry.stem)
            self.assertGreaterEqual(len(bank), 5, entry.stem)
            for mistake in bank:
                wrong = mistakes_bank.apply(mistake, text)
                self.assertNotEqual(wrong, text)
                for code in mistake.words.get("at", []):
                    mistakes_bank.line_of(mistake, wrong, code)
            count += len(bank)
        self.assertGreaterEqual(count, 60)
        self.assertIn("- 0 of %d wrong versions of the CUDA rungs" % count,
                      (workbook.ROOT / "README.md").read_text(encoding="utf-8"))

    def test_the_message_has_to_hold_the_words_and_the_line(self):
        mistake, = self.read(self.HEAD + "at: b = 1\n-a\n+b = 1;\n")

        def problems(back_end, *lines, checked=None):
            entry = {"back_end": back_end, "lines": list(lines), "checked": checked}
            return mistakes_cuda._problems(mistake, "x\nb = 1;\n", entry)

        self.assertEqual(problems("check", "r/cuda/03_x.cu:2: the words"), [])
        self.assertEqual(problems("check", "a.cu:7 (called at line 2): words"), [])
        self.assertRegex(" ".join(problems("check", "a.cu:12: words")), "does not name line 2")
        self.assertRegex(" ".join(problems("check", "a.cu:2: wards")), "does not say 'words'")
        self.assertRegex(" ".join(problems("check --checked", "a.cu:2: words")), "`@ checked` is missing")
        self.assertRegex(" ".join(problems(None)), "survives")


class Triton(unittest.TestCase):
    def test_every_edit_of_the_bank_applies(self):
        for entry in week.members("triton"):
            bank = mistakes_bank.read_bank(entry.stem)
            self.assertGreaterEqual(len(bank), 6, entry.stem)
            text = (workbook.ROOT / "reference" / week.source_name(entry.stem)).read_text(encoding="utf-8")
            for mistake in bank:
                with self.subTest(mistake.id):
                    self.assertNotEqual(mistakes_bank.apply(mistake, text), text)


class Processes(unittest.TestCase):
    """What is told first of a test program, here a script that speaks as GoogleTest does."""

    def program(self, body):
        path = workbook.WORK / "program"
        path.write_text("#!%s\nimport sys, time\nchosen = sys.argv[-1].split('=')[1].split(':')\n"
                        "alone = len(chosen) == 1\ndef told(test):\n%s\n"
                        "for test in chosen:\n    print('[ RUN      ]', test, flush=True)\n    says = told(test)\n"
                        "    print(says + '\\n[  FAILED  ] ' + test if says else '[       OK ] ' + test, flush=True)\n"
                        "    if not says and alone: print('[  PASSED  ] 1 test.')\n" % (sys.executable, body))
        path.chmod(0o755)
        return str(path)

    def observe(self, body):
        verdict = mistakes_cuda_run.observe(self.program(body), ["A.a", "A.b", "B.c"], False)
        return verdict and (verdict.name, verdict.kind)

    VALUE = "'t.cpp:1: Failure\\nvalue'"
    FAULT = "'unknown file: Failure\\nC++ exception with description \"x.cu:3: fault\" thrown in the test body.'"

    def test_a_line_of_the_kernel_comes_first(self):
        self.assertIsNone(self.observe("    pass"))
        self.assertEqual(self.observe("    return %s if test != 'A.a' else ''" % self.VALUE), ("A.b", "failed"))
        self.assertEqual(self.observe("    return {'A.a': %s, 'B.c': %s}.get(test, '')" % (self.VALUE, self.FAULT)),
                         ("B.c", "failed"))

    def test_what_fails_alone_only_is_found(self):
        alone = self.observe("    return %s if alone and test == 'B.c' else ''" % self.VALUE)
        self.assertEqual(alone, ("B.c", "failed"))

    def test_an_endless_loop_and_a_crash_end(self):
        for limit, seconds in (("SILENT_SECONDS", 2), ("ALL_SECONDS", 1), ("TEST_SECONDS", 1)):
            self.addCleanup(setattr, mistakes_cuda_run, limit, getattr(mistakes_cuda_run, limit))
            setattr(mistakes_cuda_run, limit, seconds)
        self.assertEqual(self.observe("    time.sleep(99 * (test == 'A.b'))"), ("A.b", "timed out"))
        self.assertEqual(self.observe("    while test == 'A.b': pass"), ("A.b", "timed out"))
        self.assertEqual(self.observe("    import os\n    if test == 'A.b': os.abort()"), ("A.b", "crashed"))


class OnADevice(unittest.TestCase):
    """scripts/cuda_mistakes_on_device.py run, with programs and a compute-sanitizer that are scripts."""

    SANITIZER = """#!/bin/sh
[ "$1" = --version ] && { echo 'Version 1'; exit; }
echo '========= COMPUTE-SANITIZER'
case "$2 $5" in
  'racecheck '*C03-01*) echo '========= Error: Race reported between Write access at f+0x10 in 03_x.cu:60'
    echo '=========     and Read access at f+0x20 in 03_x.cu:46 [8 hazards]';;
  'memcheck '*C03-02*) echo '========= Invalid __global__ read of size 4 bytes'
    echo '=========     at f+0x10 in /x/03_x.cu:59';;
  *C03-03*) sleep 99;;
esac
echo '========= ERROR SUMMARY: 0 errors'
"""

    def test_a_program_that_hangs_or_dies_costs_itself(self):
        folder, tools = workbook.WORK / "device", workbook.WORK / "tools"
        for path in (folder, tools):
            path.mkdir(parents=True, exist_ok=True)
        (tools / "compute-sanitizer").write_text(self.SANITIZER)
        (tools / "compute-sanitizer").chmod(0o755)
        programs = {"answers-03": "echo '[  PASSED  ] 2 tests.'", "C03-01": "echo '[  FAILED  ] A.b (1 ms)'; exit 1",
                    "C03-02": "kill -9 $$", "C03-03": "sleep 99 & sleep 99"}
        with tarfile.open(folder / "programs.tar.xz", "w:xz") as archive:
            for name, body in programs.items():
                (folder / name).write_text("#!/bin/sh\n%s\n" % body)
                (folder / name).chmod(0o755)
                archive.add(folder / name, arcname=name)
        marks = {"C03-01": ["hazard"]}
        (folder / "mistakes.json").write_text(json.dumps(
            {name: {"slug": "", "rung": "cuda/03_x", "says": "", "marks": marks.get(name, [])} for name in programs}))
        script = workbook.ROOT / "scripts" / "cuda_mistakes_on_device.py"
        done = workbook.run(sys.executable, script, "run", folder, "--json", folder / "out.json", "--jobs", "8",
                            "--seconds", "2", "--total", "60",
                            PATH="%s:%s" % (tools, os.environ["PATH"]))
        self.assertEqual(done.returncode, 0, done.text)
        found = json.loads((folder / "out.json").read_text())["mistakes"]
        self.assertEqual([found[name]["tests"]["ended"] for name in programs],
                         ["passed", "failed", "crashed, signal 9", "timed out"])
        self.assertEqual(found["C03-01"]["tests"]["failed"], ["A.b"])
        self.assertEqual(found["C03-01"]["racecheck"],
                         "Error: Race reported between Write access at f+0x10 in 03_x.cu:60")
        self.assertEqual(found["C03-02"]["memcheck"], "Invalid __global__ read of size 4 bytes, 03_x.cu:59")
        tools = ("racecheck", "memcheck", "initcheck", "synccheck")
        self.assertEqual([found["answers-03"][tool] for tool in tools], [None] * 4)
        self.assertEqual(found["C03-03"]["initcheck"], "timed out")
        self.assertIn("racecheck finds 1 of 1 hazards", done.text)


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
