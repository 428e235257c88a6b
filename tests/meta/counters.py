"""The counters of CUDA rungs: the emulator's against a device's record, and against the formulas of lessons 01, 05 and 07."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import workbook

sys.dont_write_bytecode = True
sys.path.insert(0, str(workbook.ROOT / "scripts"))
import ladder_counters  # noqa: E402
from workbook_lib import profile  # noqa: E402

BIN = Path(os.environ["NANOLM_BUILD"]) / "bin"  # this check builds nothing: its fixture does

SHAPES = {"elementwise": ("n=50000,k=5", "n=1,k=1"),
          "forward": ("S=256", "S=128,H=40,N=4,K=2,B=2", "S=256,causal", "Sq=64,Sk=200,H=20,causal"),
          "decode": ("S=256", "S=100,H=40,N=6,K=3,B=2,splits=3", "S=331,N=4,K=4,splits=1", "S=7,splits=9")}


def calls(rung, shape):
    shape = profile.parse_shape(shape, profile.defaults_of(rung))
    found = json.loads(subprocess.run(
        [ladder_counters.program(BIN, rung, "emulated")] + [str(n) for n in profile.arguments(shape)],
        check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout)
    return {call["function"]: (call, profile.formula(call, shape)) for call in found["calls"]}


class Counters(unittest.TestCase):
    def test_are_those_of_a_device(self):
        record = json.loads((workbook.ROOT / "notes/data/ladder_counters_h200.json").read_text())
        small = [case for case in record["cases"] if not case["large"]]
        self.assertGreater(len(small), 3)
        expected = {}
        for rung, arguments, large in ladder_counters.CASES:
            if not large:
                expected.setdefault(rung, set()).add(arguments)
        self.assertEqual(set(expected), set(workbook.ladder()), "a case of each rung")
        # A rung is new until it was measured on a device; what is recorded of a rung is all of its cases.
        for rung in {case["rung"] for case in small}:
            self.assertEqual({case["arguments"] for case in small if case["rung"] == rung}, expected[rung], rung)
        for case in small:
            counted = ladder_counters.count(BIN, case)
            self.assertEqual(counted, case["counted"], "scripts/ladder_counters.py count BIN RECORD")
            for kernel, measured in case["measured"].items():
                for name in ("load sectors", "store sectors", "load conflicts", "store conflicts"):
                    # The hardware's conflicts also hold a few waits that have another reason.
                    allowed = 0.01 * measured[name] + ("conflicts" in name) * 0.0005 * counted[kernel]["passes"]
                    with self.subTest(rung=case["rung"], kernel=kernel, counter=name):
                        self.assertAlmostEqual(counted[kernel][name], measured[name], delta=allowed)

    def test_are_those_of_the_formulas(self):
        for rung in workbook.ladder():
            for shape in SHAPES["elementwise" if "elementwise" in rung else "decode" if "decode" in rung else "forward"]:
                for function, (_call, formula) in calls(rung, shape).items():
                    with self.subTest(rung=rung, shape=shape, function=function):
                        self.assertGreater(formula["bytes"], 0)
                        self.assertAlmostEqual(formula["counted"] / formula["bytes"], 1, delta=0.02)

    def test_a_chain_asks_for_k_times_what_one_kernel_does(self):
        found = calls("cuda/01_fused_elementwise", "n=50000,k=7")
        self.assertEqual(found["chain"][1]["counted"], 7 * found["fused"][1]["counted"])

    def test_the_mask_halves_what_flash_asks_for(self):
        whole, causal = (calls("cuda/03_flash_forward", shape)["forward"][1]["counted"] for shape in
                         ("S=1024,H=4", "S=1024,H=4,causal"))
        self.assertGreater(causal / whole, 0.5)
        self.assertLess(causal / whole, 0.63)  # 8 query tiles: (8 + 1) / 16 of K and V

    def test_splits_and_query_heads_of_a_group_read_no_byte_again(self):
        for kernels in ("decode", "decode_bf16"):
            counts = {calls("cuda/04_flash_decode", shape)[kernels][1]["counted"]
                      for shape in ("S=500,N=2,K=2,splits=1", "S=500,N=8,K=2,splits=1", "S=500,N=8,K=2,splits=7")}
            self.assertEqual(len(counts), 1, counts)


if __name__ == "__main__":
    unittest.main()
