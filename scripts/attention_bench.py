"""Measures naive against tiled attention with build/.../attention_bench and writes tables and plots.

`scripts/workbook bench` builds the program and calls this. Files in --out, each complete or not there at all:
attention_bench.json (every sample), tables.md, attention_bench.csv, growth.csv, and time, memory, roofline, pareto and
overview (all four) as .png and .svg.
"""

import argparse
import datetime
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import attention_tables
from attention_record import Bench
from workbook_lib.language import translate

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUICK = ["--heads", "1", "--sizes", "256,512,1024,2048", "--samples", "5"]


class Problem(Exception):
    """One line for the person, and the exit status."""

    def __init__(self, message, status=2):
        super().__init__(message)
        self.status = status


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Problem(message)


def positive(text):
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError("takes positive whole numbers, got %r" % text)
    return int(text)


def sizes(text):
    return [positive(part) for part in text.split(",")]


def parse(arguments):
    parser = Parser(prog="attention_bench.py", description=__doc__.splitlines()[0])
    parser.add_argument("--program", metavar="PATH",
                        default=os.path.join(ROOT, "build", "bench-reference", "bin", "attention_bench"),
                        help="the built attention_bench")
    parser.add_argument("--out", metavar="DIR", default="results", help="folder for the results (default: results)")
    parser.add_argument("--quick", action="store_true", help="one head, S up to 2048, 5 samples: under a minute")
    parser.add_argument("--from", dest="recorded", metavar="FILE.json", help="draw recorded data, measure nothing")
    parser.add_argument("--device-row", metavar="NAME", default="H100 SXM",
                        help="device of the roofline, or `host` for this machine's measured rates (default: H100 SXM)")
    parser.add_argument("--heads", type=positive, metavar="N", help="heads (default: 8)")
    parser.add_argument("--head-dim", type=positive, metavar="H", help="size of a head (default: 64)")
    parser.add_argument("--sizes", type=sizes, metavar="S,S,...", help="lengths (default: 256,512,1024,2048,4096)")
    parser.add_argument("--samples", type=positive, metavar="N", help="samples a case (default: 5)")
    parser.add_argument("--no-plots", action="store_true", help="tables only")
    return parser.parse_args(arguments)


def read_record(path):
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except OSError as error:
        raise Problem("%s: %s" % (path, error.strerror)) from None
    except ValueError as error:
        raise Problem("%s is not JSON: %s" % (path, error)) from None
    try:
        Bench(record)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        raise Problem("%s was not written by attention_bench" % path) from None
    return record


def device_rows(program):
    try:
        listing = subprocess.run([program, "--list-devices"], capture_output=True, text=True, check=True)
    except OSError as error:
        raise Problem("%s: %s; `scripts/workbook bench` builds it" % (program, error.strerror)) from None
    except subprocess.CalledProcessError as error:
        raise Problem("%s --list-devices ended with status %d" % (program, error.returncode)) from None
    return listing.stdout.splitlines() + ["host"]


def measure(options, folder):
    """Runs the program, whose own lines are the progress, and returns what it measured."""
    raw = os.path.join(folder, "raw.json")
    command = [os.path.abspath(options.program), "--benchmark_out=" + raw] + (QUICK if options.quick else [])
    for flag, value in (("--heads", options.heads), ("--head-dim", options.head_dim), ("--samples", options.samples)):
        command += [flag, str(value)] if value else []
    command += ["--sizes", ",".join(map(str, options.sizes))] if options.sizes else []
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        status = process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if status != 0:
        how = "was ended by signal %d" % -status if status < 0 else "ended with status %d" % status
        raise Problem("attention_bench %s; nothing was written" % how, status=1)
    record = read_record(raw)
    os.remove(raw)
    record["context"].pop("host_name", None)  # says nothing about the measurement
    record["context"].pop("executable", None)
    record["context"]["commit"] = commit()
    return finite(record)


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + (", changed" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def finite(value):
    """JSON has no NaN and no infinity: null instead."""
    if isinstance(value, dict):
        return {key: finite(member) for key, member in value.items()}
    if isinstance(value, list):
        return [finite(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plots_interpreter():
    """A Python with matplotlib: this one, else the system's."""
    for python in (sys.executable, "/usr/bin/python3"):
        found = os.path.exists(python) and subprocess.run([python, "-c", "import matplotlib"], capture_output=True)
        if found and found.returncode == 0:
            return python
    return None


def draw(folder, options):
    """Draws into the folder; what went wrong, or None."""
    python = plots_interpreter()
    if python is None:
        return "matplotlib is missing (Debian, Ubuntu: apt-get install python3-matplotlib)"
    command = [python, "-B", os.path.join(ROOT, "scripts", "attention_plots.py"),
               os.path.join(folder, "attention_bench.json"), folder, "--device-row", options.device_row]
    drawn = subprocess.run(command + (["--recorded"] if options.recorded else []))
    return None if drawn.returncode == 0 else "attention_plots.py ended with status %d" % drawn.returncode


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def run(options):
    record = read_record(options.recorded) if options.recorded else None
    rows = Bench(record).device_names() if record else device_rows(options.program)
    if rows and options.device_row not in rows:
        raise Problem("no device row is named %r; choose from %s" % (options.device_row, ", ".join(rows)))
    out = os.path.abspath(options.out)
    try:
        os.makedirs(out, exist_ok=True)
        staging = tempfile.mkdtemp(prefix=".unfinished-", dir=out)  # the same file system, so that renaming is atomic
    except OSError as error:
        raise Problem("--out %s: %s" % (options.out, error.strerror)) from None
    try:
        record = record or measure(options, staging)
        bench = Bench(record, recorded_in=options.recorded)
        write(staging, "attention_bench.json", json.dumps(record, indent=1, allow_nan=False) + "\n")
        write(staging, "attention_bench.csv", attention_tables.cases_csv(bench))
        write(staging, "growth.csv", attention_tables.growth_csv(bench))
        no_plots = None if options.no_plots else draw(staging, options)
        write(staging, "tables.md", attention_tables.markdown(bench, options.device_row,
                                                              not (options.no_plots or no_plots)))
        for name in sorted(os.listdir(staging)):
            os.replace(os.path.join(staging, name), os.path.join(out, name))
        print(attention_tables.summary(bench))
        print(translate("Wrote %s" % os.path.join(options.out, "tables.md")))
        if no_plots:
            raise Problem("no plots: %s" % no_plots, status=1)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def main(arguments):
    def stop(number, _frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    started = datetime.datetime.now()
    try:
        run(parse(arguments))
    except Problem as problem:
        print("attention_bench: %s" % translate(str(problem)), file=sys.stderr)
        return problem.status
    except KeyboardInterrupt:
        seconds = (datetime.datetime.now() - started).total_seconds()
        print("attention_bench: " + translate("interrupted after %.0f s; nothing was written" % seconds), file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
