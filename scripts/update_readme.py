"""Writes the table of the week into README.md, between its markers, from the one in CMakeLists.txt."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from workbook_lib.week import ROOT, read_week  # noqa: E402


def table():
    lines = ["| lesson | tier | hours | what it is about |", "|---|---|---|---|"]
    for entry in read_week():
        note = "notes/%s.md" % ("cuda/ladder" if entry.stem == "cuda" else entry.stem)
        name = "[%s](%s)" % (entry.stem, note) if os.path.exists(os.path.join(ROOT, note)) else entry.stem
        lines.append("| %s | %s | %g | %s |" % (name, entry.tier, entry.hours, entry.title))
    return "\n".join(lines) + "\n"


def main():
    path = os.path.join(ROOT, "README.md")
    with open(path, encoding="utf-8") as file:
        before = file.read()
    after = re.sub(r"(<!-- lessons -->\n).*?(<!-- /lessons -->)", lambda m: m[1] + table() + m[2], before, flags=re.S)
    if after != before:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(after)


if __name__ == "__main__":
    main()
