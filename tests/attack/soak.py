#!/usr/bin/env python3
"""Random runs beside clients that are killed and stopped: none may hang.

    soak.py BINARY [--runs N] [--seconds S] [--lanes N] [--at-once N] [--limit S] [--seed N]

Each lane has a server of its own, clients that run to their end, and others that are killed with SIGKILL, some of
them stopped with SIGSTOP before. It ends after --runs in all lanes together, or begins none after --seconds.

A run that is not over after --limit is a hang; time for which client or server waited for a CPU does not count. The
states of all threads of both are printed (gdb's backtraces where gdb is installed). Prints a line for every thousand
runs and at the end a table. Exit status: 0 no hang, no crash, no failure without a message and all servers there;
1 otherwise; 77 without the software device.
"""

import argparse
import collections
import concurrent.futures
import glob
import multiprocessing
import os
import queue
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
LENGTHS = [["-n", "200"], ["-D", "50ms"], ["--cap", "50ms"], ["--cap", "100ms", "-d", "soft1"]]
FORMS = [["-q", "4"], ["-b"], ["-e"], ["--threads", "2"]]
# 4: too short, on a busy machine, to be known well.
RIGHT = (0, 4)
ENDS = ("right", "unstable", "refused", "no message", "crashed", "hung")
GOOD = ("right", "unstable", "refused")

Run = collections.namedtuple("Run", "index words end seconds message")


def random_run(chance):
    test = chance.choice(TESTS)
    words = [test, *chance.choice(LENGTHS)]
    if test.startswith("atomic"):
        return words + (["-q", "4"] if chance.random() < 0.3 else [])
    words += ["-s", chance.choice(SIZES)]
    if test.endswith("_bw") and chance.random() < 0.3:
        words += chance.choice(FORMS)
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
        result = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"], capture_output=True,
                                text=True, timeout=60, check=False)
        print("    " + result.stdout.replace("\n", "\n    "))
    sys.stdout.flush()


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
                    # One in five for longer than a silent client is waited for.
                    self.over.wait(
                        self.chance.uniform(0, 6) if self.chance.random() < 0.2 else self.chance.uniform(0, 1))
                    if self.chance.random() < 0.5:
                        victim.send_signal(signal.SIGCONT)
                        time.sleep(0.1)
                self.killed += 1
                victim.kill()


