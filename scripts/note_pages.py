"""A page of the notes taken apart: sections, anchors, links, excerpts of code, and the figures that a reader may believe."""

import functools
import re

# 295, 69 206 016, 0.056, 10⁹, 95 %; in Russian 0,056. Not the digits of a name, and not those inside a longer number.
NUMBER = r"\d+(?:[  ]\d{3}(?!\d))*(?:[.,]\d+)*(?:e-?\d+)?[⁻⁰¹²³⁴-⁹]*(?:[  ]?%)?"
FIGURE = re.compile(r"(?<![\w.,])(%s)(?![\w⁻⁰-⁹])" % NUMBER)
FENCE = re.compile(r"^( *)(```|~~~)(\w*)[^\n]*\n(.*?)^\1\2 *$", re.M | re.S)
COMMAND = r"^[ >]*(?:scripts/|cmake |ctest |python3 |git |cd |nvcc |pip )[^\n]*"
NOT_FIGURES = re.compile("|".join((
    r"<!-- (?P<block>[a-z_]+) -->\n.*?<!-- /(?P=block) -->",  # a table that a script put there; meta.notes compares it
    r"<!--.*?-->|</?\w[^>\n]*>",
    r"`[^`\n]+`",
    r"(?<=\])\([^)\n]*\)",
    r"https?://\S+",
    COMMAND,
    r"^#+ [^\n]*",
    r"(?:[Ll]essons?|[Rr]ungs?|[Уу]рок\w*|[Сс]тупен\w*)[  ]\d\d(?:(?:,| and| to| и| до| или| or|-)[  ]?\d\d)*",
    r"(?<![\w.,])0\d(?![\w.,]\d|\d)",  # 05 is a lesson
    r"(?<=[,(  ])(?:18|19|20)\d\d(?=[,;.:)]|$)(?<=, \d{4}|.\(\d{4}|[a-z] \d{4})(?=\.?$|;|,? [\"“«]|\)|\. [A-Z])",  # a year
    r"^ *\d+\. ",  # the number of a list's entry
)), re.M | re.S)


def blank(text):
    """The same length and lines, nothing to read."""
    return re.sub(r"[^\n]", " ", text)


class Page:
    def __init__(self, text):
        self.text = text

    @functools.cached_property
    def prose(self):
        """The text with all that holds no figure left blank: code, output, commands, links, headings, names."""
        text = FENCE.sub(lambda m: blank(m[0]) if m[3] else m[0], self.text)
        return NOT_FIGURES.sub(lambda m: blank(m[0]), text)

    def line(self, position):
        return self.text.count("\n", 0, position) + 1

    def figures(self, start=0, end=None):
        """(position, text) of each number of two digits or more, with a point or a percent sign."""
        for match in FIGURE.finditer(self.prose, start, len(self.prose) if end is None else end):
            number = match[1].rstrip(".,")
            if len(number) > 1:
                yield match.start(1), number

    @functools.cached_property
    def headings(self):
        """(position, level, slug): the slug as GitHub makes it, or that of an <a id="..."> in front of the heading."""
        outside = FENCE.sub(lambda m: blank(m[0]), self.text)
        found, taken = [], set()
        for match in re.finditer(r"(?:^<a id=\"([^\"]*)\"></a>\n\n?)?^(#+) (.+)$", outside, re.M):
            slug = match[1] or slug_of(match[3])
            name, count = slug, 0
            while name in taken:
                count += 1
                name = "%s-%d" % (slug, count)
            taken.add(name)
            found.append((match.start(2), len(match[2]), name))
        return found

    @functools.cached_property
    def anchors(self):
        return {slug for _, _, slug in self.headings} | set(re.findall(r"<a id=\"([^\"]*)\">", self.text))

    @functools.cached_property
    def links(self):
        """(position, target) of links and pictures outside code."""
        text = FENCE.sub(lambda m: blank(m[0]), self.text)
        text = re.sub(r"`[^`\n]*`", lambda m: blank(m[0]), text)
        found = [(m.start(1), m[1]) for pattern in (
            r"\]\(<?([^)\s>]+)[^)]*\)", r"^\[[^\]]+\]: *(\S+)", r"(?:src|href)=[\"']([^\"']+)")
            for m in re.finditer(pattern, text, re.M)]
        return sorted(found)

    @functools.cached_property
    def excerpts(self):
        """(position, path, code) of each fence that says what file it is from."""
        return [(m.start(), m[1], m[2]) for m in re.finditer(
            r"^<!-- from: (\S+) -->\n+```\w*\n(.*?)^```$", self.text, re.M | re.S)]

    @functools.cached_property
    def sections(self):
        """(slug, start, end), the text in front of the first heading as ''."""
        starts = [(0, "")] + [(position, slug) for position, _, slug in self.headings]
        ends = [position for position, _ in starts[1:]] + [len(self.text)]
        return [(slug, start, end) for (start, slug), end in zip(starts, ends)]


def slug_of(heading, separator="-"):
    """A heading's anchor as GitHub makes it."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def plain(number):
    """A figure as both languages would write it: 69206016, 0.056, 95%."""
    return re.sub(r"[  ]", "", number).replace(",", ".")
