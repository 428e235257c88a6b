"""The command people type, scripts/workbook: sets the machine up once, then tests, checks, measures or cleans."""

import argparse
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True

from workbook_lib import bench, check, clean, console, grade, hint, language, mistakes, next_exercise, notes  # noqa: E402
from workbook_lib import profile, progress, release, reset, solution, start, suite, watch, week  # noqa: E402
from workbook_lib.console import Problem  # noqa: E402

HELP = """\
usage: scripts/workbook VERB [...]

  start DIR                      copy the exercises to a folder of your own; the verbs below then work on it
  next [LESSON]                  the first exercise that is not done: file and line, test, note
  check [LESSON...]              grade your answers: all lessons, or some (3, 03, softmax, cuda/03); --impl TREE: another tree;
                                 --checked: look for races in CUDA rungs, too
  watch [LESSON]                 grade the lesson you edit on every save, until Ctrl-C
  profile RUNG [--shape S=512]   what a CUDA rung's accesses cost: bytes, sectors, bank conflicts, beside the formulas
  hint [LESSON [FUNCTION]]       a hint on an exercise, one more each time, three in all
  notes [--serve] [--out DIR]    the notes as a site, in English and Russian, to read in a browser without a network
  progress                       the week, how far you are and what the last checks found
  solution LESSON                the reference's answer beside yours, once yours passes (or --give-up)
  reset LESSON                   a lesson back to its stub; what you wrote is kept
  test                           prove the answers: run the whole suite on reference/
  bench [--quick]                measure naive against tiled attention: tables and plots in results/; --device cuda
                                 measures the CUDA ladder beside PyTorch
  mistakes [LESSON]              prove the tests: every known mistake must fail, and be named; --cuda: those in CUDA rungs
  grade PATH... [--seed S]       points for submissions, each run in a sandbox (instructors, Linux)
  release OUT [--since OLD] [--without-answers]   a copy for students (instructors)
  clean                          remove build folders and what an in-source build leaves behind

Every verb takes --lang en or ru; without it the locale decides. The first run installs what is missing and says so.
More on a verb: scripts/workbook VERB --help
"""

HELP_IN_RUSSIAN = """\
запуск: scripts/workbook КОМАНДА [...]

  start DIR                      скопировать упражнения в свою папку; команды ниже работают с ней
  next [LESSON]                  первое ненаписанное упражнение: файл и строка, тест, заметка
  check [LESSON...]              проверить решения: все уроки или некоторые (3, 03, softmax, cuda/03); --impl TREE: другая папка;
                                 --checked: искать в CUDA-ядрах и гонки
  watch [LESSON]                 проверять урок при каждом сохранении, пока не нажать Ctrl-C
  profile RUNG [--shape S=512]   сколько стоят обращения CUDA-ядер к памяти: байты, секторы, конфликты, рядом с формулами
  hint [LESSON [FUNCTION]]       подсказка к упражнению, каждый раз на одну больше, всего три
  notes [--serve] [--out DIR]    заметки как сайт, на русском и английском: читать в браузере без сети
  progress                       неделя, сколько сделано и что нашла последняя проверка
  solution LESSON                ответ из reference рядом с вашим, когда ваш верен (или --give-up)
  reset LESSON                   вернуть урок к заготовке; написанное сохраняется
  test                           доказать решения: все тесты на reference/
  bench [--quick]                измерить наивное внимание против тайлового: таблицы и графики в results/;
                                 --device cuda измеряет лестницу CUDA рядом с PyTorch
  mistakes [LESSON]              доказать тесты: каждая известная ошибка должна быть найдена и названа; --cuda: ошибки в CUDA-ядрах
  grade PATH... [--seed S]       баллы за работы, каждая в песочнице (преподавателям, Linux)
  release OUT [--since OLD] [--without-answers]   копия для студентов (преподавателям)
  clean                          удалить папки сборки и следы сборки в исходной папке

Каждая команда понимает --lang en или ru; без него решает локаль. Первый запуск ставит недостающее и говорит об этом.
Подробнее о команде: scripts/workbook КОМАНДА --help
"""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Problem("%s (see scripts/workbook --help)" % message)

    def add_argument(self, *names, **settings):
        return super().add_argument(*names, **{**settings, "help": language.translate(settings["help"])})


def positive(text):
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError("%r is not a positive whole number" % text)
    return value


