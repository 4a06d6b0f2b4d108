#!/usr/bin/env python3
"""scripts/softnic alone makes programs see the devices, also those that load libibverbs by
themselves, and says why where it cannot.

Usage: wrapper_test.py SCRIPT LIBRARY
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT, LIBRARY = (str(Path(it).resolve()) for it in sys.argv[1:3])

COUNT = """
import ctypes, sys
count = ctypes.c_int()
library = ctypes.CDLL(sys.argv[1])
getattr(library, sys.argv[2]).restype = ctypes.c_void_p
getattr(library, sys.argv[2])(ctypes.byref(count))
print(count.value)
"""


def run(*command):
    env = dict(os.environ, GDRPERF_BUILD=str(Path(LIBRARY).parent), SOFTNIC="soft0;soft1;soft2")
    env.pop("LD_PRELOAD", None)
    # What Python leaves behind at its end is its own.
    env["ASAN_OPTIONS"] = ":".join(["detect_leaks=0"] + [it for it in [env.get("ASAN_OPTIONS")] if it])
    return subprocess.run([SCRIPT, *map(str, command)], env=env, capture_output=True, text=True, check=False,
                          timeout=60)


class Wrapper(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def copy_of_true(self):
        return Path(shutil.copy(shutil.which("true"), self.folder / "program"))

    def test_programs_that_load_libibverbs_by_themselves(self):
        for library, function in (("libibverbs.so.1", "ibv_get_device_list"), ("librdmacm.so.1", "rdma_get_devices")):
            with self.subTest(library=library):
                done = run(sys.executable, "-c", COUNT, library, function)
                self.assertEqual((done.stdout, done.stderr, done.returncode), ("3\n", "", 0))

    def test_a_static_program(self):
        program = Path("/sbin/ldconfig")
        if not program.exists() or "static" not in subprocess.run(
                ["ldd", str(program)], capture_output=True, text=True, check=False).stdout:
            self.skipTest("no static program at hand")
        done = run(program, "--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "^softnic: /sbin/ldconfig is statically linked: .* no software device; .*\n$")

    def test_a_program_with_libibverbs_in_itself(self):
        program = self.copy_of_true()
        with program.open("ab") as file:
            file.write(b"\0RDMAV_HUGEPAGES_SAFE\0RDMAV_ALLOW_DISASSOC_DESTROY\0")
        done = run(program)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "^softnic: .* has libibverbs in itself: .*\n$")

    def test_a_program_that_sets_what_libibverbs_reads(self):
        """As ceph-osd, which is linked to libibverbs.so.1."""
        program = self.copy_of_true()
        with program.open("ab") as file:
            file.write(b"\0RDMAV_HUGEPAGES_SAFE\0RDMAV_FORK_SAFE\0")
        self.assertEqual(run(program).stderr, "")

    def test_a_program_of_another_user(self):
        program = self.copy_of_true()
        program.chmod(0o4755)
        self.assertRegex(run(program).stderr, "^softnic: .* set-user-ID .*\n$")

    def test_all_others(self):
        script = self.folder / "script"
        script.write_text("#!/bin/sh\nexit 7\n", encoding="utf-8")
        script.chmod(0o755)
        self.assertEqual((run(script).returncode, run(script).stderr), (7, ""))
        self.assertEqual(run("true").stderr, "")
        self.assertIn("not found", run("no-such-program").stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
