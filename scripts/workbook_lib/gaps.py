"""The gaps of the exercises: which function each is in, what is to be done there, which test shows it."""

import itertools
import os
import re
import subprocess
from collections import namedtuple

from .console import Problem
from .settings import read_text, source
from .week import ROOT, is_rung, is_triton, source_name

# line: that of todo() or, in a rung, of the TODO, from 1. sentence: what the stub asks for. about: how many lines it says that takes.
Gap = namedtuple("Gap", "function line sentence about")

TODO = re.compile(r"^\s*(?://|#) TODO: (.*?)\.(?: About (\d+) lines?\.)?\s*$")
# What may stand in front of a definition's name in a .cu file.
CUDA_WORDS = re.compile(r"\[\[\w+\]\] +|__(?:global|device|host|forceinline)__ +|__launch_bounds__\((?:[^()]|\([^()]*\))*\) +")
# A definition starts in the first column; what ends in ; there is a constant or a declaration.
FUNCTION = re.compile(r"^[A-Za-z_][\w:<>,&*\s]*?\b(\w+)\(")
STEP = re.compile(r"step (\d+):")
CALL = re.compile(r"\btodo\s*\(\s*\)\s*;|^\s*todo\(\)\s*$")  # the second is Python's


def stub(stem):
    """The text of a lesson as it is handed out: that of exercises/ or, once it was written in, git's."""
    found = _find_stub(stem)
    if found is None:
        raise Problem("exercises/%s is no stub any more, and git has none here: a fresh copy of the workbook has it"
                      % source_name(stem), status=1)
    return found


def is_stub(stem):
    """Whether exercises/ still holds the stub; not when a student wrote in it."""
    return _is_whole(_in_exercises(stem), stem)


def _find_stub(stem):
    """The same; None where the only copy was written in."""
    return _in_exercises(stem) if is_stub(stem) else committed_stub(stem)


def _in_exercises(stem):
    text = read_text(source(os.path.join(ROOT, "exercises"), stem))
    if text is None:
        raise Problem("exercises/%s is missing in the workbook" % source_name(stem), status=1)
    return text


def committed_stub(stem):
    """The newest stub in git's history, or None: a student may have committed what was written into it."""
    path = "exercises/" + source_name(stem)
    for commit in _git("rev-list", "HEAD", "--", path).split():
        text = _git("show", "%s:./%s" % (commit, path))
        if _is_whole(text, stem):
            return text
    return None


def _is_whole(text, stem):
    """Whether a text is a stub still: every function with hints has a gap, and no step is missing between two."""
    found = find_gaps(text, is_rung(stem))
    steps = {int(step[1]) for step in (STEP.match(gap.sentence) for gap in found) if step}
    functions = {gap.function for gap in found}
    return bool(found) and functions >= set(_functions(stem)) and max(steps, default=0) == len(steps)


def _functions(stem):
    """The functions of a lesson that are to be written, by its hints."""
    text = read_text(os.path.join(ROOT, "notes", "hints", stem + ".md")) or ""
    return [line[3:].strip() for line in text.splitlines() if line.startswith("## ")]


def _git(*words):
    try:
        done = subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def find_gaps(text, rung=False):
    """The gaps that are still open in a text, in order: where todo() still stands. Those of a rung hold none, since
    device code cannot throw: they are open while nothing but comments stands between TODO and end."""
    found, function, sentence = [], "", ("", None)
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        definition = FUNCTION.match(CUDA_WORDS.sub("", line))
        if definition and not line.rstrip().endswith(";"):
            function, sentence = definition[1], ("", None)
        wanted = TODO.match(line)
        if wanted:
            sentence = wanted[1], int(wanted[2]) if wanted[2] else None
            rest = itertools.takewhile(lambda text: text.strip() != "// end", lines[number:])
            if rung and all(re.match(r"\s*(//|$)", text) for text in rest):
                found.append(Gap(function, number, *sentence))
        if not rung and CALL.search(re.sub(r"//.*|\"[^\"]*\"", "", line)):
            found.append(Gap(function, number, *sentence))
            sentence = "", None
    return found


