#!/usr/bin/env python3
"""What `gdrperf cluster` takes on this host, beside what was planned, and what it names: mpirun's ranks over software
devices, one of which is 20 % slow.

usage: cluster_run.py GDRPERF [RANKS [RATE [JSON]]]

RANKS (64) ranks of one device each, of RATE (2MB/s) that this host can do for all at once. Prints the time from
mpirun's and from rank 0's start to the first round; the seconds and gigabytes of `--plan --from` a first, shorter run
beside those of the second; and what the second names. JSON keeps the second's document. Of 64 ranks it takes two and a
half minutes: a round's runs are 0.5 s, and 0.13 s is in flight at both ends of each.
"""

import json
import os
import subprocess
import sys
import tempfile
import time


def run(binary, ranks, slow, rate, duration, path):
    """The document, when the first round could begin after mpirun's start, and rank 0's words."""
    devices = ";".join(f"nic{i}:rate={rate},react=500ms" + (",slow=1.25" if i == slow else "") for i in range(ranks))
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks), binary, "cluster", "--softnic",
               "-e", "-s", "16K",
               "--small", "0", "-D", duration, "--all-pairs", "--json", path]
    begin = time.monotonic()
    here = None
    words = []
    with subprocess.Popen(command, env={**os.environ, "SOFTNIC": devices}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as job:
        for line in job.stdout:
            words.append(line)
            if "ranks are here" in line:
                here = time.monotonic() - begin
    with open(path, encoding="utf-8") as file:
        return json.load(file), here, "".join(words)


def planned(binary, ranks, duration, document, path):
    plan = subprocess.run([binary, "cluster", "--plan", "--ranks", str(ranks), "-s", "16K", "-D", duration, "--small",
                           "0", "--all-pairs", "--from", path,
                           "--nic-rate", f"{document['typical_gbytes']}GB/s"], capture_output=True, text=True,
                           check=True).stdout
    return (float(plan.split(" rounds of ")[0].split()[-1]), float(plan.split("time: ")[1].split(" s")[0]),
            float(plan.split("data: ")[1].split(" GB")[0]))


def beside(what, unit, plan, real):
    print(f"{what}: planned {plan:.4g}{unit}, really {real:.4g}{unit}: {100 * (plan / real - 1):+.1f} %   (wanted "
          f"within 20 %)")


def main():
    binary = os.path.abspath(sys.argv[1])
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    rate = sys.argv[3] if len(sys.argv) > 3 else "2MB/s"
    slow = 41 * ranks // 64
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "first.json")
        first, here, _ = run(binary, ranks, slow, rate, "100ms", path)
        start = first["test"]["start_s"]
        print(f"{ranks} ranks: all here {here:.2f} s after mpirun's start; the first round {start:.2f} s after rank "
              f"0's   (wanted < 5 s)", flush=True)
        rounds, seconds, gigabytes = planned(binary, ranks, "250ms", first, path)
        kept = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 else os.path.join(folder, "second.json")
        second, _, words = run(binary, ranks, slow, rate, "250ms", kept)
    test = second["test"]
    took = test["seconds_per_round"] * test["rounds"]
    beside("rounds", "", rounds, test["rounds_done"])
    beside("time", " s", seconds, took)
    beside("data", " GB", gigabytes, sum(rate for _, _, rate in second["measurements"]) * test["duration_s"])
    named = [(each["part"], each["rank"]) for each in second["suspects"] if each["verdict"] == "slow"]
    print(f"planted: nic{slow} 20 % slow; named: that and nothing else: {'yes' if named == [('nic', slow)] else 'NO'}; "
          f"retests and the look at what is slow took {test['seconds'] - took:.1f} s")
    print(words)


if __name__ == "__main__":
    main()
