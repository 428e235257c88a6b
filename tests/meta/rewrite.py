"""What the emulator's rewriter makes of a .cu file, and the forms that it refuses. NANOLM_BUILD: it is built there."""

import os
import unittest
from pathlib import Path

import workbook

REWRITE = None


def rewrite(text):
    """Exit status and the code, or the message."""
    source, out = workbook.WORK / "in.cu", workbook.WORK / "out.cpp"
    source.write_text(text)
    out.unlink(missing_ok=True)
    done = workbook.run(REWRITE, source, out, "tree/cuda/x.cu")
    return done.returncode, out.read_text() if done.returncode == 0 else done.text


def kernel(body):
    return "__global__ void k(float* out) {\n%s\n}\n" % body


class Rewrite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        global REWRITE
        REWRITE = next(p for p in Path(os.environ["NANOLM_BUILD"]).rglob("emulator_rewrite") if p.is_file())

    def becomes(self, text, *parts):
        status, code = rewrite(text)
        self.assertEqual(status, 0, code)
        self.assertEqual(code.count("\n"), text.count("\n") + 1, "lines must keep their numbers")
        self.assertEqual(code.split("\n")[0], '#line 1 "tree/cuda/x.cu"')
        for part in parts:
            self.assertIn(part, code)
        return code

    def refused(self, text, line, *parts):
        status, message = rewrite(text)
        self.assertEqual(status, 1, message)
        self.assertIn("tree/cuda/x.cu:%d: error: " % line, message)
        for part in parts:
            self.assertIn(part, message)

    def test_launches(self):
        configure = "::nanolm::emulator::configure("
        self.becomes("void f() { k<<<1, 2>>>(a); }", configure + '"k", k, 1, 2)(a);')
        self.becomes("void f() { n::k<T, (3 > 2), f<int>> <<< dim3(1, 2), 3, 4 * sizeof(float), s >>> (a, b); }",
                     configure + '"n::k<T, (3 > 2), f<int>>", n::k<T, (3 > 2), f<int>>,  dim3(1, 2), 3')
        self.becomes("void f() {\n  k<T>\n      <<<grid(n),\n         block>>>(\n      a);\n}", "block)(\n")
        self.becomes("void f() { if (x) k<<<1, 1>>>(a); else j<<<1, 1>>>(b); }", 'if (x) ' + configure, 'else ' + configure)

    def test_text_that_is_not_code_stays(self):
        text = '// k<<<1, 1>>>(a)\n/* __shared__ float x; */\nauto s = "k<<<1>>>() __shared__ int i;";\nint n = 1\'000;\n' \
               'auto r = R"x(__shared__ a; ")x";\nchar c = \'"\';\n'
        self.assertEqual(self.becomes(text).split("\n", 1)[1], text)

    def test_shared_variables(self):
        shared = "::nanolm::emulator::shared"
        self.becomes(kernel("__shared__ float tile[N][M + 1];"), "auto& tile = " + shared + '<float[N][M + 1], 1>("tile");')
        self.becomes(kernel("  static __shared__ volatile unsigned int n;"), 'auto& n = ' + shared + '<volatile unsigned int, 1>("n");')
        self.becomes(kernel("__shared__ __align__(16) typename T::Row r[2];"), "auto& r = " + shared + '<typename T::Row[2], 16>("r");')
        self.becomes(kernel("extern __shared__ float4 m[];"), '::nanolm::emulator::dynamic_shared<float4, 1>("m");')
        self.becomes(kernel("extern __shared__ __align__(128) unsigned char m[];"), "dynamic_shared<unsigned char, 128>")
        self.becomes(kernel("__shared__ std::array<float, 4> a[3];"), "shared<std::array<float, 4>[3], 1>")
        self.becomes(kernel("__shared__ float\n    wide[2];\nf();"), "wide")

    def test_what_it_cannot_parse_is_named(self):
        self.refused(kernel("int a;\n__shared__ float a[2], b[3];"), 3, "one variable a line")
        self.refused(kernel("__shared__ float a = 1;"), 2, "'='")
        self.refused(kernel("__shared__ float a{1};"), 2, "'{'")
        self.refused(kernel("__shared__ float (*p)[3];"), 2, "'('")
        self.refused(kernel("extern __shared__ float a[4];"), 2, "empty brackets")
        self.refused(kernel("__shared__ float a[];"), 2, "empty brackets")
        self.refused(kernel("float __shared__ a[2];"), 2, "in front of its variable's type")
        self.refused("namespace n {\nextern __shared__ float a[];\n}\n", 2, "inside functions only")
        self.refused(kernel("__shared__ __attribute__((aligned(16))) float a[4];"), 2, "__align__")
        self.refused("void f() {\n  (k)<<<1, 1>>>(a);\n}", 2, "name of a kernel")
        self.refused("void f() {\n  k<<<1, 1;\n}", 2, "<<< without >>>")
        self.refused("void f() {\n  k<<<1, 1>>>;\n}", 2, "arguments in parentheses")


if __name__ == "__main__":
    unittest.main()