def all_gaps(stem):
    """Every gap of the lesson, as the stub has it; where the stub is gone, those of its hints, without a sentence."""
    text = _find_stub(stem)
    if text is None:
        return [Gap(function, 0, "", None) for function in _functions(stem)]
    return _in_steps(find_gaps(text, is_rung(stem)))


def _in_steps(found):
    """In the order in which they are to be done: where sentences begin with "step 3:", by that."""
    step = [STEP.match(gap.sentence) for gap in found]
    return [gap for _, gap in sorted(zip((int(s[1]) for s in step), found), key=lambda pair: pair[0])] if all(step) else found


def open_gaps(tree, stem):
    """The gaps that a student's file still has; None where the file is missing. A sentence that was deleted is the
    stub's."""
    text = read_text(source(tree, stem))
    if text is None:
        return None
    sentences = {gap.function: gap for gap in all_gaps(stem)}
    return _in_steps([gap if gap.sentence or gap.function not in sentences
                      else gap._replace(sentence=sentences[gap.function].sentence, about=sentences[gap.function].about)
                      for gap in find_gaps(text, is_rung(stem))])


def test_for(stem, function):
    """The test that shows a function first: of those that use it, the one that needs the fewest later functions."""
    if is_rung(stem):
        return None  # a rung is tested as a whole; its gaps' sentences say which tests
    text = read_text(os.path.join(ROOT, "tests", stem + ("_test.py" if is_triton(stem) else "_test.cpp"))) or ""
    order = [gap.function for gap in all_gaps(stem)]
    if function not in order:
        return None
    # Each test with its body, and what stands between tests: helpers, by name.
    tests, helpers = _tests_in_python(text) if is_triton(stem) else _tests_in_cpp(text)
    # What no test can call, because it is private to the file, is shown by the next function that tests do call.
    for wanted in order[order.index(function):]:
        users = []
        for name, body in tests:
            body = _with_helpers(body, helpers)
            used = [other for other in order if re.search(r"\b%s\b" % other, body)]
            if wanted in used:
                users.append((len([other for other in used if order.index(other) > order.index(wanted)]), name))
        if users:
            return min(users, key=lambda user: user[0])[1]  # the first of the smallest
    return None


def _tests_in_cpp(text):
    text = re.sub(r"//.*|\"[^\"\n]*\"", "", text)
    parts = re.split(r"^TEST\(\s*(\w+)\s*,\s*(\w+)\s*\)", text, flags=re.MULTILINE)
    return [("%s.%s" % (suite, name), body.split("\n}", 1)[0]) for suite, name, body in zip(
        parts[1::3], parts[2::3], parts[3::3]) if not name.startswith("Given")], _helpers(text)


def _tests_in_python(text):
    """A function is called as answers.name(), or by a probe: probe(answers, "name", ...)."""
    parts = re.split(r'^(?:@test\("([\w.]+)"\)\n)?def (\w+)', text, flags=re.MULTILINE)
    parts = list(zip(parts[1::3], parts[2::3], parts[3::3]))
    return ([(name, body) for name, _, body in parts if name and not name.startswith("Given")],
            {function: body for name, function, body in parts if not name})


def _with_helpers(body, helpers):
    """The body with those of the helpers it calls, and of those that they call."""
    added = set()
    while True:
        calls = [name for name in helpers if name not in added and re.search(r"\b%s\(" % name, body)]
        if not calls:
            return body
        added.update(calls)
        body += "".join(helpers[name] for name in calls)


def _helpers(text):
    """The functions of a test file, by name, each with its body."""
    found = {}
    for match in re.finditer(r"^(?:[A-Za-z_][^\n;=]*?\b(\w+)\([^;{]*\)[^;{]*\{)", text, re.MULTILINE):
        if match[1] != "TEST":
            found[match[1]] = text[match.end():].split("\n}", 1)[0]
    return found
