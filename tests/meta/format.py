"""The project's own C++ is formatted as .clang-format says. Exit status 77: clang-format is not installed."""

import shutil
import sys

import workbook


def main():
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not tool:
        print("skipped: clang-format is not installed")
        return 77
    root = workbook.export()
    files = sorted(p for p in root.rglob("*") if p.suffix in {".h", ".cpp", ".cu", ".cuh"})
    if not files:
        print("no C++ file was found")
        return 1
    result = workbook.run(tool, "--dry-run", "-Werror", *files, cwd=root)
    print(result.text)
    if result.returncode:
        print(f"Put right by `clang-format -i FILE`; this is {workbook.run(tool, '--version').text.strip()}.")
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
