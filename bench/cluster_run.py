#!/usr/bin/env python3
"""What a run of `gdrperf cluster` on this host takes, beside what was planned: mpirun's ranks over software devices.

usage: cluster_run.py GDRPERF [RANKS [RATE]]

RANKS (64) ranks of one device each, of RATE (4MB/s) that this host can do for all at once. Prints the time from
mpirun's and from rank 0's start to the first round, then the seconds and gigabytes of `--plan --from` a first, shorter
run beside those of the second.
"""

import json
import os
import subprocess
import sys
import tempfile
import time


def run(binary, ranks, rate, duration, path):
    """The document, when mpirun was started, and when the first round came to its end."""
    devices = ";".join(f"nic{i}:rate={rate},react=500ms" for i in range(ranks))
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks), binary, "cluster", "--softnic", "-e", "-s", "16K",
               "--small", "0", "-D", duration, "--start-timeout", "120s", "--json", path]
    begin = time.monotonic()
    job = subprocess.Popen(command, env={**os.environ, "SOFTNIC": devices}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    here = None
    for line in job.stderr:
        if "ranks are here" in line:
            here = time.monotonic() - begin
    job.wait()
    with open(path, encoding="utf-8") as file:
        return json.load(file), here


def planned(binary, ranks, duration, document, path):
    plan = subprocess.run([binary, "cluster", "--plan", "--ranks", str(ranks), "-D", duration, "--small", "0", "--from", path,
                           "--nic-rate", f"{document['typical_gbytes']}GB/s"], capture_output=True, text=True, check=True).stdout
    return float(plan.split("time: ")[1].split(" s")[0]), float(plan.split("data: ")[1].split(" GB")[0])


def main():
    binary = os.path.abspath(sys.argv[1])
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    rate = sys.argv[3] if len(sys.argv) > 3 else "4MB/s"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "first.json")
        first, here = run(binary, ranks, rate, "250ms", path)
        start = first["test"]["start_s"]
        print(f"{ranks} ranks: all here {here:.2f} s after mpirun's start; the first round {start:.2f} s after rank 0's   (wanted < 5 s)", flush=True)
        seconds, gigabytes = planned(binary, ranks, "500ms", first, path)
        second, _ = run(binary, ranks, rate, "500ms", os.path.join(folder, "second.json"))
    test = second["test"]
    took = test["seconds_per_round"] * test["rounds"]
    moved = sum(rate for _, _, rate in second["measurements"]) * test["duration_s"]
    print(f"rounds: planned {seconds:.1f} s, took {took:.1f} s: {100 * (seconds / took - 1):+.1f} %   (wanted within 20 %)")
    print(f"data: planned {gigabytes:.3g} GB, moved {moved:.3g} GB: {100 * (gigabytes / moved - 1):+.1f} %   (wanted within 20 %)")
    print(f"retests: {test['seconds'] - took:.1f} s on top; verdict: {second['verdict']}")


if __name__ == "__main__":
    main()
