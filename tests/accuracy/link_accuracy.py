#!/usr/bin/env python3
"""What gdrperf and perftest report on a link whose truth is known.

usage: tests/accuracy/link_accuracy.py GDRPERF [--all] [--markdown FILE] [--seconds S] [--stride N]

The software device's link model says when each message leaves, arrives and is acknowledged, so rate and latency of
every test follow from size, depth, rate R and one-way latency L (softnic/docs/model.md). Interrupts of less than
100 us do not count (react=100us). Rates, latencies, sizes, depths and tests are swept, and each point is measured with
gdrperf and, with --all, with Debian's perftest. The device counts by how much it was late itself, and how often a
program was held up for longer: points at which the machine could not keep the schedule say nothing about either
program; they are left out and counted. While that is more than a tenth of them, those are measured again, up to four
times.

--all measures every point (minutes). Without it a handful, on a link so slow that a
busy machine can keep its time; of them nothing is asked but that they can be right, so
a figure within the target counts wherever it comes from. Exit status 0 when gdrperf meets the targets at all
points that count (bandwidth within 0.5 %, p50 within 1 % or 50 ns), 1 when not, 77
when more than a tenth of the points are left out.
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import textwrap
import time

Point = collections.namedtuple("Point", "test rate latency size depth")
Result = collections.namedtuple("Result", "truth value error within kept late")

BANDWIDTH_TARGET = 0.005
LATENCY_TARGET, LATENCY_TARGET_NS = 0.01, 50.0
CPUS = sorted(os.sched_getaffinity(0))[:2]  # one for each end: both programs spin while they wait
READS_UNDER_WAY = 16  # per QP, what the device allows
BATCH_S = 0.010  # of gdrperf's, whose median it reports


def points(every):
    """Rates in bytes/s, latencies in ns."""
    if not every:
        rate, latency = 5e7, 2e6
        return [Point("write_bw", rate, latency, 16384, 64), Point("write_bw", rate, latency, 4096, 1),
                Point("read_bw", rate, latency, 65536, 16), Point("send_bw", rate, latency, 16384, 64),
                Point("write_lat", rate, latency, 64, 1), Point("read_lat", rate, latency, 4096, 1)]
    result = []
    for rate in (1.25e9, 5e9):
        for latency in (3000, 30000):
            for size in (64, 4096, 65536, 1048576):
                for operation in ("write", "read", "send"):
                    result += [Point(operation + "_bw", rate, latency, size, depth) for depth in (1, 16)]
                    result.append(Point(operation + "_lat", rate, latency, size, 1))
    return result


def under_way(point):
    return min(point.depth, READS_UNDER_WAY) if point.test == "read_bw" else point.depth


def cycle_ns(point):
    """From a message to the one that takes its place in the queue."""
    wire = point.size / point.rate * 1e9
    return max(under_way(point) * wire, wire + 2 * point.latency)


def truth(point):
    """Bytes/s, or ns as the test reports it."""
    wire = point.size / point.rate * 1e9
    if point.test.endswith("_lat"):
        return wire + (2 if point.test == "read_lat" else 1) * point.latency
    return under_way(point) * point.size / cycle_ns(point) * 1e9


def tolerance_ns(point):
    """A completion that is late by more counts as late."""
    if point.test.endswith("_lat"):
        return max(LATENCY_TARGET_NS, truth(point) * LATENCY_TARGET)
    return max(1000, cycle_ns(point) * BANDWIDTH_TARGET)


def judge(point, value, late_share, behind, held_up):
    expected = truth(point)
    error = (value - expected) / expected
    if point.test.endswith("_lat"):
        within = abs(error) <= LATENCY_TARGET or abs(value - expected) <= LATENCY_TARGET_NS
        # The median stands as long as most round trips were on time.
        kept = late_share < 0.25 and behind < 0.25 and held_up < 0.25
    else:
        within = abs(error) <= BANDWIDTH_TARGET
        kept = late_share < 0.02 and behind < 0.02 and held_up < 0.25
    return Result(expected, value, error, within, kept, max(late_share, behind))


class Device:
    """A server on one pair of ports; counters live as long as it does."""

    def __init__(self, gdrperf, rate, latency):
        self.gdrperf = gdrperf
        self.library = next(path for path in (pathlib.Path(gdrperf).parent / "../../softnic/src/libgdrperf_softnic.so",
                                              pathlib.Path(gdrperf).parent / "../lib/libgdrperf_softnic.so")
                            if path.exists())
        model = f"rate={rate / 1e6:.0f}MB/s,latency={latency:.0f}ns,react=100us"
        self.env = dict(os.environ, LD_PRELOAD=str(self.library.resolve()), GDRPERF_SOFTNIC="1",
                        SOFTNIC=f"soft0:{model};soft1:{model}")
        self.port = str(free_port())

    def __enter__(self):
        self.server = subprocess.Popen([self.gdrperf, "serve", "-p", self.port, "--bind", "127.0.0.1"], env=self.env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()

    def counters(self):
        """Sums over both devices."""
        total = collections.Counter()
        for device in ("soft0", "soft1"):
            folder = f"/sys/class/infiniband/{device}/ports/1/hw_counters"
            names = COUNTERS
            done = subprocess.run(["cat", *(f"{folder}/{name}" for name in names)], env=self.env,
                                  capture_output=True, text=True)
            for name, value in zip(names, done.stdout.split()):
                total[name] += int(value)
        return total

    def watched(self, run, point, seconds):
        """run()'s result, the share of its messages that were late by more than is tolerated, of those copied too
        late, and of the batches (bandwidth) or messages (latency) in which a program was held up."""
        before = self.counters()
        value = run()
        spent = self.counters() - before
        messages = max(spent["messages"], 1)
        late = sum(spent[name] for name in COUNTERS
                   if name.startswith("completion_late_") and bound(name) > tolerance_ns(point))
        # Once held up, a program is late with all that it has under way.
        held_up = (spent["reactions_late"] / messages if point.test.endswith("_lat") else
                   spent["reactions_late"] / under_way(point) / (seconds / BATCH_S))
        return value, late / messages, spent["copy_behind"] / messages, held_up


def bound(name):
    """ns up to which a counter of lateness counts; from half of it on."""
    match = re.search(r"_le_(\d+)(ns|us|ms)$", name)
    if match:
        return int(match.group(1)) * {"ns": 1, "us": 1000, "ms": 1000000}[match.group(2)]
    return float("inf") if name.endswith("_more") else 0


COUNTERS = []
AGAIN = 4  # passes over what was left out
MOST_LEFT_OUT = 0.1


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def gdrperf_value(device, point, seconds):
    command = [device.gdrperf, point.test, "--cpu", str(CPUS[0]), "--peer-cpu", str(CPUS[-1]), "127.0.0.1",
               "-p", device.port, "-d", "soft0", "--peer-dev", "soft1", "-s", str(point.size),
               "-D", f"{seconds * 1000:.0f}ms", "--json", "-"]
    if point.test.endswith("_bw"):
        command += ["-t", str(point.depth), "-Q", "1"]
    done = subprocess.run(command, env=device.env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    ((run,),) = json.loads(done.stdout)["relations"]["HOST"].values()
    return run["bw"]["median_gbps"] / 8 * 1e9 if run["bw"] else run["latency"]["p50_ns"]


def perftest_value(device, point, seconds):
    rate = truth(point)
    expected = seconds * 1e9 / rate if point.test.endswith("_lat") else seconds * rate / point.size
    number = max(int(expected) // 100 * 100, 200)
    port = str(free_port())
    command = ["ib_" + point.test, "-p", port, "-F", "-s", str(point.size), "-n", str(number)]
    if point.test.endswith("_bw"):
        command += ["-t", str(point.depth), "-Q", "1"]
    server = subprocess.Popen(["taskset", "-c", str(CPUS[-1]), *command, "-d", "soft1"], env=device.env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while True:
            client = subprocess.run(["taskset", "-c", str(CPUS[0]), *command, "-d", "soft0", "127.0.0.1"],
                                    env=device.env, capture_output=True, text=True, timeout=60)
            if "Couldn't connect" not in client.stdout + client.stderr or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        rows = re.findall(rf"^ *{point.size}\s+\d+\s+(.*)$", client.stdout, re.M)
        if client.returncode or not rows:
            raise RuntimeError(f"{' '.join(command)}: exit {client.returncode}\n{client.stdout}{client.stderr}")
        columns = [float(text) for text in rows[-1].split()]
        # bandwidth: peak, average in MiB/s; latency: min, max, typical in us
        return columns[1] * 2 ** 20 if point.test.endswith("_bw") else columns[2] * 1000
    finally:
        server.kill()
        server.wait()


NAMES = {gdrperf_value: "gdrperf", perftest_value: "perftest"}


def unusable(gdrperf):
    """Why the device cannot be used here, or None."""
    if len(CPUS) < 2:
        return "one CPU is too few: each host needs one of its own"
    done = subprocess.run(["cat", "/dev/null"], env=Device(gdrperf, 1e9, 0).env, capture_output=True, text=True)
    return None if done.returncode == 0 and not done.stderr else "the device cannot be loaded into any program " \
        "(a build with sanitizers)"


def open_yet(result, every):
    return result is None or not result.kept or not (every or result.within)


def measure(gdrperf, chosen, tools, seconds, every):
    """{(point, tool): result}; what is left out measured again while it is too much."""
    results = {}
    for attempt in range(1 + AGAIN):
        missing = [(point, tool) for point in chosen for tool in tools if open_yet(results.get((point, tool)), every)]
        out = sum((point, gdrperf_value) in missing for point in chosen)
        if attempt and out <= len(chosen) * MOST_LEFT_OUT:
            break
        if attempt:
            print(f"{out} of {len(chosen)} points again", flush=True)
        links = {}
        for point, tool in missing:
            links.setdefault((point.rate, point.latency), []).append((point, tool))
        for (rate, latency), members in links.items():
            with Device(gdrperf, rate, latency) as device:
                learn_counters(device)
                for point, tool in members:
                    result = judge(point, *device.watched(lambda: tool(device, point, seconds), point, seconds))
                    results[point, tool] = result if every else result._replace(kept=result.kept or result.within)
                    print(line(point, tool, results[point, tool]), flush=True)
    return results


def learn_counters(device):
    """Names of the counters that matter; the device has them while somebody uses it."""
    folder = "/sys/class/infiniband/soft0/ports/1/hw_counters"
    deadline = time.monotonic() + 20
    while not COUNTERS:
        gdrperf_value_quietly(device)
        done = subprocess.run(["ls", folder], env=device.env, capture_output=True, text=True)
        COUNTERS.extend(name for name in done.stdout.split()
                        if name in ("messages", "copy_behind", "reactions_late") or
                        (name.startswith("completion_late_") and name != "completion_late_ns"))
        if time.monotonic() > deadline:
            sys.exit(f"the device shows no counters: {done.stderr}")


def gdrperf_value_quietly(device):
    """The server needs a moment before it listens; the client tries for 3 s."""
    gdrperf_value(device, Point("write_bw", 1e9, 0, 64, 1), 0.05)


def shown(point, value):
    return f"{value / 1e9:.4f} GB/s" if point.test.endswith("_bw") else f"{value / 1000:.3f} us"


def error_text(result):
    if result is None:
        return ""
    text = f"{result.error * 100:+.2f} %"
    return text if result.kept else f"({text})"


def line(point, tool, result):
    return (f"{point.test:<10} R {point.rate / 1e9:5.2f} GB/s  L {point.latency / 1000:6.1f} us  {point.size:>8} B  "
            f"depth {point.depth:>3}  truth {shown(point, result.truth):>15}  {NAMES[tool]:<8} "
            f"{error_text(result):>12}{'  ' if result.within or not result.kept else ' !'} late "
            f"{result.late * 100:5.1f} %{'' if result.kept else '  left out'}")


def summary(rows, index):
    """[(metric, points, left out, median |error|, worst |error|, met the target)]"""
    table = []
    for metric in ("_bw", "_lat"):
        mine = [row[index] for row in rows if row[0].test.endswith(metric) and row[index]]
        kept = [result for result in mine if result.kept]
        errors = sorted(abs(result.error) for result in kept) or [float("nan")]
        table.append((metric, len(mine), len(mine) - len(kept), statistics.median(errors), errors[-1],
                      sum(result.within for result in kept)))
    return table


def machine():
    """The CPU's name."""
    match = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return match.group(1) if match else platform.machine()


