"""`scripts/workbook release`: a copy of the workbook for students, with or without the answers."""

import json
import os
import shutil
import subprocess

from . import diagnosis, stubs_since
from .console import Problem, say
from .week import ROOT, lessons

# What only instructors need; answers and the mistakes' sources besides, where they are left out.
INSTRUCTORS = ("tests/judge/", "tests/hostile/", "tests/unusual/", "tests/emulator/", "tests/meta/", "notes/instructors.md", ".ci/",
               ".github/")
ANSWERS = ("reference/", "tests/mistakes/")


def run(options):
    out = os.path.abspath(options.out)
    if os.path.lexists(out) and (not os.path.isdir(out) or os.listdir(out)):
        raise Problem("%r is there already and not empty" % options.out)
    if (out + os.sep).startswith(ROOT + os.sep) and not (out + os.sep).startswith(os.path.join(ROOT, "build") + os.sep):
        raise Problem("%r lies in the workbook: choose a folder elsewhere, or in build/" % options.out)
    stubs = None
    if options.since is not None:
        stubs = stubs_since.changed(options.since)
        stubs_since.check_signatures(options.since)
        stubs_since.check_changelog(stubs)
    left_out = INSTRUCTORS + (ANSWERS if options.without_answers else ())
    count = 0
    for path in _tracked():
        if path.startswith(left_out):
            continue
        source, target = os.path.join(ROOT, path), os.path.join(out, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target)
        count += 1
    _keep_presets(os.path.join(out, "CMakePresets.json"), options.without_answers)
    if options.without_answers:
        count += _copy_records(out)
    say("%d files in %s, %s the answers." % (count, out, "without" if options.without_answers else "with"))
    if stubs is not None:
        say("Stubs that changed since %s: %s. No signature did." % (options.since, ", ".join(stubs) or "none"))
    return 0


def _keep_presets(path, without_answers):
    """Leaves out the presets of what is left out: checks of the workbook itself, and the answers."""
    with open(path, encoding="utf-8") as file:
        presets = json.load(file)
    by_name = {preset["name"]: preset for preset in presets["configurePresets"]}

    def cached(name, variable):
        preset = by_name[name]
        if variable in preset.get("cacheVariables", {}):
            return preset["cacheVariables"][variable]
        return cached(preset["inherits"], variable) if "inherits" in preset else None

    gone = {name for name in by_name if cached(name, "NANOLM_META") == "ON"
            or without_answers and cached(name, "IMPL") == "reference"}
    for kind, key in (("configurePresets", "name"), ("buildPresets", "configurePreset"),
                      ("testPresets", "configurePreset")):
        presets[kind] = [preset for preset in presets[kind] if preset.get(key) not in gone]
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        json.dump(presets, file, indent=2)
        file.write("\n")


def _copy_records(out):
    """What each known mistake makes the suite say, recorded: the sources of the mistakes stay here."""
    stems = [entry.stem for entry in lessons()]
    stale = [stem for stem in stems if not diagnosis.is_recorded(stem)]
    if stale:
        say("Mistakes in %s will not be named: run scripts/workbook mistakes before a release." % ", ".join(stale))
    target = os.path.join(out, os.path.relpath(diagnosis.SHIPPED, ROOT))
    os.makedirs(target, exist_ok=True)
    for stem in stems:
        if stem not in stale:
            shutil.copy2(os.path.join(diagnosis.FOLDER, stem + ".json"), target)
    return len(stems) - len(stale)


def _tracked():
    try:
        done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError:
        raise Problem("release copies what git tracks, and git is not installed") from None
    if done.returncode != 0:
        raise Problem("release copies what git tracks, and %s is no git checkout" % ROOT)
    return [os.fsdecode(path) for path in done.stdout.split(b"\0") if path and os.path.isfile(os.path.join(
        os.fsencode(ROOT), path))]
