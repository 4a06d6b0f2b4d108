#!/usr/bin/env python3
"""Which access flags memory is registered with: relaxed ordering where perftest has it.

usage: access_flags_test.py GDRPERF SOFTNIC_LIBRARY ACCESS_LOG_LIBRARY
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

GDRPERF, SOFTNIC, LOG = sys.argv[1:4]
RELAXED_ORDERING = 1 << 20
TESTS = [f"{op}_{metric}" for op in ("write", "read", "send") for metric in ("bw", "lat")]


def free_port():
    with socket.socket() as taken:
        taken.bind(("", 0))
        return taken.getsockname()[1]


class AccessFlags(unittest.TestCase):
    def registered(self, *commands):
        """The flags that the commands, which run side by side, registered memory with."""
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            env = {**os.environ, "LD_PRELOAD": f"{LOG} {SOFTNIC}", "ACCESS_LOG": str(log), "SOFTNIC": "soft0"}
            running = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                       for command in commands]
            for process in running:
                output, _ = process.communicate(timeout=60)
                self.assertIn(process.returncode, (0, 4), output)
            return {int(line, 16) for line in log.read_text().split()}

    def ours(self, test, *options):
        return self.registered([GDRPERF, test, "--local", "-d", "soft0", "-n", "100", *options])

    def test_as_perftest_does_in_all_six_tests(self):
        if shutil.which("ib_write_bw") is None:
            self.skipTest("perftest is not installed")
        for test in TESTS:
            port = free_port()
            # -F: a busy machine spoils how it measures the CPU's clock, and its figures with it, but nothing else.
            perftest = ["ib_" + test, "-d", "soft0", "-n", "1000", "-p", str(port), "-x", "2", "-F"]
            # Its client asks once whether its server is there.
            again = "n=$((n + 1)); [ $n -lt 100 ] || exit 1; sleep 0.1"
            client = ["sh", "-c", f'n=0; until {" ".join(perftest)} 127.0.0.1; do {again}; done']
            theirs = self.registered(perftest, client)
            with self.subTest(test):
                self.assertEqual({flags & RELAXED_ORDERING for flags in self.ours(test)},
                                 {flags & RELAXED_ORDERING for flags in theirs})

    def test_not_where_the_last_byte_is_polled_for(self):
        for test in TESTS:
            relaxed = {bool(flags & RELAXED_ORDERING) for flags in self.ours(test)}
            self.assertEqual(relaxed, {test != "write_lat"}, test)

    def test_as_asked(self):
        for options in (("--relaxed-ordering", "off"), ("--disable_pcie_relaxed",)):
            self.assertEqual({flags & RELAXED_ORDERING for flags in self.ours("write_bw", *options)}, {0})
        self.assertEqual({flags & RELAXED_ORDERING for flags in self.ours("read_lat", "--relaxed-ordering", "on")},
                         {RELAXED_ORDERING})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
