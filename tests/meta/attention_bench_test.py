"""Tests scripts/attention_bench.py on recorded data and with stand-ins for the program: nothing is measured here."""

import copy
import csv
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = os.path.join(ROOT, "scripts")
sys.dont_write_bytecode = True
sys.path.insert(0, SCRIPTS)

import attention_tables  # noqa: E402
from attention_record import Bench  # noqa: E402

POINT = {"name": "naive", "shape": "S = 4096, H = 64", "intensity": 31.5, "attainable_flop_per_s": 1.05e14,
         "bound": "memory"}


def case(kernel, causal=False, block=None, for_frontier=False, **known):
    name = kernel + "/1024" + ("/causal" if causal else "") + ("/block_%d" % block if for_frontier else "")
    values = {"name": name, "kernel": kernel, "seqlen": 1024, "causal": causal, "block": block,
              "for_frontier": for_frontier, "problem": None, "scratch_bytes": 4194304, "scratch_formula_bytes": 4194304,
              "saving": None, "largest_difference": None, "output_is_finite": True}
    return dict(values, **known)


def runs(name, samples, **statistics):
    """The rows that Google Benchmark writes for one case."""
    run_name = name + "/iterations:1/repeats:%d/manual_time" % len(samples)
    rows = [{"run_name": run_name, "run_type": "iteration", "real_time": s, "cpu_time": s, "time_unit": "ms"}
            for s in samples]
    return rows + [{"run_name": run_name, "run_type": "aggregate", "aggregate_name": key, "real_time": value,
                    "cpu_time": value, "time_unit": "ms"} for key, value in statistics.items()]


def record():
    device = {"name": "H100 SXM", "format": "bf16", "flop_per_s": 9.894e14, "bytes_per_s": 3.35e12, "ridge": 295.3,
              "source": "datasheet", "points": [POINT]}
    host = {"name": "host", "format": "fp32", "flop_per_s": 4e10, "bytes_per_s": 1e10, "ridge": 4.0,
            "source": "measured", "points": [POINT]}
    return {
        "context": {"date": "2026-01-02T03:04:05+00:00", "library_build_type": "release", "build_type": "Release",
                    "compiler": "GNU 12.2.0", "flags": "-O3", "impl": "reference", "warmup": "2", "commit": "0123abcd"},
        "benchmarks": runs("naive/1024", [190, 200, 210], p50=200.0, p95=209.0, half_width_95=24.84) +
        runs("tiled/1024", [99, 100, 101], p50=100.0, p95=100.9, half_width_95=2.484),
        "attention_bench": {
            "settings": {"heads": 1, "head_dim": 64, "samples": 3},
            "host": {"cpu": "a CPU", "vector_flop_per_s": 4e10, "scalar_flop_per_s": 1e10, "bytes_per_s": 1e10},
            "statistics": {"needs_percentile": None, "needs_summary": None},
            "cases": [case("naive", saving=16), case("tiled", block=64, scratch_bytes=82752,
                                                     scratch_formula_bytes=82688, largest_difference=4.77e-07)],
            "predictions": [{"seqlen": 1024, "flop": 268435456, "naive_intensity": 15.06, "flash_intensity": 256,
                             "ratio": 1.0}],
            "frontier": {"seqlen": 1024, "points": ["naive/1024", "tiled/1024"], "frontier": ["tiled/1024"]},
            "growth": {"heads": 32, "head_dim": 128, "rows": [
                {"seqlen": 131072, "score_matrix_bytes": 2 ** 40, "O_bytes": 2 ** 30, "lse_bytes": 2 ** 24}]},
            "roofline": [device, host]}}


def markdown(data, device="H100 SXM"):
    return attention_tables.markdown(Bench(data), device, plots=False)


