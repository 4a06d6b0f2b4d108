#!/usr/bin/env python3
"""The sweep of scripts/quickstart: how long it takes, and how many of its rows are unstable.

usage: first_sweep.py GDRPERF [--times N] [--busy N] [--cpus LIST] [--plain] [SWEEP_OPTION...]

--busy: so many loops beside it, on the same CPUs. --cpus: the CPUs of all, as taskset has them.
--plain: without the simulated link, as fast as this machine is; then a bare cache line between two of
the CPUs, judged in the same way (bare_pingpong): what is unstable there is the machine.
Exit status 1: it took more than 60 s, or (not with --plain) more than 2 % of the rows, beside loops 15 %,
are unstable.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

QUICKSTART = pathlib.Path(__file__).resolve().parents[1] / "scripts/quickstart"
MOST_SECONDS = 60


def quickstart_has(pattern):
    return re.search(pattern, QUICKSTART.read_text(encoding="utf-8")).group(1)


def quickstart_options():
    return ["--local", "--softnic", "--devices", "soft0", "--cap", quickstart_has(r"sweep\+=\(--cap (\S+)\)")]


def sweep(exe, options, softnic):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "sweep.json"
        begin = time.monotonic()
        done = subprocess.run([exe, "sweep", *quickstart_options(), *options, "--json", path],
                              env={**os.environ, "SOFTNIC": softnic},
                              capture_output=True,
                              text=True)
        seconds = time.monotonic() - begin
        if done.returncode not in (0, 4):
            sys.exit(done.stderr)
        document = json.loads(path.read_text(encoding="utf-8"))
    runs = [(test, run) for tests in document["relations"].values() for test, rows in tests.items() for run in rows]
    return seconds, runs


def print_machine(exe):
    cpus = sorted(os.sched_getaffinity(0))
    bare = pathlib.Path(exe).resolve().parents[2] / "bench/bare_pingpong"
    done = subprocess.run([bare, str(cpus[0]), str(cpus[-1]), "46"], stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(f"{bare}: exit status {done.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--cpus")
    parser.add_argument("--plain", action="store_true")
    asked, options = parser.parse_known_args()
    if asked.cpus:
        os.sched_setaffinity(0, [int(cpu) for cpu in asked.cpus.split(",")])
    most = 1 if asked.plain else 0.15 if asked.busy else 0.02
    softnic = "soft0" if asked.plain else quickstart_has(r"SOFTNIC=\$\{SOFTNIC-(.*)\}")
    bad = False
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(asked.busy)]
    try:
        for _ in range(asked.times):
            load = os.getloadavg()[0]
            seconds, runs = sweep(asked.exe, options, softnic)
            unstable = [(test, run) for test, run in runs if run["unstable"]]
            bad |= seconds > MOST_SECONDS or len(unstable) > most * len(runs)
            reasons = collections.Counter(f"{test} {run['unstable_reason']}" for test, run in unstable)
            print(
                f"{len(runs)} rows in {seconds:.1f} s beside {asked.busy} loops on {len(os.sched_getaffinity(0))} CPUs "
                f"(load {load:.1f} before): "
                f"{len(unstable)} unstable ({100 * len(unstable) / len(runs):.1f} %)" +
                "".join(f"; {count} {reason}" for reason, count in reasons.most_common()),
                flush=True)
            if asked.plain:
                print_machine(asked.exe)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
