"""What the checks share: the week's table, a pristine export of the workbook, and cmake and ctest run on it."""

import atexit
import fnmatch
import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# CTest names a folder of the build folder; a check that is run by hand takes a temporary one.
WORK = Path(os.environ.get("NANOLM_META_WORK") or tempfile.mkdtemp(prefix="nanolm_meta_"))
if "NANOLM_META_WORK" not in os.environ:
    atexit.register(shutil.rmtree, WORK, ignore_errors=True)
shutil.rmtree(WORK, ignore_errors=True)
WORK.mkdir(parents=True)
CMAKE = os.environ.get("NANOLM_CMAKE", "cmake")
CTEST = os.environ.get("NANOLM_CTEST", "ctest")
# A GoogleTest that the outer build downloaded is not downloaded again.
GTEST = [f"-DFETCHCONTENT_SOURCE_DIR_GOOGLETEST={path}" for path in [os.environ.get("NANOLM_GTEST")] if path]
LESSON = "03_online_softmax"  # where one lesson is enough


class Row(NamedTuple):
    stem: str
    tier: str
    hours: float
    title: str


def week():
    """The rows of the week's table in CMakeLists.txt."""
    table = re.search(r"^set\(week\n(.*?)\)$", (ROOT / "CMakeLists.txt").read_text(), re.M | re.S).group(1)
    rows = re.findall(r'^  "(\S+) +(core|depth) +([\d.]+) +(.+)"$', table, re.M)
    assert rows and len(rows) == len(table.splitlines()), "the week's table in CMakeLists.txt is not readable"
    return [Row(stem, tier, float(hours), title) for stem, tier, hours, title in rows]


def lessons():
    return [row.stem for row in week() if row.stem[0].isdigit()]


def ladder():
    """The rungs of the CUDA ladder in CMakeLists.txt: {"cuda/03_flash_forward": "forward"}."""
    table = re.search(r"^set\(ladder\n(.*?)\)$", (ROOT / "CMakeLists.txt").read_text(), re.M | re.S).group(1)
    rows = re.findall(r'^  "(cuda/\S+) +(\w+) +[\d.]+"$', table, re.M)
    assert rows and len(rows) == len(table.splitlines()), "the ladder in CMakeLists.txt is not readable"
    return dict(rows)


def triton():
    """The stems of the Triton exercises in CMakeLists.txt."""
    table = re.search(r"^set\(triton_units\n(.*?)\)$", (ROOT / "CMakeLists.txt").read_text(), re.M | re.S).group(1)
    rows = re.findall(r'^  "(triton/\S+) +[\d.]+"$', table, re.M)
    assert rows and len(rows) == len(table.splitlines()), "the Triton exercises in CMakeLists.txt are not readable"
    return rows


def export(name="workbook"):
    """Copies what git tracks or would track (without git: what .gitignore does not name) into an empty folder."""
    target = WORK / name
    shutil.rmtree(target, ignore_errors=True)
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "-co", "--exclude-standard"], capture_output=True,
                            text=True) if shutil.which("git") and (ROOT / ".git").exists() else None
    if listed and listed.returncode == 0:
        for path in filter(lambda path: path and (ROOT / path).is_file(), listed.stdout.split("\0")):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, target / path)
    else:
        lines = [line for line in (ROOT / ".gitignore").read_text().splitlines() if line and not line.startswith("#")]
        shutil.copytree(ROOT, target, ignore=lambda folder, names: [
            name for name in names if name == ".git" or any(
                fnmatch.fnmatch(name, line.strip("/")) for line in lines
                if not line.startswith("/") or Path(folder) == ROOT)])
    return target


def run(*command, cwd="/", **env):
    """Runs a command; standard output and error come back as one text. No setting of an outer ctest reaches it."""
    outer = {key: value for key, value in os.environ.items()
             if not re.match(r"CTEST_|GTEST_|NANOLM_(?!CUDA$)|MAKEFLAGS$|MAKELEVEL$|MFLAGS$|PWD$|CMAKE_BUILD_TYPE$", key)}
    result = subprocess.run([str(part) for part in command], cwd=cwd, env={**outer, **env}, text=True,
                            errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    result.text = result.stdout
    return result


def generators():
    return [name for name, tool in (("Ninja", "ninja"), ("Unix Makefiles", "make")) if shutil.which(tool)]


def configure(source, build, *arguments, cwd="/", **env):
    return run(CMAKE, "-S", source, "-B", build, *GTEST, *arguments, cwd=cwd, **env)


class Verdict(NamedTuple):
    status: str  # "run" is passed, "fail", "notrun"
    reason: str
    output: str
    seconds: float


def ctest(build, *arguments):
    """Runs ctest in a build folder; returns ({test name: Verdict}, the console text)."""
    handle, report = tempfile.mkstemp(suffix=".xml", dir=WORK)
    os.close(handle)
    console = run(CTEST, "--no-tests=error", "--output-junit", report, *arguments, cwd=build).text
    assert os.path.getsize(report), console
    verdicts = {}
    for case in xml.parse(report).iter("testcase"):
        fault = case.find("failure") if case.find("failure") is not None else case.find("skipped")
        verdicts[case.get("name")] = Verdict(case.get("status"), "" if fault is None else fault.get("message", ""),
                                             case.findtext("system-out") or "", float(case.get("time")))
    os.unlink(report)
    return verdicts, console
