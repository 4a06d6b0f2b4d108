#!/usr/bin/env python3
"""Memory of other allocators than libc's, freed while it is registered (as registration caches leave
it), comes back zeroed from calloc, and keeps what the program writes.

Usage: allocators_test.py LIBRARY PROGRAM
"""

import os
import subprocess
import sys
import unittest
from ctypes.util import find_library

LIBRARY, PROGRAM = sys.argv[1:3]

# Each gives memory back at the first opportunity.
AT_ONCE = {
    "jemalloc": {"MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"},
    "tcmalloc_minimal": {"TCMALLOC_RELEASE_RATE": "10", "TCMALLOC_AGGRESSIVE_DECOMMIT": "1"},
    "mimalloc": {"MIMALLOC_PAGE_RESET": "1", "MIMALLOC_RESET_DELAY": "0", "MIMALLOC_RESET_DECOMMITS": "1"},
    "libc": {"MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_TOP_PAD_": "0"},
}


class Allocators(unittest.TestCase):
    def check(self, name, **environment):
        preload = [LIBRARY]
        if name != "libc":
            allocator = find_library(name)
            if allocator is None:
                self.skipTest(f"lib{name} is not installed")
            preload.insert(0, allocator)
        env = dict(os.environ, LD_PRELOAD=":".join(preload), SOFTNIC="soft0", **environment)
        done = subprocess.run([PROGRAM], env=env, capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr}")
        self.assertRegex(done.stdout, r"^640 blocks, 0 not zero, 0 changed\n$")

    def test_as_they_are(self):
        for name in AT_ONCE:
            with self.subTest(allocator=name):
                self.check(name)

    def test_that_give_memory_back_at_once(self):
        for name, settings in AT_ONCE.items():
            with self.subTest(allocator=name):
                self.check(name, **settings)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
