"""What a person sees: plain lines, colours on a terminal only, one line for an error."""

import os
import sys

from . import language

_progress_shown = False


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
    return green("✓" if _is_unicode() else "ok  ")


def cross():
    return red("✗" if _is_unicode() else "FAIL")


def _is_unicode():
    return (sys.stdout.encoding or "").lower().startswith("utf")


def say(text=""):
    end_progress()
    print(language.translate(text), flush=True)


def error(message):
    end_progress()
    sys.stdout.flush()
    print("error: %s" % message, file=sys.stderr)


def progress(text):
    """A line that the next one replaces; shown on a terminal only."""
    global _progress_shown
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        print("\r\033[K" + text[:78], end="", file=sys.stderr, flush=True)
        _progress_shown = True


def end_progress():
    global _progress_shown
    if _progress_shown:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
        _progress_shown = False
