"""The explorable page computes what the reference lessons compute, with the devices of the header. 77: no Node.js.

explore_grid.cpp, linked with the reference lessons, and explore_grid.js get the same settings.
"""

import importlib.util
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import unittest

import workbook

NODE = shutil.which("node") or shutil.which("nodejs")
PAGE = workbook.ROOT / "notes/explore"
SCRIPTS = re.findall(r'"(\w+)"', re.search(r"of \[(.*?)\]", (PAGE / "load.js").read_text(encoding="utf-8"))[1])
FIELDS = ("device", "arithmetic", "pass", "weights", "cache", "S", "H", "N", "K", "batch", "B_r")
LESSONS = ("01_roofline", "02_critical_batch", "04_naive_attention", "05_tiled_attention", "07_decode_attention")


def node(program, text=""):
    loaded = "".join(f"require({json.dumps(str(PAGE / f'{name}.js'))});" for name in SCRIPTS)
    result = subprocess.run([NODE, "-e", f"{loaded} const explore = globalThis.explore; {program}"], input=text,
                                     capture_output=True, text=True, encoding="utf-8")
    assert result.returncode == 0, result.stderr
    return result.stdout


def values(text):
    lines = []
    for line in text.splitlines():
        words = line.split()
        lines.append({key: float(value.replace("Infinity", "inf")) for key, value in zip(words[::2], words[1::2])})
    return lines


def settings():
    """Every preset; then all of what can be chosen, at random sizes: a fixed sequence."""
    known = json.loads(node("console.log(JSON.stringify({models: explore.models, devices: explore.devices,"
                            "presets: Object.keys(explore.presets).map(explore.preset)}))"))
    rng = random.Random(13)
    grid = list(known["presets"])
    for device in known["devices"]:
        for arithmetic in device["peaks"]:
            for width in (4, 2, 1, 0.5):
                for way in ("decode", "speculation", "prefill"):
                    kv_heads = rng.choice((1, 2, 3, 4, 8, 16))
                    grid.append({"model": rng.choice(list(known["models"])), "device": device["name"], "pass": way,
                                 "arithmetic": arithmetic, "weights": width, "cache": rng.choice((4, 2, 1, 0.5)),
                                 "S": rng.choice((128, 2048, 8192, 131072, rng.randrange(128, 131073))),
                                 "H": rng.randrange(32, 257), "N": kv_heads * rng.randrange(1, 9), "K": kv_heads,
                                 "batch": rng.choice((1, 59, 60, rng.randrange(1, 1025))),
                                 "B_r": rng.randrange(16, 513)})
    return grid, known["models"]


