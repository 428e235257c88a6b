"""Builds the site of the notes, both languages, into a folder: build.py OUT. Run by the Python that has MkDocs."""

import logging
import os
import sys

from mkdocs.commands.build import build
from mkdocs.config import load_config

HERE = os.path.dirname(os.path.realpath(__file__))


def main(out):
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    for name, folder in (("mkdocs.yml", out), ("mkdocs.ru.yml", os.path.join(out, "ru"))):
        if "ru" in name and not os.path.exists(os.path.join(HERE, "..", "..", "notes", "ru", "00_map.md")):
            continue  # an edition in English alone
        config = load_config(os.path.join(HERE, name), site_dir=folder)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        config.plugins.on_shutdown()
        for made in ("sitemap.xml", "sitemap.xml.gz"):
            os.remove(os.path.join(folder, made))


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
