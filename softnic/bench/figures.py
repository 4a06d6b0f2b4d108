#!/usr/bin/env python3
"""The software device's figures, each beside its limit, and beside a peer
without any device measured in the same run.

usage: softnic/bench/figures.py [--rounds N] [--only WORD] [--quick]

- WRITE and READ of 64 KiB and 8 MiB beside a memcpy loop over the same footprint;
- instructions inside the device per 8-byte write at cq_mod 100 (callgrind; needs
  valgrind), and the message rate of `ib_write_bw -N`;
- rings in mlx5's format: messages a second (instructions: ring_instructions.py), for WQEs
  written by hand, beside ibv_post_send on the same device;
- 8-byte write latency beside a cache line that goes to and fro between two CPUs;
- the link model: what is measured beside what its rate and latency say;
- between two network namespaces over TCP: WRITE of 1 MiB beside iperf3, and 8 bytes
  beside a TCP ping-pong of two programs that poll (needs iperf3, and namespaces).

Figures are medians of --rounds runs (9 unless given), peers in turn. The ends
are pinned to two CPUs. On a machine that does other work ratios of copies hold
roughly; latencies and the link model then want `--only` and patience: the
device's own lateness is printed beside them. Exit status 1: a limit is missed.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import counted  # noqa: E402
import peers  # noqa: E402

PAIR = ("-d", "soft0", "--peer-dev", "soft1", "--cpu", "0", "--peer-cpu", "1")
PLAIN = "soft0;soft1"
# react: what the machine does to the program is not the link's. Interrupts of 50 us, a thousand a
# second, leave a program behind for longer than the next takes to come, where it needs nearly all of
# the time between two messages. One that could not keep up would be behind by ever more.
LINK = "rate={rate}GB/s,latency={latency}us,react=1ms"
failed = False


def row(name, figure, unit, limit, good, note=""):
    global failed
    failed |= good is False
    verdict = {True: "ok", False: "MISSED", None: ""}[good]
    print(f"{name:<38} {figure:>11} {unit:<11} {limit:<16} {verdict:<7} {note}", flush=True)


def peer(*arguments):
    program = peers.build_dir() / "softnic/bench/softnic_peer"
    return float(subprocess.run(["taskset", "-c", "0", program, *map(str, arguments)] if arguments[0] == "memcpy"
                                else [program, *map(str, arguments)],
                                stdout=subprocess.PIPE, text=True, check=True).stdout)


def run(operation, size, softnic, *more):
    return peers.gdrperf_record([operation, "-s", str(size), *PAIR, *more], softnic)


def copies(rounds):
    for size, label in ((65536, "64 KiB"), (8 << 20, "8 MiB")):
        footprint = max(4 << 20, 8 * size)
        for operation in ("write_bw", "read_bw"):
            ratios, rates = [], []
            for _ in range(rounds):
                record = run(operation, size, PLAIN, "-D", "0.3s", "--footprint", str(footprint), "-t", "8")
                # The client's thread does nothing but copy. Its CPU time leaves other programs out.
                rate = size / record["client"]["cpu_per_message_ns"]
                limit = peer("memcpy", size, footprint)
                rates.append(rate)
                ratios.append(rate / limit)
            ratio = statistics.median(ratios)
            row(f"{operation} {label} / memcpy", f"{ratio:.3f}", "", ">= 0.95", ratio >= 0.95,
                f"{statistics.median(rates):.1f} GB/s by CPU time, ratios {min(ratios):.2f} to {max(ratios):.2f}")


def inside_device(softnic, count, functions=None):
    """Instructions that callgrind counts in the library during `count` writes,
    in all of it or in `functions`. Both ends in one process: valgrind has no
    room for another's memory."""
    found = counted.count(peers.build_dir() / "softnic/src/libgdrperf_softnic.so", lambda prefix: peers.gdrperf_record(
        ["write_bw", "-s", "8", "-t", "128", "-Q", "100", "-n", str(count)], softnic, prefix))
    return sum(instructions for name, instructions in found.items() if functions is None or name in functions)


