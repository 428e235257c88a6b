"""What a wrong answer makes the suite say, and whether two answers are wrong in the same way.

The fingerprint of an answer is, for each test that it fails, the first failures in GoogleTest's messages: the line of
the expectation, the traced case, and every number. No test knows of it.
"""

import math
import re

FAILURE = re.compile(r"^(?:(?P<file>[^\n]*?):(?P<line>\d+)|unknown file): Failure$", re.MULTILINE)
# A string in quotes, such as the record of who was called, counts as one number.
NUMBER = re.compile(r'"\w*"|(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|\binf\b|\bnan\b)', re.IGNORECASE)
COUNT = re.compile(r"\b(\d+)( of \d+ elements are wrong)")
# What tests/support/cases.h says behind the last failure; which cases just fail moves, too.
ONLY = re.compile(r"^only .* fail: \d+ of \d+\n", re.MULTILINE)
# So many failures of a test are recorded. A wrong kernel fails hundreds of cases, and the first say as much as all.
FIRST = 12
# Two numbers are the same within this share. An answer summed in another order, or compiled otherwise, moves the wrong
# value by some 1e-6 of itself, two misconceptions differ in the first digits; 1e-3 leaves room on both sides.
RELATIVE = 1e-3
# A count of wrong elements moves by those that lie just at the tolerance.
COUNT_RELATIVE = 0.02
# Of the failures that two answers have in a test, this share must agree. It is below 1 since the worst of many elements
# may be another one when two are nearly as wrong, and since a case may be just wrong in one answer and just right in
# the other. With up to four failures all must agree.
AGREEING = 0.8


def failures_of(output):
    """The failures in one test's output: [where, numbers], each in the order said."""
    body = ONLY.sub("", output.split("[ RUN      ]", 1)[-1].split("[  FAILED  ]", 1)[0])
    starts = list(FAILURE.finditer(body))
    found = []
    for start, end in zip(starts[:FIRST], starts[1:FIRST + 1] + [None] * FIRST):
        message, _, trace = body[start.end():end.start() if end else len(body)].partition("Google Test trace:")
        trace = re.sub(r"^[^\n]*?:(\d+): ", r"\1: ", trace.strip(), flags=re.MULTILINE)
        # Which elements are wrong moves with those at the tolerance, too.
        message = re.sub(r"^.*all of them lie in .*$", "", message, flags=re.MULTILINE)
        # A count is kept as text with a ~ before it.
        message = COUNT.sub(r" \2", message) + "".join(" ~" + match[1] for match in COUNT.finditer(message))
        numbers = ["~" + number if message[place - 1] == "~" else number
                   for number, place in ((match[0], match.start()) for match in NUMBER.finditer(message))]
        found.append(["%s|%s" % (start["line"] or "", trace), numbers])
    return found


def same_failures(a, b):
    """Whether two answers fail a test in the same way."""
    both = min(len(a), len(b))
    if both == 0:
        return False
    places = {}
    for where, numbers in b:
        places.setdefault(where, []).append(numbers)
    agree = 0
    for where, numbers in a:
        candidates = places.get(where, [])
        match = next((c for c in candidates if same_numbers(numbers, c)), None)
        if match is not None:
            candidates.remove(match)
            agree += 1
    # Past FIRST, the longer list's end is unknown; before, a failure that the other lacks counts against both.
    known = both if max(len(a), len(b)) >= FIRST else max(len(a), len(b))
    return agree >= (AGREEING if known > 4 else 1) * known


def same_numbers(a, b):
    return len(a) == len(b) and all(map(_same, a, b))


def _same(a, b):
    if a == b:
        return True
    if a.startswith("~") != b.startswith("~") or '"' in a + b:
        return False
    relative = COUNT_RELATIVE if a.startswith("~") else RELATIVE
    x, y = float(a.lstrip("~")), float(b.lstrip("~"))
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    if math.isinf(x) or math.isinf(y):
        return x == y
    return abs(x - y) <= relative * max(abs(x), abs(y))


def diagnose(answer, bank):
    """The mistakes that explain failing tests of an answer: {test: ids}, twins together.

    `answer` is {test: kind or list of failures}; a kind is "passed", "not implemented" or another word. `bank` is a
    list of {"id", "tests": {test: kind or failures}}, which leaves out the tests that pass. A mistake fits when every
    test that it fails is failed in the same way, or is not implemented yet, and at least one is failed. An answer with
    two independent mistakes has two diagnoses, each for its own tests.
    """
    fits = {}
    for mistake in bank:
        explained = set()
        for test, said in mistake["tests"].items():
            theirs = answer.get(test)
            if theirs == "not implemented":
                continue
            if not isinstance(theirs, list) and theirs != said or theirs == "passed" or theirs is None:
                break
            if isinstance(theirs, list) and not (isinstance(said, list) and same_failures(theirs, said)):
                break
            if isinstance(theirs, list):
                explained.add(test)
        else:
            if explained:
                fits[mistake["id"]] = explained
    by_test = {}
    for test in sorted(set().union(*fits.values()) if fits else ()):
        most = max(len(explained) for explained in fits.values() if test in explained)
        by_test[test] = sorted(name for name, explained in fits.items() if test in explained and len(explained) == most)
    return by_test
