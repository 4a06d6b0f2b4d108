#!/usr/bin/env python3
"""Every header, public and private, compiles alone: it includes what it uses.

usage: headers_test.py SOURCE_ROOT COMPILER...
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(sys.argv[1]).resolve()
COMPILER = sys.argv[2:]
CACHED = any("ccache" in word for word in COMPILER)
# CUDA source.
NOT_ALONE = {"src/mem/cuda/kernels.h"}
# A header of a toolkit that need not be installed: whoever includes it cannot be judged without.
OPTIONAL = re.compile(r"fatal error: '?(cuda\w*|nvml|pmix)\.h(: No such file|' file not found)")


def headers():
    for top in ("include", "src", "softnic", "tests"):
        for path in sorted((ROOT / top).rglob("*.h")):
            if path.relative_to(ROOT).as_posix() not in NOT_ALONE:
                yield path


def compile_alone(header, folder):
    """As a unit of its own, by paths relative to the root: ccache knows it in every clone, given by its name and with an
    object. Without ccache an object takes up to a third of the time in vain."""
    name = header.relative_to(ROOT).as_posix()
    made = ["-c", "-o", f"{folder}/{name.replace('/', '_')}.o"] if CACHED else ["-fsyntax-only"]
    command = COMPILER + ["-std=c++20", "-w", "-x", "c++", *made, name, "-I", "include", "-I", "softnic/src", "-I", "src"]
    return header, subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


class Headers(unittest.TestCase):
    def test_each_compiles_alone(self):
        found = list(headers())
        self.assertGreater(len(found), 100)
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
            for header, done in pool.map(lambda it: compile_alone(it, folder), found):
                if OPTIONAL.search(done.stderr):
                    continue
                with self.subTest(header=str(header.relative_to(ROOT))):
                    self.assertEqual(done.returncode, 0, done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
