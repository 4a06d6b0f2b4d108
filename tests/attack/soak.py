#!/usr/bin/env python3
"""Random runs against one server beside clients that are killed and stopped: none may hang.

    soak.py BINARY [--runs N] [--limit SECONDS] [--seed S] [--at-once N]

A run that is not over after the limit is a hang; time for which client or server waited for a CPU does not count.
The states of all their threads are printed (gdb's backtraces where gdb is installed). Prints a line for every
hundred runs and at the end how many ended how. Exit status: 0 no hang, no crash and no failure without a message;
1 otherwise; 77 without the software device.
"""

import argparse
import collections
import concurrent.futures
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support  # noqa: E402  (takes the binary from sys.argv[1])
from guests import vitals  # noqa: E402

TESTS = ["write_bw", "write_lat", "read_bw", "read_lat", "send_bw", "send_lat", "write_imm_bw", "atomic_bw"]
SIZES = ["8", "64", "4K", "64K", "1M"]


def random_run(chance):
    test = chance.choice(TESTS)
    words = [test]
    if not test.startswith("atomic"):
        words += ["-s", chance.choice(SIZES)]
    words += chance.choice([["-n", "200"], ["-D", "100ms"], ["--cap", "200ms"], ["--cap", "200ms", "-d", "soft1"]])
    if test.endswith("_bw") and chance.random() < 0.3:
        words += chance.choice([["-q", "4"], ["-b"], ["-e"], ["--threads", "2"]] if not test.startswith("atomic") else [["-q", "4"]])
    return words


def states_of(pid, name):
    print(f"  {name}, process {pid}:")
    for task in sorted(glob.glob(f"/proc/{pid}/task/*")):
        fields = []
        for file in ("comm", "wchan", "syscall", "stat"):
            try:
                with open(f"{task}/{file}", encoding="utf-8", errors="replace") as text:
                    fields.append(text.read().strip()[:100])
            except OSError as error:
                fields.append(str(error))
        print(f"    {os.path.basename(task)}: {' | '.join(fields)}")
    if shutil.which("gdb"):
        result = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"], capture_output=True, text=True,
                                timeout=60, check=False)
        print("    " + result.stdout.replace("\n", "\n    "))


def starved_s(pid):
    """Seconds for which a thread of the process could have run and had no CPU: the most of any."""
    delays = [0]
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            with open(path, encoding="ascii") as file:
                delays.append(int(file.read().split()[1]))
        except (OSError, IndexError):
            continue
    return max(delays) * 1e-9


class Trouble(threading.Thread):
    """Clients that are killed, or stopped for a while, one after the other."""

    def __init__(self, port, seed):
        super().__init__(daemon=True)
        self.port = port
        self.chance = random.Random(seed)
        self.over = threading.Event()
        self.killed = self.stopped = 0

    def run(self):
        while not self.over.is_set():
            words = [support.BINARY, *random_run(self.chance), "127.0.0.1", "-p", str(self.port), "--softnic"]
            with subprocess.Popen(words, env=support.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as victim:
                time.sleep(self.chance.uniform(0, 0.6))
                if self.chance.random() < 0.3:
                    self.stopped += 1
                    victim.send_signal(signal.SIGSTOP)
                    self.over.wait(self.chance.uniform(0, 6))
                    if self.chance.random() < 0.5:
                        victim.send_signal(signal.SIGCONT)
                        time.sleep(0.1)
                self.killed += 1
                victim.kill()


class Soak:
    def __init__(self, options, server):
        self.options = options
        self.server = server
        self.ends = collections.Counter()
        self.bad = []
        self.longest = 0.0
        self.lock = threading.Lock()

    def one(self, index):
        words = random_run(random.Random(self.options.seed * 1_000_003 + index))
        command = [support.BINARY, *words, "127.0.0.1", "-p", str(self.server.port), "--softnic"]
        start = time.monotonic()
        with subprocess.Popen(command, env=support.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            server_before = starved_s(self.server.process.pid)
            while True:
                try:
                    _, err = process.communicate(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    starved = starved_s(process.pid) + starved_s(self.server.process.pid) - server_before
                    if time.monotonic() - start - starved < self.options.limit:
                        continue
                with self.lock:
                    print(f"HANG: run {index} for {self.options.limit} s: {' '.join(words)}")
                    states_of(process.pid, "client")
                    states_of(self.server.process.pid, "server")
                process.kill()
                err = process.communicate()[1]
                self.note(index, words, "hang", err, self.options.limit, bad=True)
                return
        code = process.returncode
        # 4: too short on a busy machine to be known well.
        words_missing = code not in (0, 4) and "gdrperf: error: " not in err
        self.note(index, words, f"exit code {code}", err, time.monotonic() - start, bad=code < 0 or words_missing)

    def note(self, index, words, end, err, seconds, bad):
        with self.lock:
            self.ends[end] += 1
            self.longest = max(self.longest, seconds)
            if end not in ("exit code 0", "exit code 4"):
                print(f"run {index}: {end} after {seconds:.1f} s: {' '.join(words)}: {err.strip()[-300:]}", flush=True)
            if bad:
                self.bad.append(index)
            done = sum(self.ends.values())
            if done % 100 == 0:
                print(f"{done} runs: {dict(self.ends)}, longest {self.longest:.1f} s, server {vitals(self.server.process.pid)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=2)
    options = parser.parse_args()
    reason = support.softnic_works()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    with support.Server("--bind", "127.0.0.1") as server:
        soak = Soak(options, server)
        trouble = Trouble(server.port, options.seed)
        trouble.start()
        with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
            list(pool.map(soak.one, range(options.runs)))
        trouble.over.set()
        trouble.join()
        alive = server.process.poll() is None
        print(f"{options.runs} runs, {trouble.killed} clients killed, {trouble.stopped} of them stopped before: {dict(soak.ends)}; "
              f"longest {soak.longest:.1f} s; the server {'is there: ' + str(vitals(server.process.pid)) if alive else 'has ended'}")
    sys.exit(0 if alive and not soak.bad else 1)


if __name__ == "__main__":
    main()
