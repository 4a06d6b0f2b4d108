#!/usr/bin/env python3
"""Instructions per message outside the device, counted by callgrind.

usage: bench/instructions.py [--peer]

gdrperf runs on the software device's null mode, which completes everything at
once; two message counts are differenced, so that set-up cancels, and what the
device's library itself executes is left out. The count does not depend on what
else the machine does. --peer counts Debian's `ib_write_bw -N` the same way.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import peers

NULL = "soft0:mode=null"
FEW, MANY = 20_000, 120_000

CASES = [
    # (name, arguments, limit)
    ("write_bw 64 B, cq_mod 64", ["write_bw", "-s", "64", "-Q", "64"], 60),
    ("write_bw 64 B, defaults", ["write_bw", "-s", "64"], None),
    ("write_bw 64 B, post_list 32", ["write_bw", "-s", "64", "-Q", "64", "-l", "32"], None),
    ("read_bw 64 B, cq_mod 64", ["read_bw", "-s", "64", "-Q", "64"], None),
]
PEERS = [
    ("ib_write_bw -N 64 B, cq_mod 64", ["-N", "-s", "64", "-Q", "64"]),
    ("ib_write_bw -N 64 B, defaults", ["-N", "-s", "64"]),
]


def outside_device(path):
    """Instructions of one callgrind output not spent in the device's library."""
    text = subprocess.run(["callgrind_annotate", "--auto=no", "--threshold=100", "--inclusive=no", str(path)],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    total = 0
    for line in text.splitlines():
        match = re.match(r"\s*([\d,]+) \([^)]*\)\s+(\S.*)$", line)
        if not match or "PROGRAM TOTALS" in line:
            continue
        if "softnic" not in match.group(2):
            total += int(match.group(1).replace(",", ""))
    if total == 0:
        sys.exit(f"{path}: callgrind_annotate printed no functions:\n{text[:2000]}")
    return total


def count(run):
    """`run(prefix)` with valgrind as the prefix; instructions outside the device."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "callgrind.out"
        run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={path}"])
        return outside_device(path)


def ours(arguments):
    few, many = (count(lambda prefix: peers.gdrperf_record([*arguments, "-n", str(n)], NULL, prefix))
                 for n in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def theirs(arguments):
    few, many = (count(lambda prefix: peers.perftest_rate("ib_write_bw", [*arguments, "-n", str(n)], NULL, prefix))
                 for n in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="store_true", help="count ib_write_bw beside it")
    options = parser.parse_args()
    print(f"{'instructions per message outside the device':<45} {'count':>7} {'limit':>6}")
    failed = False
    for name, arguments, limit in CASES:
        figure = ours(arguments)
        failed |= limit is not None and figure > limit
        print(f"{name:<45} {figure:7.1f} {limit or '':>6}", flush=True)
    for name, arguments in PEERS if options.peer else []:
        print(f"{name:<45} {theirs(arguments):7.1f}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
