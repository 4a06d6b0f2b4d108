#!/usr/bin/env python3
"""What `gdrperf cluster` says of identical software devices while busy loops run: any part it names is false.

usage: clean_cluster.py GDRPERF [--runs N] [--ranks N,...] [--busy N,...] [--lanes N] [--at-most SECONDS]
                        [--keep FOLDER]

Runs take turns with the numbers of ranks and of loops. --lanes: so many at the same time, each on CPUs and
with devices of its own (as root). --at-most: no run begins later; the table says how many there were.
--keep: the documents and words of the runs that named a part.
Exit status 1: a part was named.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import time

import peers

LINK = {8: "rate=20MB/s,react=200ms", 16: "rate=10MB/s,react=200ms"}
PORT = 18525


def job(exe, ranks, prefix, path):
    """Exit status and words of rank 0."""
    devices = ";".join(f"nic{i}:{LINK.get(ranks, 'rate=5MB/s,react=500ms')}" for i in range(ranks))
    # One namespace for all ranks: the loop below runs in it.
    ranks_of = (f"for i in $(seq 1 {ranks - 1}); do '{exe}' cluster --softnic -e -s 16K --rank $i --ranks {ranks} "
                f"--root 127.0.0.1:{PORT} --devices nic$i >/dev/null 2>&1 & done; "
                f"'{exe}' cluster --softnic -e -s 16K --rank 0 --ranks {ranks} --root 127.0.0.1:{PORT} --devices nic0 "
                f"--json '{path}'; status=$?; wait; exit $status")
    done = subprocess.run([*prefix, "sh", "-c", ranks_of],
                          env={**os.environ, "SOFTNIC": devices},
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          text=True,
                          timeout=600)
    return done.returncode, done.stdout


def one(exe, ranks, busy, cpus, keep):
    prefix = peers.apart(cpus)
    loops = [subprocess.Popen([*prefix, sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cluster.json"
            begin = time.monotonic()
            status, words = job(exe, ranks, prefix, path)
            document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"suspects": []}
            named = [part for part in document["suspects"] if part["verdict"] == "slow"]
            if (named or status not in (0, 4)) and keep:
                kept = pathlib.Path(keep)
                kept.mkdir(parents=True, exist_ok=True)
                name = f"{ranks}-{busy}-{time.time_ns()}"
                (kept / f"{name}.txt").write_text(words, encoding="utf-8")
                (kept / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
            return status, [f"{part['part']} {part.get('rank', '')}" for part in named], time.monotonic() - begin
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe", type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--ranks", type=numbers, default=[8, 16])
    parser.add_argument("--busy", type=numbers, default=[0, 1, 2, 3])
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--at-most", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--keep")
    asked = parser.parse_args()
    end = time.monotonic() + asked.at_most
    cpus = sorted(os.sched_getaffinity(0))
    each = len(cpus) // asked.lanes
    free = queue.SimpleQueue()
    for lane in range(asked.lanes):
        free.put(cpus[lane * each:(lane + 1) * each])
    found = collections.defaultdict(list)

    def run(case):
        own = free.get()
        try:
            if time.monotonic() > end:
                return
            found[case].append(one(asked.exe, *case, own, asked.keep))
        finally:
            free.put(own)

    kinds = [(ranks, busy) for busy in asked.busy for ranks in asked.ranks]
    cases = itertools.islice(itertools.cycle(kinds), asked.runs)
    with concurrent.futures.ThreadPoolExecutor(asked.lanes) as pool:
        list(pool.map(run, cases))
    count = sum(map(len, found.values()))
    print(f"{count} clean runs, {asked.lanes} at a time on {each} CPUs each (software devices)")
    print("ranks  loops  runs  nothing slow  undecided  failed  false  seconds")
    false = 0
    for (ranks, busy), runs in sorted(found.items()):
        named = [parts for _, parts, _ in runs if parts]
        false += len(named)
        statuses = collections.Counter(status for status, parts, _ in runs if not parts)
        failed = sum(count for status, count in statuses.items() if status not in (0, 4))
        print(f"{ranks:>5}{busy:>7}{len(runs):>6}{statuses[0]:>14}{statuses[4]:>11}{failed:>8}{len(named):>7}"
              f"{max(seconds for _, _, seconds in runs):>9.0f}", *named)
    print(f"a healthy part was named in {false} of {count}")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
