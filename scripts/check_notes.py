#!/usr/bin/env python3
"""The notes say what is so: every figure is recomputed or has a source, links and excerpts hold, both languages agree.

A page's figures stand in tests/notes/ under its name, notes/cuda/01_x.md's in tests/notes/cuda/01_x.py, passage by
passage, in the page's order:

    from check_notes import given, record, says

    P, W = 989e12, 3.35e12
    given("989 TFLOP/s in bf16 but reads only 3.35 TB/s", source="NVIDIA, H100 datasheet")
    says("do {:.0f} operations in the time in which it reads one byte", P / W)

`says` is a passage with a place for each computed figure, `given` one whose figures are inputs; white space counts as
one space. A passage that stands there with other numbers is an error that names the right one, and so is a figure (two
digits, a decimal point or a percent sign) in no passage. The Russian chapter has the same figures, section by section.
"""

import argparse
import importlib.util
import json
import re
import sys
import traceback
from pathlib import Path

from note_pages import COMMAND, FENCE, NUMBER, Page, plain

ROOT = Path(__file__).resolve().parent.parent
OTHER_PAGES = ("ai_tutor", "instructors", "hints")  # pages and folders for those who help: they claim no figures
ENGLISH_ONLY = ("10_fast_attention",)  # what lies in a folder may have a Russian page, a chapter must

passages = []  # of the chapter that is being checked: (text with the right figures, where it stands)


def says(template, *values):
    passages.append((" ".join(template.format(*values).split()), _caller()))


def given(text, source):
    if not source.strip():
        raise ValueError("a source is missing for: " + text)
    passages.append((" ".join(text.split()), _caller()))


def record(name):
    with open(ROOT / "notes" / "data" / name, encoding="utf-8") as file:
        return json.load(file)


def code(path, template):
    """The numbers that stand in a source of the project: code("reference/cuda/02_x.cu", "kTile = {};") is 16."""
    pattern = r"(?<!\w)" + r"([\d.]+)".join(map(re.escape, template.split("{}")))
    found = set(re.findall(pattern, (ROOT / path).read_text(encoding="utf-8")))
    if len(found) != 1:
        raise ValueError("%s: %d different places read %s" % (path, len(found), template))
    numbers = found.pop()
    numbers = [float(n) if "." in n else int(n) for n in ([numbers] if isinstance(numbers, str) else numbers)]
    return numbers[0] if len(numbers) == 1 else numbers


def groups(number):
    """69206016 as 69 206 016."""
    return "{:,}".format(round(number)).replace(",", " ")


def sup(exponent):
    """26 as ²⁶."""
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _caller():
    frame = sys._getframe(2)
    while not frame.f_code.co_name == "<module>":
        frame = frame.f_back
    return "%s:%d" % (_shown(Path(frame.f_code.co_filename)), frame.f_lineno)


def _shown(path):
    path = path.resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


class Chapter:
    """A page, and the same text with each run of white space as one space, to look for passages in."""

    def __init__(self, path):
        self.path = path
        self.page = Page(path.read_text(encoding="utf-8"))
        self.flat, self.positions = "", []
        for match in re.finditer(r"\s+(?:> ?)*|\S+", self.page.text):
            space = match[0][0].isspace()
            self.flat += " " if space else match[0]
            self.positions += [match.start()] if space else range(match.start(), match.end())

    def places(self, pattern):
        for match in re.finditer(pattern, self.flat):
            yield match, [self.positions[i] for i in range(*match.span())]

    def at(self, position):
        return "%s:%d" % (_shown(self.path), self.page.line(position))


def check_figures(path, claims):
    """Errors of one chapter against the passages of tests/notes/<chapter>.py."""
    chapter = Chapter(path)
    passages.clear()
    if claims.is_file():
        spec = importlib.util.spec_from_file_location("claims", claims)
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except Exception as why:
            line = [frame for frame in traceback.extract_tb(why.__traceback__) if frame.filename == str(claims)][-1]
            return ["%s:%d: %s: %s" % (_shown(Path(line.filename)), line.lineno, type(why).__name__, why)]
    errors, covered = [], set()
    for text, where in passages:
        found = False
        for _, positions in chapter.places(re.escape(text)):
            covered.update(positions)
            found = True
        if not found:
            errors += _wrong_figures(chapter, text, where, covered)
    for position, figure in chapter.page.figures():
        if position not in covered:
            errors.append("%s: %s is in no passage of %s" % (chapter.at(position), figure, _shown(claims)))
    return errors


def _wrong_figures(chapter, text, where, covered):
    """The passage is not there: which of its figures are others, or that the passage is missing."""
    right = re.findall(NUMBER, text)
    pattern = ("(%s)" % NUMBER).join(map(re.escape, re.split(NUMBER, text)))
    for match, positions in chapter.places(pattern):
        covered.update(positions)
        return ["%s: %s stands there; right is %s (%s)" % (
            chapter.at(chapter.positions[match.start(i + 1)]), match[i + 1], figure, where)
            for i, figure in enumerate(right) if match[i + 1] != figure]
    return ["%s: this passage is not in %s: %s" % (where, _shown(chapter.path), text)]


