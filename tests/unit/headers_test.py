#!/usr/bin/env python3
"""Every header, public and private, compiles alone: it includes what it uses.

usage: headers_test.py SOURCE_ROOT COMPILER...
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(sys.argv[1]).resolve()
COMPILER = sys.argv[2:]
# Found by their users in a toolkit or a test library that need not be installed.
NOT_ALONE = {"src/mem/cuda_kernels.h"}


def headers():
    for top in ("include", "src", "tests"):
        for path in sorted((ROOT / top).rglob("*.h")):
            if path.relative_to(ROOT).as_posix() not in NOT_ALONE:
                yield path


def compile_alone(header, folder):
    # A source file with the same path each time, and an object: so ccache remembers it.
    stub = folder / (header.relative_to(ROOT).as_posix().replace("/", "_") + ".cc")
    text = f'#include "{header}"\n'
    if not stub.exists() or stub.read_text() != text:
        stub.write_text(text)
    command = COMPILER + ["-std=c++20", "-O0", "-I", str(ROOT / "include"), "-I", str(ROOT / "src/softnic"), "-c", str(stub), "-o", str(stub) + ".o"]
    return header, subprocess.run(command, capture_output=True, text=True)


class Headers(unittest.TestCase):
    def test_each_compiles_alone(self):
        found = list(headers())
        self.assertGreater(len(found), 100)
        folder = pathlib.Path(os.environ.get("MESON_BUILD_ROOT", tempfile.gettempdir())) / "headers-alone"
        folder.mkdir(exist_ok=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for header, done in pool.map(lambda it: compile_alone(it, folder), found):
                with self.subTest(header=str(header.relative_to(ROOT))):
                    self.assertEqual(done.returncode, 0, done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
