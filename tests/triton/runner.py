"""Runs one test of a file in tests/triton on a student's file, and says what came out as GoogleTest does, so that all
that reads results reads these:  python runner.py TEST_FILE SOURCE [--list | --builds | --first | Suite.Name].
--first runs the tests one after the other, nearly all in this process, up to the first that does not pass."""

import os
import re
import subprocess
import sys
import traceback

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(ROOT, "include")]

from nanolm.todo import NotImplementedYet  # noqa: E402

SKIPPED = 77  # CTest's SKIP_RETURN_CODE
TESTS = {}


class Failure(Exception):
    """An expectation that does not hold: its message, for a student."""


class Skipped(Exception):
    """Why a test cannot run here."""


def test(name):
    """@test("Suite.Name") in front of a function that takes the student's module."""
    def register(function):
        TESTS[name] = function
        return function
    return register


def check(holds, message):
    if not holds:
        raise Failure(message)


class Answers:
    """A student's file, run on first use, since what it does while it is read belongs to a test's output."""

    def __init__(self, path):
        self.path, self.names = path, None

    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def first_gap(self):
        """Raises where a todo() is left: what can only run with Triton is unwritten without it, too."""
        function = ""
        for number, line in enumerate(self.text().splitlines(), 1):
            definition = re.match(r"def (\w+)\(", line)
            function = definition[1] if definition else function
            if re.match(r"\s*todo\(\)", line):
                raise NotImplementedYet("%s:%d: %s() is not implemented yet" % (shown(self.path), number, function))

    def __getattr__(self, name):
        if self.names is None:
            self.names = {"__name__": "answers", "__file__": self.path}
            exec(compile(self.text(), self.path, "exec"), self.names)
        if name not in self.names:
            raise Failure("%s defines no %s" % (shown(self.path), name))
        return self.names[name]


def shown(path):
    """exercises/triton/01_reading.py: from the tree's name on."""
    tree = os.path.dirname(os.path.dirname(path))
    return os.path.relpath(path, os.path.dirname(tree))


def cause(error):
    """What a student's code raised, without what Triton's interpreter or compiler wraps around it."""
    while type(error).__name__ in ("InterpreterError", "CompilationError") and error.__cause__ is not None:
        error = error.__cause__
    return error


def place_of(error, source, test_file):
    """file:line of the innermost frame in the student's file, else in the test's."""
    frames = traceback.extract_tb(error.__traceback__)
    for path in (source, test_file):
        lines = [frame.lineno for frame in frames if frame.filename == path]
        if lines:
            return "%s:%d" % (shown(source) if path == source else os.path.relpath(path, ROOT), lines[-1])
    return "unknown file"


def failed(name, place, message):
    print("%s: Failure\n%s\n[  FAILED  ] %s" % (place, message, name))
    print("[  FAILED  ] 1 test, listed below:\n[  FAILED  ] %s" % name, flush=True)
    return 1


def run(name, answers, test_file):
    print("[ RUN      ] %s" % name, flush=True)
    try:
        TESTS[name](answers)
    except Skipped as skipped:
        print("Triton: skipped: %s" % skipped, flush=True)
        return SKIPPED
    except (Exception, SystemExit, RecursionError) as outer:
        error = cause(outer)
        if isinstance(error, NotImplementedYet):
            return failed(name, "unknown file", 'Exception with description "%s" thrown in the test body.' % error)
        if isinstance(error, Failure):
            return failed(name, place_of(error, answers.path, test_file), str(error))
        return failed(name, place_of(error, answers.path, test_file), "%s: %s" % (type(error).__name__, error))
    print("[       OK ] %s\n[  PASSED  ] 1 test." % name, flush=True)
    return 0


def run_apart(name, source, test_file):
    """Triton's interpreter puts itself in the compiler's place, for good: what compiles needs a process of its own."""
    if name.startswith("Compiles."):
        return subprocess.call([sys.executable, os.path.realpath(__file__), test_file, source, name])
    return run(name, Answers(source), test_file)


def builds(source):
    """Python's compiler, with the words of a C++ one."""
    if not os.path.exists(source):
        print("error: %s is missing" % source)
        return 1
    try:
        with open(source, "rb") as file:
            compile(file.read(), source, "exec")
    except (SyntaxError, ValueError) as error:
        print("%s:%d: error: %s" % (shown(source), getattr(error, "lineno", 1) or 1, getattr(error, "msg", error)))
        return 1
    return 0


def main(arguments):
    test_file, source, wanted = os.path.realpath(arguments[0]), os.path.realpath(arguments[1]), arguments[2]
    if wanted == "--builds":
        return builds(source)
    sys.modules["runner"] = sys.modules["__main__"]
    with open(test_file, encoding="utf-8") as file:
        exec(compile(file.read(), test_file, "exec"), {"__name__": "tests", "__file__": test_file})
    if wanted == "--list":
        print("\n".join(TESTS))
        return 0
    if wanted == "--first":
        return next(filter(None, (run_apart(name, source, test_file) for name in TESTS)), 0)
    return run(wanted, Answers(source), test_file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
