"""An exercise is its reference with gaps, and each gap says what goes there and how long it is.

In a lesson todo() stands in the gap; in Python, too, with # for // and without a semicolon. Device code cannot throw, so a rung's gaps are empty, and its launchers begin with
the line BEGIN, which the reference has not.
"""

import difflib
import re
import unittest

import workbook

TODO = re.compile(r"( *)// TODO: \S.*[^.]\. About (\d+) lines?\.")
CORE_GAP_LINES = 25
BEGIN = "  todo();  // delete this line when you begin"


class Fault(Exception):
    pass


def as_cpp(text):
    """A Python exercise with its gaps written as those of a lesson."""
    return re.sub(r"^( *)todo\(\)$", r"\1todo();", re.sub(r"^( *)# (TODO: .*|end)$", r"\1// \2", text, flags=re.M), flags=re.M)


def split(text, is_rung=False):
    """Cuts an exercise at its gaps: ([lines between gaps], [lines that each gap promises])."""
    chunks, promises, lines = [[]], [], text.splitlines()
    if is_rung:
        if BEGIN not in lines:
            raise Fault(f"no launcher begins with {BEGIN.strip()!r}")
        for number, line in enumerate(lines):
            if line == BEGIN and not re.fullmatch(r"(?:void|template).*\{", lines[number - 1]):
                raise Fault(f"line {number + 1}: this is not a launcher's first statement")
        lines = [line for line in lines if line != BEGIN]
    number = 0
    while number < len(lines):
        line = lines[number]
        if "TODO" not in line and "todo()" not in line and line.strip() != "// end":
            chunks[-1].append(line)
            number += 1
            continue
        match = TODO.fullmatch(line)
        indent = match and match.group(1)
        inside = [] if is_rung else [f"{indent}todo();"]
        form = inside + [f"{indent}// end"]
        if not match or lines[number + 1:number + 1 + len(form)] != form:
            raise Fault(f"line {number + 1}: a gap is `// TODO: <sentence>. About N lines.`, "
                        f"{'' if is_rung else '`todo();`, '}`// end` with one indentation, not:\n"
                        + "\n".join(lines[number:number + 3]))
        promises.append(int(match.group(2)))
        if len(promises) > 1 and not chunks[-1]:
            raise Fault(f"line {number + 1}: nothing stands between two gaps")
        chunks.append([])
        number += 1 + len(form)
    if not promises:
        raise Fault("no gap")
    return chunks, promises


def find(chunk, lines, start):
    for at in range(start, len(lines) - len(chunk) + 1):
        if lines[at:at + len(chunk)] == chunk:
            return at
    best = max(range(start, max(start, len(lines) - len(chunk)) + 1),
               key=lambda at: difflib.SequenceMatcher(None, lines[at:at + len(chunk)], chunk).ratio())
    raise Fault("outside the gaps the exercise differs from the reference:\n" + "\n".join(difflib.unified_diff(
        lines[best:best + len(chunk)], chunk, "reference", "exercise", lineterm="")))


def answers(reference, chunks):
    """The lines of the reference that stand where the exercise has gaps, blank ones left out."""
    lines = reference.splitlines()
    found, at = [], len(chunks[0])
    find(chunks[0], lines[:at], 0)
    for chunk in chunks[1:-1]:
        start, at = at, find(chunk, lines, at)
        found.append(lines[start:at])
        at += len(chunk)
    last = len(lines) - len(chunks[-1])
    find(chunks[-1], lines[max(at, last):], 0)
    found.append(lines[at:last])
    return [[line for line in gap if line.strip()] for gap in found]


def compare(reference, exercise, core, is_rung=False):
    """Raises Fault when an exercise does not mirror its reference."""
    chunks, promises = split(exercise, is_rung)
    for number, (gap, promised) in enumerate(zip(answers(reference, chunks), promises), 1):
        if not gap:
            raise Fault(f"gap {number}: the reference has nothing there")
        if abs(promised - len(gap)) > max(2, 0.3 * len(gap)):
            raise Fault(f"gap {number} says about {promised} lines, the reference has {len(gap)}")
        if core and len(gap) > CORE_GAP_LINES:
            raise Fault(f"gap {number}: {len(gap)} lines, a core lesson's gap has at most {CORE_GAP_LINES}")


