"""`scripts/workbook progress`: how far the lessons of the week are, by what the last checks found."""

import json
import os

from . import console, gaps, last_checks, settings
from .console import Problem, faint, green, say, yellow
from .language import translate
from .week import GROUPS, ROOT, members, read_week, source_name

JSON = """\
--json prints one object: "tree", "tiers" (of core and depth: "hours", "done", "left", and "stale", the part of what is
left that was done when last checked), and "lessons", a list of objects with "lesson", "title", "tier", "hours",
"state" (passed, begun, untouched, unchecked, missing, by hand, not written), "share" (0 to 1: tests passed of those
that the stub fails), "done_hours", "says" (one line), "stale" (the file changed since) and "checked" (seconds since
1970, or null).
"""
WIDTH = 20


def run(options):
    console.only_errors(options.json)
    tree = settings.tree_of(options.impl)
    if options.done or options.undone:
        _tick(options.done, options.undone)
    rows = [_row(entry, tree) for entry in _entries(tree)]
    tiers = {}
    for row in rows:
        tier = tiers.setdefault(row["tier"], {"hours": 0, "done": 0, "left": 0, "stale": 0})
        tier["hours"] += row["hours"]
        tier["done"] += row["done_hours"]
        tier["stale"] += row["hours"] * row["share"] if row["stale"] else 0
    for tier in tiers.values():
        tier["left"] = tier["hours"] - tier["done"]
        tier.update({name: round(hours, 2) for name, hours in tier.items()})
    if options.json:
        print(json.dumps({"tree": tree, "tiers": tiers, "lessons": rows}, indent=1))
    else:
        _print(tree, rows, tiers)
    return 0


def _entries(tree):
    known, ticked = last_checks.recall(tree), settings.read(settings.SETTINGS).get("done", [])
    entries = [one for entry in read_week() for one in (members(entry.stem) if entry.stem in GROUPS else [entry])]
    return [(entry, known.get(entry.stem), ticked) for entry in entries]


def _row(found, tree):
    entry, last, ticked = found
    row = {"lesson": entry.stem, "title": entry.title, "tier": entry.tier, "hours": entry.hours, "share": 0,
           "stale": False, "checked": None}
    if not entry.stem[0].isdigit() and "/" not in entry.stem:
        written = os.path.exists(os.path.join(ROOT, "notes", entry.stem + ".md"))
        row["share"] = 1 if entry.stem in ticked else 0
        row["state"] = "passed" if row["share"] else "by hand" if written else "not written"
        row["says"] = ("done, by your word" if row["share"] else
                       "no tests; when it is done: scripts/workbook progress --done %s" % entry.stem if written else
                       "not written yet")
    else:
        _grade(row, entry, last, tree)
    row["done_hours"] = 0 if row["stale"] else entry.hours * row["share"]
    return row


def _grade(row, entry, last, tree):
    missing = gaps.open_gaps(tree, entry.stem)
    if missing is None:
        row.update(state="missing", says="%s is missing" % source_name(entry.stem))
        return
    all_of_it = gaps.all_gaps(entry.stem)
    left = "%d of %d gaps left" % (len(missing), len(all_of_it))
    if last is None:
        untouched = [gap.function for gap in missing] == [gap.function for gap in all_of_it]
        row.update(state="untouched" if untouched else "unchecked", says=left + ", not checked yet")
        return
    # Tests of given parts pass on the stub: they are no progress.
    tests = [test for test in last["tests"] if not test["name"].split(".")[-1].startswith("Given")]
    passed = sum(test["result"] == "passed" for test in tests)
    row.update(share=1 if last["passed"] else passed / max(len(tests), 1), stale=last["stale"], checked=last["time"],
               says=last["says"] + ("; %s" % left if missing and passed else ""))
    row["state"] = "passed" if last["passed"] else "begun" if passed else "untouched"


def _tick(done, undone):
    """What has no tests is done when the student says so."""
    known = [entry.stem for entry in read_week() if not entry.stem[0].isdigit() and entry.stem not in GROUPS]
    for name in filter(None, (done, undone)):
        if name not in known:
            raise Problem("%r is none of what has no tests: %s" % (name, ", ".join(known)))
    with settings.changed(settings.SETTINGS) as content:
        content["done"] = sorted(set(content.get("done", [])) - {undone} | ({done} if done else set()))


def _bar(share, stale=False):
    full, empty = ("█", "░") if console.is_unicode() else ("#", ".")
    filled = int(share * WIDTH)  # a full bar is a lesson that passes
    colour = yellow if stale else green
    return (colour(full * filled) if filled else "") + faint(empty * (WIDTH - filled))


def _print(tree, rows, tiers):
    say(tree)
    for row in rows:
        when = "  (%s)" % translate(last_checks.ago(row["checked"])) if row["checked"] else ""
        says = yellow(translate("edited since, was: %s" % row["says"])) if row["stale"] else translate(row["says"])
        say("%-25s %-6s %4g %s  %s  %s%s" % (row["lesson"], translate(row["tier"]), row["hours"], translate("h"),
                                             _bar(row["share"], row["stale"]), says, when))
    for name, tier in tiers.items():
        stale = "; %g h of it was done before you edited: check again" % tier["stale"] if tier["stale"] else ""
        done = "%g of %g h done, %g h left%s" % (tier["done"], tier["hours"], tier["left"], stale)
        say("%-25s %13s  %s  %s" % (translate(name), "", _bar(tier["done"] / tier["hours"]), translate(done)))
