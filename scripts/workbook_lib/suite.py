"""`scripts/workbook test`: proves the answers with the whole suite."""

import os

from . import build_folder, setup_machine
from .console import Problem, cross, say, tick
from .week import ROOT, shown


def run(options):
    tree = os.path.join(ROOT, "reference")
    if not os.path.isdir(tree):
        raise Problem("this edition has no answers to test. Grade your own work with `scripts/workbook check`")
    folder = build_folder.folder_for(tree)
    if options.build_dir is not None:
        folder = build_folder.check_build_dir(options.build_dir)
    machine = setup_machine.prepare()
    with build_folder.held(folder):
        say("Building and testing the answers (reference/) in %s; a first run takes some minutes." % shown(folder))
        build_folder.configure(machine, folder, tree)
        code = build_folder.run_ctest(machine, folder, ["-j", str(options.jobs or build_folder.cores())], say)
    mark = cross() if code else tick()
    say("%s This graded the ANSWERS in reference/, which %s." % (mark, "do NOT all pass" if code else "all pass"))
    say("  Your own work: `scripts/workbook start DIR`, then `scripts/workbook check`, one lesson with "
        "`scripts/workbook check 03`.")
    return code