class Tables(unittest.TestCase):
    def assertRow(self, text, *cells):
        self.assertIn("| %s |" % " | ".join(cells), text)

    def assertNoNaN(self, text):
        for word in text.replace("|", " ").replace(",", " ").split():
            self.assertNotIn(word.lower(), ("nan", "inf", "-inf", "none", "null"), text)

    def test_times_ratio_and_prediction(self):
        self.assertRow(markdown(record()), "1024", "no", "200 ± 25", "209", "100.0 ± 2.5", "101", "2.00", "1.00")

    def test_the_fast_kernel_has_its_ratios_and_its_share_of_the_peak(self):
        data = record()
        self.assertNotIn("Lesson 10", markdown(data), "records of before have no such case")
        data["benchmarks"] += runs("fast/1024", [9, 10, 11], p50=10.0, p95=11.0, half_width_95=2.5)
        data["attention_bench"]["cases"].append(case("fast", largest_difference=5e-07))
        data["attention_bench"]["host"]["native_flop_per_s"] = 8e10
        # 4 * 1024^2 * 64 FLOP in 10 ms are 26.8 GFLOP/s, a third of 80.
        self.assertRow(markdown(data), "1024", "no", "10.0 ± 2.5", "20.0", "10.0", "26.8 GFLOP/s", "34 %", "4 MiB", "5.0e-07")
        self.assertIn("tiled / fast", attention_tables.summary(Bench(data)))
        del data["attention_bench"]["host"]["native_flop_per_s"]
        self.assertNoNaN(markdown(data))

    def test_memory_saving_and_difference(self):
        self.assertRow(markdown(record()), "1024", "no", "4 MiB", "4 MiB", "80.8 KiB", "80.8 KiB", "16", "4.8e-07")

    def test_growth_ends_at_1024_gib(self):
        self.assertRow(markdown(record()), "131072", "1024 GiB", "1 GiB", "16 MiB", "1008")

    def test_frontier_and_roofline_come_from_the_program(self):
        text = markdown(record())
        self.assertRow(text, "tiled", "64", "80.8 KiB", "100", "yes")
        self.assertRow(text, "naive", "", "4 MiB", "200", "no")
        self.assertRow(text, "naive", "S = 4096, H = 64", "31.5", "105 TFLOP/s", "memory")
        self.assertIn("989 TFLOP/s in bf16, 3.35 TB/s, ridge at 295 FLOP/byte", text)

    def test_single_sample_has_no_interval(self):
        data = record()
        data["benchmarks"] = runs("naive/1024", [200]) + runs("tiled/1024", [100])
        self.assertRow(markdown(data), "1024", "no", "200 ± n/a", "n/a", "100 ± n/a", "n/a", "2.00", "1.00")
        self.assertNoNaN(markdown(data))

    def test_statistics_that_are_not_finite_are_not_available(self):
        data = record()
        data["benchmarks"] = runs("naive/1024", [190, 210], p50=200.0, p95=float("nan"), half_width_95=float("inf"))
        self.assertRow(markdown(data), "1024", "no", "200 ± n/a", "n/a", "n/a", "n/a", "n/a", "1.00")
        self.assertNoNaN(markdown(data))

    def test_time_of_zero_gives_no_ratio(self):
        data = record()
        data["benchmarks"] = runs("naive/1024", [200, 200], p50=200.0, p95=200.0, half_width_95=0.0) + runs(
            "tiled/1024", [0, 0], p50=0.0, p95=0.0, half_width_95=0.0)
        self.assertRow(markdown(data), "1024", "no", "200 ± 0", "200", "0 ± 0", "0", "n/a", "1.00")
        self.assertNoNaN(markdown(data))

    def test_nothing_measured(self):
        data = record()
        data["benchmarks"], data["attention_bench"]["cases"] = [], []
        data["attention_bench"]["frontier"] = {"seqlen": 0, "points": [], "frontier": []}
        self.assertNoNaN(markdown(data))
        self.assertNoNaN(attention_tables.cases_csv(Bench(data)) + attention_tables.growth_csv(Bench(data)))

    def test_unfinished_lessons(self):
        data = record()
        own = data["attention_bench"]
        why = "exercises/04_naive_attention.cpp:50: naive_attention() is not implemented yet"
        own["cases"][0].update(problem="not implemented yet: " + why, scratch_bytes=None, scratch_formula_bytes=None,
                               saving=None)
        own["statistics"] = {"needs_percentile": "percentile() ...", "needs_summary": "summarize() ..."}
        for part, lesson in (("predictions", "01_roofline"), ("roofline", "01_roofline"), ("frontier", "09_bench"),
                             ("growth", "04_naive_attention")):
            own[part] = {"needs": lesson, "because": "exercises/%s.cpp:1: not implemented yet" % lesson}
        data["benchmarks"] = runs("tiled/1024", [99, 100, 101], median=100.0)
        text = markdown(data)
        self.assertRow(text, "1024", "no", "not implemented yet", "needs 09_bench", "100 ± needs 09_bench",
                       "needs 09_bench", "n/a", "needs 01_roofline")
        self.assertIn(why, text)
        for lesson in ("01_roofline", "04_naive_attention", "09_bench"):
            self.assertIn("needs " + lesson, text)
        self.assertNoNaN(text)

    def test_refused_size_names_the_number(self):
        data = record()
        data["attention_bench"]["cases"][0]["problem"] = "does not fit: needs 512.0 GiB, 20.0 GiB are available"
        text = markdown(data)
        self.assertRow(text, "1024", "no", "does not fit", "209", "100.0 ± 2.5", "101", "2.00", "1.00")
        self.assertIn("needs 512.0 GiB, 20.0 GiB are available", text)

    def test_nan_in_the_output_is_said(self):
        data = record()
        data["attention_bench"]["cases"][1].update(largest_difference=None, output_is_finite=False)
        self.assertIn("NaN or inf in O", markdown(data))

    def test_debug_builds_and_busy_machines_are_said(self):
        data = record()
        data["context"].update(library_build_type="debug", build_type="Debug")
        for run in data["benchmarks"]:
            run["cpu_time"] = run["real_time"] / 2
        text = markdown(data)
        self.assertIn("Google Benchmark is a debug build", text)
        self.assertIn("attention_bench is a Debug build", text)
        self.assertIn("this one had 50 % of a core", text)

    def test_csv_has_a_line_for_each_case(self):
        lines = list(csv.DictReader(attention_tables.cases_csv(Bench(record())).splitlines()))
        self.assertEqual([line["kernel"] for line in lines], ["naive", "tiled"])
        self.assertEqual(lines[0]["median_ms"], "200")
        self.assertEqual(lines[0]["largest_difference"], "n/a")
        self.assertEqual(lines[1]["largest_difference"], "4.77e-07")


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="attention bench ")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(self.folder, "results")
        self.json = self.put("recorded.json", json.dumps(record()))

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def program(self, measures):
        """A stand-in for the built program: `measures` is what it does with the path of its JSON in `out`."""
        text = "#!%s\nimport sys, time\nif '--list-devices' in sys.argv:\n    print('H100 SXM')\n    sys.exit()\n" \
            "out = [a.split('=', 1)[1] for a in sys.argv if a.startswith('--benchmark_out=')][0]\n%s\n"
        path = self.put("program", text % (sys.executable, measures))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def start(self, *arguments):
        return subprocess.Popen([sys.executable, "-B", os.path.join(SCRIPTS, "attention_bench.py"), "--no-plots",
                                 "--out", self.out, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def call(self, *arguments):
        process = self.start(*arguments)
        out, error = process.communicate(timeout=60)
        return process.returncode, out, error

    def assertRefused(self, arguments, *words):
        status, _, error = self.call(*arguments)
        self.assertEqual(status, 2, error)
        self.assertEqual(len(error.splitlines()), 1, error)
        for word in words:
            self.assertIn(word, error)
        self.assertFalse(os.path.exists(self.out), "refused arguments must write nothing")

    def test_recorded_data_are_marked(self):
        status, out, error = self.call("--from", self.json)
        self.assertEqual(status, 0, error)
        self.assertIn("200 ± 25", out)
        self.assertEqual(sorted(os.listdir(self.out)),
                         ["attention_bench.csv", "attention_bench.json", "growth.csv", "tables.md"])
        with open(os.path.join(self.out, "tables.md"), encoding="utf-8") as file:
            self.assertIn("**Recorded data** from `recorded.json`", file.read())

    def test_measured_json_keeps_samples_and_has_no_nan(self):
        data = record()
        data["context"].update(host_name="secret", executable="/home/someone/attention_bench")
        data["benchmarks"][3]["real_time"] = float("nan")
        self.put("measured.json", json.dumps(data))
        status, _, error = self.call("--program", self.program(
            "import shutil; shutil.copy(%r, out)" % os.path.join(self.folder, "measured.json")))
        self.assertEqual(status, 0, error)
        with open(os.path.join(self.out, "attention_bench.json"), encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("NaN", text)
        self.assertNotIn("secret", text)
        self.assertNotIn("/home/someone", text)
        self.assertEqual([run["real_time"] for run in json.loads(text)["benchmarks"][:3]], [190, 200, 210])
        self.assertIn("commit", json.loads(text)["context"])

    def test_interrupted_run_leaves_what_was_there(self):
        os.makedirs(self.out)
        self.put("results/tables.md", "the tables of an earlier run\n")
        started = os.path.join(self.folder, "started")
        program = self.program("open(out, 'w').write('{'); open(%r, 'w').close(); time.sleep(60)" % started)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("--program", program)
            while not os.path.exists(started) and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(number)
            _, error = process.communicate(timeout=30)
            os.remove(started)
            self.assertEqual(process.returncode, 130)
            self.assertIn("interrupted", error)
            self.assertEqual(len(error.splitlines()), 1, error)
            self.assertEqual(os.listdir(self.out), ["tables.md"])
            with open(os.path.join(self.out, "tables.md"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "the tables of an earlier run\n")

    def test_program_that_crashes_writes_nothing(self):
        for crash in ("sys.exit(3)", "import os; os.kill(os.getpid(), 9)", "open(out, 'w').write('{\"half')"):
            status, _, error = self.call("--program", self.program(crash))
            self.assertNotEqual(status, 0)
            self.assertEqual(len(error.splitlines()), 1, error)
            self.assertEqual(os.listdir(self.out), [])

    def test_bad_arguments(self):
        program = self.program("sys.exit(9)")
        self.assertRefused(["--from", self.json, "--device-row", "H900"], "H900", "H100 SXM", "host")
        self.assertRefused(["--program", program, "--device-row", "H900"], "H900", "H100 SXM", "host")
        self.assertRefused(["--program", os.path.join(self.folder, "none")], "none", "scripts/workbook bench")
        self.assertRefused(["--from", os.path.join(self.folder, "none.json")], "none.json")
        self.assertRefused(["--from", self.put("text.json", "no JSON")], "text.json", "is not JSON")
        self.assertRefused(["--from", self.put("other.json", "[1, 2]")], "other.json", "not written by attention_bench")
        self.assertRefused(["--from", self.put("more.json", '{"context": {}}')], "not written by attention_bench")
        self.assertRefused(["--program", program, "--sizes=-5,256"], "--sizes", "-5")
        self.assertRefused(["--program", program, "--sizes", "256,,512"], "--sizes", "''")
        self.assertRefused(["--program", program, "--heads", "-1"], "--heads", "-1")
        self.assertRefused(["--program", program, "--samples", "0"], "--samples", "0")
        self.assertRefused(["--program", program, "--head-dim", "1.5"], "--head-dim", "1.5")
        self.assertRefused(["--bogus"], "--bogus")

    def test_output_folder_that_is_a_file(self):
        self.out = self.put("file", "mine")
        status, _, error = self.call("--from", self.json)
        self.assertEqual(status, 2)
        self.assertEqual(len(error.splitlines()), 1, error)

    def test_redrawing_gives_the_same_tables(self):
        self.call("--from", self.json)
        again = copy.copy(self.out)
        with open(os.path.join(self.out, "attention_bench.csv"), encoding="utf-8") as file:
            first = file.read()
        self.out = os.path.join(self.folder, "again")
        self.call("--from", os.path.join(again, "attention_bench.json"))
        with open(os.path.join(self.out, "attention_bench.csv"), encoding="utf-8") as file:
            self.assertEqual(file.read(), first)


if __name__ == "__main__":
    unittest.main()
