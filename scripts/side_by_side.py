"""What the scripts share that measure several in turn, keep every sample, and make a note's tables of the record."""

import argparse
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys

from note_tables import put

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


class Problem(Exception):
    pass


def build(folder, settings, target):
    """Configures and builds one target of the workbook."""
    for command in (["cmake", "-S", ROOT, "-B", folder] + settings, ["cmake", "--build", folder, "--target", target]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        if done.returncode:
            raise Problem("%s failed:\n%s" % (" ".join(command), done.stdout[-2000:]))


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return re.search(r"^model name\s*: (.*)$", file.read(), re.M)[1]
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def compiler(command):
    done = subprocess.run([command, "--version"], stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout.splitlines()[0]


def commit():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, encoding="utf-8")
    return done.stdout.strip()


def median_interval(values):
    """The 95 % interval of the median: the k-th smallest and k-th largest value, k from the binomial distribution."""
    n, k, below = len(values), 0, 0.0
    while True:
        below += math.comb(n, k) / 2 ** n
        if below > 0.025:
            break
        k += 1
    ordered = sorted(values)
    if k == 0:
        return -math.inf, math.inf
    return ordered[k - 1], ordered[n - k]


def ratios(ours, peers):
    """Of each round how many times as long the peer took."""
    return [peer / own for own, peer in zip(ours, peers)]


def ratio_text(ours, peers):
    values = ratios(ours, peers)
    return "%.2f (%.2f to %.2f)" % ((statistics.median(values),) + median_interval(values))


def milliseconds(samples, digits=3):
    return "%.*f" % (digits, 1e3 * statistics.median(samples))


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def parser(doc, note):
    arguments = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--from", dest="source", metavar="FILE", help="a record instead of a measurement")
    arguments.add_argument("--out", metavar="FILE", help="where to keep the record, with every sample")
    arguments.add_argument("--write", action="store_true", help="put the tables into %s" % note)
    return arguments


def run(options, note, name, measure, report):
    """Measures, or reads a record; keeps it, and prints its tables or puts them into the note. The exit status."""
    try:
        if options.source:
            with open(options.source, encoding="utf-8") as file:
                record = json.load(file)
        else:
            record = measure(options)
        if options.out:
            with open(options.out, "w", encoding="utf-8") as file:
                text = json.dumps(record, indent=1)  # and the samples of a case in one line
                file.write(re.sub(r"\[[-\d.e+,\s]+\]", lambda samples: re.sub(r"\s+", " ", samples[0]), text) + "\n")
        text = report(record)
        if options.write:
            put(os.path.join(ROOT, note), name, text)
            twin = os.path.join(ROOT, note.replace("notes/", "notes/ru/", 1))
            if os.path.exists(twin):
                put(twin, name, text)
        else:
            print(text, end="")
    except (Problem, OSError) as problem:
        print("%s: %s" % (name, problem), file=sys.stderr)
        return 1
    return 0
