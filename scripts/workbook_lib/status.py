"""`scripts/workbook status`: the week's table, with what the last check of exercises/ found."""

import os

from .build_folder import folder_for
from .check import last_check, source_digest
from .console import say
from .week import ROOT, read_week


def run(_options):
    tree = os.path.join(ROOT, "exercises")
    known = last_check(folder_for(tree))
    hours, done = {}, {}
    for entry in read_week():
        hours[entry.tier] = hours.get(entry.tier, 0) + entry.hours
        state = ""
        if entry.stem[0].isdigit():
            last = known.get(entry.stem)
            state = last["says"] if last else "not checked yet"
            if last and last["source"] != source_digest(tree, entry.stem):
                state = "edited since the last check"
            elif last and last["passed"]:
                done[entry.tier] = done.get(entry.tier, 0) + entry.hours
        say("%-22s %-6s %5g h  %s" % (entry.stem, entry.tier, entry.hours, state))
    for tier in hours:
        say("%s: %g of %g h done" % (tier, done.get(tier, 0), hours[tier]))
    return 0