def check_links(root, path, pages):
    """Files, and the headings in them, that a page's links lead to; the code that it quotes."""
    page, errors = pages[path], []
    for position, target in page.links:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        where = "%s:%d" % (_shown(path), page.line(position))
        if not file.exists():
            errors.append("%s: %s leads to no file" % (where, target))
        elif anchor and file in pages and anchor not in pages[file].anchors:
            errors.append("%s: %s has no heading #%s" % (where, name or "this page", anchor))
    for position, name, code in page.excerpts:
        if code.rstrip("\n") not in (root / name).read_text(encoding="utf-8"):
            errors.append("%s:%d: this is not the code of %s" % (_shown(path), page.line(position), name))
    return errors


def check_twin(path, twin):
    """The Russian chapter has the English one's headings and, in each section, its figures, links and code."""
    if not twin.is_file():
        return ["%s is missing" % _shown(twin)]
    english, russian = (Page(p.read_text(encoding="utf-8")) for p in (path, twin))
    errors = []
    heads = [[(level, slug) for _, level, slug in page.headings[1:]] for page in (english, russian)]
    if heads[0] != heads[1]:
        odd = [head for pair in zip(*heads) if pair[0] != pair[1] for head in pair] or heads[0][len(heads[1]):] or \
            heads[1][len(heads[0]):]
        return ["%s: the headings differ from %s at %s" % (_shown(twin), _shown(path), "#" + odd[0][1])]
    # The title has no anchor: what stands under it is one section in both.
    for (slug, start, end), (_, start_ru, end_ru) in zip(english.sections[1:], russian.sections[1:]):
        for what, ours, theirs in zip(("figure", "link", "name", "code"), _held(english, start, end, path),
                                      _held(russian, start_ru, end_ru, twin)):
            for missing, there, page, at in ((twin, path, russian, start_ru), (path, twin, english, start)):
                for item in sorted((ours - theirs) if missing == twin else (theirs - ours)):
                    errors.append("%s:%d: section #%s lacks the %s %s of %s" % (
                        _shown(missing), page.line(at), slug, what, item.strip().split("\n")[0], _shown(there)))
    return errors


def _held(page, start, end, path):
    figures = {plain(number) for _, number in page.figures(start, end)}
    links = {_shown(path.parent / target).replace("notes/ru/", "notes/") for position, target in page.links
             if start <= position < end and not re.match(r"[a-z]+:|#", target)}
    text = page.text[start:end]
    names = set(re.findall(r"`((?:exercises/|reference/|[A-Z]\w+\.)[\w./*]+)`", text))
    fences = list(FENCE.finditer(text))
    code = {m[4] for m in fences if m[3] in ("text", "cpp", "python", "bash")}
    code |= {line.split("  #")[0].strip() for m in fences for line in re.findall(COMMAND, m[4], re.M)}
    return figures, links, names, code


def run(root, chosen=()):
    """The errors of all pages, or of those whose path holds one of the chosen words."""
    def wanted(path):
        return not chosen or any(word in _shown(path) for word in chosen)

    notes, claims = root / "notes", root / "tests" / "notes"
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in [
        *root.glob("*.md"), *notes.rglob("*.md")]}
    errors = []
    for path in filter(wanted, pages):
        errors += check_links(root, path, pages)
    for path in filter(wanted, sorted(notes.rglob("*.md"))):
        name = path.relative_to(notes)
        if name.parts[0] != "ru" and name.with_suffix("").parts[0] not in OTHER_PAGES:
            errors += check_figures(path, claims / name.with_suffix(".py"))
            if path.parent == notes and path.stem not in ENGLISH_ONLY:
                errors += check_twin(path, notes / "ru" / name)
    if (root / "README.md").is_file() and wanted(root / "README.md"):
        errors += check_twin(root / "README.md", root / "README.ru.md")
    for twin in filter(wanted, sorted((notes / "ru").rglob("*.md"))):
        path = notes / twin.relative_to(notes / "ru")
        if not path.is_file():
            errors.append("%s has no English chapter" % _shown(twin))
        elif path.parent != notes or path.stem in OTHER_PAGES + ENGLISH_ONLY:  # the others were compared above
            errors += check_twin(path, twin)
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("chapter", nargs="*", help="01_roofline, say; without it all chapters")
    errors = run(ROOT, parser.parse_args().chapter)
    print("\n".join(errors) if errors else "The notes' figures, links and languages agree.")
    return 1 if errors else 0


if __name__ == "__main__":
    import check_notes  # by its name: the chapters' files import it, and must not get a second one

    sys.exit(check_notes.main())
