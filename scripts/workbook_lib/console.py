"""What a person sees: plain lines, colours on a terminal only, one line for an error."""

import contextlib
import os
import sys

from . import language

_progress_shown = False
_only_errors = False
_collected = None


class Problem(Exception):
    """Ends the command with one line on stderr. Status 2: what was asked for cannot be done as it was asked."""

    def __init__(self, message, status=2):
        super().__init__(message)
        self.status = status


def prepare():
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a tick on a terminal that has none becomes "?"


def _colours():
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def green(text):
    return "\033[32m%s\033[0m" % text if _colours() else text


def red(text):
    return "\033[31m%s\033[0m" % text if _colours() else text


def tick():
    return green("✓" if is_unicode() else "ok  ")


def cross():
    return red("✗" if is_unicode() else "FAIL")


def is_unicode():
    return (sys.stdout.encoding or "").lower().startswith("utf")


def yellow(text):
    return "\033[33m%s\033[0m" % text if _colours() else text


def faint(text):
    return "\033[2m%s\033[0m" % text if _colours() else text


def only_errors(wanted):
    """From now on nothing is said: --json prints one object and nothing else."""
    global _only_errors
    _only_errors = wanted


@contextlib.contextmanager
def collected():
    """`with collected() as lines:` keeps what is said, instead of showing it."""
    global _collected
    outer, _collected = _collected, []
    try:
        yield _collected
    finally:
        _collected = outer


def say(text=""):
    if _collected is not None:
        _collected.extend(text.split("\n"))
        return
    end_progress()
    if not _only_errors:
        print(language.translate(text), flush=True)


def error(message):
    end_progress()
    sys.stdout.flush()
    print("%s: %s" % (language.translate("error"), language.translate(str(message))), file=sys.stderr)


def progress(text):
    """A line that the next one replaces; shown on a terminal only."""
    global _progress_shown
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not _only_errors:
        print("\r\033[K" + language.translate(text)[:78], end="", file=sys.stderr, flush=True)
        _progress_shown = True


def end_progress():
    global _progress_shown
    if _progress_shown:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
        _progress_shown = False
