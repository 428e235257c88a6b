"""`scripts/workbook hint`: for each gap three hints, one more each time they are asked for (notes/hints/)."""

import os
import re
import shutil
import textwrap

from . import gaps, next_exercise, settings
from .console import Problem, faint, say
from .language import translate
from .week import GROUPS, ROOT, find_lesson, find_lessons, note_of, shown, units

LEVELS = ("what to think about", "the formula, or the order of steps", "almost the code, in words")


def run(options):
    if options.list:
        return _list(find_lessons(options.lesson) if options.lesson is not None else units())
    stem, function = _wanted(options)
    texts = read_hints(stem)[function]
    with settings.changed(settings.SETTINGS) as content:
        shown_before = _shown(content, stem, function)
        level = shown_before if options.again else min(shown_before + 1, len(LEVELS))
        content.setdefault("hints", {}).setdefault(stem, {})[function] = level
    if level == 0:
        raise Problem("no hint on %s() was shown yet" % function)
    say("%s: %s()" % (stem, function))
    width = min(shutil.get_terminal_size((100, 24)).columns, 100) - 4
    for number in range(1, level + 1):
        new = number > shown_before
        say(("%d  %s" if new else faint("%d  %s")) % (number, translate(LEVELS[number - 1])))
        for line in textwrap.wrap(texts[number - 1], width):
            say("   " + (line if new else faint(line)))
    short = stem.split("_")[0]
    if level < len(LEVELS):
        say("Level %d: scripts/workbook hint %s %s" % (level + 1, short, function))
    else:
        say("That was the last one. The note explains the why: %s. The answer: scripts/workbook solution %s "
            "--give-up" % (note_of(stem), short))
    return 0


def read_hints(stem):
    """{function: [level 1, level 2, level 3]} of notes/hints/<stem>.md: a heading a function, and a numbered list."""
    path = os.path.join(ROOT, "notes", "hints", stem + ".md")
    text = settings.read_text(path)
    if text is None:
        raise Problem("%s is missing" % shown(path), status=1)
    hints = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        function, _, body = part.partition("\n")
        items = re.split(r"^\d\. ", body, flags=re.MULTILINE)[1:]
        hints[function.strip()] = [" ".join(item.split()) for item in items]
    return hints


def _wanted(options):
    """The lesson and function that is meant: those named, else the first gap that is still open."""
    tree = settings.tree_of(None)
    group = options.lesson in GROUPS
    if options.lesson is None or group:
        found = next_exercise.find(tree, find_lessons(options.lesson) if group else None)
        if found is None:
            raise Problem("every lesson passes: there is nothing to hint at. Name one: scripts/workbook hint 03 update")
        stem = found["lesson"]
    else:
        stem = find_lesson(options.lesson).stem
    functions = list(dict.fromkeys(gap.function for gap in gaps.all_gaps(stem)))
    if options.name is not None:
        wanted = options.name.split("(")[0].lower()
        fits = [name for name in functions if name.lower() == wanted] or [
            name for name in functions if wanted and wanted in name.lower()]
        if len(fits) != 1:
            raise Problem("%r %s in %s: %s" % (options.name, "fits several" if fits else "is no exercise", stem,
                                               ", ".join(fits or functions)))
        return stem, fits[0]
    missing = gaps.open_gaps(tree, stem)
    if not missing:
        raise Problem("%s has no gap left. Name a function: %s" % (stem, ", ".join(functions)))
    if missing[0].function not in functions:
        raise Problem("line %d of %s is in no exercise. Name a function: %s"
                      % (missing[0].line, settings.source(tree, stem), ", ".join(functions)))
    return stem, missing[0].function


def _shown(content, stem, function):
    return content.get("hints", {}).get(stem, {}).get(function, 0)


def _list(chosen):
    content = settings.read(settings.SETTINGS)
    for entry in chosen:
        say(entry.stem)
        for function in dict.fromkeys(gap.function for gap in gaps.all_gaps(entry.stem)):
            level = _shown(content, entry.stem, function)
            say("  %-28s %s" % (function, "%d of %d shown" % (level, len(LEVELS)) if level else faint("none yet")))
    return 0
