"""What the comparing benchmarks share: running gdrperf and perftest on the
software device, pair by pair in one run, and printing ratios."""
import contextlib
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def build_dir():
    for name in [os.environ.get("GDRPERF_BUILD"), ROOT / "build"]:
        if name and (pathlib.Path(name) / "src/app/gdrperf").exists():
            return pathlib.Path(name)
    sys.exit("no build found: run scripts/quickstart first, or set GDRPERF_BUILD to a build folder")


def gdrperf():
    return str(build_dir() / "src/app/gdrperf")


def library():
    return str(build_dir() / "softnic/src/libgdrperf_softnic.so")


def environment(softnic):
    """Environment of a program on the software device configured by `softnic`."""
    return dict(os.environ, LD_PRELOAD=library(), GDRPERF_SOFTNIC="1", SOFTNIC=softnic)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def apart(cpus):
    """Prefix of a command that gives it these CPUs and, as root, a network namespace of its own: programs of one
    namespace share the software device's ports, so that runs beside each other would share their rates."""
    return ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec taskset -c "$0" "$@"', ",".join(map(str, cpus))]


def gdrperf_record(arguments, softnic="soft0", prefix=(), end=("--local",)):
    """The record of one gdrperf run; `end` says where the other end is."""
    done = subprocess.run([*prefix, gdrperf(), *arguments, *end, "--json", "-"], env=environment(softnic),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"gdrperf {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
    (runs,) = json.loads(done.stdout)["relations"]["HOST"].values()
    return runs[0]


@contextlib.contextmanager
def gdrperf_server(softnic="soft0"):
    """A `gdrperf serve` in a process of its own; yields the `end` of its clients."""
    port = str(free_port())
    server = subprocess.Popen([gdrperf(), "serve", "-p", port, "--bind", "127.0.0.1"], env=environment(softnic),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield ("127.0.0.1", "-p", port)
    finally:
        server.terminate()
        server.wait()


def perftest_rate(tool, arguments, softnic="soft0", prefix=()):
    """Million messages per second that perftest's client prints (last column),
    server and client being two processes. `prefix` goes before the client."""
    port = str(free_port())
    command = [tool, "-d", "soft0", "-p", port, "-F", *arguments]
    env = environment(softnic)
    server = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while True:
            client = subprocess.run([*prefix, *command, "127.0.0.1"], env=env, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True)
            if "Couldn't connect" not in client.stdout or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        rows = re.findall(r"^ *\d+\s+\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+)", client.stdout, re.M)
        if client.returncode or not rows:
            sys.exit(f"{' '.join(command)}: exit {client.returncode}\n{client.stdout}")
        return float(rows[-1])
    finally:
        server.kill()
        server.wait()


def median_pairs(rounds, one, other):
    """Runs both in turn, `rounds` times; medians of each and of the ratio."""
    ones, others = [], []
    for _ in range(rounds):
        ones.append(one())
        others.append(other())
    ratios = [a / b for a, b in zip(ones, others)]
    return statistics.median(ones), statistics.median(others), ratios
