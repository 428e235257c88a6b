"""scripts/kernel_report.py reads what ptxas writes, and fails on spills."""

import subprocess
import sys
import unittest

import workbook

LOG = """[1/3] Building CUDA object CMakeFiles/cuda_03_flash_forward_device.dir/03_flash_forward.cu.o
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN6nanolm4cuda14softmax_kernelEPfi' for 'sm_75'
ptxas info    : Function properties for _ZN6nanolm4cuda14softmax_kernelEPfi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 39 registers, used 1 barriers, 2176 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 21.0 ms
ptxas info    : Compiling entry function '_ZN6nanolm4cuda4copyEPf' for 'sm_90'
ptxas info    : Function properties for _ZN6nanolm4cuda4copyEPf
    %d bytes stack frame, %d bytes spill stores, %d bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
"""


def report(text):
    done = subprocess.run([sys.executable, workbook.ROOT / "scripts/kernel_report.py"], input=text, text=True,
                          capture_output=True)
    return done.returncode, done.stdout + done.stderr


class KernelReport(unittest.TestCase):
    def test_reads_each_kernel(self):
        code, text = report(LOG % (0, 0, 0))
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"\nsoftmax_kernel +sm_75 +39 +2176 +0 +0 \+ 0\n")
        self.assertRegex(text, r"\ncopy +sm_90 +255 +0 +0 +0 \+ 0\n")
        self.assertIn("2 kernels, 0 with spills", text)

    def test_spills_and_serialised_instructions_fail(self):
        code, text = report(LOG % (16, 8, 12))
        self.assertEqual(code, 1)
        self.assertRegex(text, r"copy +sm_90 +255 +0 +16 +8 \+ 12\n")
        code, text = report(LOG % (0, 0, 0) + "ptxas info    : (C7510) Potential Performance Loss: wgmma serialized\n")
        self.assertEqual(code, 1)
        self.assertIn("C7510", text)

    def test_a_log_without_kernels_is_no_success(self):
        self.assertEqual(report("ninja: no work to do.\n")[0], 2)


if __name__ == "__main__":
    unittest.main()
