"""Every sentence that a student can meet exists in Russian: what the sources can print is compared with the table."""

import ast
import itertools
import os
import re
import sys
import unittest

import workbook

sys.dont_write_bytecode = True
SCRIPTS = workbook.ROOT / "scripts"
sys.path.insert(0, str(SCRIPTS))
from workbook_lib import language, russian  # noqa: E402

# Only instructors meet what these print.
INSTRUCTORS = ("mistakes", "mistakes_bank", "mistakes_cuda", "mistakes_cuda_run", "grade", "judge", "submissions",
               "mistakes_triton", "release", "stubs_since")
SAYS = ("say", "Problem", "progress", "translate", "exclusive")
MARKS = {"tick": "✓", "cross": "✗"}


def sources():
    found = sorted((SCRIPTS / "workbook_lib").glob("*.py")) + [SCRIPTS / "workbook.py", SCRIPTS / "attention_bench.py"]
    return [path for path in found if path.stem not in INSTRUCTORS + ("russian", "language", "fingerprints")]


class Templates:
    """What the calls of SAYS in a source can be given: texts with {} for what varies."""

    def __init__(self, text):
        self.tree = ast.parse(text)
        functions = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]
        self.returned = {f.name: [(node.value, self.assigned(f)) for node in ast.walk(f)
                                  if isinstance(node, ast.Return) and node.value] for f in functions}
        self.found = {}
        for function in functions:
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and self.name(call) in SAYS and call.args:
                    said = call.args[1 if self.name(call) == "exclusive" else 0]
                    for text in self.texts(said, self.assigned(function)):
                        self.found[text] = call.lineno

    @staticmethod
    def name(call):
        return getattr(call.func, "id", getattr(call.func, "attr", ""))

    @staticmethod
    def assigned(function):
        found = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found.setdefault(node.targets[0].id, []).append(node.value)
        return found

    def texts(self, node, names, depth=0):
        """All texts that an expression can be."""
        def each(inner, names=names):
            return self.texts(inner, names, depth + 1)

        if depth > 6:
            return ["{}"]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return [node.value]
        if isinstance(node, ast.IfExp):
            return each(node.body) + each(node.orelse)
        if isinstance(node, ast.BoolOp):
            return [text for value in node.values for text in each(value)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [a + b for a in each(node.left) for b in each(node.right)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
            return ["", node.left.value]  # "s" * (count != 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            arguments = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return [self.filled(text, values) for text in each(node.left)
                    for values in itertools.product(*map(each, arguments))]
        if isinstance(node, ast.Call) and self.name(node) in ("green", "red", "yellow", "faint"):
            return each(node.args[0])
        if isinstance(node, ast.Call) and self.name(node) in MARKS:
            return [MARKS[self.name(node)]]
        if isinstance(node, ast.Call) and self.name(node) in self.returned:
            return [text for value, inner in self.returned[self.name(node)] for text in each(value, inner) if text]
        if isinstance(node, ast.Name) and node.id in names:
            return [text for value in names[node.id] for text in each(value)]
        if isinstance(node, ast.Constant) and node.value is None:
            return []
        return ["{}"]

    @staticmethod
    def filled(text, values):
        parts = re.split(r"%[-+]?[\d.]*[sdrgf]", text)
        assert len(parts) == len(values) + 1, text
        return "".join(map("".join, itertools.zip_longest(parts, values, fillvalue=""))).replace("%%", "%")


def prose(tree):
    """Texts of two words and more that stand anywhere else: what a table or a list may hold and `say` may print."""
    skipped = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            skipped.add(getattr(body[0], "value", None))  # the text that documents it
        if isinstance(node, ast.Call) and (getattr(getattr(node.func, "value", None), "id", "") == "re" or
                                           Templates.name(node) in SAYS + ("namedtuple",)):
            skipped.update(inner for argument in node.args for inner in ast.walk(argument))
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").isupper() and isinstance(
                node.value, ast.Constant):
            skipped.add(node.value)  # JSON
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("COMPILER_COMMANDS", "MARKED"):
            skipped.update(ast.walk(node))  # commands, and what others write
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
            and node not in skipped and re.search(r"[a-z]{2,} [a-z]+ [a-z]+", node.value)]


