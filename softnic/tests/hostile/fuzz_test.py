#!/usr/bin/env python3
"""Runs the fuzzer and skips where ThreadSanitizer itself cannot start.

Usage: fuzz_test.py PROGRAM SECONDS     (SOFTNIC_FUZZ_SECONDS overrides SECONDS)
"""

import subprocess
import sys

done = subprocess.run(sys.argv[1:], stderr=subprocess.PIPE, text=True, errors="replace", check=False)
sys.stderr.write(done.stderr)
# Before main: kernels that spread mappings wider than this sanitizer's version knows.
if done.returncode != 0 and "unexpected memory mapping" in done.stderr:
    print("ThreadSanitizer does not start on this kernel (unexpected memory mapping)", file=sys.stderr)
    sys.exit(77)
sys.exit(1 if done.returncode != 0 else 0)
