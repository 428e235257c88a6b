"""`scripts/workbook notes`: the notes as a site to read in a browser, without a network."""

import functools
import http.server
import os
import shutil
import sys
import threading
import time
from pathlib import Path

from . import setup_machine
from .console import Problem, say
from .processes import exclusive, stream
from .week import ROOT, shown

NOTES = os.path.join(ROOT, "notes")
SITE = os.path.join(ROOT, "scripts", "site")
MARK = ".nanolm_notes"  # in a folder that holds a site: it may be replaced
PORT = 8000


def run(options):
    out = os.path.abspath(options.out or os.path.join(ROOT, "build", "site"))
    _check_folder(out, options.out)
    python = setup_machine.python_with_mkdocs()
    faults = _build(python, out)
    for fault in faults:
        say(fault)
    if not faults:
        say("%d pages in %s. Open %s in a browser." % (len(list(Path(out).rglob("*.html"))), shown(out),
                                                      shown(os.path.join(out, "index.html"))))
    if options.serve:
        _serve(python, out, options.port)
    return 1 if faults else 0


def _check_folder(out, given):
    if os.path.lexists(out) and not os.path.isdir(out):
        raise Problem("--out %r is no folder" % given)
    if os.path.isdir(out) and os.listdir(out) and not os.path.exists(os.path.join(out, MARK)):
        raise Problem("--out %r holds files and is no site of the notes" % (given or shown(out)))
    if (out + os.sep).startswith(ROOT + os.sep) and not (out + os.sep).startswith(os.path.join(ROOT, "build") + os.sep):
        raise Problem("--out %r lies in the workbook: choose build/site, or a folder elsewhere" % given)


def _build(python, out):
    """Builds beside `out`, and puts the whole site there at once. Returns what is wrong with it."""
    sys.path.insert(0, SITE)
    import check  # scripts/site/check.py
    sys.path.remove(SITE)
    new = out + ".new"
    with exclusive(os.path.join(setup_machine.BUILD, ".notes.lock"), "it builds the notes"):
        try:
            shutil.rmtree(new, ignore_errors=True)
            lines = []
            if stream([python, "-B", os.path.join(SITE, "build.py"), new], lines.append) != 0:
                raise Problem("MkDocs does not build the notes:\n%s" % "\n".join(lines[-20:]), status=1)
            faults = check.problems(new, NOTES)
            Path(new, MARK).touch()
            shutil.rmtree(out, ignore_errors=True)
            os.replace(new, out)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return faults


def _serve(python, out, port):
    """Shows the site on this machine alone, and builds it again when a file of the notes changes, until Ctrl-C."""
    handler = functools.partial(_Handler, directory=out)
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as failure:
        raise Problem("port %d: %s. Choose another: --port N" % (port, failure.strerror), status=1)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = "http://127.0.0.1:%d/" % port
    say("%s shows it, and a change of the notes a moment later; Ctrl-C ends." % address)
    before = _state()
    while True:
        time.sleep(1)
        now = _state()
        if now != before:
            before = now
            try:
                faults = _build(python, out)
                for fault in faults:
                    say(fault)
                say("Built again, %d faults. Reload the page." % len(faults))
            except Problem as problem:
                say(str(problem))


def _state():
    found = {}
    for folder in (NOTES, SITE):
        for path in Path(folder).rglob("*"):
            try:
                found[path] = path.stat().st_mtime_ns
            except OSError:
                pass
    return found


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def end_headers(self):
        self.send_header("Cache-Control", "no-store")
        super().end_headers()
