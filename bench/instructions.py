#!/usr/bin/env python3
"""Instructions per message outside the device, counted by callgrind.

usage: bench/instructions.py [--no-peer] [--only OPERATION]

Two message counts are differenced, so that set-up cancels, and what the device's
library executes and calls is left out. The column "loop" is what of it the posting
and polling loop itself executes. The rest is the work that comes with each batch: its
edges, its clock, and the statistics and JSON of the series. Batches end by the clock,
10 ms at full speed with 100,000 messages and more in each; under valgrind they hold a
thousand, and fewer on a busy machine, so that this part is larger here than in use,
and varies. Each row is counted for gdrperf and, with the same settings and in the
same run, for Debian's perftest.

Write and read run on the software device's null mode, which completes everything
at once. A send needs somebody who receives: there the device moves the data; the
receiving end is a process of its own, at full speed and with so many receives
posted that the sender, which valgrind slows down, never has to wait.

Exit status 1 when gdrperf needs more than the limit, on a machine that is quiet.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import peers

NULL = "soft0:mode=null"
MOVES = "soft0"
FEW, MANY = 20_000, 220_000

# (operation, flags of both tools, configuration, limit of instructions per message)
DEEP = {"write": [], "read": [], "send": ["-r", "16384"]}
CASES = [(operation, flags, MOVES if operation == "send" else NULL, limit)
         for flags, limit in ((["-Q", "64"], 11), (["-Q", "32", "-l", "32"], 4), ([], None))
         for operation in ("write", "read", "send")]


def outside_device(path):
    """Instructions of one callgrind output, less those of the calls into the device's
    library with all that it calls in turn; and those of the loop's own functions."""
    names = {}

    def name_of(text):
        number, name = re.fullmatch(r"(\(\d+\))(?: (.*))?", text).groups()
        return names.setdefault(number, name)

    functions = {}
    total, device, loop, caller, callee, function = 0, 0, 0, "", "", ""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            line = line.rstrip()
            if line.startswith("ob="):
                caller = callee = name_of(line[3:])
            elif line.startswith("cob="):
                callee = name_of(line[4:])
            elif line.startswith(("fn=", "cfn=")):
                number, name = re.fullmatch(r"c?fn=(\(\d+\))(?: (.*))?", line).groups()
                name = functions.setdefault(number, name)
                function = function if line[0] == "c" else name
            elif line.startswith("calls="):
                cost = int(next(file).split()[1])
                if "softnic" in callee and "softnic" not in caller:
                    device += cost
                callee = caller
            elif re.match(r"[-+*\d]", line):
                cost = int(line.split()[1])
                total += cost
                loop += cost if "engine::kernels::" in function else 0
    if device == 0:
        sys.exit(f"{path}: no call into the device's library")
    return total - device, loop


def count(run):
    """`run(prefix)` with valgrind as the prefix; instructions outside the device, and of the loop."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "callgrind.out"
        run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={path}"])
        return outside_device(path)


def per_message(run):
    few, many = (count(lambda prefix: run(["-n", str(n)], prefix)) for n in (FEW, MANY))
    return [(b - a) / (MANY - FEW) for a, b in zip(few, many)]


def ours(operation, flags, softnic, end):
    return per_message(lambda number, prefix: peers.gdrperf_record(
        [f"{operation}_bw", "-s", "64", *DEEP[operation], *flags, *number], softnic, prefix, end))


def theirs(operation, flags, softnic):
    """Median of three: perftest's ends wait for each other by polling, and how long they do is in the difference."""
    return statistics.median(per_message(lambda number, prefix: peers.perftest_rate(
        f"ib_{operation}_bw", ["-N", "-s", "64", *DEEP[operation], *flags, *number], softnic, prefix))[0] for _ in range(3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-peer", action="store_true", help="count gdrperf alone")
    parser.add_argument("--only", choices=DEEP, help="one operation")
    options = parser.parse_args()
    print("instructions per message outside the device, 64 B")
    print(f"{'test':<10} {'settings':<16} {'gdrperf':>8} {'loop':>6} {'limit':>6} {'perftest -N':>12}")
    failed = False
    for operation, flags, softnic, limit in CASES:
        if options.only not in (None, operation):
            continue
        with peers.gdrperf_server(softnic) as end:
            figure, loop = ours(operation, flags, softnic, end)
        failed |= limit is not None and figure > limit
        other = "" if options.no_peer else f"{theirs(operation, flags, softnic):.1f}"
        print(f"{operation + '_bw':<10} {' '.join(flags) or 'defaults':<16} {figure:8.1f} {loop:6.1f} {limit or '':>6} {other:>12}",
              flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
