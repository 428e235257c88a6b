"""The workbook's own sentences in Russian. The code is written in English; console.say() translates what it prints."""

import functools
import os
import re

from .russian import SENTENCES

LANGUAGES = ("en", "ru")
MARKS = r"(?:\s|\x1b\[\d*m|✓|✗|ok  |FAIL(?=\s|\x1b))*"
PLACE = r"[\w./-]+:\d+: "


def choose(arguments):
    """Takes --lang out of a command's arguments; without it the locale decides. Programs started by us see it, too."""
    rest, words = [], iter(arguments)
    for word in words:
        if word == "--lang" or word.startswith("--lang="):
            chosen = word[7:] if "=" in word else next(words, "")
            if chosen not in LANGUAGES:
                raise ValueError("--lang %r is none of %s" % (chosen, ", ".join(LANGUAGES)))
            os.environ["NANOLM_LANG"] = chosen
        else:
            rest.append(word)
    return rest


def russian():
    chosen = os.environ.get("NANOLM_LANG")
    if chosen:
        return chosen == "ru"
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return locale.startswith("ru")


def translate(text):
    """Text in the chosen language: its sentence, and what stands in the sentence's places. Marks, indentation, colours
    and a place in front of it stay."""
    if not russian():
        return text
    front, sentence, end = re.match("(%s(?:%s)?)(.*?)(%s)\\Z" % (MARKS, PLACE, MARKS), text, re.DOTALL).groups()
    for english, in_russian in SENTENCES:
        match = _pattern(english).match(sentence)
        if match:
            return front + in_russian.format(*[translate(part) if " " in part else part for part in match.groups()]) + end
    return text


@functools.lru_cache(maxsize=None)
def _pattern(english):
    return re.compile("(.*?)".join(map(re.escape, english.split("{}"))) + r"\Z", re.DOTALL)