class Mirror(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = workbook.export()

    def files(self, tree):
        return sorted(p.relative_to(self.root / tree) for p in (self.root / tree).rglob("*") if p.is_file())

    def test_same_files(self):
        self.assertEqual(self.files("reference"), self.files("exercises"))

    def test_exercises_are_references_with_gaps(self):
        paths = self.files("exercises")
        self.assertTrue(paths, "no exercise was found")
        tiers = {row.stem: row.tier for row in workbook.week()}
        for path in paths:
            with self.subTest(str(path)):
                exercise = (self.root / "exercises" / path).read_text()
                try:
                    compare((self.root / "reference" / path).read_text(),
                            as_cpp(exercise) if path.suffix == ".py" else exercise,
                            tiers.get(path.stem) == "core" or path.suffix == ".cu", path.suffix == ".cu")
                except Fault as fault:
                    self.fail(f"exercises/{path}: {fault}")

    def test_nothing_else_is_unfinished(self):
        for tree in ("reference", "include", "tests"):
            for path in sorted((self.root / tree).rglob("*")):
                if path.is_file() and path.relative_to(self.root).parts[:2] != ("tests", "meta"):
                    with self.subTest(str(path.relative_to(self.root))):
                        self.assertNotRegex(path.read_text(), r"\b(TODO|FIXME|XXX)\b")
                        if tree == "reference":
                            self.assertNotIn("todo()", path.read_text())


class Itself(unittest.TestCase):
    """The comparison finds what it is there to find."""
    reference = "a\n\nf {\n  one;\n  two;\n}\ng {\n  three;\n}\n"
    exercise = ("a\n\nf {\n  // TODO: do it. About 2 lines.\n  todo();\n  // end\n}\n"
                "g {\n  // TODO: do that. About 1 line.\n  todo();\n  // end\n}\n")

    def refused(self, says, old, new, core=True):
        changed = self.exercise.replace(old, new)
        self.assertNotEqual(changed, self.exercise)
        self.assertRaisesRegex(Fault, says, compare, self.reference, changed, core)

    def test_a_mirror_passes(self):
        compare(self.reference, self.exercise, True)

    def test_a_gap_of_python_is_one(self):
        python = self.exercise.replace("//", "#").replace("todo();", "todo()")
        self.assertEqual(as_cpp(python), self.exercise)

    def test_differences_are_found(self):
        self.refused("reference\n", "a\n", "b\n")
        self.refused(r"\+g \{ //", "g {\n", "g { //\n")
        self.refused("differs", "  // end\n}\ng", "  // end\n\n}\ng")
        self.refused("differs", "  // end\n}\n", "  // end\n} \n")
        self.refused("reference has 5", "}\ng {\n  // TODO: do that. About 1 line.\n  todo();\n  // end\n}\n", "}\n")

    def test_gaps_are_checked(self):
        self.refused("a gap is", "  // end\n", "")
        self.refused("a gap is", "todo();", "todo();  // here")
        self.refused("a gap is", "todo();", "return todo();")
        self.refused("a gap is", "About 2", "About two")
        self.refused("about 5 lines, the reference has 2", "About 2", "About 5")
        long = "f {\n" + "  x;\n" * 26 + "}\n"
        gap = "f {\n  // TODO: do it. About 26 lines.\n  todo();\n  // end\n}\n"
        self.assertRaisesRegex(Fault, "at most 25", compare, long, gap, True)
        compare(long, gap, False)
        self.assertRaisesRegex(Fault, "no gap", compare, "a\n", "a\n", True)

    def test_a_rung_throws_in_front_of_its_gaps(self):
        reference = "void f() {\n  one;\n  two;\n}\n"
        exercise = ("void f() {\n  todo();  // delete this line when you begin\n"
                    "  // TODO: do it. About 1 line.\n  // end\n  two;\n}\n")
        compare(reference, exercise, True, True)
        for old, new, says in (("  todo();  // delete this line when you begin\n", "", "no launcher"),
                               ("  // end", "  todo();\n  // end", "a gap is"),
                               ("void f() {\n  todo();  // delete this line when you begin\n  //",
                                "void f() {\n  //", "no launcher"),
                               ("  two;\n", "  todo();  // delete this line when you begin\n  two;\n", "first statement")):
            self.assertRaisesRegex(Fault, says, compare, reference, exercise.replace(old, new), True, True)


if __name__ == "__main__":
    unittest.main()
