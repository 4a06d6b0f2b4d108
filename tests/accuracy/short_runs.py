#!/usr/bin/env python3
"""Short runs on links of known rate, while other programs want the CPUs: no figure above the link.

usage: tests/accuracy/short_runs.py GDRPERF [--runs N] [--busy N] [--seed N] [--keep-going]

Each run is drawn at random: one of the six tests, -n 1 to 5000 or -D 1 to 50 ms, a
size, depth, cq_mod, post_list and number of QPs, one way or both, with or without
--verify, within one process (--local) or against a server. The software device's
model says what the link can carry (softnic/docs/model.md). Beside it, programs that do
nothing but use CPU.

Of each run that succeeds is asked:
- no rate that is printed, least, greatest and series included, is above the link (both
  directions: twice the link) by more than 1 %;
- no median latency is below the model's by more than 1 % (or 50 ns);
- after -n N it reports N messages (latency: round trips).
All runs have to succeed. Exit status 0 when all of that holds.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

MODELS = [(2e9, 4000), (5e8, 20000), (1e9, 2000)]  # bytes/s, ns
BUSY = [sys.executable, "-c", "while True: pass"]
MARGIN = 0.01


def draw(rng):
    test = rng.choice(["write_bw", "send_bw", "read_bw", "write_lat", "send_lat", "read_lat"])
    flags = ["-s", str(rng.choice([8, 64, 1000, 4096, 8192, 65536, 65536, 262144]))]
    if rng.random() < 0.5:
        flags += ["-n", str(int(5000 ** rng.random()))]
    else:
        flags += ["-D", f"{rng.randint(1, 50)}ms"]
    if test.endswith("_bw"):
        if rng.random() < 0.3:
            flags += ["-q", str(rng.choice([2, 3, 8]))]
        if rng.random() < 0.3:
            depth = rng.choice([1, 4, 16, 60, 128])
            flags += ["-t", str(depth), "-Q", str(rng.choice([1, max(1, depth // 4), depth]))]
        elif rng.random() < 0.2:
            flags += ["-t", "64", "-l", "4", "-Q", "16"]
        if rng.random() < 0.25:
            flags += ["-b"]
    if rng.random() < 0.2:
        flags += ["--verify"]
    return test, flags


def value_of(flags, name):
    return int(flags[flags.index(name) + 1]) if name in flags else None


def truth_ns(test, size, rate, latency):
    return size / rate * 1e9 + (2 if test == "read_lat" else 1) * latency


def wrong(run, test, flags, rate, latency):
    """What the record says that cannot be, in words."""
    found = []
    wanted = value_of(flags, "-n")
    if wanted is not None and run["iterations"] != wanted:
        found.append(f"-n {wanted}: {run['iterations']} messages")
    if run["bw"] is not None:
        most = rate * (2 if "-b" in flags else 1) * (1 + MARGIN)
        bw = run["bw"]
        for name, gbps in [("median", bw["median_gbps"]), ("mean", bw["mean_gbps"]), ("max", bw["max_gbps"]),
                           ("batch", max(bw["batches_gbps"]))]:
            if gbps * 1e9 / 8 > most:
                found.append(f"{name} {gbps / 8:.4f} GB/s on a link of {most / (1 + MARGIN) / 1e9:g} GB/s")
    else:
        least = truth_ns(test, value_of(flags, "-s"), rate, latency)
        if run["latency"]["p50_ns"] < min(least * (1 - MARGIN), least - 50):
            found.append(f"p50 {run['latency']['p50_ns']:.0f} ns, the link needs {least:.0f}")
    return found


def runs_of(document):
    return [run for tests in document["relations"].values() for runs in tests.values() for run in runs]


class Server:
    def __init__(self, gdrperf, softnic):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen([gdrperf, "serve", "--softnic", "-p", str(self.port), "--bind", "127.0.0.1"],
                                        env=dict(os.environ, SOFTNIC=softnic), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.process.stderr.readline()  # it listens

    def target(self):
        return ["127.0.0.1", "-p", str(self.port)]

    def end(self):
        self.process.terminate()
        self.process.stderr.close()
        self.process.wait()


def measured(command, softnic, document):
    """The run, or None, and what the program said where it failed."""
    done = subprocess.run(command, env=dict(os.environ, SOFTNIC=softnic), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, f"exit {done.returncode}: {done.stderr.strip()}"
    with open(document, encoding="utf-8") as file:
        run, = runs_of(json.load(file))
    return run, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gdrperf", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--busy", type=int, default=6, help="programs that use CPU beside it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep-going", action="store_true", help="go on after a run that was wrong")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    count = collections.Counter()
    worst = 0.0
    failures = []
    began = time.monotonic()
    busy = [subprocess.Popen(BUSY) for _ in range(options.busy)]
    links = []
    try:
        for rate, latency in MODELS:
            # By default the model does not count what a program needs between a completion and its next post.
            model = f"rate={rate / 1e6:g}MB/s,latency={latency}ns,react=0us"
            softnic = f"soft0:{model};soft1:{model}"
            links.append((rate, latency, softnic, Server(options.gdrperf, softnic)))
        with tempfile.TemporaryDirectory(prefix="gdrperf-short-") as folder:
            document = os.path.join(folder, "run.json")
            for number in range(options.runs):
                rate, latency, softnic, server = links[number % len(links)]
                test, flags = draw(rng)
                local = rng.random() < 0.5
                command = [options.gdrperf, test, *(["--local"] if local else server.target()), "--softnic",
                           "--peer-dev",
                           "soft1", "-d", "soft0", *flags, "--json", document]
                run, error = measured(command, softnic, document)
                where = softnic.split(";")[0] + ("" if local else ", two processes")
                shown = f"run {number} ({where}): {test} {' '.join(flags)}"
                if run is None:
                    failures.append(f"{shown}: {error}")
                else:
                    kind = "rates" if run["bw"] else "latencies"
                    count[kind] += 1
                    count[f"{kind} marked unstable"] += run["unstable"]
                    count[f"{kind} too short for an interval"] += run["unstable_reason"] == "short"
                    if run["bw"]:
                        share = run["bw"]["max_gbps"] / 8 * 1e9 / (rate * (2 if "-b" in flags else 1))
                        worst = max(worst, share)
                    failures += [f"{shown}: {text}" for text in wrong(run, test, flags, rate, latency)]
                if failures and not options.keep_going:
                    break
    finally:
        for process in busy:
            process.kill()
            process.wait()
        for *_, server in links:
            server.end()
    for failure in failures:
        print(failure)
    print(f"{options.runs} runs in {time.monotonic() - began:.0f} s, {options.busy} busy programs beside them")
    for name in sorted(count):
        print(f"  {name}: {count[name]}")
    print(f"  highest rate shown: {100 * worst:.3f} % of the link")
    print(f"  wrong: {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