class Language(unittest.TestCase):
    def setUp(self):
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ["NANOLM_LANG"] = "ru"

    def left_in_english(self, text):
        """Words of a template that its translation still has, less what is typed or opened: commands, files, options."""
        said = language.translate(text.replace("{}", "42"))
        typed = (r"\b(apt-get( install)?|python3-\w+)\b|`[^`]*`|scripts/workbook( [a-z]+)?|[\w-]*[/.]\w[\w./-]*|--?\w[\w-]*|[A-Z]\w+|\b\w+_\w+\b|echo .*|"
                 r"https?://\S+|"
                 r"\b(mine|update)\b|\b(reference|exercises|start|check|hint|next|watch|apt-get install|sudo|cmake|ctest|make|pip|"
                 r"git|clang|matplotlib|triton|numpy|python|lib[a-z]+)\b")
        if said == text.replace("{}", "42") and not re.search("[a-z]{2,}", re.sub(typed, "", said)):
            return []
        rest = re.findall(r"[a-z]{3,}", re.sub(typed, "", said)) if "42" != said else []
        return rest if re.search("[а-я]", said) or not rest else ["(not in the table)"]

    def test_what_is_said_is_in_the_table(self):
        count = 0
        for path in sources():
            for text, line in Templates(path.read_text(encoding="utf-8")).found.items():
                with self.subTest("%s:%d: %s" % (path.name, line, text)):
                    self.assertEqual(self.left_in_english(text), [], language.translate(text))
                count += 1
        self.assertGreater(count, 150)

    def test_what_else_may_be_said_is_in_the_table(self):
        table = " ".join(english for english, _ in russian.SENTENCES)
        for path in [path for path in sources() if path.parent != SCRIPTS]:  # there stands what --help says
            for text in prose(ast.parse(path.read_text(encoding="utf-8"))):
                for part in re.split(r"%[-+]?[\d.]*\(?\w*\)?[sdrgf]|\n", text):
                    words = re.search(r"[A-Za-z]{2,} [a-z]+ [a-z]+.*\w", part)
                    if words:
                        with self.subTest(path.name):
                            self.assertTrue(words[0] in table, words[0])

    def test_the_table_is_of_the_sources(self):
        folders = [SCRIPTS, SCRIPTS / "workbook_lib", workbook.ROOT / "tests" / "support",
                   workbook.ROOT / "tests" / "triton"]
        code = " ".join(path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.iterdir())
                        if path.is_file() and path.name not in ("language.py", "russian.py"))
        code = re.sub(r'"\s*(?:<<\s*)?"|\\n', "", code)
        code += "; tolerance = The difference between which exceeds where evaluates to and"  # GoogleTest's
        code += "show this help message and exit the following arguments are required unrecognized arguments"  # argparse's
        code += "".join("only %s fail" % trait for trait in re.findall(r'"([a-z ]*cases[a-z ]*)"', code))
        code += "more lines: scripts expected one argument ignored explicit argument"
        said = {text.strip(" ✓✗") for path in sources() for text in Templates(path.read_text(encoding="utf-8")).found}
        for english, in_russian in russian.SENTENCES:
            places = re.findall(r"{\d?}", in_russian)
            self.assertEqual(english.count("{}"), len(places), english)
            self.assertTrue(all(place == "{}" for place in places) or len(set(places)) == len(places), in_russian)
            for words in re.findall(r"[A-Za-z]{4,}[A-Za-z ]*[A-Za-z]", english if english not in said else ""):
                self.assertTrue(words in code, "%r of %r" % (words, english))

    def test_marks_places_and_colours_stay(self):
        for english, in_russian in (
                ("        tests/a_test.cpp:7: 3 of 9 elements are wrong, the worst at [row 1]: 1, expected 2, tolerance 1e-6",
                 "        tests/a_test.cpp:7: неверны 3 элементов из 9, хуже всего [row 1]: 1, ожидалось 2, допуск 1e-6"),
                ("✗ 03_online_softmax: 2 of 9 tests pass.", "✗ 03_online_softmax: верно 2 тестов из 9."),
                ("\033[31m✗\033[0m a  3 of 4 pass; A.B crashed", "\033[31m✗\033[0m a  верно 3 из 4; A.B: аварийный выход"),
                ("\033[2m  3 more wait for what is not written yet\033[0m",
                 "\033[2m  ещё 3 ждут того, что пока не написано\033[0m"),
                ("what no table knows", "what no table knows")):
            self.assertEqual(language.translate(english), in_russian)
        os.environ.update(NANOLM_LANG="en", LC_ALL="ru_RU.UTF-8")
        self.assertEqual(language.translate("with n = 4"), "with n = 4")
        del os.environ["NANOLM_LANG"]
        self.assertEqual(language.translate("with n = 4"), "случай: n = 4")

    def test_help(self):
        import workbook as _  # the checks' own module of that name
        del sys.modules["workbook"]
        sys.path.insert(0, str(SCRIPTS))
        import workbook as command
        sys.modules["workbook"] = _
        self.assertEqual(re.findall(r"^  (\w+)", command.HELP, re.M), re.findall(r"^  (\w+)", command.HELP_IN_RUSSIAN, re.M))
        for name, parser in command.parsers().items():
            if name not in ("mistakes", "grade", "release"):
                for text in [parser.description] + [action.help for action in parser._actions]:
                    self.assertRegex(text, "[а-я]", name)


if __name__ == "__main__":
    unittest.main()
