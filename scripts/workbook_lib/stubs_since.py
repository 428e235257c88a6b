"""What a release changes for those who have begun with an earlier one: stubs, and never a signature."""

import os
import re

from .console import Problem
from .settings import read_text, source
from .week import ROOT

DECLARATION = re.compile(r"^[A-Za-z_][\w:<>,&*\s]*?\b(\w+)\((?:[^;{}]|\{\})*\)(?=;)", re.MULTILINE)


def changed(old):
    """The stems of the stubs that differ from those of an earlier release, or are new or gone."""
    before, now = (_stems(os.path.join(root, "exercises")) for root in (old, ROOT))
    if not before:
        raise Problem("--since %r holds no exercises/: it is no release of the workbook" % old)
    return [stem for stem in sorted(before | now)
            if read_text(_stub(old, stem)) != read_text(_stub(ROOT, stem))]


def check_signatures(old):
    """Refuses a release in which an answer written for the earlier one would no longer fit."""
    for name in sorted(os.listdir(os.path.join(old, "include", "nanolm"))):
        path = os.path.join("include", "nanolm", name)
        if not name.endswith(".h"):
            continue
        after = _signatures(read_text(os.path.join(ROOT, path)) or "")
        for function, signatures in _signatures(read_text(os.path.join(old, path))).items():
            if not signatures <= after.get(function, set()):
                raise Problem("%s: %s() had another signature in %s. Signatures never change after a release: answers "
                              "that students have begun would no longer compile." % (path, function, old), status=1)


def check_changelog(stems):
    """The newest section of CHANGELOG.md names every stub that changed."""
    newest = (re.split(r"^## ", read_text(os.path.join(ROOT, "CHANGELOG.md")) or "", flags=re.MULTILINE) + [""])[1]
    unsaid = [stem for stem in stems if stem not in newest]
    if unsaid:
        raise Problem("CHANGELOG.md does not say in its newest section that these stubs changed: %s"
                      % ", ".join(unsaid), status=1)


def _stub(root, stem):
    return source(os.path.join(root, "exercises"), stem)


def _stems(folder):
    paths = [os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names]
    return {os.path.splitext(path)[0] for path in paths if re.match(r"(cuda/|triton/)?\d\d_\w+\.(cpp|cu|py)$", path)}


def _signatures(text):
    """{name: signatures} of the functions that a header declares; their parameters' names do not count."""
    found = {}
    for match in DECLARATION.finditer(re.sub(r"//.*", "", text)):
        words = re.sub(r"(?<=[\s&*])\w+(?=\s*(?:=[^,)]*)?[,)])", "", " ".join(match[0].split()))
        found.setdefault(match[1], set()).add(words)
    return found
