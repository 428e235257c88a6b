"""Writes the table of the week into README.md, between its markers, from the one in CMakeLists.txt."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from note_tables import put  # noqa: E402
from workbook_lib.week import ROOT, read_week  # noqa: E402


def table_of_the_week():
    lines = ["| lesson | tier | hours | what it is about |", "|---|---|---|---|"]
    for entry in read_week():
        note = "notes/%s.md" % ("cuda/ladder" if entry.stem == "cuda" else entry.stem)
        name = "[%s](%s)" % (entry.stem, note) if os.path.exists(os.path.join(ROOT, note)) else entry.stem
        lines.append("| %s | %s | %g | %s |" % (name, entry.tier, entry.hours, entry.title))
    return "\n".join(lines) + "\n"


def main():
    put(os.path.join(ROOT, "README.md"), "lessons", table_of_the_week())


if __name__ == "__main__":
    main()
