"""What becomes of a chapter's text: GitHub's Markdown for MkDocs, formulas, links, the list of chapters."""

import posixpath
import re
from html import escape, unescape

FENCE = re.compile(r"^( *(?:> ?)*)(```+|~~~+)")
ITEM = re.compile(r"^( *)([-*+]|\d+[.)]) +\S")
# Groups of the list of chapters, in order: English and Russian title, and what belongs there. The first that fits.
GROUPS = (
    ("CUDA", "CUDA", r"cuda/"),
    ("Around the week", "Вокруг недели", r"(self_check|glossary|instructors|ai_tutor)$"),
    ("Core", "Основа", r"(gpu_model|0[1-5]_\w+|explore|measuring|attention_bench)$"),
    ("Depth", "Вглубь", r""),
)
SHOWN = ("Core", "Depth", "CUDA", "Around the week")


def dialect(text):
    """Markdown as GitHub reads it, written so that Python-Markdown reads it the same way: a list may follow a paragraph
    without an empty line, what belongs to an item is indented by four columns a level, <details> holds Markdown."""
    out, items, fence, depth = [], [], None, 0  # items: columns of marker and text, kind
    for line in text.split("\n"):
        width = len(line) - len(line.lstrip(" "))
        mark = FENCE.match(line)
        if fence is not None:
            out.append(" " * 4 * depth + line[min(width, items[depth - 1][1]):] if depth else line)
            if mark and mark[2].startswith(fence) and not line.strip("> ").strip(fence[0]):
                fence = None
            continue
        if not line.strip():
            out.append(line)
            continue
        after_text = bool(out) and bool(out[-1].strip())
        item = ITEM.match(line)
        if item and after_text and item[2] not in ("-", "*", "+", "1.", "1)") and not any(
                marker <= width < text and item[2][-1] == kind for marker, text, kind in items):
            item, line = None, re.sub(r"([.)])", r"\\\1", line, count=1)  # a line that begins with a number
        if item or mark or not after_text or line.startswith(("#", "<", "|")):  # else the paragraph goes on
            while items and width < items[-1][1] and not (
                    item and width >= items[-1][0] and item[2][-1] == items[-1][2]):
                closed = items.pop()
                if item and after_text and width >= closed[0]:
                    out.append("")  # a list of another kind
        if item and (items or width < 4):
            if items and width < items[-1][1]:
                items.pop()
            elif not items and after_text and out[-1]:
                out.append("")
            out.append("%s%s %s" % (" " * 4 * len(items), item[2], line[item.end(2):].lstrip()))
            items.append((width, len(item[0]) - 1, item[2][-1]))
            continue
        if mark:
            fence, depth = mark[2], len(items)
        line = re.sub(r"^<details( open)?>", r'<details\1 markdown="1">', line)
        line = re.sub(r"(<summary)>", r'\1 markdown="span">', line)
        out.append(" " * 4 * len(items) + line.lstrip(" ") if items else line)
    return "\n".join(out)