class Lane:
    """One server, its clients and its trouble. Results go to `results`, then how the lane ended."""

    def __init__(self, number, options, counter, results):
        self.number = number
        self.options = options
        self.counter = counter
        self.results = results
        self.until = time.monotonic() + options.seconds
        self.server = None

    def next_index(self):
        """The next run's number, in all lanes; None when there is none left."""
        if time.monotonic() > self.until:
            return None
        with self.counter.get_lock():
            if self.counter.value >= self.options.runs:
                return None
            self.counter.value += 1
            return self.counter.value - 1

    def client(self):
        while (index := self.next_index()) is not None:
            self.results.put(self.one(index))

    def one(self, index):
        words = random_run(random.Random(self.options.seed * 1_000_003 + index))
        command = [support.BINARY, *words, "127.0.0.1", "-p", str(self.server.port), "--softnic"]
        start = time.monotonic()
        server = self.server.process.pid
        with subprocess.Popen(command, env=support.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            server_before = starved_s(server)
            while True:
                try:
                    _, err = process.communicate(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    starved = starved_s(process.pid) + starved_s(server) - server_before
                    if time.monotonic() - start - starved < self.options.limit:
                        continue
                print(f"HUNG: run {index} for {self.options.limit} s: {' '.join(words)}")
                states_of(process.pid, "client")
                states_of(server, "server")
                process.kill()
                return Run(index, words, "hung", time.monotonic() - start, process.communicate()[1])
        return Run(index, words, end_of(process.returncode, err), time.monotonic() - start, err)

    def run(self):
        with support.Server("--bind", "127.0.0.1") as self.server:
            trouble = Trouble(self.server.port, self.options.seed * 1000 + self.number)
            trouble.start()
            with concurrent.futures.ThreadPoolExecutor(self.options.at_once) as pool:
                for each in [pool.submit(self.client) for _ in range(self.options.at_once)]:
                    each.result()
            trouble.over.set()
            trouble.join()
            there = self.server.process.poll() is None
            state = vitals(self.server.process.pid) if there else {}
            self.results.put(("lane", self.number, there, trouble.killed, trouble.stopped, state))


def end_of(code, err):
    if code in RIGHT:
        return "right" if code == 0 else "unstable"
    if code < 0:
        return "crashed"
    return "refused" if "gdrperf: error: " in err else "no message"


class Table:
    """Counts of how the runs of each test ended."""

    def __init__(self):
        self.ends = collections.defaultdict(collections.Counter)
        self.slowest = collections.defaultdict(float)
        self.messages = collections.Counter()
        self.bad = 0

    def note(self, run):
        for name in (run.words[0], "all"):
            self.ends[name][run.end] += 1
            self.slowest[name] = max(self.slowest[name], run.seconds)
        self.bad += run.end not in GOOD
        if run.end in ("right", "unstable"):
            return
        message = run.message.strip().split("\n")[0][:150]
        self.messages[message] += 1
        if run.end not in GOOD or self.messages[message] == 1:
            print(
                f"run {run.index}: {run.end} after {run.seconds:.1f} s: {' '.join(run.words)}: "
                f"{run.message.strip()[-300:]}",
                flush=True)

    def count(self):
        return sum(self.ends["all"].values())

    def text(self):
        lines = [f"{'test':<14}{'runs':>8}" + "".join(f"{end:>12}" for end in ENDS) + f"{'slowest s':>12}"]
        for name in [*sorted(set(self.ends) - {"all"}), "all"]:
            counts = self.ends[name]
            lines.append(f"{name:<14}{sum(counts.values()):>8}" + "".join(f"{counts[end]:>12}" for end in ENDS) +
                         f"{self.slowest[name]:>12.1f}")
        return "\n".join(lines)


def collect(options, lanes, results):
    """The table of all runs, and the last word of each lane that had one."""
    table, last = Table(), []
    while len(last) < options.lanes and (any(lane.is_alive() for lane in lanes) or not results.empty()):
        try:
            item = results.get(timeout=1)
        except queue.Empty:
            continue
        if not isinstance(item, Run):
            last.append(item)
            continue
        table.note(item)
        if table.count() % 1000 == 0:
            print(f"{table.count()} runs: {dict(table.ends['all'])}, slowest {table.slowest['all']:.1f} s", flush=True)
    return table, last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--runs", type=int, default=1000, help="in all lanes together (default 1000)")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no run after so many")
    parser.add_argument("--lanes",
                        type=int,
                        default=1,
                        help="servers at the same time, each with clients of its own (default 1)")
    parser.add_argument("--at-once", type=int, default=2, help="clients of a lane at the same time (default 2)")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a run hangs (default 60)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    reason = support.softnic_works()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    start = time.monotonic()
    fork = multiprocessing.get_context("fork")
    counter, results = fork.Value("l", 0), fork.Queue()
    lanes = [fork.Process(target=Lane(number, options, counter, results).run) for number in range(options.lanes)]
    for lane in lanes:
        lane.start()
    table, last = collect(options, lanes, results)
    for lane in lanes:
        lane.join()
    there = sum(item[2] for item in last)
    states = [item[5] for item in last if item[5]]
    print(f"\n{table.text()}\n")
    print(
        f"{table.count()} runs in {time.monotonic() - start:.0f} s beside {sum(item[3] for item in last)} "
        f"clients that were killed, "
        f"{sum(item[4] for item in last)} of them stopped before; {there} of {options.lanes} servers are there")
    if states:
        print("most of any server: " + ", ".join(f"{name} {max(state[name] for state in states)}"
                                                 for name in states[0]))
    for message, count in table.messages.most_common(10):
        print(f"{count:>7} times: {message}")
    sys.exit(0 if there == options.lanes and table.bad == 0 else 1)


if __name__ == "__main__":
    main()
