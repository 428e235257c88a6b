"""Tables in Markdown, and their place in a page: between <!-- name --> and <!-- /name -->."""

import re


def table(heads, rows):
    return "\n".join("| %s |" % " | ".join(row) for row in [heads, ["---"] * len(heads)] + rows)


def put(path, name, text):
    """Puts the text between the page's two markers, which must be there once."""
    with open(path, encoding="utf-8") as file:
        before = file.read()
    after, count = re.subn(r"(<!-- %s -->\n).*?(<!-- /%s -->)" % (name, name), lambda match: match[1] + text + match[2],
                           before, flags=re.S)
    if count != 1:
        raise SystemExit("%s has %d pairs of the markers <!-- %s -->, not one" % (path, count, name))
    if after != before:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(after)
