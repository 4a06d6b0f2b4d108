#!/usr/bin/env python3
"""Runs without an end on the software device: how well dips are dated, and memory over the run.

usage: bench/endless.py [--seconds N] [--dips N]

Dips: the rate of a modelled link is changed to a fifth for a second while a run goes on; where the run's intervals
date it is compared with the clock at which the device's configuration was changed, which the device follows within
milliseconds.
Memory: resident memory of a client, both ends in it, over N seconds. Figures are of the software device on this
machine.
"""
import argparse
import contextlib
import datetime
import json
import os
import signal
import subprocess
import tempfile
import time

import peers

FAST = "soft0:rate=1GB/s,latency=2us"
SLOW = "soft0:rate=0.2GB/s,latency=2us"


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def records(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines.read().splitlines()]


@contextlib.contextmanager
def endless(words, softnic, folder):
    """A client whose intervals go to a file: (process, file). Prints its table at the end."""
    path = folder + "/intervals.jsonl"
    client = subprocess.Popen([peers.gdrperf(), *words, "--local", "-d", "soft0", "--forever", "--interval", "200ms",
                               "--interval-file", path],
                              env=peers.environment(softnic), stdout=subprocess.PIPE, text=True)
    try:
        while not os.path.exists(path) or not records(path):
            time.sleep(0.05)
        yield client, path
    finally:
        client.send_signal(signal.SIGINT)
        print(client.communicate()[0].rstrip())


def replace(path, text):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)


def date_dips(count, folder):
    device = folder + "/device"
    replace(device, FAST)
    changes = []
    with endless(("write_bw", "-s", "64K", "-t", "8"), "@" + device, folder) as (_, path):
        time.sleep(1)
        for _ in range(count):
            replace(device, SLOW)
            start = time.time()
            time.sleep(1)
            replace(device, FAST)
            changes.append((start, time.time()))
            time.sleep(1)
    dips = [dip for each in records(path) for dip in each["dips"]]
    for start, end in changes:
        def off(dip):
            return datetime.datetime.fromisoformat(dip["start"].replace("Z", "+00:00")).timestamp() - start
        nearest = min(dips, key=lambda dip: abs(off(dip)) + abs(dip["duration_s"] - (end - start)), default=None)
        if nearest is None:
            print("  a dip was not seen")
            continue
        print(f"  dip of {end - start:.4f} s: dated {off(nearest) * 1e3:+.1f} ms off, "
              f"{(nearest['duration_s'] - (end - start)) * 1e3:+.1f} ms too long, "
              f"at {nearest['mean_gbps'] / 8:.3f} GB/s")
    print(f"  {len(dips)} dips told, {len(changes)} made")


def watch_memory(seconds, folder):
    with endless(("write_bw", "-s", "4K"), "soft0", folder) as (client, path):
        first = resident_kib(client.pid)
        for _ in range(10):
            time.sleep(seconds / 10)
            last = records(path)[-1]
            print(f"  {last['start_s'] + last['duration_s']:8.1f} s  {last['mean_gbps'] / 8:7.3f} GB/s  "
                  f"{resident_kib(client.pid)} KiB resident, "
                  f"{resident_kib(client.pid) - first:+d}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20,
                        help="of the run whose memory is watched (default %(default)s)")
    parser.add_argument("--dips", type=int, default=5, help="default %(default)s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        date_dips(options.dips, folder)
    with tempfile.TemporaryDirectory() as folder:
        watch_memory(options.seconds, folder)


if __name__ == "__main__":
    main()
