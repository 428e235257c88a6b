"""The stand-in that grades the reading of kernels sees the accesses that Triton's own interpreter makes. Exit status
77: Triton is not installed."""

import importlib.util
import itertools
import os
import sys
import unittest

import workbook

sys.dont_write_bytecode = True
TESTS = workbook.ROOT / "tests/triton"
sys.path[:0] = [str(TESTS), str(workbook.ROOT / "include")]
PYTHON = workbook.ROOT / ".venv/bin/python"
# Kernel, arrays, arguments, grid: ragged, and more programs than there is work for.
CASES = [("add_kernel", ["x", "y", "out"], {"n": 10, "BLOCK": 4}, (4,)),
         ("scale_rows_kernel", ["x", "out"], {"columns": 5, "x_stride": 7, "out_stride": 11, "BLOCK": 8}, (3,)),
         ("scale_rows_kernel", ["x", "out"], {"columns": 12, "x_stride": 12, "out_stride": 12, "BLOCK": 8}, (2,)),
         ("sweep_kernel", ["x", "out"], {"n": 45, "BLOCK": 8}, (2,)),
         ("transpose_kernel", ["x", "out"], {"rows": 6, "columns": 10, "BLOCK": 4}, (2, 3)),
         ("grouped_kernel", ["x", "out"], {"rows": 10, "columns": 6, "GROUP": 2, "BLOCK": 2}, (15,)),
         ("causal_sum_kernel", ["v", "out"], {"n": 30, "BLOCK_Q": 4, "BLOCK_K": 8}, (8,))]


def by_triton(kernel, arrays_, arguments, grid):
    """{program: its accesses} when Triton's interpreter runs the whole grid."""
    import arrays
    place, found = arrays.prepare(None), {}  # Triton chooses its interpreter when it is imported
    import numpy
    from triton.runtime import interpreter
    namespace = {"__name__": "kernels"}
    exec(compile((TESTS / "kernels.py").read_text(), str(TESTS / "kernels.py"), "exec"), namespace)

    def look(says, addresses, mask):
        addresses, mask = numpy.broadcast_arrays(addresses, mask)
        name, first = min(((name, first) for name, first, _, _ in place.ranges),
                          key=lambda one: abs(int(addresses.flat[0]) - one[1]))
        elements = [(int(address) - first) // 4 if seen else None for address, seen in zip(addresses.flat, mask.flat)]
        kind, program = says.split()[2][:-1], tuple(interpreter.interpreter_builder.grid_idx)
        found.setdefault(program, []).append((kind, name, elements))

    place._look = look
    made = [place.array(name, numpy.zeros(200, numpy.float32)) for name in arrays_]
    namespace[kernel][grid](*made, **arguments)
    return found


class StandIn(unittest.TestCase):
    def test_it_sees_what_triton_accesses(self):
        import stand_in
        for kernel, names, arguments, grid in CASES:
            found = by_triton(kernel, names, arguments, grid)
            for pid in itertools.product(*map(range, grid)):
                with self.subTest(kernel, pid=pid):
                    mine = stand_in.accesses(str(TESTS / "kernels.py"), kernel, names, arguments, grid, pid)
                    self.assertEqual([tuple(access) for access in mine], found.get((pid + (0, 0))[:3], []))


if __name__ == "__main__":
    if not importlib.util.find_spec("triton"):
        if not PYTHON.exists() or os.path.samefile(sys.prefix, PYTHON.parents[1]):  # else .venv would start itself
            print("skipped: Triton is not installed")
            sys.exit(77)
        os.execv(PYTHON, [PYTHON, *sys.argv])
    os.environ["NANOLM_TRITON_CPU"] = "1"
    unittest.main()
