#!/usr/bin/env python3
"""64 ranks of one host under mpirun, of which 3 (5 %) are killed while they measure: they are named, all others go on
with partners that are left, and a result comes.

usage: lost_test.py GDRPERF     exit 0 passed, 1 failed, 77 skipped (says why)
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

RANKS = 64
LOST = (7, 30, 55)
PATIENCE_S = 900


def devices():
    return ";".join(f"nic{rank}:rate=4MB/s,react=1s" for rank in range(RANKS))


def pids_by_rank(job):
    """Of the job's processes, by their PMIX_RANK."""
    pids = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = dict(each.split(b"=", 1) for each in file.read().split(b"\0") if b"=" in each)
        except (OSError, ValueError):
            continue
        if parent == job.pid and b"OMPI_COMM_WORLD_RANK" in variables:
            pids[int(variables[b"OMPI_COMM_WORLD_RANK"])] = int(pid)
    return pids


def main():
    if not shutil.which("mpirun"):
        print("skipped: mpirun is not installed (openmpi-bin)")
        sys.exit(77)
    binary = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cluster.json")
        job = subprocess.Popen(["mpirun", "--allow-run-as-root", "--oversubscribe", "--enable-recovery", "--mca", "orte_abort_on_non_zero_status", "0",
                                "-np", str(RANKS), binary, "cluster", "--softnic", "-e", "-s", "16K", "--small", "0", "-D", "100ms",
                                "--start-timeout", "120s", "--json", path],
                               env={**os.environ, "SOFTNIC": devices()}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        text = ""
        for line in job.stdout:
            text += line
            if "ranks are here" in line:
                pids = pids_by_rank(job)
                for rank in LOST:
                    os.kill(pids[rank], signal.SIGKILL)
        job.wait(PATIENCE_S)
        print(text)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    assert not document["partial"]
    assert f"{RANKS} of {RANKS} ranks are here" in text, text
    assert tuple(each["rank"] for each in document["ranks"] if each["lost"]) == LOST, document["ranks"]
    partners = {rank: set() for rank in range(RANKS)}
    for one, other, _ in document["measurements"]:
        partners[one].add(other)
    left = set(range(RANKS)) - set(LOST)
    fewest = min(len(partners[rank] & left) for rank in left)
    print(f"each of the {len(left)} others sent to {fewest} or more of them")
    # The circle's pairs without the lost ranks, but for the round in which they died; and new partners.
    assert fewest >= len(left) - 1 - 2 * len(LOST), fewest
    assert document["verdict"] in ("inconclusive", "slow"), document["verdict"]
    print("passed")


if __name__ == "__main__":
    main()
