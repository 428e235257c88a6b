"""`scripts/workbook watch`: builds and tests a lesson whenever its file is saved, until Ctrl-C."""

import hashlib
import re
import shutil
import signal
import sys
import time

from . import build_folder, check, next_exercise, setup_machine
from .console import Problem, collected, end_progress, faint, progress, say
from .settings import place, source, tree_of
from .week import find_lesson, find_lessons, units

POLL = 0.25  # seconds


class Saved(Exception):
    """A file was saved while its tests ran: they are ended, and begun again."""

    def __init__(self, entry):
        super().__init__()
        self.entry = entry


class Watched:
    """The files of some lessons, and which text of each was tested last."""

    def __init__(self, tree, entries):
        self.tree, self.entries = tree, entries
        self.latest = {entry.stem: self._digest(entry.stem) for entry in entries}
        self.tested = dict(self.latest)

    def _digest(self, stem):
        """Of the file's bytes: some file systems tell times to the second. Empty while it is away or being written."""
        try:
            with open(source(self.tree, stem), "rb") as file:
                content = file.read()
        except OSError:
            return ""
        return hashlib.sha256(content).hexdigest() if content else ""

    def saved(self):
        """The lesson whose text is new, and the same as at the last look: an editor writes in more than one step."""
        for entry in self.entries:
            digest = self._digest(entry.stem)
            still = digest == self.latest[entry.stem]
            self.latest[entry.stem] = digest
            if still and digest and digest != self.tested[entry.stem]:
                self.tested[entry.stem] = digest
                return entry
        return None


def run(options):
    tree = tree_of(options.impl)
    only = find_lessons(options.lesson) if options.lesson is not None else None
    machine = setup_machine.prepare()
    watched = Watched(tree, only or units())
    entry = only[0] if only else _first(tree)
    while True:
        try:
            _test(machine, tree, entry, watched)
        except Saved as saved:
            end_progress()
            entry = saved.entry
            continue
        entry = None
        while entry is None:
            time.sleep(POLL)
            entry = watched.saved()


def _first(tree):
    """Where the student is: the lesson that `next` names."""
    found = next_exercise.find(tree)
    return find_lesson(found["lesson"]) if found else units()[-1]


def _test(machine, tree, entry, watched):
    """Tests a lesson and shows what came out; raises Saved when a file is saved meanwhile."""
    folder = build_folder.folder_for(tree, "watch-")
    progress("building %s" % entry.stem)
    with collected():
        try:
            with _ended_by_saving(watched):
                found = check.check_lessons(machine, folder, tree, [entry])[entry.stem]
        except Problem as problem:
            found = None
            failure = str(problem).splitlines()
    with collected() as lines:
        if found is not None:
            check.print_lesson(entry, found, tree, folder)
    _show(lines if found is not None else [entry.stem] + failure, tree, entry)


class _ended_by_saving:
    """A timer looks at the files and interrupts the block, which ends what it has started."""

    def __init__(self, watched):
        self.watched = watched

    def __enter__(self):
        def look(_number, _frame):
            entry = self.watched.saved()
            if entry:
                signal.setitimer(signal.ITIMER_REAL, 0)
                raise Saved(entry)

        self.before = signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, POLL, POLL)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


def _show(lines, tree, entry):
    """One screen: what passed or is not written is only counted, and what does not fit is left out."""
    waiting = [line for line in lines if re.search(r" not implemented at \S+: \w+\(\)$", line)]
    lines = [line for line in lines if line not in waiting and not re.match(r"  (\033\[\d+m)?(✓|ok  )", line)]
    title, body, end = lines[0], lines[1:], []
    while body and re.search(r"tests pass\.$|One test alone:|That runs what was|no test was run\.$", body[-1]):
        end.insert(0, body.pop())
    if waiting:
        end.insert(0, faint("  %d more wait for what is not written yet" % len(waiting)))
    step = next_exercise.find(tree, [entry]) or next_exercise.find(tree)
    if step and step["why"] == "todo":
        end.append("next: %s  %s()" % (place(step["file"], step["line"]), step["function"]))
    elif step is None:
        end.append("Every lesson passes.")
    end.append(faint("%s  watching %s; Ctrl-C ends" % (time.strftime("%H:%M:%S"), place(source(tree, entry.stem)))))
    end_progress()
    if sys.stdout.isatty():
        columns, rows = shutil.get_terminal_size()
        if sum(_height(line, columns) for line in [title] + body + end) >= rows:
            end = [line for line in end if not line.startswith(("  One test alone:", "  That runs what was"))]
        body = _cut(body, rows - 1 - sum(_height(line, columns) for line in [title] + end), columns, entry)
        print("\033[H\033[2J", end="")  # what scrolled away before stays
    for line in [title] + body + end:
        say(line)
    if not sys.stdout.isatty():
        say()


def _cut(lines, room, columns, entry):
    heights = [_height(line, columns) for line in lines]
    if sum(heights) <= room:
        return lines
    kept, used = [], 1
    for line, height in zip(lines, heights):
        if used + height > room:
            break
        kept.append(line)
        used += height
    left = len(lines) - len(kept)
    return kept + ["  ... %d more line%s: scripts/workbook check %s" % (left, "s" * (left > 1), entry.stem.split("_")[0])]


def _height(line, columns):
    return max(1, -(-len(re.sub(r"\033\[\d*m", "", line)) // max(columns, 1)))
