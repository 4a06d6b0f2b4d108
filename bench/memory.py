#!/usr/bin/env python3
"""Memory of a run does not depend on how long it takes.

usage: bench/memory.py

Runs bandwidth and latency tests of growing length on the software device and prints
the most memory that the process ever had (its peak resident set). Exit status 1 when
the longest run needs 2 MB more than the shortest.
"""
import os
import subprocess
import sys

import peers

LENGTHS = ("500ms", "2s", "8s")
LIMIT_KIB = 2000


def peak_kib(test, length):
    """Peak resident set of one run."""
    child = subprocess.Popen([peers.gdrperf(), test, "--local", "-d", "soft0", "-s", "64", "-D", length],
                             env=peers.environment("soft0"), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"gdrperf {test} -D {length} failed")
    return usage.ru_maxrss


def main():
    print("peak resident set of a run, MiB")
    print(f"{'test':<10}" + "".join(f"{length:>9}" for length in LENGTHS))
    grew = False
    for test in ("write_bw", "write_lat"):
        peaks = [peak_kib(test, length) for length in LENGTHS]
        print(f"{test:<10}" + "".join(f"{peak / 1024:9.1f}" for peak in peaks), flush=True)
        grew |= peaks[-1] > peaks[0] + LIMIT_KIB
    return 1 if grew else 0


if __name__ == "__main__":
    sys.exit(main())