def functions_of_model():
    """What the link model and the faults consist of, as callgrind names it; None where files are compiled together."""
    objects = peers.build_dir() / "softnic/src/libgdrperf_softnic.so.p"
    names = set()
    for name in ("flight_flight_post", "flight_flight", "flight_faulty", "model_faults", "model_link", "model_counters",
                 "host_ports"):
        if not (objects / f"{name}.cc.o").exists():
            return None
        text = subprocess.run(["nm", "-C", "--defined-only", objects / f"{name}.cc.o"], stdout=subprocess.PIPE,
                              text=True, check=True).stdout
        # Not what headers define for everybody (W).
        names.update(match.group(1) for match in re.finditer(r"^\w+ [Tt] (.*)$", text, re.M))
    return names


def instructions(_):
    if not shutil.which("valgrind"):
        row("instructions inside the device", "-", "", "<= 234", None, "needs valgrind")
        return
    few, many = 20_000, 120_000
    for softnic, limit, note in ((PLAIN, 234, "post and poll together"),
                                 ("soft0:latency=0us", None, "with a link model, for comparison")):
        count = (inside_device(softnic, many) - inside_device(softnic, few)) / (many - few)
        row("8 B write, cq_mod 100: in the device", f"{count:.1f}", "instr/msg", f"<= {limit}" if limit else "",
            0 < count <= limit if limit else None, note)
    functions = functions_of_model()
    if functions is None:
        row("the same, in model and faults when off", "-", "instr/msg", "0", None, "needs a build without unity")
        return
    count = (inside_device(PLAIN, many, functions) - inside_device(PLAIN, few, functions)) / (many - few)
    row("the same, in model and faults when off", f"{count:.1f}", "instr/msg", "0", count == 0,
        "and no comparison of the fast path is theirs alone")


def message_rate(rounds):
    if not shutil.which("ib_write_bw"):
        row("ib_write_bw -N, 8 B", "-", "", "> 30", None, "needs perftest")
        return
    rates = [peers.perftest_rate("ib_write_bw", ["-N", "-s", "8", "-n", "2000000"], PLAIN) for _ in range(rounds)]
    rate = statistics.median(rates)
    row("ib_write_bw -N, 8 B", f"{rate:.1f}", "M msg/s", "> 30", rate > 30, f"{min(rates):.1f} to {max(rates):.1f}")