def part(text):
    numbers = [int(number) for number in text.split("/") if number.isdecimal()]
    if len(numbers) != 2 or text.count("/") != 1 or numbers[0] >= numbers[1]:
        raise argparse.ArgumentTypeError("%r is not K/N with K below N" % text)
    return tuple(numbers)


def parsers():
    """One parser a verb; each names the function that carries the verb out."""
    verbs = {}

    def verb(name, function, description):
        parser = Parser(prog="scripts/workbook " + name, description=language.translate(description), allow_abbrev=False)
        parser.set_defaults(function=function,
                            builds=name in ("test", "check", "bench", "watch", "mistakes", "grade"))
        verbs[name] = parser
        return parser

    impl = "tree of answers: a folder of the workbook, or a path (default: %(default)s)"
    test = verb("test", suite.run, "Builds and runs the whole suite against the answers in reference/.")
    test.add_argument("--jobs", type=positive, metavar="N", help="tests at once (default: one a core)")
    test.add_argument("--build-dir", metavar="DIR", help="build folder (default: build/reference)")
    mine = "tree of answers: a folder of the workbook, or a path (default: that of `start`, else exercises)"
    lesson = "its number, its name or a part of the name"

    def on_my_tree(parser, nargs="?", json=""):
        if nargs != 0:
            parser.add_argument("lesson", nargs=nargs, metavar="LESSON", help=lesson)
        parser.add_argument("--impl", metavar="TREE", help=mine)
        if json:
            parser.add_argument("--json", action="store_true", help="for programs; see below")
            parser.epilog, parser.formatter_class = json, argparse.RawDescriptionHelpFormatter
        return parser

    one = verb("check", check.run, "Builds and tests some lessons, or all. Exit status 0: everything passed.")
    on_my_tree(one, "*", check.JSON)
    one.add_argument("--jobs", type=positive, metavar="N", help="tests at once")
    one.add_argument("--install", action="store_true", help="with triton: first put Triton into .venv (about 1 GB)")
    one.add_argument("--checked", action="store_true", help="look for races and unwritten memory in CUDA rungs, too")
    counted = verb("profile", profile.run, "Runs a CUDA rung once in the emulator and counts what its accesses cost.")
    counted.add_argument("rung", metavar="RUNG", help="cuda/03, say")
    counted.add_argument("--shape", metavar="S=512,H=64,causal", help="B, N query heads, K kv heads, S (or Sq and Sk), H, "
                         "causal; of rung 01: n elements, k operations; of rung 04: B, N, K, S, H, splits")
    counted.add_argument("--impl", metavar="TREE", help=mine)
    counted.add_argument("--json", action="store_true", help="for programs; see below")
    counted.epilog, counted.formatter_class = profile.JSON, argparse.RawDescriptionHelpFormatter
    measure = verb("bench", bench.run, "Measures naive against tiled attention. Other arguments are passed on to "
                                       "scripts/attention_bench.py; its own --help lists them.")
    measure.add_argument("--quick", action="store_true", help="fewer sizes and samples, under a minute")
    measure.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: the ladder beside PyTorch on a "
                         "GPU; --device cuda --from notes/data/compare_torch_h200.json shows a recorded run without one")
    answers = os.path.isdir(os.path.join(week.ROOT, "reference"))  # an edition for students may lack them
    measure.add_argument("--impl", default="reference" if answers else "exercises", metavar="TREE", help=impl)
    bank = verb("mistakes", mistakes.run, "Runs the suite against every known mistake in tests/mistakes. Exit status 1: "
                                          "one survives, one is not named as itself, or a test kills none.")
    bank.add_argument("lesson", nargs="?", metavar="LESSON", help="its number, its name or a part of the name")
    bank.add_argument("--cuda", action="store_true", help="the mistakes in CUDA rungs instead: each must be found by the "
                      "emulator, in words that say what to do")
    bank.add_argument("--triton", action="store_true", help="the mistakes in Triton exercises instead")
    bank.add_argument("--quick", action="store_true", help="with --cuda: content with the first test that finds a mistake; "
                      "whether `check` tells that one first is not looked at")
    bank.add_argument("--part", type=part, metavar="K/N", help="with --cuda: every N-th mistake of a rung, from number K "
                      "on, 0/4 to 3/4 for instance")
    bank.add_argument("--json", metavar="FILE", help="also write all of it to FILE")
    points = verb("grade", grade.run, "Grades submissions: folders shaped like exercises/, or archives of them.")
    points.add_argument("paths", nargs="+", metavar="PATH", help="a folder, or a .zip or .tar of one")
    points.add_argument("--jobs", type=positive, metavar="N", help="lessons at once (default: one a core)")
    points.add_argument("--seed", type=positive, metavar="S", help="of the tests' data (default: random, recorded)")
    points.add_argument("--out", metavar="DIR", help="folder of the reports (default: results/grades)")
    points.add_argument("--unsafe", action="store_true", help="grade even where no isolation works")
    points.add_argument("--list-tasks", action="store_true", help="print one command a submission and grade nothing")
    edition = verb("release", release.run, "Copies the workbook for students: what git tracks, less the judge and the "
                                           "checks of the workbook itself.")
    edition.add_argument("out", metavar="OUT", help="a folder that is not there yet")
    edition.add_argument("--since", metavar="OLD", help="folder of the last release: says which stubs changed, and refuses "
                         "changed signatures and a CHANGELOG.md that does not name those stubs")
    edition.add_argument("--without-answers", action="store_true", help="leave reference/ and the mistakes' sources out")
    book = verb("notes", notes.run, "Builds the notes as a site, in English and Russian, and checks its links and "
                                    "formulas. Exit status 1: something in it is wrong.")
    book.add_argument("--out", metavar="DIR", help="folder of the site (default: build/site)")
    book.add_argument("--serve", action="store_true", help="then show it on this machine, and build it again when the "
                      "notes change, until Ctrl-C")
    book.add_argument("--port", type=positive, default=notes.PORT, metavar="N", help="with --serve (default: %(default)s)")
    verb("clean", clean.run, "Removes build folders and what an in-source build leaves behind; nothing git tracks.")
    begin = verb("start", start.run, "Copies the exercises to a new or empty folder and remembers it: check, next, "
                                     "watch and the others work on it, and no update of the workbook touches it.")
    begin.add_argument("dir", metavar="DIR", help="inside the workbook (`mine`, say) or anywhere else")
    begin.add_argument("--use", action="store_true", help="DIR holds answers: go on with them, add stubs it lacks")
    on_my_tree(verb("next", next_exercise.run, "The first exercise that is not done, of a lesson or of all."), "?",
               next_exercise.JSON)
    on_my_tree(verb("watch", watch.run, "Builds and tests the lesson being edited on every save, in a build folder of "
                                        "its own. Ctrl-C ends it."))
    week_table = verb("progress", progress.run, "The week's lessons, how far you are and what the last checks found.")
    on_my_tree(week_table, 0, progress.JSON)
    week_table.add_argument("--done", metavar="NAME", help="count what has no tests, attention_bench say, as done")
    week_table.add_argument("--undone", metavar="NAME", help="take that back")
    help_me = verb("hint", hint.run, "A hint on an exercise: three levels, one more each time.")
    help_me.add_argument("lesson", nargs="?", metavar="LESSON", help=lesson + " (default: that of `next`)")
    help_me.add_argument("name", nargs="?", metavar="FUNCTION", help="which exercise (default: the first open one)")
    help_me.add_argument("--again", action="store_true", help="show what was shown, and no more")
    help_me.add_argument("--list", action="store_true", help="how many hints were shown of each exercise")
    answer = verb("solution", solution.run, "The reference's answer as a diff against yours, once yours passes.")
    on_my_tree(answer, None)
    answer.add_argument("--give-up", action="store_true", help="show it now")
    on_my_tree(verb("reset", reset.run, "Puts a lesson back to its stub. What you wrote is kept, and its place said."),
               None)
    return verbs


def main(arguments):
    try:
        arguments = language.choose(arguments)
    except ValueError as error:
        raise Problem(str(error)) from None
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP_IN_RUSSIAN if language.russian() else HELP, end="")
        return 0
    verbs = parsers()
    if arguments[0] not in verbs:
        raise Problem("%r is no verb of scripts/workbook: choose %s" % (arguments[0], ", ".join(sorted(verbs))))
    parser = verbs[arguments[0]]
    if arguments[0] == "bench":
        options, options_passed_on = parser.parse_known_args(arguments[1:])
        options.passed_on = options_passed_on
    else:
        options = parser.parse_args(arguments[1:])
    if options.builds:
        week.check_path("the workbook's folder", week.ROOT)
    return options.function(options)


def stop(number, _frame):
    raise SystemExit(128 + number)


if __name__ == "__main__":
    console.prepare()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except Problem as problem:
        console.error(problem)
        code = problem.status
    except KeyboardInterrupt:
        console.end_progress()
        code = 130
    except BrokenPipeError:  # the reader of our output, `head` for one, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    sys.exit(code)
