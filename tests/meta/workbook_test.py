"""scripts/workbook as a person types it. Run alone: python3 tests/meta/workbook_test.py"""

import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from xml.sax.saxutils import escape

import workbook

sys.dont_write_bytecode = True
sys.path.insert(0, str(workbook.ROOT / "scripts"))
from workbook_lib import verdicts, week  # noqa: E402
from workbook_lib.console import Problem  # noqa: E402

KEPT = ("01_roofline", "02_critical_batch", "03_online_softmax")  # the lessons of the copies: three build quickly


def copy(name, lessons=KEPT):
    """A copy of the workbook that git tracks, with these lessons only."""
    root = workbook.export(name)
    table = root / "CMakeLists.txt"
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join(line for line in lines if not re.match(r'\s*"\d', line) or line.split('"')[1].split()[0] in lessons)
    text = re.sub(r"^set\((ladder|triton_units)\n.*?\)$", r"set(\1)", text, flags=re.M | re.S)
    table.write_text(text, encoding="utf-8")
    git = ["git", "-C", str(root), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "copy"]):
        subprocess.run(git + words, check=True)
    return root


class Run:
    def __init__(self, root, *arguments, cwd="/", **env):
        inherited = {key: value for key, value in os.environ.items()
                     if not re.match(r"CTEST_|CMAKE_|MAKE|MFLAGS|CXX|LDFLAGS|GTEST_|NANOLM_(?!CUDA$)|NO_COLOR", key)}
        done = subprocess.run([str(root / "scripts" / "workbook"), *arguments], cwd=cwd, env={**inherited, **env},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", errors="replace")
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.text = "%s\n%s[exit status %d]" % (done.stdout, done.stderr, done.returncode)


def git_status(root, *words):
    return subprocess.run(["git", "-C", str(root), "status", "--porcelain", *words], check=True,
                          stdout=subprocess.PIPE, encoding="utf-8").stdout


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = copy("refused")
        (cls.root / "empty").mkdir()
        cls.few = workbook.WORK / "few programs"  # a PATH without compiler and cmake
        shutil.rmtree(cls.few, ignore_errors=True)
        cls.few.mkdir(parents=True)
        for program in ("sh", "dirname", "id"):
            (cls.few / program).symlink_to(shutil.which(program))

    def refused(self, says, *arguments, **options):
        with self.subTest(arguments):
            run = Run(self.root, *arguments, **options)
            self.assertEqual(run.code, 2, run.text)
            self.assertEqual(run.out, "")
            self.assertRegex(run.err, r"\Aerror: .*\n\Z")
            self.assertIn(says, run.err)
            self.assertFalse((self.root / "build").exists(), "something was written")
            self.assertEqual(git_status(self.root, "--ignored"), "")

    def test_verbs_and_options(self):
        self.refused("'frob' is no verb", "frob")
        self.refused("'--frob' is no verb", "--frob")
        self.refused("'0'", "test", "--jobs", "0")
        self.refused("'-3'", "test", "--jobs=-3")
        self.refused("'two'", "test", "--jobs", "two")
        self.refused("03", "test", "03")
        self.refused("--imp", "check", "--imp", "reference")
        self.refused("LICENSE' is no folder", "test", "--build-dir", str(self.root / "LICENSE"))
        self.refused("tests' holds files", "test", "--build-dir", str(self.root / "tests"))
        self.refused("holds the workbook", "test", "--build-dir", str(self.root))
        self.refused("holds the workbook", "test", "--build-dir", str(self.root.parent))
        self.refused("LICENSE' is no folder", "notes", "--out", str(self.root / "LICENSE"))
        self.refused("tests' holds files", "notes", "--out", str(self.root / "tests"))
        self.refused("lies in the workbook", "notes", "--out", str(self.root / "site"))

    def test_lessons(self):
        for wrong in ("4", "00", "sofmax", "", "attention_bench"):
            self.refused("%r is no lesson. The lessons: %s" % (wrong, ", ".join(KEPT)), "check", wrong)
        self.refused("'o' fits 2 lessons", "check", "o")

    def test_trees(self):
        for verb in ("check", "bench"):
            self.refused("'refrence' does not exist. Choose", verb, "--impl", "refrence")
            self.refused("'LICENSE' is a file. Choose", verb, "--impl", "LICENSE")
            self.refused("--impl is empty. Choose", verb, "--impl", "")
            self.refused("'empty' holds no lesson. Choose", verb, "--impl", "empty")
            self.refused("'a;b': CMake or make cannot have ;", verb, "--impl", "a;b")
            self.refused("'~/mine': the shell did not replace ~", verb, "--impl", "~/mine")

    def test_places_that_cmake_cannot_have(self):
        self.refused("CMake or make cannot have \" in the path", "test", "--build-dir", str(self.root / 'my "build"'))
        quoted = self.root.parent / 'a "quoted" copy'
        shutil.rmtree(quoted, ignore_errors=True)
        self.root.rename(quoted)
        try:
            run = Run(quoted, "check")
        finally:
            quoted.rename(self.root)
        self.assertEqual((run.code, run.out), (2, ""))
        self.assertRegex(run.err, r"\Aerror: the workbook's folder: CMake or make cannot have \" in the path .*\n\Z")

    def test_missing_programs(self):
        self.refused("CXX='no-such-compiler' is no program", "check", CXX="no-such-compiler")
        for verb in ("check", "test"):
            self.refused("missing: C++ compiler (", verb, PATH=str(self.few), NANOLM_NO_INSTALL="1")

    def test_missing_python(self):
        starter = self.root / "scripts" / "workbook"
        text = starter.read_text()
        try:
            starter.write_text(text.replace("/usr/bin/python3", "python3"))
            run = Run(self.root, "check", PATH=str(self.few), NANOLM_NO_INSTALL="1")
        finally:
            starter.write_text(text)
        self.assertEqual((run.code, run.out), (2, ""))
        self.assertRegex(run.err, r"\Aerror: python3, version 3.8 or newer, is missing.*\n\Z")

    def test_bench_arguments(self):
        self.refused("'x'", "bench", "--samples", "x")
        self.refused("--frob", "bench", "--frob")


class Grades(unittest.TestCase):
    """In a checkout whose path has spaces and quotes, from another current folder."""

    @classmethod
    def setUpClass(cls):
        cls.root = copy("it's a copy")

    def setUp(self):
        shutil.rmtree(self.root / "exercises")
        shutil.copytree(workbook.ROOT / "exercises", self.root / "exercises")

    def solve(self, stem, edit=lambda text: text, tree="exercises"):
        text = edit((workbook.ROOT / "reference" / (stem + ".cpp")).read_text())
        (self.root / tree / (stem + ".cpp")).write_text(text)

    def test_a_lesson_at_a_time(self):
        self.solve("03_online_softmax")
        self.solve("02_critical_batch", lambda text: text.replace("namespace nanolm {", "namespace nanolm { oops", 1))
        run = Run(self.root, "check")
        self.assertEqual(run.code, 1, run.text)
        self.assertEqual(run.err, "")
        self.assertNotIn("\033", run.out)
        self.assertRegex(run.out, r"✗ 01_roofline +not implemented at exercises/01_roofline\.cpp:\d+\n")
        self.assertRegex(run.out, r"✗ 02_critical_batch +does not compile: exercises/02_critical_batch\.cpp:\d+:\d+: ")
        self.assertRegex(run.out, r"✓ 03_online_softmax +passed \(\d+ tests\)\n")
        self.assertIn("1 of 3 lessons of exercises pass.", run.out)
        self.assertNotIn("Recording", run.out, "stubs are no mistakes: nothing is to be named")
        table = Run(self.root, "progress")
        self.assertRegex(table.out, r"03_online_softmax +core +2.25 h  █{20}  passed")
        self.assertRegex(table.out, r"core +█+░+  2.25 of \d")

        # What derails a plain ctest does not derail this.
        hostile = {"GTEST_FILTER": "None.*", "GTEST_TOTAL_SHARDS": "2", "GTEST_SHARD_INDEX": "1", "GTEST_OUTPUT": "xml",
                   "CTEST_OUTPUT_ON_FAILURE": "1", "CMAKE_GENERATOR": "Unix Makefiles", "DESTDIR": "/nowhere",
                   "MAKEFLAGS": "-n", "LANGUAGE": "ru"}
        program = self.root / "build" / "exercises" / "bin" / "03_online_softmax_test"
        built = program.stat().st_mtime_ns
        for lesson in ("3", "03", "softmax", "exercises/03_online_softmax.cpp"):
            run = Run(self.root, "check", lesson, **hostile)
            self.assertEqual((run.code, run.err), (0, ""), run.text)
            self.assertRegex(run.out, r"✓ 03_online_softmax: (\d+) of \1 tests pass")
        self.assertEqual(program.stat().st_mtime_ns, built, "what had not changed was built again")
        run = Run(self.root, "check", "3", "1", "softmax")
        self.assertEqual((run.code, run.err), (1, ""), run.text)
        self.assertRegex(run.out, r"Building and testing 03_online_softmax, 01_roofline of exercises")
        self.assertRegex(run.out, r"(?s)✓ 03_online_softmax: (\d+) of \1 tests pass.*✗ 01_roofline: \d+ of \d+ tests")
        self.assertEqual(run.out.count(" tests pass."), 2)
        run = Run(self.root, "check", "2")
        self.assertEqual(run.code, 1)
        self.assertIn("02_critical_batch.cpp does not compile: no test was run.", run.out)
        self.assertLess(len(run.out.splitlines()), 10)

    def test_tree_elsewhere_and_what_goes_wrong_in_it(self):
        tree = self.root.parent / "my tree's answers"
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(workbook.ROOT / "reference", tree)
        run = Run(self.root, "check", "3", "--impl", tree.name, cwd=str(tree.parent), CXXFLAGS="-DFROM_THE_USER")
        self.assertEqual(run.code, 0, run.text)
        commands = next((self.root / "build").glob("my_tree*/compile_commands.json")).read_text()
        self.assertIn("-DFROM_THE_USER", commands)

        def breaks(text):
            for function, edit in (("check_merge(", "*static_cast<volatile int*>(nullptr) = 1;"),
                                   ("check_finish(", "volatile bool yes = true; while (yes) {}"),
                                   ("check_weighted_sum(", "std::exit(0);")):
                text = re.sub(r"\n  %s.*" % re.escape(function), "\n  " + edit, text, count=1)
            text = text.replace("#include <cmath>", "#include <cmath>\n#include <cstdlib>", 1)
            return text.replace("return state.row_max + std::log", "return 1 + state.row_max + std::log", 1)

        self.solve("03_online_softmax", breaks, tree)
        run = Run(self.root, "check", "softmax", "--impl", str(tree), cwd=str(tree))
        self.assertEqual((run.code, run.err), (1, ""), run.text)
        for says in (r"MergeIsAssociative\n +crashed: segmentation fault", r"FinishDividesByTheSum\n +stopped: no result",
                     r"HandlesLargeLogits\n +the program ended before", r"✓ OnlineSoftmax.GivenNewStateIsEmpty\n",
                     r"LogSumExpMatchesDirectComputation\n +tests/03_online_softmax_test\.cpp:\d+: The difference"):
            self.assertRegex(run.out, says)
        one, built = (re.search(r"  %s: (.*)\n" % says, run.out)[1] for says in
                      ("One test alone", "That runs what was built last. After an edit, first"))
        self.solve("03_online_softmax", tree=tree)
        for command, passes in ((one, False), (built, True), (one, True)):
            done = subprocess.run(["sh", "-c", command], cwd=str(self.root), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            self.assertEqual(done.returncode == 0, passes, command)
        (tree / "03_online_softmax.cpp").unlink()
        run = Run(self.root, "check", "softmax", "--impl", str(tree))
        self.assertEqual(run.code, 1, run.text)
        self.assertRegex(run.out, "03_online_softmax.cpp is missing")

    def test_the_answers_and_two_at_once(self):
        shutil.rmtree(self.root / "build" / "reference", ignore_errors=True)
        with ThreadPoolExecutor() as both:
            suite = both.submit(Run, self.root, "test", "--jobs", "3")
            one = both.submit(Run, self.root, "check", "1", "--impl", "reference")
        suite, one = suite.result(), one.result()
        self.assertEqual((suite.code, suite.err), (0, ""), suite.text)
        self.assertIn("100% tests passed", suite.out)
        self.assertIn("This graded the ANSWERS in reference/, which all pass.", suite.out)
        self.assertIn("scripts/workbook check", suite.out)
        self.assertEqual((one.code, one.err), (0, ""), one.text)
        self.assertIn("✓ 01_roofline", one.out)
        self.assertEqual((suite.out + one.out).count("Waiting for another scripts/workbook: it uses"), 1)

    def test_interrupt(self):
        place = self.root.parent
        run = subprocess.Popen([str(self.root / "scripts" / "workbook"), "test", "--build-dir", "my build"],
                               cwd=str(place), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        while "01_roofline.Builds" not in (run.stdout.readline() or "01_roofline.Builds"):
            pass
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.communicate()[1], "")
        self.assertEqual(run.returncode, 130)
        self.assertTrue((place / "my build" / "CMakeCache.txt").exists())


class Clean(unittest.TestCase):
    def test_in_source_build_and_build_folders(self):
        root = copy("cleaned")
        kept = [root / "build-plans" / "plan.txt", root / "build-tracked" / "CMakeCache.txt", root / "results" / "a.csv"]
        for path in kept:
            path.parent.mkdir()
            path.write_text("mine")
        subprocess.run(["git", "-C", str(root), "add", "-f", "build-tracked"], check=True)
        for words in ([workbook.CMAKE, "-DIMPL=exercises"], [workbook.CTEST, "-R", "^01_roofline"]):
            workbook.run(*words, cwd=str(root))
        self.assertTrue((root / "bin" / "01_roofline_test").exists())
        for generator in workbook.generators():
            workbook.run(workbook.CMAKE, "-S", root, "-B", root / ("build_" + generator[:4]), "-G", generator)
        self.assertEqual(git_status(root), "A  build-tracked/CMakeCache.txt\n", "an in-source build shows in git status")
        (root / "results" / "02_critical_batch.cpp").write_text("")
        run = Run(root, "check", "1", "--impl", "results")  # works beside an in-source build
        self.assertIn("01_roofline.cpp is missing", run.out, run.text)
        run = Run(root, "clean")
        self.assertEqual((run.code, run.err), (0, ""))
        for path in ("build", "CMakeCache.txt", "CMakeFiles", "Testing", "bin"):
            self.assertIn("removed %s\n" % path, run.out)
        self.assertIn("kept build-tracked: git tracks it\n", run.out)
        for path in kept:
            self.assertEqual(path.read_text(), "mine")
        left = [line for line in git_status(root, "--ignored", "-uall").splitlines() if ".workbook/" not in line]
        self.assertEqual(left, ["A  build-tracked/CMakeCache.txt", "!! build-plans/plan.txt",
                                "!! results/02_critical_batch.cpp", "!! results/a.csv"])
        (root / "Makefile").write_text("mine:\n")
        self.assertEqual(Run(root, "clean").out, "kept build-tracked: git tracks it\nnothing to remove\n")


class Messages(unittest.TestCase):
    def test_a_failure_without_its_frame(self):
        output = ("[ RUN      ] A.B\n/w/tests/03_test.cpp:9: Failure\nValue of: all_close(a, b, 1e-6)\n"
                  "  Actual: false (1 of 5 elements are wrong, the worst at [4]: nan, expected 0.5, tolerance 1e-6)\n"
                  "Expected: true\nGoogle Test trace:\n/w/tests/03_test.cpp:7: growing scores, n = 16\n"
                  "/w/tests/03_test.cpp:12: Failure\nFailed\n[  FAILED  ] A.B (0 ms)\n")
        self.assertEqual(verdicts.gtest_failures(output), [
            "/w/tests/03_test.cpp:9: 1 of 5 elements are wrong, the worst at [4]: nan, expected 0.5, tolerance 1e-6",
            "with growing scores, n = 16", "(and 1 more in this test)"])

    def test_builds(self):
        self.assertEqual(verdicts.build_errors("x.cpp:1:2: error: expected ';'\nx.cpp:1:2: error: expected ';'\n"),
                         ["x.cpp:1:2: expected ';'"])
        self.assertEqual(verdicts.build_errors("/usr/bin/ld: a.o: in function `f':\na: undefined reference to `g()'\n"),
                         ["undefined reference to `g()'"])

    def test_any_bytes(self):
        junit = ('<testsuite><testcase name="03_x.A.B" status="fail"><failure message=""/><system-out>\x01\ufffe'
                 '[ RUN      ] A.B\nterminate called\n  what():  exercises/03_x.cpp:7: f() is not implemented yet\n'
                 '</system-out></testcase></testsuite>')
        verdict, = verdicts.read(junit, {"03_x.A.B": "***Exception: Other"}, "/w")
        self.assertEqual((verdict.kind, verdict.place), ("not implemented", "exercises/03_x.cpp:7"))

    def test_the_frame_of_a_sanitizer_is_the_lessons_own(self):
        report = ("[ RUN      ] A.B\n==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1\n"
                  "    #0 0x1 in std::vector<float>::at /usr/include/c++/12/bits/stl_vector.h:1\n"
                  "    #1 0x2 in nanolm::update(nanolm::OnlineSoftmax&) /w/my answers/03_online_softmax.cpp:17:5\n"
                  "    #2 0x3 in nanolm::A_B_Test::TestBody() /w/tests/03_online_softmax_test.cpp:9\n")
        for frames, says in ((report, ["nanolm::update(nanolm::OnlineSoftmax&) my answers/03_online_softmax.cpp:17:5"]),
                             (report.replace("    #1", "    at"), [])):
            junit = ('<testsuite><testcase name="03_x.A.B" status="fail"><system-out>%s</system-out></testcase>'
                     '</testsuite>' % escape(frames))
            verdict, = verdicts.read(junit, {}, "/w")
            self.assertEqual(verdict.lines[1:], says)

    def test_lessons_and_week(self):
        self.assertEqual([entry.stem for entry in week.read_week()], [row.stem for row in workbook.week()])
        self.assertEqual(week.find_lesson("Online-Softmax").stem, "03_online_softmax")
        self.assertRaises(Problem, week.find_lesson, "attention")


if __name__ == "__main__":
    unittest.main()