def by_rings(*arguments, prefix=()):
    """Millions of messages a second of a program that writes WQEs (hand) or posts by verbs (post)."""
    program = peers.build_dir() / "softnic/bench/softnic_rings"
    done = subprocess.run([*prefix, program, *map(str, arguments)], env=peers.environment("soft0:mlx5=on"),
                          stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def rings(rounds):
    posted = statistics.median(by_rings("post", 1, 32, 1_000_000) for _ in range(rounds))
    row("mlx5 rings, ibv_post_send", f"{posted:.2f}", "M msg/s", "", None, "executed by the thread that posts")
    for queues, length in ((1, 1), (1, 32), (4, 32), (16, 32)):
        rates = [by_rings("hand", queues, length, 1_000_000 if length > 1 else 100_000) for _ in range(rounds)]
        rate = statistics.median(rates)
        row(f"mlx5 by hand, {queues} QPs, lists of {length}", f"{rate:.2f}", "M msg/s", "", None,
            f"{rate / posted:.2f} of ibv_post_send, {min(rates):.2f} to {max(rates):.2f}")


def latency(rounds):
    ratios, times = [], []
    for _ in range(rounds):
        line = peer("pingpong", 0, 1)
        time = run("write_lat", 8, PLAIN, "-D", "0.3s")["latency"]["p50_ns"]
        ratios.append(time / line)
        times.append(time)
    ratio = statistics.median(ratios)
    row("write_lat 8 B / cache line one way", f"{ratio:.2f}", "", "<= 1.2", ratio <= 1.2,
        f"{statistics.median(times):.0f} ns, ratios {min(ratios):.2f} to {max(ratios):.2f}")


class Lateness:
    """Keeps the device's counters alive and reads them, as of a NIC."""

    def __init__(self, softnic):
        self.env = peers.environment(softnic)
        script = "import sys\nfor line in sys.stdin: print(open(line.strip()).read(), end='', flush=True)"
        self.reader = subprocess.Popen([sys.executable, "-c", script], env=self.env, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)

    def read(self, name):
        self.reader.stdin.write(f"/sys/class/infiniband/soft0/ports/1/hw_counters/{name}\n")
        self.reader.stdin.flush()
        return int(self.reader.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reader.stdin.close()
        self.reader.wait()


BUCKETS = ["32ns", "64ns", "128ns", "256ns", "512ns"] + [f"{1 << i}us" for i in range(10)] + ["1ms"]


def typical_lateness(before, after):
    counts = [after[name] - before[name] for name in BUCKETS]
    total, seen = sum(counts), 0
    for name, count in zip(BUCKETS, counts):
        seen += count
        if total and seen * 2 >= total:
            return f"half of the messages late by <= {name}"
    return ""


def link_points(quick):
    yield "12.5", "2", "write_lat", 8, None
    yield "12.5", "2", "write_lat", 65536, None
    yield "12.5", "2", "send_lat", 8, None
    yield "12.5", "2", "read_lat", 8, None
    yield "12.5", "2", "write_bw", 65536, 128
    yield "12.5", "2", "write_bw", 4096, 1
    yield "5", "2", "write_bw", 8 << 20, 8
    yield "5", "2", "write_bw", 8 << 20, 1
    if quick:
        return
    for operation in ("write_lat", "send_lat", "read_lat"):
        for size in (4096, 1 << 20, 8 << 20):
            yield "5", "2", operation, size, None
    yield "1", "10", "write_lat", 8, None
    yield "1", "10", "read_lat", 65536, None
    for operation in ("write_bw", "read_bw", "send_bw"):
        yield "12.5", "2", operation, 4096, 128
        yield "12.5", "2", operation, 65536, 1
        yield "5", "2", operation, 65536, 128
        yield "5", "2", operation, 1 << 20, 16
        yield "1", "10", operation, 4096, 1
    # Close to 200 ns from message to message; a SEND needs up to 260 of a machine like this by itself
    # (softnic/docs/model.md, limits of the model).
    for operation, size, gap_ns in (("write_bw", 2048, 210), ("read_bw", 2048, 210), ("send_bw", 512, 260)):
        yield f"{size / gap_ns:.6f}", "2", operation, size, 128


def truth(operation, size, rate, latency_us, depth):
    wire = size / rate  # ns
    latency = latency_us * 1000
    if operation == "read_lat":
        return wire + 2 * latency
    if operation.endswith("_lat"):
        return wire + latency
    outstanding = min(depth, 16) if operation == "read_bw" else depth
    return size * 8 / max(wire, (wire + 2 * latency) / outstanding)  # Gb/s


def link_model(rounds, quick=False):
    for rate, latency_us, operation, size, depth in link_points(quick):
        link = LINK.format(rate=rate, latency=latency_us)
        softnic = f"soft0:{link};soft1:{link}"
        expected = truth(operation, size, float(rate), float(latency_us), depth)
        more = ("-t", str(depth), "-D", "0.5s") if depth else ("-D", "0.3s")
        with Lateness(softnic) as device:
            before = {name: device.read(f"arrival_late_le_{name}") for name in BUCKETS}
            values = []
            for _ in range(rounds):
                record = run(operation, size, softnic, *more)
                values.append(record["bw"]["median_gbps"] if depth else record["latency"]["p50_ns"])
            note = typical_lateness(before, {name: device.read(f"arrival_late_le_{name}") for name in BUCKETS})
        value = statistics.median(values)
        error = value - expected
        name = f"{operation} {size} B" + (f" depth {depth}" if depth else "")
        if depth:
            good = abs(error) <= 0.002 * expected
            row(name, f"{value:.4f}", "Gb/s", f"{expected:.4f}", good, f"{100 * error / expected:+.3f} %; {note}")
        else:
            good = abs(error) <= max(0.005 * expected, 30)
            row(name, f"{value:.0f}", "ns", f"{expected:.0f}", good, f"{error:+.0f} ns; {note}")


class Ends:
    """A server on CPU 1 of one namespace, a client on CPU 0 of the other."""

    def __init__(self, hosts, namespaces):
        self.hosts = hosts
        self.env = namespaces.environment(peers.library(), "soft0:tcp=on")
        self.address = namespaces.ADDRESSES[0]

    def run(self, server, client, port, env=None):
        serving = subprocess.Popen(self.hosts.command(0, ["taskset", "-c", "1", *server]), env=env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.hosts.await_listener(0, port, serving)
            return subprocess.run(self.hosts.command(1, ["taskset", "-c", "0", *client]), env=env,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=True).stdout
        finally:
            serving.kill()
            serving.wait()

    def gdrperf(self, *words):
        serve = [peers.gdrperf(), "serve", "--once", "-p", 18600, "--bind", self.address]
        text = self.run(serve, [peers.gdrperf(), *words, "-d", "soft0", self.address, "-p", 18600, "--json", "-"],
                        18600, self.env)
        (runs,) = json.loads(text)["relations"]["HOST"].values()
        return runs[0]

    def iperf3(self):
        text = self.run(["iperf3", "-s", "-1", "-p", 18602],
                        ["iperf3", "-c", self.address, "-p", 18602, "-l", "1M", "-t", "1", "-J"], 18602)
        return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8e9

    def pingpong(self):
        program = peers.build_dir() / "softnic/bench/softnic_peer"
        return float(self.run([program, "tcp-serve", 18603], [program, "tcp-pingpong", self.address, 18603], 18603))


def tcp(rounds):
    sys.path.insert(0, str(peers.ROOT / "softnic/tests/programs"))
    import namespaces
    if not shutil.which("iperf3"):
        row("write_bw 1 MiB / iperf3", "-", "", ">= 0.9", None, "needs iperf3")
        return
    try:
        hosts = namespaces.Hosts()
    except namespaces.NotAllowed as error:
        row("write_bw 1 MiB / iperf3", "-", "", ">= 0.9", None, str(error))
        return
    ends = Ends(hosts, namespaces)
    try:
        pairs = [(ends.gdrperf("write_bw", "-s", "1M", "-D", "1s")["bw"]["median_gbps"] / 8, ends.iperf3())
                 for _ in range(rounds)]
        ratios = [one / other for one, other in pairs]
        ratio = statistics.median(ratios)
        row("write_bw 1 MiB / iperf3", f"{ratio:.2f}", "", ">= 0.9", ratio >= 0.9,
            f"{statistics.median(one for one, _ in pairs):.2f} GB/s, iperf3 "
            f"{statistics.median(other for _, other in pairs):.2f}, "
            f"ratios {min(ratios):.2f} to {max(ratios):.2f}")
        for operation in ("send_lat", "write_lat"):
            pairs = [(ends.gdrperf(operation, "-s", "8", "-D", "0.5s")["latency"]["p50_ns"], ends.pingpong())
                     for _ in range(rounds)]
            ratios = [one / other for one, other in pairs]
            ratio = statistics.median(ratios)
            row(f"{operation} 8 B / TCP ping-pong", f"{ratio:.2f}", "", "<= 1.3", ratio <= 1.3,
                f"{statistics.median(one for one, _ in pairs):.0f} ns, ping-pong "
                f"{statistics.median(other for _, other in pairs):.0f}, "
                f"ratios {min(ratios):.2f} to {max(ratios):.2f}")
    finally:
        hosts.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", action="append",
                        choices=["copies", "instructions", "rate", "rings", "latency", "link", "tcp"])
    parser.add_argument("--quick", action="store_true", help="fewer points of the link model")
    options = parser.parse_args()
    wanted = options.only or ["copies", "instructions", "rate", "rings", "latency", "link", "tcp"]
    print(f"software device on this machine, load {os.getloadavg()[0]:.1f}, medians of {options.rounds}")
    print(f"{'figure':<38} {'measured':>11} {'':<11} {'limit or truth':<16} {'':<7} note")
    sections = {"copies": copies, "instructions": instructions, "rate": message_rate, "rings": rings,
                "latency": latency,
                "link": lambda rounds: link_model(rounds, options.quick), "tcp": tcp}
    for name in wanted:
        sections[name](options.rounds)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
