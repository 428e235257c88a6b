"""Hooks of MkDocs: the list of chapters, the other language of a page, and what pages.py does to each chapter."""

import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
import pages  # noqa: E402
from latex2mathml.converter import convert  # noqa: E402
from mkdocs.structure.files import File  # noqa: E402
from note_pages import slug_of  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NOTES = ROOT / "notes"
ASSETS = HERE / "assets"


def chapters(folder):
    """Names of the chapters of a folder, as links have them: `cuda/ladder`."""
    found = (path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md"))
    return {name for name in found if not name.startswith(("hints/", "ru/"))}


def is_russian(config):
    return Path(config.docs_dir).name == "ru"


def name_of(page, config):
    """`ru/01_roofline.md`: a page's path in notes/."""
    return ("ru/" if is_russian(config) else "") + page.file.src_uri


def on_config(config):
    config.theme.static_templates.discard("404.html")
    config.mdx_configs["toc"]["slugify"] = slug_of
    english, russian = chapters(NOTES), chapters(NOTES / "ru")
    mine = russian if is_russian(config) else english
    listed = pages.order((NOTES / "00_map.md").read_text(encoding="utf-8"), english)
    nav = ["00_map.md"] if "00_map" in mine else []
    for title, title_in_russian, members in pages.grouped(listed):
        entries = []
        for name in members:
            if name in mine:
                entries.append(name + ".md")
            else:
                text = (NOTES / (name + ".md")).read_text(encoding="utf-8")
                entries.append({pages.title(text): "site:" + pages.address(name + ".md")})
        nav.append({title_in_russian if is_russian(config) else title: entries})
    config.nav = nav
    return config


def on_files(files, config):
    kept = []
    for file in files:
        if Path(file.src_uri).name == "00_map.md":
            file = File(file.src_uri, config.docs_dir, config.site_dir, False, dest_uri=pages.address(file.src_uri))
        kept.append(file)
    for path in sorted(ASSETS.iterdir()):
        kept.append(File("assets/site/" + path.name, str(HERE), config.site_dir, False))
        kept[-1].abs_src_path = str(path)
    return type(files)(kept)


def on_page_markdown(markdown, page, config, files):
    return pages.dialect(markdown)


def on_page_content(html, page, config, files):
    page.title = pages.plain(page.title)
    headings = list(page.toc)
    while headings:
        heading = headings.pop()
        heading.title = pages.plain(heading.title)
        headings += heading.children
    html = pages.formulas(html, lambda tex, display: convert(tex, display=display))
    html = pages.tables(pages.anchors(html))
    name = name_of(page, config)
    return pages.links(html, name, lambda path: (ROOT / path).exists(), config.extra["repository"])


def on_page_context(context, page, config, nav):
    """The menu of languages leads to the same chapter, else to the map."""
    config.extra["alternate"] = []
    for language, title, folder in (("en", "English", ""), ("ru", "Русский", "ru/")):
        name = page.file.src_uri if (NOTES / folder / page.file.src_uri).exists() else "00_map.md"
        if (NOTES / folder / name).exists():
            config.extra["alternate"].append({"name": title, "link": "site:" + pages.address(folder + name),
                                              "lang": language})
    return context


def on_post_page(output, page, config):
    # The theme's script would ask for a sitemap beside each of these.
    output = re.sub(r'<link rel="alternate" [^>]*hreflang[^>]*>', "", output)
    # MkDocs knows its half of the site alone: site:PATH is a page of either half.
    up = "../" * (page.file.dest_uri.count("/") + is_russian(config))
    return re.sub(r'href="[^"]*site:([\w/.]+)"( hreflang="\w+")?',
                  lambda match: 'href="%s"%s' % (up + match[1], match[2] or ' hreflang="en"'), output)
