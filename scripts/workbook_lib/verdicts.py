"""What a test's or a build's output means, in a line or a few."""

import re
import xml.etree.ElementTree as ElementTree
from collections import namedtuple

from . import fingerprints
from .week import ROOT

# kind: passed, not implemented, failed, crashed, timed out, ended early, skipped, not run. place: file:line of a gap.
Verdict = namedtuple("Verdict", "name kind lines place output")

NOT_IMPLEMENTED = re.compile(
    r'^(?:.*description "|\s*what\(\):\s+)?([^\n]*?:\d+): (\w+\(\)) is not implemented yet', re.MULTILINE)
COMPILER_ERROR = re.compile(r"^(.+?:\d+(?::\d+)?): (?:fatal )?error: (.*)$", re.MULTILINE)
LINKER_ERROR = re.compile(r"(?:undefined reference to|multiple definition of|Undefined symbols).*(?:\n  \".*)?")
OTHER_ERROR = re.compile(r"error: .*")
SANITIZER = re.compile(r"^.*(?:ERROR: \w+Sanitizer: .*|runtime error: .*)$", re.MULTILINE)
# A lesson's source, in whatever tree, not its test.
FRAME = re.compile(r"^\s*#\d+ 0x\S+ in (.*\b\d\d_\w+(?<!_test)\.cpp\b.*)$", re.MULTILINE)
# What the emulator says of a line of a kernel.
FAULT = re.compile(r'description "[^"\n]*\.cu:\d+')
MAXIMUM_LINES = 8


def ended_how(line, into):
    """Notes a line of ctest's own output: only there stand time-out and crash (JUnit calls them failures)."""
    match = re.match(r"\s*\d+/\d+ Test\s+#\d+: (\S+) \.*\s*(.*)$", line)
    if match:
        into[match[1]] = match[2]
        return match[1]
    return None


def read(junit, how, tree_parent):
    """The verdict on every test in a JUnit text; `how` is what ended_how collected."""
    # A test may print anything; what XML cannot hold must not cost the verdict on the other tests.
    junit = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", junit)
    verdicts = []
    for case in ElementTree.fromstring(junit).iter("testcase"):
        name, output = case.get("name"), case.findtext("system-out") or ""
        output = output.replace(ROOT + "/", "").replace(tree_parent + "/", "")
        status, ending = case.get("status"), how.get(name, "")
        verdicts.append(verdict(name, status, ending, output))
    return verdicts


def verdict(name, status, ending, output):
    """`status` is JUnit's, `ending` what ended_how noted: CTest's words for a crash or a time-out."""
    if status == "run":
        return Verdict(name, "passed", [], None, output)
    why = re.search(r"^Triton: (skipped: .*)$", output, re.MULTILINE)
    if status == "notrun" and why:
        return Verdict(name, "skipped", [why[1]], None, output)
    if status == "notrun" or status == "disabled":
        return Verdict(name, "not run", [], None, output)
    if name.endswith(".Builds"):
        return Verdict(name, "failed", build_errors(output), None, output)
    gap = NOT_IMPLEMENTED.search(output)
    if gap:
        return Verdict(name, "not implemented", ["not implemented at %s: %s" % (gap[1], gap[2])], gap[1], output)
    report = SANITIZER.search(output)
    if report:
        frame = FRAME.search(output, report.start())
        return Verdict(name, "failed", [report[0].strip()] + ([frame[1]] if frame else []), None, output)
    if "Timeout" in ending:
        return Verdict(name, "timed out", ["stopped: no result in time (an endless loop, or far too slow)"], None, output)
    failures = gtest_failures(output)
    if "Exception" in ending or "aborted" in ending:
        says = ["crashed: %s" % _crash(ending)] + (failures[:1] or _last_words(output))
        return Verdict(name, "crashed", says, None, output)
    if failures:
        return Verdict(name, "failed", failures, None, output)
    return Verdict(name, "ended early", ["the program ended before the test did; does the lesson call exit()?"]
                   + _last_words(output), None, output)


def _crash(ending):
    names = {"SegFault": "segmentation fault (an index or pointer out of range, or a recursion without end)",
             "Numerical": "arithmetic fault (an integer division by zero?)", "Illegal": "illegal instruction",
             "aborted": "aborted"}
    return next((text for name, text in names.items() if name in ending), ending.strip("* "))


def _last_words(output):
    lines = [line for line in output.splitlines() if line.strip() and not re.match(
        r"\[[ =\-]|Note: Google Test|Running main\(\)", line)]
    return lines[-2:]


def build_errors(output):
    """The first errors of the compiler, each in one line; else those of the linker, else the end of the output."""
    missing = re.search(r"error:\s+(.+?)\s+is\s+missing", output, re.DOTALL)  # CMake wraps its lines
    if missing:
        return [" ".join(missing[1].split()) + " is missing"]
    errors = ["%s: %s" % match.groups() for match in COMPILER_ERROR.finditer(output)]
    errors = errors or LINKER_ERROR.findall(output) or OTHER_ERROR.findall(output)
    return list(dict.fromkeys(errors))[:3] or output.strip().splitlines()[-3:] or ["no output"]


def warnings(output):
    return re.findall(r"^.+?:\d+(?::\d+)?: warning: .*$", output, re.MULTILINE)


def gtest_failures(output):
    """The first failure of a test, or the fault in a kernel that ended it: place and message without GoogleTest's
    frame, then how many more there are."""
    body = output.split("[ RUN      ]", 1)[-1].split("[  FAILED  ]", 1)[0]
    only = fingerprints.ONLY.search(body)
    body = fingerprints.ONLY.sub("", body)
    blocks = re.split(r"^(.+): Failure$", body, flags=re.MULTILINE)
    if len(blocks) < 3:
        return []
    which = next((i for i in range(1, len(blocks), 2) if FAULT.search(blocks[i + 1])), 1)
    place, text = blocks[which], blocks[which + 1]
    message, _, trace = text.strip().partition("Google Test trace:")
    lines = [line for line in message.splitlines() if line.strip()]
    predicate = re.search(r"^  Actual: false \((.*?)\)$", message, re.MULTILINE | re.DOTALL)
    if predicate:
        after = message[predicate.end():].strip().splitlines()
        lines = predicate[1].splitlines() + [line for line in after if line != "Expected: true"]
    shown = [("%s: " % place if place != "unknown file" else "") + lines[0]] if lines else [place]
    shown += lines[1:MAXIMUM_LINES]
    if len(lines) > MAXIMUM_LINES:
        shown.append("...")
    if only:
        shown.append(only[0].strip())
    for line in trace.strip().splitlines()[:3]:
        shown.append("with " + re.sub(r"^.+?:\d+: ", "", line))
    more = len(blocks) // 2 - 1
    if more:
        shown.append("(and %d more in this test)" % more)
    return shown
