#!/usr/bin/env python3
"""What scripts/field-kit runs, with a program that stands in for gdrperf.

usage: field_kit_test.py SOURCE_ROOT
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()

# Every bandwidth is RATE GB/s.
PROGRAM = """#!{python}
import json, pathlib, sys
if "--json" in sys.argv:
    run = {{"bw": {{"median_gbps": {rate} * 8}}}} if "_bw" in sys.argv[1] else {{"latency": {{"p50_ns": 2000}}}}
    pathlib.Path(sys.argv[sys.argv.index("--json") + 1]).write_text(
        json.dumps({{"relations": {{"HOST": {{sys.argv[1]: [run]}}}}}}))
"""


class FieldKit(unittest.TestCase):
    def steps(self, rate):
        """Each step's status and command, with a program that has that rate."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        place = pathlib.Path(folder.name)
        program = place / "gdrperf"
        program.write_text(PROGRAM.format(python=sys.executable, rate=rate))
        program.chmod(0o755)
        # A PATH without perftest.
        command = [sys.executable, str(ROOT / "scripts/field-kit"), "server", "--gdrperf", str(program)]
        done = subprocess.run([*command, "-o", str(place / "out")], env=os.environ | {"PATH": folder.name},
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split("\t") for line in (place / "out/steps.tsv").read_text().splitlines()]
        return {name: (status, words) for name, status, _, words in rows}

    def test_verify_sends_all_where_the_network_carries_it(self):
        self.assertEqual(self.steps(12.5)["verify"], ("0", "gdrperf verify HOST:18630 --qp-timeout 14"))

    def test_verify_sends_little_through_a_slow_network(self):
        """Two emulated machines have 2 MB/s: 4.7 GB would take 40 minutes of the 5 that a step has."""
        self.assertEqual(self.steps(0.002)["verify"],
                         ("0", "gdrperf verify HOST:18630 --qp-timeout 14 --sizes 1,9,64,4097,65537 -n 64"))


if __name__ == "__main__":
    unittest.main()
