"""scripts/site: what becomes of a chapter's text, and the check of a built site. Status 77: no generator here."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import workbook

sys.dont_write_bytecode = True
sys.path.insert(0, str(workbook.ROOT / "scripts" / "site"))
import check  # noqa: E402
import pages  # noqa: E402

PYTHONS = [sys.executable, str(workbook.ROOT / ".venv" / "bin" / "python")]
FILES = {"notes/00_map.md", "notes/01_roofline.md", "notes/cuda/ladder.md", "notes/ru/01_roofline.md",
         "notes/hints/01.md", "notes/figures/a.svg", "notes/explore/page.js", "include/nanolm/roofline.h", "README.md"}


def linked(html, page="01_roofline.md", repository=""):
    return pages.links(html, page, FILES.__contains__, repository)


class Pages(unittest.TestCase):
    def test_a_list_may_follow_a_paragraph(self):
        self.assertEqual(pages.dialect("text\n- a\n- b"), "text\n\n- a\n- b")
        self.assertEqual(pages.dialect("text\n1. a"), "text\n\n1. a")
        self.assertEqual(pages.dialect("costs\n2. of a sum"), "costs\n2\\. of a sum")
        self.assertEqual(pages.dialect("1. costs\n   448. Of a sum\n2. b"), "1. costs\n    448\\. Of a sum\n2. b")
        self.assertEqual(pages.dialect("S = a\n    - b"), "S = a\n    - b")

    def test_what_belongs_to_an_item_is_indented_by_four(self):
        self.assertEqual(pages.dialect("- a\n  - b\n    c\n- d"), "- a\n    - b\n        c\n- d")
        self.assertEqual(pages.dialect("1. a\n\n   p\n\n   ```cpp\n   x\n     y\n   ```\n2. b"),
                         "1. a\n\n    p\n\n    ```cpp\n    x\n      y\n    ```\n2. b")
        self.assertEqual(pages.dialect("- a\n1. b"), "- a\n\n1. b")
        self.assertEqual(pages.dialect("- a\n\ntext\n\n    code"), "- a\n\ntext\n\n    code")

    def test_fences_stay_as_they_are(self):
        for text in ("```\na\n- b\n<details>\n```", "````text\n```\na\n- b\n````\n", "~~~\n1. a\n~~~"):
            self.assertEqual(pages.dialect(text), text)
        self.assertEqual(pages.dialect("```\na\n```\n- b"), "```\na\n```\n\n- b")

    def test_details_hold_markdown(self):
        self.assertEqual(pages.dialect("<details><summary>a</summary>"),
                         '<details markdown="1"><summary markdown="span">a</summary>')
        self.assertEqual(pages.dialect("<details open>"), '<details open markdown="1">')

    def test_formulas_are_handed_over_as_written(self):
        seen = []

        def mathml(tex, display):
            seen.append((tex, display))
            return "<math/>"

        html = pages.formulas(r'<span class="arithmatex">\(a &lt; b\)</span><div class="arithmatex">\[\begin{aligned}'
                              r'a &amp;= b\end{aligned}\]</div>', mathml)
        self.assertEqual(html, '<math/><div class="formula"><math/></div>')
        self.assertEqual(seen, [("a < b", "inline"), (r"\begin{split}a &= b\end{split}", "block")])
        self.assertEqual(pages.plain(r"The \(B^*\) of \(\frac{a}{b}\)"), "The B^* of fracab")

    def test_links_within_the_notes(self):
        for link, becomes in (("cuda/ladder.md#on", 'href="cuda/ladder.html#on"'), ("00_map.md", 'href="index.html"'),
                              ("figures/a.svg", 'href="figures/a.svg"'), ("#why", 'href="#why"'),
                              ("https://a.b/c.md", 'href="https://a.b/c.md"'),
                              ("ru/01_roofline.md", 'href="ru/01_roofline.html" hreflang="ru"')):
            self.assertEqual(linked('<a href="%s">t</a>' % link), "<a %s>t</a>" % becomes)
        self.assertEqual(linked('<a href="../00_map.md">t</a>', "cuda/ladder.md"), '<a href="../index.html">t</a>')

    def test_a_chapter_that_is_not_translated_is_linked_and_marked(self):
        self.assertEqual(linked('<a href="cuda/ladder.md">t</a>', "ru/01_roofline.md"),
                         '<a href="../cuda/ladder.html" hreflang="en">t</a>')
        self.assertEqual(linked('<img alt="" src="../figures/a.svg">', "ru/01_roofline.md"),
                         '<img alt="" src="../figures/a.svg">')

    def test_links_out_of_the_notes_lead_to_the_repository(self):
        link = '<a href="../include/nanolm/roofline.h#L3"><code>x</code></a>'
        self.assertEqual(linked(link), '<span class="file" title="include/nanolm/roofline.h"><code>x</code></span>')
        self.assertEqual(linked(link, repository="https://h/blob/main/"),
                         '<a href="https://h/blob/main/include/nanolm/roofline.h#L3"><code>x</code></a>')
        self.assertNotIn("href", linked('<a href="hints/01.md">t</a>'))  # no hint is one click away

    def test_scripts_in_raw_html_are_found(self):
        script = '<script src="../explore/page.js"></script>'
        self.assertEqual(linked(script, "ru/explore.md"), script)

    def test_tables(self):
        html = pages.tables("<table><td><code>a \\| b</code></td><td>1 (0.9 to 1.1)</td></table>")
        self.assertEqual(html, '<div class="table"><table><td><code>a | b</code></td><td class="short">1 (0.9 to 1.1)'
                               '</td></table></div>')

    def test_the_order_is_that_of_the_map(self):
        chapters = {"00_map", "01_roofline", "02_critical_batch", "09_bench", "cuda/ladder", "explore", "new",
                    "self_check"}
        text = "[c](cuda/ladder.md#a) [1](01_roofline.md) [b](02_critical_batch.md) [b](09_bench.md) [x](gone.md)"
        ordered = pages.order(text, chapters)
        self.assertEqual(ordered, ["cuda/ladder", "01_roofline", "02_critical_batch", "explore", "09_bench", "new",
                                   "self_check"])
        self.assertEqual([(title, members) for title, _, members in pages.grouped(ordered)],
                         [("Core", ["01_roofline", "02_critical_batch", "explore"]), ("Depth", ["09_bench", "new"]),
                          ("CUDA", ["cuda/ladder"]), ("Around the week", ["self_check"])])


class Check(unittest.TestCase):
    """Each fault, planted, is found."""

    def faults(self, body, language="en", **files):
        with tempfile.TemporaryDirectory() as folder:
            site, notes = Path(folder, "site"), Path(folder, "notes")
            for path, text in (("site/01.html", '<html lang="%s"><body><h2 id="why">a</h2>%s' % (language, body)),
                               ("site/a.svg", "<svg/>"), ("notes/01.md", "# a"), *files.items()):
                path = path.replace("__", "/").replace("_dot_", ".")
                Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, path).write_text(text, encoding="utf-8")
            return " ".join(check.problems(site, notes))

    def test_nothing_wrong(self):
        self.assertEqual(self.faults('<a href="#why">a</a><a href="https://a.b">a</a><img src="a.svg"><code>$$</code>'
                                     '<img src="data:image/png;base64,"><math><mi>x</mi></math>'), "")

    def test_faults(self):
        for body, says in (('<a href="02.html">a</a>', "02.html is not there"), ('<a href=".">a</a>', ". is not there"),
                           ('<a href="#how">a</a>', "no such anchor"), ('<a href="01.html#x">a</a>', "no such anchor"),
                           ('<img src="b.svg">', "b.svg is not there"),
                           ('<script src="https://a/b.js"></script>', "fetches"),
                           ('<link rel="stylesheet" href="//a/b.css">', "fetches"),
                           ("<p>$$ x $$", "stands in the text"),
                           (r"<p>\(x\)", "stands in the text"), (r"<math><mi>\foo</mi></math>", "not understood"),
                           ("<math><mi>&</mi></math>", "not understood")):
            with self.subTest(body):
                self.assertIn(says, self.faults(body))
        self.assertIn("its language is ru", self.faults("", "ru"))
        self.assertIn("notes/ru/01.md is not in the site", self.faults("", notes__ru__01_dot_md="# a"))
        self.assertIn("fetches", self.faults("", site__a_dot_css="a { background: url(https://a/b.png) }"))
        self.assertIn("hints", self.faults("", site__hints__01_dot_html="a"))


def python_with_mkdocs():
    for python in PYTHONS:
        if os.path.exists(python) and subprocess.run([python, "-c", "import mkdocs, material, pymdownx, latex2mathml"],
                                                     stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


class Site(unittest.TestCase):
    def test_the_notes(self):
        python = python_with_mkdocs()
        if not python:
            self.skipTest("MkDocs is not installed: scripts/workbook notes")
        root, site = workbook.export(), workbook.WORK / "site"
        built = workbook.run(python, "-B", root / "scripts" / "site" / "build.py", site)
        self.assertEqual(built.returncode, 0, built.text)
        self.assertEqual(check.problems(site, root / "notes"), [])
        self.assertFalse(re.search("hints/", (site / "index.html").read_text(encoding="utf-8")))


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
