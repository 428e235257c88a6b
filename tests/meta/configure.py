"""Bad input at configure time: one clear error that names the value. And what IMPL may be."""

import shutil
import unittest

import workbook


class Configure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = workbook.export()
        cls.build = workbook.WORK / "build"

    def refused(self, says, *arguments, build=None, **env):
        result = workbook.configure(self.root, build or self.build, *arguments, **env)
        text = " ".join(result.text.split())  # CMake wraps lines
        self.assertNotEqual(result.returncode, 0, text)
        self.assertEqual(text.count("CMake Error at"), 1, text)
        self.assertIn(says, text)

    def accepted(self, *arguments, source=None, **options):
        result = workbook.configure(source or self.root, self.build, *arguments, **options)
        self.assertEqual(result.returncode, 0, result.text)
        return result.text

    def test_impl_that_is_no_tree(self):
        (self.root / "empty").mkdir(exist_ok=True)
        choices = " Choose reference, exercises, or a folder"
        for value, says in (("", "IMPL is empty."), ("referense", "IMPL='referense' does not exist."),
                            ("README", "IMPL='README' does not exist."), ("LICENSE", "IMPL='LICENSE' is a file."),
                            ("empty", "IMPL='empty' holds no lesson."), (".", "IMPL='.' holds no lesson."),
                            ("~/x", "IMPL='~/x': the shell did not replace ~. Write the whole path."),
                            ("a;b", "IMPL='a;b' holds ;"), ("a:b", "IMPL='a:b' holds :"), ("a[b", "IMPL='a[b' holds ["),
                            ("a]b", "IMPL='a]b' holds ]"), ("a\\b", "IMPL='a\\b' holds \\"),
                            ('a"b', "IMPL='a\"b' holds \""),
                            ("${HOME}", "IMPL='${HOME}' holds ${"), ("$<1:x>", "IMPL='$<1:x>' holds $<")):
            with self.subTest(value):
                self.refused(says, f"-DIMPL={value}")
                self.refused(choices, f"-DIMPL={value}")
        self.accepted("-DIMPL=exercises")

    def test_flags_that_break_inf_and_nan(self):
        for variable, flag in (("CMAKE_CXX_FLAGS", "-ffast-math"), ("CMAKE_CXX_FLAGS", "-O2 -ffinite-math-only"),
                               ("CMAKE_CXX_FLAGS_RELEASE", "-Ofast"), ("CMAKE_CXX_FLAGS_DEBUG", "-ffast-math"),
                               ("CMAKE_CXX_FLAGS_RELWITHDEBINFO", "-ffast-math")):
            with self.subTest(f"{variable}={flag}"):
                self.refused(f"{flag.split()[-1]} in {variable} is refused", f"-D{variable}={flag}", "-DIMPL=reference")
                self.accepted(f"-D{variable}=")
        self.refused("-ffast-math in CMAKE_CXX_FLAGS is refused", build=workbook.WORK / "fast", CXXFLAGS="-ffast-math")

    def test_time_out_scale(self):
        for value in ("", "0", "-1", "1.5", "x", "1 2", "1;2", "99999999999999999999"):
            with self.subTest(value):
                self.refused(f"NANOLM_TIMEOUT_SCALE='{value}' is not", f"-DNANOLM_TIMEOUT_SCALE={value}")
        self.accepted("-DNANOLM_TIMEOUT_SCALE=3", "-DIMPL=reference")
        self.assertIn('"value" : 30', workbook.run(workbook.CTEST, "--show-only=json-v1", cwd=self.build).text)
        self.accepted("-DNANOLM_TIMEOUT_SCALE=1")

    def test_missing_compiler(self):
        self.refused("compiler set in environment variable CXX: /nonexistent/c++.",
                     build=workbook.WORK / "no compiler", CXX="/nonexistent/c++")

    def test_relative_impl_is_looked_up_in_the_callers_folder_and_kept(self):
        caller = workbook.WORK / "caller"
        shutil.copytree(self.root / "exercises", caller / "answers", dirs_exist_ok=True)
        says = f"-- IMPL: {(caller / 'answers').resolve()}\n"
        # PWD may lie: a program that starts cmake elsewhere does not change it.
        self.assertIn(says, self.accepted("-DIMPL=answers", cwd=caller, PWD="/usr"))
        self.assertIn(says, self.accepted(cwd="/usr"))
        self.assertIn(says, self.accepted("-DIMPL=./answers/", cwd=caller))
        self.assertIn(says, self.accepted("-DIMPL=../caller/answers", cwd=caller))
        (caller / "link").unlink(missing_ok=True)
        (caller / "link").symlink_to("answers")
        self.assertIn(says, self.accepted("-DIMPL=link", cwd=caller))

    def test_source_folder_comes_before_the_callers(self):
        caller = workbook.WORK / "other caller"
        shutil.copytree(self.root / "exercises", caller / "exercises", dirs_exist_ok=True)
        says = f"-- IMPL: {(self.root / 'exercises').resolve()}\n"
        self.assertIn(says, self.accepted("-DIMPL=exercises", cwd=caller))

    def test_release_unless_said_otherwise(self):
        text = workbook.configure(self.root, workbook.WORK / "release").text
        self.assertIn("-- CMAKE_BUILD_TYPE: Release (none was given)\n", text)
        self.assertIn(f"-- IMPL: {(self.root / 'reference').resolve()}\n", text)

    def test_presets_are_complete(self):
        for command in ((workbook.CMAKE,), (workbook.CMAKE, "--build"), (workbook.CTEST,)):
            text = workbook.run(*command, "--list-presets", cwd=self.root).text
            for name in ("reference", "exercises", "asan", "meta"):
                self.assertIn(f'"{name}"', text)

    def test_students_get_lesson_tests_and_nothing_else(self):
        self.accepted("-DIMPL=exercises")
        listed = workbook.run(workbook.CTEST, "--show-only", cwd=self.build).text
        self.assertIn(f": {workbook.LESSON}.Builds\n", listed)
        self.assertNotIn(": meta.", listed)


if __name__ == "__main__":
    unittest.main()
