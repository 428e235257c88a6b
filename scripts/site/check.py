"""Does a built site hold together? check.py SITE NOTES: links and anchors lead somewhere, nothing is fetched, every
formula was rendered, every chapter is there in the languages that it has."""

import os
import posixpath
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

# Elements and attributes that make a browser fetch something when it shows a page.
FETCHED = {"img": ("src", "srcset"), "script": ("src",), "link": ("href",), "iframe": ("src",),
           "source": ("src", "srcset"), "object": ("data",), "video": ("src", "poster"), "audio": ("src",), "embed": ("src",), "image": ("href",)}
RAW = ("$$", r"\(", r"\[", r"\frac", r"\begin", r"\text{", "```")


class Page(HTMLParser):
    """Anchors, links, fetched addresses and text of a page, and the text of its formulas."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.fetched, self.open = {"", "top"}, [], [], []
        self.text, self.formulas, self.language = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "html":
            self.language = given.get("lang")
        if tag == "a" and given.get("href") is not None:
            self.links.append(given["href"])
        if not (tag == "link" and given.get("rel") in ("canonical", "alternate", "prev", "next")):
            self.fetched += [given[name].split()[0] for name in FETCHED.get(tag, ()) if given.get(name)]
        else:
            self.links.append(given["href"])
        if tag in ("code", "pre", "script", "style", "math"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open:
            self.open.remove(tag)

    def handle_data(self, data):
        (self.formulas if "math" in self.open else self.text if not self.open else []).append(data)


def problems(site, notes):
    """Sentences, one a fault."""
    site, notes, found = Path(site), Path(notes), []
    pages = {path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
             for path in sorted(site.rglob("*.html"))}
    there = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    for name, page in pages.items():
        def wrong(says, *values, name=name):
            found.append("%s: %s" % (name, says % values))

        for address in page.links + page.fetched:
            fetched = address in page.fetched
            if re.match(r"[a-z][a-z0-9+.-]*:|//", address):
                if fetched and not address.startswith("data:"):
                    wrong("fetches %s", address)
                continue
            path, _, part = unquote(address.split("?")[0]).partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if target not in there:
                wrong("%s is not there", address)
            elif target in pages and part and part not in pages[target].anchors and not part.startswith("__"):
                wrong("%s: the page has no such anchor", address)
        text = "".join(page.text)
        for mark in RAW:
            if mark in text:
                wrong("%s stands in the text: %s", mark, " ".join(text[text.index(mark):].split())[:60])
        for formula in page.formulas:
            if re.search(r"\\[A-Za-z]|&", formula):
                wrong("a formula was not understood: %s", formula)
    for path in sorted(notes.rglob("*.md")):
        source = path.relative_to(notes).as_posix()
        if source.startswith("hints/"):
            continue
        name = re.sub(r"00_map$", "index", source[:-3]) + ".html"
        language = "ru" if source.startswith("ru/") else "en"
        if name not in pages:
            found.append("%s: notes/%s is not in the site" % (name, source))
        elif pages[name].language != language:
            found.append("%s: its language is %s" % (name, pages[name].language))
    for path in there:
        if path.endswith((".css", ".js")):
            text = (site / path).read_text(encoding="utf-8")
            for address in re.findall(r"""(?:url\(|@import )["']?((?:https?:)?//[^"')]+)""", text):
                found.append("%s: fetches %s" % (path, address))
        if "hints/" in path:
            found.append("%s: hints are shown by scripts/workbook hint alone" % path)
    for index in site.rglob("search_index.js*"):
        if "hints/" in index.read_text(encoding="utf-8"):
            found.append("%s: holds hints" % os.path.relpath(index, site))
    return found


if __name__ == "__main__":
    faults = problems(*sys.argv[1:])
    print("\n".join(faults) or "nothing is wrong")
    sys.exit(bool(faults))
