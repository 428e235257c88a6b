"""Child processes that end when this command ends, and locks that make two runs of it wait for each other."""

import contextlib
import fcntl
import os
import signal
import subprocess

from . import console


def environment():
    """Ours, without what would derail a build or hide a test. CXX, CXXFLAGS and LDFLAGS are the user's to set."""
    dropped = ("GTEST_", "CTEST_", "CMAKE_GENERATOR", "CMAKE_CONFIG_TYPE", "CMAKE_BUILD_TYPE", "DESTDIR", "MAKEFLAGS",
               "MFLAGS", "GNUMAKEFLAGS", "NINJA_STATUS", "LANGUAGE", "LC_ALL", "VERBOSE", "PIP_USER", "PIP_TARGET",
               "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    # The compiler's messages are read for the first error: English, whatever the user's language.
    env.update(LC_MESSAGES="C", LC_CTYPE=os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or "C.UTF-8")
    return env


def stream(arguments, on_line=None, own_session=True, env=None):
    """Runs a program and returns its exit status; its lines go to on_line, else straight to our output."""
    child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, env=env or environment(),
                             encoding="utf-8", errors="replace",
                             stdout=subprocess.PIPE if on_line else None, stderr=subprocess.STDOUT if on_line else None,
                             start_new_session=own_session)
    try:
        if on_line:
            for line in child.stdout:
                on_line(line.rstrip("\n"))
        return child.wait()
    except BaseException:
        _end(child, own_session)
        raise


def capture(arguments):
    """Exit status and all output of a program; a program that cannot be started has status 127."""
    lines = []
    try:
        code = stream(arguments, lines.append)
    except OSError as failure:
        return 127, str(failure)
    return code, "\n".join(lines)


def _end(child, own_session):
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if own_session:
                os.killpg(child.pid, number)
            else:
                child.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(2)
            if not own_session:
                return


@contextlib.contextmanager
def exclusive(path, waits_for, wait=True):
    """Holds the lock file `path`. It yields False, and holds nothing, where another run has it and wait is False."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    while True:
        file = open(path, "a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if not wait:
                file.close()
                yield False
                return
            console.say("Waiting for another scripts/workbook: %s" % waits_for)
            fcntl.flock(file, fcntl.LOCK_EX)
        # `clean` may have removed the file while we waited for it; then another run can lock a new one.
        if os.path.exists(path) and os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            break
        file.close()
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with file:
        yield True