def formulas(html, to_mathml):
    """Formulas that pymdownx.arithmatex found become MathML, by to_mathml(tex, "inline" or "block")."""
    def tex(text):
        return unescape(text).replace("{aligned}", "{split}")  # latex2mathml has no `aligned`

    def mathml(text, display):
        """Text fonts have ' and * raised already: as a superscript the prime stands too high, the star has a twin."""
        made = to_mathml(tex(text), display).replace("&#x0002A;", "&#x02217;")
        return re.sub(r"<msup>(<m[ino]>[^<]*</m[ino]>)<m[io]>&#x02032;</m[io]></msup>",
                      r"<mrow>\1<mo lspace='0' rspace='0'>&#x02032;</mo></mrow>", made)

    def inline(match):
        return mathml(match[1], "inline")

    def block(match):
        return '<div class="formula">%s</div>' % mathml(match[1], "block")

    html = re.sub(r'<span class="arithmatex">\\\((.*?)\\\)</span>', inline, html, flags=re.S)
    return re.sub(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', block, html, flags=re.S)


def plain(title):
    """A heading as the lists of headings and chapters show it, without MathML."""
    return re.sub(r"\\\((.*?)\\\)", lambda match: re.sub(r"[\\{}$]", "", match[1]), title)


def anchors(html):
    """An anchor that stands before a heading takes no line of its own."""
    return re.sub(r'<p>(<a id="[^"]*">)\s*</a></p>', r"\1</a>", html)


def tables(html):
    """A table wider than the page scrolls by itself, before its numbers are broken into lines; in code, too, a
    cell's bar is written as \\|."""
    def table(match):
        text = re.sub(r"<code>.*?</code>", lambda code: code[0].replace(r"\|", "|"), match[0], flags=re.S)
        text = re.sub(r"<td((?: style=[^>]*)?>[^<]{1,22}</td>)", r'<td class="short"\1', text)
        return '<div class="table">%s</div>' % text

    return re.sub(r"<table>.*?</table>", table, html, flags=re.S)


def address(page):
    """Where a chapter, `ru/01_roofline.md` say, lies in the site."""
    return re.sub(r"00_map\.md$", "index.md", page)[:-2] + "html"


def links(html, page, exists, repository, hidden=r"notes/hints/"):
    """Links of a chapter (`01_roofline.md`, `ru/x.md`, as the notes' folder has it) as they are in the site. Chapters
    and other files of the notes stay links; other files of the workbook lead to the repository, or become plain text."""
    here = posixpath.join("notes", posixpath.dirname(page))

    def of_repository(target):
        return not target.startswith("notes/") or re.match(hidden, target) or not exists(target)

    def local(target, part):
        if target.endswith(".md"):
            base = posixpath.dirname(address(page))
            return posixpath.relpath(address(target[len("notes/"):]), base or ".") + part
        return posixpath.relpath(target, here) + part

    def resolved(link):
        """Path in the workbook, and what follows #; None for what is no path."""
        path, mark, part = unescape(link).partition("#")
        if not path or re.match(r"[a-z][a-z0-9+.-]*:|//", path):
            return None
        target = posixpath.normpath(posixpath.join(here, path))
        if target.endswith(".html"):  # MkDocs has been here
            target = re.sub(r"(^|/)index$", r"\g<1>00_map", target[:-5]) + ".md"
        return target, mark + part

    def anchor(match):
        found = resolved(match[2])
        if not found:
            return match[0]
        target, part = found
        if target.startswith("notes/ru/") and not exists(target) and exists(target.replace("/ru/", "/", 1)):
            target = target.replace("/ru/", "/", 1)  # not translated yet
        if not of_repository(target):
            other = target.endswith(".md") and target.startswith("notes/ru/") != page.startswith("ru/")
            language = ' hreflang="%s"' % ("ru" if target.startswith("notes/ru/") else "en") if other else ""
            return '<a%s href="%s"%s%s>%s</a>' % (match[1], escape(local(target, part)), language, match[3], match[4])
        if target.startswith(".."):
            return match[0]
        if repository:
            return '<a%s href="%s"%s>%s</a>' % (match[1], escape(repository + target + part), match[3], match[4])
        return '<span class="file" title="%s">%s</span>' % (escape(target), match[4])

    html = re.sub(r'<a((?: (?!href)[\w-]+="[^"]*")*) href="([^"]*)"([^>]*)>(.*?)</a>', anchor, html, flags=re.S)
    return re.sub(r'(<(?:img|script|source|object|link)\b[^>]* (?:src|data|href)=")([^"]*)(")', lambda match: (
        match[1] + escape(local(*resolved(match[2]))) + match[3] if resolved(match[2]) else match[0]), html)


def order(map_text, pages):
    """The chapters in the order in which the map links them; `explore` after 02, others at the end of their group."""
    linked = [posixpath.normpath(target) for target in re.findall(r"\]\(([\w./-]+)\.md(?:#[\w-]*)?\)", map_text)]
    found = [page for page in dict.fromkeys(linked) if page in pages and page != "00_map"]
    found += sorted(set(pages) - set(found) - {"00_map", "explore"})
    if "explore" in pages and "explore" not in found:
        after = found.index("02_critical_batch") + 1 if "02_critical_batch" in found else 0
        found.insert(after, "explore")
    return found


def grouped(chapters):
    """[(English title, Russian title, chapters)] of GROUPS, in the order shown."""
    held = {title: [] for title, _, _ in GROUPS}
    for chapter in chapters:
        held[next(title for title, _, fits in GROUPS if re.match(fits, chapter))].append(chapter)
    in_russian = {title: russian for title, russian, _ in GROUPS}
    return [(title, in_russian[title], held[title]) for title in SHOWN if held[title]]


def title(text):
    """A chapter's first heading."""
    return re.sub(r"[`*]", "", re.search(r"^# +(.+?) *$", text, re.M)[1])
