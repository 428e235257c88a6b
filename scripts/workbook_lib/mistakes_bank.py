"""The bank of mistakes: tests/mistakes/NN_topic.edits, wrong versions of a reference file as edits of its lines.

    # M03-02 acc-not-rescaled: The output was not multiplied by exp(m_old - m_new) when the row maximum grew.
    ru: Выход не умножен на exp(m_old - m_new), когда максимум строки вырос.
    @ twin: M03-05
    @ race
    -  for (float& a : state.acc) a *= rescale;
    +  ...

An entry is a header, the sentence in Russian, twins (mistakes with the same wrong results), `@ race` where the wrong
numbers differ from run to run, so that they name nothing, and edits. An edit is a run
of whole lines of the reference after `-`, which must stand there exactly once, and the lines after `+` in their place. Edits without `+` lines are kept apart by an empty line.

A rung's mistakes, tests/mistakes/cuda/NN_idea.edits, have no twins. They say what a student must be told:

    # C03-02 no-barrier-behind-the-scores: A barrier is missing: V is loaded over K while other warps still read it.
    ru: ...
    says: 128 of 128 elements are wrong
    checked: Put __syncthreads() between the two
    at: tile_scores<T>(Q_smem, KV_smem, head_dim, S);
    @ hazard

`says:` stands in the first thing that `check` prints, `checked:` in the first thing that `check --checked` prints;
either may come several times. `at:` is a piece of one line of the wrong version, whose number must be named in the last
of the two. `@ checked`: `check` alone finds nothing. `@ hazard`: threads of a block race in shared memory, which
compute-sanitizer should see, too.
"""

import os
import re
from collections import namedtuple

from .console import Problem
from .week import ROOT, is_rung

BANK = os.path.join(ROOT, "tests", "mistakes")
# edits: pairs of tuples of lines, (out, in). words: {"says", "checked", "at": texts}; marks: "race"; "checked", "hazard".
Mistake = namedtuple("Mistake", "id slug says says_ru twins edits place words marks")
HEADER = re.compile(r"# (([CM])(\d\d)-\d\d) ([a-z0-9]+(?:-[a-z0-9]+)*): (\S.*[.])$")


def read_bank(stem, folder=BANK):
    """The mistakes of a lesson or a rung; none where its file is missing."""
    path = os.path.join(folder, stem + ".edits")
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    mistakes, between, example = [], False, "# C03-02" if is_rung(stem) else "# M03-02"
    for number, line in enumerate(lines, 1):
        place = "%s:%d" % (os.path.relpath(path, ROOT) if path.startswith(ROOT + os.sep) else path, number)
        if line.startswith("#"):
            match = HEADER.match(line)
            if not match or (match[2] == "C") != is_rung(stem):
                raise Problem("%s: a mistake begins with `%s its-name: One sentence.`" % (place, example))
            if match[3] != os.path.basename(stem)[:2]:
                raise Problem("%s: %s is no mistake of lesson %s" % (place, match[1], stem))
            if any(m.id == match[1] or m.slug == match[4] for m in mistakes):
                raise Problem("%s: %s %s was there before" % (place, match[1], match[4]))
            mistakes.append(Mistake(match[1], match[4], match[5], "", [], [], place, {}, []))
        elif not line.strip():
            between = True
        else:
            if not mistakes:
                raise Problem("%s: a line before the first mistake" % place)
            mistakes[-1] = _with_line(mistakes[-1], line, place, between)
            between = False
    return [_checked(mistake, mistakes) for mistake in mistakes]


def _with_line(mistake, line, place, after_empty):
    if line.startswith("ru: "):
        return mistake._replace(says_ru=line[4:].strip())
    of_rung = mistake.id[0] == "C"
    if of_rung and line in ("@ checked", "@ hazard"):
        mistake.marks.append(line[2:])
    elif of_rung and re.match("(says|checked|at): .", line):
        kind, text = line.split(": ", 1)
        mistake.words.setdefault(kind, []).append(text.strip())
    elif line.startswith("@") and of_rung:
        raise Problem("%s: after @ only `@ checked` and `@ hazard` are known" % place)
    elif line == "@ race":
        mistake.marks.append("race")
    elif line.startswith("@"):
        match = re.match(r"@ twin: (M\d\d-\d\d)$", line)
        if not match:
            raise Problem("%s: after @ only `@ twin: M03-05` and `@ race` are known" % place)
        mistake.twins.append(match[1])
    elif line.startswith("-"):
        if not mistake.edits or mistake.edits[-1][1] or after_empty:
            mistake.edits.append(([], []))
        mistake.edits[-1][0].append(line[1:])
    elif line.startswith("+"):
        if not mistake.edits:
            raise Problem("%s: a + line without the - lines that it replaces" % place)
        mistake.edits[-1][1].append(line[1:])
    else:
        raise Problem("%s: a line begins with #, ru:, %s@, - or +" % (place, "says:, checked:, at:, " * of_rung))
    return mistake


def _checked(mistake, mistakes):
    if not mistake.edits:
        raise Problem("%s: %s has no edit" % (mistake.place, mistake.id))
    if not mistake.says_ru:
        raise Problem("%s: %s has no sentence in Russian (ru: ...)" % (mistake.place, mistake.id))
    if mistake.id[0] == "C" and not mistake.words.get("says"):
        raise Problem("%s: %s lacks what a student is told (says: ...)" % (mistake.place, mistake.id))
    if "checked" in mistake.marks and mistake.words.get("checked"):
        raise Problem("%s: %s is `@ checked`: its words stand behind says:" % (mistake.place, mistake.id))
    for twin in mistake.twins:
        other = next((m for m in mistakes if m.id == twin and twin != mistake.id), None)
        if other is None or mistake.id not in other.twins:
            raise Problem("%s: %s names the twin %s, which does not name it" % (mistake.place, mistake.id, twin))
    return mistake


def apply(mistake, text):
    """The reference's text with the mistake in it."""
    lines = text.splitlines()
    places = []
    for out, put in mistake.edits:
        found = [i for i in range(len(lines) - len(out) + 1) if lines[i:i + len(out)] == out]
        if len(found) != 1:
            how = "is not found in the reference" if not found else "is found %d times" % len(found)
            raise Problem("%s: %s: the edit of %r %s" % (mistake.place, mistake.id, out[0].strip(), how))
        places.append((found[0], found[0] + len(out), put))
    for first, end, put in sorted(places, reverse=True):
        lines[first:end] = put
    return "\n".join(lines) + "\n"


def line_of(mistake, text, code):
    """The number of the one line of a wrong version that holds this piece of code."""
    found = [number for number, line in enumerate(text.splitlines(), 1) if code in line]
    if len(found) != 1:
        raise Problem("%s: %s: `at: %s` fits %d lines of the wrong version"
                      % (mistake.place, mistake.id, code, len(found)))
    return found[0]


def sentence(mistake, language):
    return mistake["says_ru"] if language == "ru" else mistake["says"]
