#!/usr/bin/env python3
"""Programs that are linked to libibverbs run on the software device where dlsym(RTLD_NEXT) finds the oldest of several
versions: libibverbs' functions of 1.0 call those of the library in front, which would call them again.

usage: old_dlsym_test.py GDRPERF SOFTNIC_LIBRARY OLD_DLSYM_LIBRARY
"""

import os
import shutil
import subprocess
import sys
import unittest

GDRPERF, SOFTNIC, OLD_DLSYM = sys.argv[1:4]


class OldDlsym(unittest.TestCase):
    def out(self, *words):
        env = {**os.environ, "LD_PRELOAD": f"{SOFTNIC} {OLD_DLSYM}", "SOFTNIC": "soft0"}
        done = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])
        return done.stdout

    def test_gdrperf(self):
        self.assertIn("4 KiB", self.out(GDRPERF, "write_bw", "--local", "-d", "soft0", "-s", "4K", "-n", "100"))

    @unittest.skipIf(shutil.which("ibv_devinfo") is None, "ibv_devinfo is not installed")
    def test_another_program(self):
        self.assertIn("hca_id:\tsoft0", self.out("ibv_devinfo", "-v"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