class Explore(unittest.TestCase):
    def test_every_number_is_the_reference_s(self):
        grid, models = settings()
        self.assertGreater(len(grid), 500)
        rows = ["\t".join(str(value) for value in [*(one[key] for key in FIELDS), *(
            models[one["model"]][key] for key in ("width", "mlp", "layers", "vocabulary"))]) for one in grid]
        program = workbook.WORK / "explore_grid"
        built = workbook.run(os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra", "-Werror",
                             "-Wno-unknown-pragmas", "-I", workbook.ROOT / "include",
                             workbook.ROOT / "tests/meta/explore_grid.cpp",
                             *(workbook.ROOT / "reference" / f"{stem}.cpp" for stem in LESSONS), "-o", program)
        self.assertEqual(built.returncode, 0, built.text)
        run = subprocess.run([program], input="\n".join(rows) + "\n", capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        expected = values(run.stdout)
        run = subprocess.run([NODE, workbook.ROOT / "tests/meta/explore_grid.js"], capture_output=True, text=True,
                                      input="\n".join(json.dumps(one) for one in grid) + "\n")
        self.assertEqual(run.returncode, 0, run.stderr)
        actual = values(run.stdout)
        self.assertEqual(len(expected), len(grid))
        self.assertEqual(len(actual), len(grid))
        compared = 0
        for setting, mine, theirs in zip(grid, actual, expected):
            self.assertEqual(sorted(mine), sorted(theirs))
            for key, value in theirs.items():
                compared += 1
                close = mine[key] == value or math.isclose(mine[key], value, rel_tol=1e-12)
                self.assertTrue(close, f"{key}: {mine[key]!r}, the reference says {value!r}, at {setting}")
        print(f"{compared} numbers of {len(grid)} settings are equal to 1e-12")

    def test_numbers_that_the_programme_names(self):
        shown = json.loads(node("""
            const s = explore.preset("llama"), f = explore.figures(s, explore.device_named(s.device));
            console.log(JSON.stringify([f.sequences_that_fit, f.n, Math.round(f.critical_batch),
              explore.figures({...s, batch: 1, S: 4096}, explore.device_named(s.device)).score_matrix_bytes]))"""))
        self.assertEqual(shown, [59, 8030261248, 295, 2 ** 30])

    def test_devices_are_those_of_the_header(self):
        place = importlib.util.spec_from_file_location("explore_devices", workbook.ROOT / "scripts/explore_devices.py")
        module = importlib.util.module_from_spec(place)
        place.loader.exec_module(module)
        self.assertEqual((PAGE / "devices.js").read_text(encoding="utf-8"), module.devices_js(),
                         "scripts/explore_devices.py --write puts them there")

    def test_a_setting_survives_the_address(self):
        changed = json.loads(node("""
            const bad = [];
            for (const name of Object.keys(explore.presets)) {
              const one = explore.preset(name);
              if (JSON.stringify(explore.from_hash(explore.to_hash(one))) !== JSON.stringify(one)) bad.push(name);
            }
            console.log(JSON.stringify(bad))"""))
        self.assertEqual(changed, [])

    def test_an_address_cannot_ask_for_nonsense(self):
        got = json.loads(node("""console.log(JSON.stringify([
            "", "#the-page", "#S=-5&H=1e9&N=12&K=8&batch=x&device=H1000&weights=3", "#device=T4&arithmetic=bf16",
            "#device=A100+80GB+SXM&arithmetic=fp8"].map(explore.from_hash)))"""))
        self.assertEqual(got[0], got[1])
        self.assertEqual({key: got[2][key] for key in ("S", "H", "N", "K", "batch", "device", "weights")},
                         {"S": 128, "H": 256, "N": 12, "K": 6, "batch": 59, "device": "H100 SXM", "weights": 2})
        self.assertEqual([got[3]["arithmetic"], got[4]["arithmetic"]], ["fp16", "int8"])

    def test_every_word_is_there_in_both_languages(self):
        words = json.loads(node("console.log(JSON.stringify(explore.words))"))
        for key, pair in words.items():
            self.assertTrue(len(pair) == 2 and all(pair), key)
        source = "".join((PAGE / f"{name}.js").read_text(encoding="utf-8") for name in ("chart", "page"))
        asked = set(re.findall(r'say\("(\w+)"\)', source))
        self.assertGreater(len(asked), 15)
        self.assertEqual(asked - set(words), set())
        for kind in ("presets", "kinds", "choices", "stops"):
            named = json.loads(node(f"console.log(JSON.stringify(Object.keys(explore.{kind})))"))
            self.assertEqual(set(named) - set(words), set(), kind)

    def test_numbers_are_written_as_in_the_notes(self):
        written = json.loads(node("""
            const values = [295.3432835, 0.16666667, 69206016, 8192, 3.998, 0, 1e-4, 1979, Infinity];
            console.log(JSON.stringify(["en", "ru"].map(explore.number_writer).map(
              (write) => values.map((value) => write(value)))))"""))
        english = ["295", "0.167", "69 206 016", "8192", "4", "0", "0.0001", "1979", "∞"]
        self.assertEqual([text.replace("\u202f", " ") for text in written[0]], english)
        self.assertEqual([text.replace("\u202f", " ") for text in written[1]], [t.replace(".", ",") for t in english])

    def test_each_page_loads_the_scripts(self):
        self.assertEqual(sorted(SCRIPTS + ["load"]), sorted(path.stem for path in PAGE.glob("*.js")))
        for page, folder in (("notes/explore/en.html", ""), ("notes/explore/ru.html", ""),
                             ("notes/explore.md", "explore/"), ("notes/ru/explore.md", "../explore/")):
            text = (workbook.ROOT / page).read_text(encoding="utf-8")
            with self.subTest(page):
                self.assertEqual(re.findall(r'<script src="([^"]+)"></script>', text), [f"{folder}load.js"])
                self.assertIn('<div class="explore">', text)


if __name__ == "__main__":
    if not NODE:
        print("skipped: Node.js is not installed (Debian: nodejs)")
        sys.exit(77)
    unittest.main()
