"""The workbook's own sentences in Russian. The code is written in English; console.say() translates what it prints."""

import os
import re

LANGUAGES = ("en", "ru")
_chosen = None

# English, with {} for what varies, and Russian with the same places in the same order, or numbered.
SENTENCES = (
    ("Building and testing {} of {} in {}", "Сборка и проверка: {0} из {1} в {2}"),
    ("Building and testing all lessons of {} in {}", "Сборка и проверка всех уроков из {} в {}"),
    ("Recording what {} known mistakes of {} do, once, to name yours: some seconds ...",
     "Один раз записываю, что делают {} известных ошибок урока {}, чтобы назвать вашу: несколько секунд ..."),
    ("No mistake can be named: {}", "Ошибку назвать нельзя: {}"),
    ("this equals mistake {}: {}", "это ошибка {}: {}"),
    ("this equals mistake {}", "это снова ошибка {}"),
    ("or, with the same results, mistake {}: {}", "или, с теми же результатами, ошибка {}: {}"),
    ("or, with the same results, mistake {}", "или, с теми же результатами, ошибка {}"),
    ("{} not implemented at {}: {}", "{} ещё не написано: {}: {}"),
    ("{} not implemented at {}", "{} ещё не написано: {}"),
    ("not implemented at {}: {}", "ещё не написано: {}: {}"),
    ("stopped: no result in time (an endless loop, or far too slow)",
     "остановлено: нет результата вовремя (бесконечный цикл или слишком медленно)"),
    ("crashed: segmentation fault (an index or pointer out of range, or a recursion without end)",
     "аварийный выход: обращение за границы памяти (индекс, указатель или бесконечная рекурсия)"),
    ("crashed: arithmetic fault (an integer division by zero?)", "аварийный выход: деление целого на ноль?"),
    ("crashed: {}", "аварийный выход: {}"),
    ("the program ended before the test did; does the lesson call exit()?",
     "программа завершилась раньше теста; урок вызывает exit()?"),
    ("{} of {} elements are wrong, the worst at {}: {}, expected {}, tolerance {}",
     "неверны {} элементов из {}, хуже всего {}: {}, ожидалось {}, допуск {}"),
    ("all of them lie in {}", "все они здесь: {}"),
    ("every element is wrong", "неверны все элементы"),
    ("all of them are NaN", "все они NaN"),
    ("{}; tolerance = {}, derived in tests/support/oracle.h", "{}; допуск = {}, вывод в tests/support/oracle.h"),
    ("first off the double-precision trace: {} is {}, expected {}, after key tile {} of [{}]",
     "первое расхождение с ходом в двойной точности: {} равно {}, ожидалось {}, после тайла ключей {} в [{}]"),
    ("first off the double-precision trace: {} is {}, expected {}, after scores {}",
     "первое расхождение с ходом в двойной точности: {} равно {}, ожидалось {}, после оценок {}"),
    ("{}, expected {} (relative tolerance {})", "{}, ожидалось {} (относительный допуск {})"),
    ("The difference between {} and {} is {}, which exceeds {}, where", "Разница {} и {} равна {} и больше {}, где"),
    ("{} evaluates to {}, and", "{} равно {} и"),
    ("{} evaluates to {}, and {}", "{} равно {} и {}"),
    ("{} evaluates to {}.", "{} равно {}."),
    ("with {}", "случай: {}"),
    ("(and {} more in this test)", "(и ещё {} в этом тесте)"),
    ("{}: {} of {} tests pass.", "{}: верно {} тестов из {}."),
    ("{} does not compile: no test was run.", "{} не компилируется: тесты не запускались."),
    ("{} was not built: no test was run.", "{} не собран: тесты не запускались."),
    ("{} does not compile: {}", "{} не компилируется: {}"),
    ("{} of {} pass; {}", "верно {} из {}; {}"),
    ("{} passed ({} tests)", "{} верно (тестов: {})"),
    ("{} of {} lessons of {} pass. More on one: scripts/workbook check 03",
     "Верно {} уроков из {} в {}. Подробнее об одном: scripts/workbook check 03"),
    ("{} of {} lessons of {} pass.", "Верно {} уроков из {} в {}."),
    ("One test alone: {}", "Один тест отдельно: {}"),
    ("Waiting for another scripts/workbook: {}", "Жду другой scripts/workbook: {}"),
)


def choose(arguments):
    """Takes --lang out of a command's arguments; without it the locale decides."""
    global _chosen
    rest, words = [], iter(arguments)
    for word in words:
        if word == "--lang" or word.startswith("--lang="):
            _chosen = word[7:] if "=" in word else next(words, "")
            if _chosen not in LANGUAGES:
                raise ValueError("--lang %r is none of %s" % (_chosen, ", ".join(LANGUAGES)))
        else:
            rest.append(word)
    return rest


def russian():
    if _chosen:
        return _chosen == "ru"
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return locale.startswith("ru")


def translate(text):
    """A line to print: its sentence in the chosen language. Marks, indentation and a place in front of it stay."""
    if not russian():
        return text
    mark, place = r"\W*(?:\x1b\[\d+m\W*)*(?:ok +|FAIL)?\s*", r"(?:[\w./-]+:\d+: )?"
    front, sentence = re.match("(%s%s)(.*)" % (mark, place), text, re.DOTALL).groups()
    for english, in_russian in SENTENCES:
        match = _pattern(english).match(sentence)
        if match:
            return front + in_russian.format(*match.groups())
    return text


def _pattern(english):
    return re.compile("(.*?)".join(map(re.escape, english.split("{}"))) + r"\Z", re.DOTALL)
