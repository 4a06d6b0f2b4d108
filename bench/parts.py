#!/usr/bin/env python3
"""Sums of threads, rails and clients against the software device's links, whose rate is known.

usage: parts.py GDRPERF [--runs N] [-D TIME] [--lanes N] [--at-most SECONDS]

--lanes: so many runs at the same time, each on CPUs and with devices of its own (as root).
--at-most: no run begins later; the table says how many there were. Exit status 1: a row, or a
maximum, is more than 1 % above its link, or a row is apart from the sum of its parts by more than
1 % and not marked.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import subprocess
import sys
import threading
import time

import peers

RATE = "soft0:rate={0},latency=20us,react=0us;soft1:rate={0},latency=20us,react=0us"
KINDS = [  # name, links that carry it, options
    ("threads", 1, ["--threads", "2", "-d", "soft0", "--peer-dev", "soft1"]),
    ("rails", 2, ["--rails", "soft0,soft1", "--peer-rails", "soft1,soft0"]),
    ("incast", 1, ["--incast", "3", "-d", "soft0", "--peer-dev", "soft1"]),
]
LINKS = [("10MB/s", 0.08, "16K"), ("100MB/s", 0.8, "64K")]  # rate, the same in Gb/s, message

MOST = 1.01  # of the link


class Lanes:
    """CPUs of this process, divided among `count` threads."""

    def __init__(self, count):
        self.numbers = itertools.count()
        self.own = threading.local()
        cpus = sorted(os.sched_getaffinity(0))
        self.cpus = [cpus[i * len(cpus) // count:(i + 1) * len(cpus) // count] for i in range(count)]

    def prefix(self):
        if len(self.cpus) == 1:
            return []
        if not hasattr(self.own, "number"):
            self.own.number = next(self.numbers)
        return peers.apart(self.cpus[self.own.number % len(self.cpus)])


def measure(exe, rate, size, options, duration, wait, prefix):
    command = [
        *prefix, exe, "write_bw", "-s", size, "-D", duration, "--local", "--softnic", "--json", "-", *wait, *options
    ]
    done = subprocess.run(command, env={**os.environ, "SOFTNIC": RATE.format(rate)}, capture_output=True, text=True,
                          timeout=120)
    if done.returncode not in (0, 4):
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    relations = json.loads(done.stdout)["relations"]
    return next(iter(next(iter(relations.values())).values()))[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("-D", dest="duration", default="1s")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--at-most", type=float, default=float("inf"), metavar="SECONDS")
    asked = parser.parse_args()
    end = time.monotonic() + asked.at_most
    cases = [(kind, link, wait) for kind in KINDS for link in LINKS for wait in ([], ["-e"])]
    lanes = Lanes(asked.lanes)
    found = {}

    def one(i):
        if time.monotonic() > end:
            return
        (name, links, options), (rate, gbps, size), wait = cases[i % len(cases)]
        run = measure(asked.exe, rate, size, options, asked.duration, wait, lanes.prefix())
        truth = links * gbps
        parts = sum(part["mean_gbps"] for part in run["parts"]["each"])
        row = (run["bw"]["median_gbps"] / truth, run["bw"]["max_gbps"] / truth, parts / truth, run["unstable"])
        found.setdefault((name, rate, " ".join(wait)), []).append(row)

    with concurrent.futures.ThreadPoolExecutor(asked.lanes) as pool:
        list(pool.map(one, range(asked.runs)))
    runs = sum(map(len, found.values()))
    print(
        f"{runs} runs of {asked.duration}, {asked.lanes} at a time, on {len(os.sched_getaffinity(0))} CPUs; "
        "all shares are of the link"
    )
    print(f"{'parts':<10}{'link':<10}{'wait':<6}{'runs':>5}{'row':>18}{'largest max':>13}{'largest sum':>13}"
          f"{'marked':>8}"
          f"{'apart by > 1 %, unmarked':>26}")
    bad = unmarked = 0
    for (name, rate, wait), rows in sorted(found.items()):
        medians = [row[0] for row in rows]
        apart = sum(not row[3] and abs(row[0] - row[2]) > 0.01 * row[2] for row in rows)
        bad += apart + sum(max(row[0], row[1]) > MOST for row in rows)
        unmarked += apart + sum(max(row[0], row[1]) > MOST and not row[3] for row in rows)
        print(f"{name:<10}{rate:<10}{wait:<6}{len(rows):>5}{min(medians):>9.4f}{max(medians):>9.4f}"
              f"{max(row[1] for row in rows):>13.4f}"
              f"{max(row[2] for row in rows):>13.4f}{sum(row[3] for row in rows):>8}{apart:>26}")
    print(
        f"above the link by more than {100 * (MOST - 1):.0f} %, or apart and unmarked: {bad} of {runs}, "
        f"{unmarked} of them unmarked"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
