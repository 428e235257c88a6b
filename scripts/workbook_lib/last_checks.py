"""What the last check of each lesson of a tree found: .workbook/checks/<tree>.json.

{"03_online_softmax": {"passed": false, "says": "one line", "source": SHA-256 of the file that was checked,
                       "time": seconds since 1970, "tests": [{"name", "result", "lines", "place"}]}}
"""

import hashlib
import os
import time

from . import settings
from .build_folder import folder_for


def _path(tree):
    return os.path.join(settings.FOLDER, "checks", os.path.basename(folder_for(tree)) + ".json")


def remember(tree, found):
    """found: {stem: {"passed", "says", "source", "tests"}}"""
    now = int(time.time())
    with settings.changed(_path(tree)) as known:
        for stem, result in found.items():
            known[stem] = dict(result, time=now)


def recall(tree):
    """{stem: result}, each with "stale": whether the file has changed since."""
    known = settings.read(_path(tree))
    for stem, result in known.items():
        result["stale"] = result.get("source") != source_digest(tree, stem)
    return known


def source_digest(tree, stem):
    try:
        with open(settings.source(tree, stem), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def ago(seconds):
    """A moment as a person says it."""
    minutes = int((time.time() - seconds) // 60)
    if minutes < 1:
        return "just now"
    if minutes < 120:
        return "%d min ago" % minutes
    if minutes < 48 * 60:
        return "%d h ago" % (minutes // 60)
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
