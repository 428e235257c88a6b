"""The sandbox's limits, tried with harmless programs: each asks for a little too much, and must not get it."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(os.environ.get("NANOLM_JUDGE_BUILD") or os.path.join(ROOT, "build", "judge"), "bin")
SANDBOX = os.path.join(BIN, "sandbox")
PYTHON = "/usr/bin/python3"


def probe():
    """Why the sandbox cannot be tried here, or None."""
    if not sys.platform.startswith("linux"):
        return "the sandbox needs Linux"
    if not os.path.exists(SANDBOX):
        return "%s is not built" % SANDBOX
    if not os.path.exists(PYTHON):
        return "no %s to try it with" % PYTHON
    found = subprocess.run([SANDBOX, "--probe"], stdout=subprocess.PIPE, encoding="utf-8").stdout.split()
    missing = [word for word in ("landlock", "namespaces", "user") if word not in found]
    return "no %s on this machine" % ", ".join(missing) if missing else None


class Sandbox(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="nanolm_sandbox_")
        os.chmod(self.folder, 0o755)
        self.addCleanup(shutil.rmtree, self.folder)
        self.scratch = os.path.join(self.folder, "scratch")
        os.mkdir(self.scratch)
        os.chmod(self.scratch, 0o777)
        self.log = os.path.join(self.folder, "log")

    def run_python(self, text, *options):
        """What the sandbox reports, what the program printed, and how long it took."""
        started = time.monotonic()
        done = subprocess.run([SANDBOX, "--wall", "5", "--cpu", "3", "--memory", "512", "--file-size", "8",
                               "--processes", "16", *options, "--write", self.scratch, "--output", self.log, "--report",
                               "1", "--", PYTHON, "-Sc", text], stdout=subprocess.PIPE, encoding="utf-8", timeout=60)
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return done.stdout, file.read(), time.monotonic() - started

    def test_a_plain_program_runs(self):
        self.assertEqual(self.run_python("print(6 * 7)")[:2], ("ended itself with exit status 0", "42\n"))

    def test_sleep_longer_than_the_limit(self):
        report, _, seconds = self.run_python("import time; time.sleep(50)", "--wall", "1")
        self.assertIn("its time was up", report)
        self.assertLess(seconds, 20)

    def test_endless_loop(self):
        self.assertIn("CPU time", self.run_python("while True: pass", "--cpu", "1", "--wall", "40")[0])

    def test_two_gibibytes(self):
        self.assertIn("MemoryError", self.run_python("x = bytearray(2 << 30)")[1])

    def test_fifty_processes_that_sleep(self):
        text = ("import os, time\nmade = 0\ntry:\n    for i in range(50):\n        if os.fork() == 0:\n"
                "            time.sleep(30)\n            os._exit(0)\n        made += 1\nexcept OSError:\n    pass\n"
                "print(made, flush=True)")
        before = self.sleepers()
        report, printed, seconds = self.run_python(text)
        self.assertEqual(report, "ended itself with exit status 0")
        self.assertLess(int(printed), 16)
        self.assertGreater(int(printed), 1)
        self.assertLess(seconds, 20, "the processes left behind were waited for")
        self.assertEqual(self.sleepers(), before, "a process was left behind")

    @staticmethod
    def sleepers():
        """Processes of the unprivileged user whose program is Python."""
        found = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    found += b"time.sleep(30)" in file.read()
            except OSError:
                pass
        return found

    def test_a_hundred_megabytes(self):
        path = os.path.join(self.scratch, "large")
        self.run_python("open(%r, 'wb').write(bytes(100 << 20))" % path)
        self.assertLessEqual(os.path.getsize(path), 8 << 20)

    def test_endless_output(self):
        self.run_python("import os\nwhile True: os.write(1, b'x' * 4096)")
        self.assertLessEqual(os.path.getsize(self.log), 8 << 20)

    def test_no_network(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            text = "import socket; socket.create_connection(('127.0.0.1', %d), 2); print('connected')"
            self.assertNotIn("connected", self.run_python(text % server.getsockname()[1])[1])

    def test_no_file_outside(self):
        path = os.path.join(self.folder, "secret")
        with open(path, "w", encoding="utf-8") as file:
            file.write("secret text")
        os.chmod(path, 0o644)
        self.assertIn("PermissionError", self.run_python("print(open(%r).read())" % path)[1])
        for other in ("/etc/passwd", "/proc/1/environ", "/dev/zero", os.path.abspath(__file__)):
            self.assertIn("Error", self.run_python("print(open(%r, 'rb').read(4))" % other)[1], other)
        self.assertIn("secret text", self.run_python("print(open(%r).read())" % path, "--read", self.folder)[1])

    def test_no_writing_outside(self):
        self.assertIn("Error", self.run_python("open(%r, 'w')" % os.path.join(self.folder, "new"))[1])
        self.assertIn("Error", self.run_python("open('/tmp/nanolm_new', 'w')")[1])
        self.assertFalse(os.path.exists("/tmp/nanolm_new"))

    def test_no_other_process_is_seen_or_hit(self):
        text = "import os, signal\nprint(os.getpid() < 10, os.getuid() != 0)\nos.kill(%d, 0)" % os.getpid()
        printed = self.run_python(text)[1]
        self.assertIn("True True", printed)
        self.assertIn("ProcessLookupError", printed)

    def test_killing_the_first_process_of_the_namespace(self):
        report = self.run_python("import os, signal\ntry:\n    os.kill(1, signal.SIGKILL)\nexcept OSError:\n    pass\n"
                                 "print('alive')")
        self.assertEqual(report[:2], ("ended itself with exit status 0", "alive\n"))

    def test_crash_is_named(self):
        self.assertIn("segmentation fault", self.run_python("import os; os.kill(os.getpid(), 11)")[0])

    def test_ends_with_its_caller(self):
        process = subprocess.Popen([SANDBOX, "--wall", "50", "--output", self.log, "--", PYTHON, "-Sc",
                                    "import time; time.sleep(30)"])
        time.sleep(1)
        process.kill()
        process.wait()
        time.sleep(1)
        self.assertEqual(self.sleepers(), 0)


if __name__ == "__main__":
    reason = probe()
    if reason:
        print("Skipped: " + reason)
        sys.exit(77)
    unittest.main()
