"""`scripts/workbook start`: a folder of a student's own, with the stubs in it, which the other verbs then work on."""

import os
import shutil
import subprocess

from . import gaps, settings
from .clean import IN_SOURCE_FOLDERS
from .console import Problem, say
from .week import ROOT, check_path, lessons, source_name, units

STUBS = os.path.join(ROOT, "exercises")


def run(options):
    folder = _checked(options.dir)
    entries = os.listdir(folder) if os.path.isdir(folder) else []
    if options.use:
        if not any(entry.stem + ".cpp" in entries for entry in lessons()):
            raise Problem("%s holds no lesson. To begin there: scripts/workbook start %s" % (folder, options.dir))
    elif entries:
        ours = any(entry.stem + ".cpp" in entries for entry in lessons())
        raise Problem("%s is not empty. %s" % (folder, "To go on with the answers in it: scripts/workbook start --use "
                                               + options.dir if ours else "Choose a new folder."))
    added = [name for name in _stubs() if not os.path.lexists(os.path.join(folder, name))]
    try:
        for name in added:
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copyfile(os.path.join(STUBS, name), path)
    except OSError as failure:
        raise Problem("%s cannot be written: %s" % (failure.filename or folder, failure.strerror), status=1)
    with settings.changed(settings.SETTINGS) as known:
        known["tree"] = folder
    begun = _begun(added)
    say("%s: %s. From now on check, next, watch and the others work on it; exercises/ stays as it is."
        % (folder, "%d stubs copied" % (len(added) - len(begun)) if added else "nothing was missing"))
    if begun:
        say("No stubs any more, copied as they are, as the beginning of your work: %s"
            % ", ".join("exercises/" + name for name in begun))
    if folder.startswith(ROOT + os.sep) and not _ignored_by_git(folder):
        say("It lies in the workbook's checkout, and git does not ignore it. To have it ignored here alone:")
        say("    echo '/%s/' >> %s" % (os.path.relpath(folder, ROOT), _exclude_file()))
    say("Next: read notes/00_map.md, then `scripts/workbook next` says where to begin.")
    say("      `scripts/workbook watch` in a second terminal tests the lesson you save.")
    return 0


def _checked(text):
    """The folder's real path; refused where a build, an update or `clean` would meet a student's work."""
    if not text:
        raise Problem("DIR is empty. Name a new folder, `mine` for instance.")
    if text.startswith("~"):
        raise Problem("DIR %r: the shell did not replace ~. Write the whole path." % text)
    folder = os.path.realpath(text)
    check_path("DIR %r" % text, folder)
    if os.path.lexists(text) and not os.path.isdir(folder):
        raise Problem("DIR %r is no folder" % text)
    if (ROOT + os.sep).startswith(folder.rstrip(os.sep) + os.sep):
        raise Problem("DIR %r holds the workbook itself. Choose a new folder, `mine` for instance." % text)
    if folder.startswith(ROOT + os.sep):
        first, _, rest = os.path.relpath(folder, ROOT).partition(os.sep)
        ours = ("reference", "exercises", "tests", "scripts", "notes", "include", "bench", "emulator", "results")
        if rest or first.startswith((".", "build")) or first in ours + IN_SOURCE_FOLDERS:
            raise Problem("DIR %r: inside the workbook your folder has to lie at its top, under a name of its own, "
                          "`mine` for instance" % text)
    return folder


def _stubs():
    """Every file of exercises/, as a path in it."""
    found = []
    for folder, _, names in os.walk(STUBS):
        found += [os.path.relpath(os.path.join(folder, name), STUBS) for name in names if not name.startswith(".")]
    return sorted(found)


def _begun(added):
    """Those of the files that a student wrote in before: exercises/ holds them with gaps closed."""
    return [source_name(entry.stem) for entry in units()
            if source_name(entry.stem) in added and not gaps.is_stub(entry.stem)]


def _git(*words):
    try:
        done = subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              encoding="utf-8", errors="surrogateescape")
    except OSError:
        return 128, ""
    return done.returncode, done.stdout.strip()


def _ignored_by_git(folder):
    """Whether git ignores it; also true where there is no git to show it."""
    code, _ = _git("check-ignore", "-q", folder + os.sep)
    return code != 1


def _exclude_file():
    path = os.path.join(ROOT, _git("rev-parse", "--git-path", "info/exclude")[1])
    return settings.place(path)
