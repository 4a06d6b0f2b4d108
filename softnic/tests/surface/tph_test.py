#!/usr/bin/env python3
"""TLP processing hints, with what stands in for the newest libibverbs.

usage: tph_test.py GDRPERF SOFTNIC_LIBRARY TPH_LIBRARY
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

GDRPERF, SOFTNIC, TPH = sys.argv[1:4]


def run(*words, newest=True):
    with tempfile.TemporaryDirectory(prefix="gdrperf-tph-") as folder:
        log = pathlib.Path(folder, "log")
        env = {**os.environ, "LD_PRELOAD": f"{TPH} {SOFTNIC}" if newest else SOFTNIC, "HINTS_LOG": str(log),
               "SOFTNIC": "soft0"}
        done = subprocess.run([GDRPERF, *words, "--local", "-d", "soft0", "-n", "50"], env=env, capture_output=True,
                              text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr, log.read_text().splitlines() if log.exists() else []


class Hints(unittest.TestCase):
    def test_memory_of_both_ends_is_registered_with_them(self):
        for words, asked in ((["write_bw", "--tph", "2"], "alloc mask=2 ph=2 mem=0 cpu=0"),
                             (["write_bw", "--tph", "1,persistent,3"], "alloc mask=7 ph=1 mem=1 cpu=3"),
                             (["ib_write_bw", "--ph=1", "--tph_mem=vm", "--cpu_id=2"], "alloc mask=7 ph=1 mem=0 cpu=2"),
                             (["ib_send_lat", "--cpu_id", "2", "--tph_mem", "pm", "--ph", "0"],
                              "alloc mask=7 ph=0 mem=1 cpu=2")):
            with self.subTest(words):
                code, text, log = run(*words)
                self.assertEqual((code, log.count(asked), log.count("reg"), log.count("dealloc")), (0, 2, 2, 2), text)

    def test_each_region_of_several(self):
        code, text, log = run("write_bw", "--tph", "2", "-q", "3", "--mr-per-qp", "--verify")
        self.assertEqual((code, log.count("reg")), (0, 6), text)

    def test_the_software_device_takes_them(self):
        code, text, _ = run("send_bw", "--tph", "1,volatile,0", "--verify", newest=False)
        self.assertEqual(code, 0, text)

    def test_what_is_no_hint(self):
        for words, why in ((["write_bw", "--tph", "4"], "--tph"),
                           (["write_bw", "--tph", "1,volatile"], "no processing hints"),
                           (["write_bw", "--tph", "1,fast,2"], "no processing hints"),
                           (["ib_write_bw", "--ph", "1", "--cpu_id", "2"], "--ph: alone"),
                           (["ib_write_bw", "--tph_mem", "vm", "--cpu_id", "2"], "--ph: alone"),
                           (["ib_write_bw", "--ph", "1", "--tph_mem", "x", "--cpu_id", "2"], "--tph_mem 'x'")):
            with self.subTest(words):
                code, text, log = run(*words)
                self.assertEqual((code, log), (2, []), text)
                self.assertIn(why, text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
