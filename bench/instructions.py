#!/usr/bin/env python3
"""Instructions per message outside the device, counted by callgrind.

usage: bench/instructions.py [--no-peer] [--only OPERATION]

Two message counts are differenced, so that set-up cancels, and what the device's
library executes and calls is left out. The column "loop" is what of it the posting
and polling loop itself executes. The rest is the work that comes with each batch: its
edges, its clock, and the statistics and JSON of the series. Batches end by the clock,
and under valgrind hold a thousand messages, on a busy machine a hundred. The column
"batch" is that rest for one batch, and "gdrperf" is the loop with the rest spread over
as many messages as a batch has without valgrind, in a run of the same settings. Each
row is counted for gdrperf and, with the same settings and in the same run, for Debian's
perftest.

Write and read run on the software device's null mode, which completes everything
at once. A send needs somebody who receives: there the device moves the data; the
receiving end is a process of its own, at full speed and with so many receives
posted that the sender, which valgrind slows down, never has to wait.

Exit status 1 when gdrperf needs more than a limit. The loop's figures do not depend on
what else runs; the others grow where batches hold few messages, as on a busy machine.
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

# (operation, flags of both tools, configuration, limits of instructions per message: of the loop, of all)
DEEP = {"write": [], "read": [], "send": ["-r", "16384"]}
NO_LIMIT = float("inf")
CASES = [(operation, flags, MOVES if operation == "send" else NULL, loop, sends if operation == "send" else others)
         for flags, loop, others, sends in ((["-Q", "64"], 11, 12, 15), (["-Q", "32", "-l", "32"], 4, 4, 4),
                                            ([], NO_LIMIT, NO_LIMIT, NO_LIMIT))
         for operation in ("write", "read", "send")]


def of_device(name):
    """Valgrind reads no names in some builds of the device's library; of all others that are called it does."""
    return "softnic" in name or name == "???"


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
                if of_device(callee) and not of_device(caller):
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
    """`run(prefix)` with valgrind as the prefix: instructions outside the device, and of the loop; and its result."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "callgrind.out"
        result = run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={path}"])
        return *outside_device(path), result


def ours(operation, flags, softnic, end):
    """Instructions of a message, those of the loop, and those of a batch."""
    def run(amount, prefix=()):
        words = [f"{operation}_bw", "-s", "64", *DEEP[operation], *flags, *amount]
        return peers.gdrperf_record(words, softnic, prefix, end)

    def batches(record):
        return len(record["bw"]["batches_gbps"])

    few, many = (count(lambda prefix: run(["-n", str(n)], prefix)) for n in (FEW, MANY))
    total, loop = (b - a for a, b in zip(few[:2], many[:2]))
    more = batches(many[2]) - batches(few[2])
    if more <= 0:
        sys.exit(f"{operation}_bw: {MANY} messages have no more batches than {FEW}")
    batch, loop = (total - loop) / more, loop / (MANY - FEW)
    use = run(["-D", "1s"])
    return loop + batch * batches(use) / use["iterations"], loop, batch


def theirs(operation, flags, softnic):
    """Median of three: perftest's ends wait for each other by polling, and how long they do is in the difference."""
    def instructions(number):
        return count(lambda prefix: peers.perftest_rate(
            f"ib_{operation}_bw", ["-N", "-s", "64", *DEEP[operation], *flags, "-n", str(number)], softnic, prefix))[0]

    return statistics.median((instructions(MANY) - instructions(FEW)) / (MANY - FEW) for _ in range(3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-peer", action="store_true", help="count gdrperf alone")
    parser.add_argument("--only", choices=DEEP, help="one operation")
    options = parser.parse_args()
    print("instructions per message outside the device, 64 B")
    print(f"{'test':<10} {'settings':<16} {'loop':>6} {'limit':>6} {'gdrperf':>8} {'limit':>6} {'batch':>8} "
          f"{'perftest -N':>12}")
    failed = False
    for operation, flags, softnic, loop_limit, limit in CASES:
        if options.only not in (None, operation):
            continue
        with peers.gdrperf_server(softnic) as end:
            figure, loop, batch = ours(operation, flags, softnic, end)
        failed |= loop > loop_limit or figure > limit
        other = "" if options.no_peer else f"{theirs(operation, flags, softnic):.1f}"
        print(f"{operation + '_bw':<10} {' '.join(flags) or 'defaults':<16} "
              f"{loop:6.1f} {loop_limit:6g} {figure:8.1f} {limit:6g} {batch:8.0f} {other:>12}",
              flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