def wrapped(text):
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def markdown(rows, seconds, version):
    out = sum(not ours.kept for _, ours, _ in rows)
    off = sum(ours.kept and not ours.within for _, ours, _ in rows)
    reached = f"{off} of gdrperf's {len(rows) - out} points are beyond, {out} of {len(rows)} are left out"
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    about = f"{version} ({machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}; {seconds:g} s per point, " \
            "each tool by itself, one after the other, client and server on a CPU of their own)."
    text = f"""# Accuracy

What gdrperf, and Debian's perftest beside it, report on a link whose rate and latency are known.
Made by

    tests/accuracy/link_accuracy.py BUILD/src/app/gdrperf --all --markdown docs/evidence/accuracy.md

{wrapped(f"on {now} with {about} The link is the software device's model ([model.md](../../softnic/docs/model.md)): "
         "the truth is computed, not measured.")}

With W = size / R: bandwidth is depth x size / max(depth x W, W + 2 L); a write or send takes W + L
(half a round trip), a read W + 2 L. At most {READS_UNDER_WAY} reads are under way. Both tools signal every message
(`-Q 1`).

The device counts by how much it was late with its own schedule, and messages posted more than 100
us after what they answer (`react=100us`; less than that counts as immediate, so that interrupts do
not). A bandwidth point is left out when more than 2 % of its messages completed more than 1 us late
(or, on slow links, than 0.5 % of the time a message is under way), or a program was held up for
longer than 100 us in a quarter of the batches whose median it reports; a latency point when a
quarter of the messages were later than the target allows: there the machine, not the tool, sets the
result. Such errors are in parentheses. While more than a tenth of gdrperf's points were left out,
those (of both tools) were measured again, up to {AGAIN} times.

{wrapped(f"Targets for gdrperf: bandwidth within 0.5 %, p50 within 1 % or 50 ns, a tenth left out. Here {reached}.")}

| | points | left out | median error | largest error | within the target |
| --- | --- | --- | --- | --- | --- |
"""
    for index, tool in ((1, "gdrperf"), (2, "perftest")):
        for metric, count, out, middle, worst, within in summary(rows, index):
            what = "bandwidth" if metric == "_bw" else "p50"
            text += (f"| {tool}, {what} | {count} | {out} | {middle * 100:.3f} % | {worst * 100:.3f} % | "
                     f"{within} of {count - out} |\n")
    text += """
perftest's bandwidth is an average that includes filling and draining the pipe; its typical latency
is a median in steps of 10 ns.

## All points

| test | R GB/s | L us | bytes | depth | truth | gdrperf | perftest |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
    for point, ours, theirs in rows:
        text += (f"| {point.test} | {point.rate / 1e9:g} | {point.latency / 1000:g} | {point.size} | {point.depth} | "
                 f"{shown(point, ours.truth)} | {error_text(ours)} | {error_text(theirs)} |\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gdrperf")
    parser.add_argument("--all", action="store_true", help="every point, and perftest beside")
    parser.add_argument("--markdown", metavar="FILE", help="write docs/evidence/accuracy.md there")
    parser.add_argument("--seconds", type=float, default=0.3, help="per point and tool (default %(default)s)")
    parser.add_argument("--stride", type=int, default=1, help="only every N-th point, to try it out")
    options = parser.parse_args()
    if options.all and not shutil.which("ib_write_bw"):
        sys.exit("perftest is not installed")
    why_not = unusable(options.gdrperf)
    if why_not:
        print(f"skipped: {why_not}")
        return 77
    gdrperf = os.path.abspath(options.gdrperf)
    tools = [gdrperf_value, perftest_value] if options.all else [gdrperf_value]
    chosen = points(options.all)[::options.stride]
    results = measure(gdrperf, chosen, tools, options.seconds, options.all)
    rows = [(point, results[point, gdrperf_value], results.get((point, perftest_value))) for point in chosen]
    if options.markdown:
        version = subprocess.run([gdrperf, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
        pathlib.Path(options.markdown).write_text(markdown(rows, options.seconds, version), encoding="utf-8")
    kept = [row for row in rows if row[1].kept]
    wrong = [row for row in kept if not row[1].within]
    print(f"{len(rows)} points, {len(rows) - len(kept)} left out, {len(wrong)} of the others beyond the target")
    if wrong:
        return 1
    if len(rows) - len(kept) > len(rows) * MOST_LEFT_OUT:
        print(f"skipped: this machine is too busy for the device to keep its schedule: {len(rows) - len(kept)} of "
              f"{len(rows)} points left out, also when measured again")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
