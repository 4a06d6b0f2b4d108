"""Programs from outside this project, run on the software device: which, with what options, and how
one run is judged. One process alone, or a server and a client of one host."""

import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# A machine that is busy with other things makes perftest very slow: both ends spin.
LIMIT_S = 240
LISTEN_S = 60
TAIL_LINES = 12

# A line of perftest's table: bytes, iterations, and at least two figures.
PERFTEST_ROW = r"^ *\d+ +\d+ +[0-9.]+ +[0-9.]+"
LARGEST_ROW = r"^ *8388608 +\d+ +[0-9.]+ +[0-9.]+"


@dataclass(frozen=True)
class Program:
    """A command line, and what the output of the client (or of the only process) must show."""

    words: tuple[str, ...]
    shows: str
    pair: bool = True

    @property
    def name(self) -> str:
        return " ".join(self.words)


@dataclass
class Verdict:
    name: str
    outcome: str  # "passed", "skipped" or "FAILED"
    reason: str = ""


def perftest(line: str, shows: str = PERFTEST_ROW) -> Program:
    return Program(tuple(line.split()), shows)


def pingpong(line: str) -> Program:
    return Program(tuple(line.split()), r"\d+ iters in")


def short_list(programs: list[Program]) -> list[Program]:
    """Each tool once with what is cheap, for builds in which everything is slow."""
    chosen = {}
    for program in programs:
        key = (program.words[0], "-e" in program.words)
        if "-a" not in program.words:
            chosen.setdefault(key, program)
    return list(chosen.values())


def perftest_programs() -> list[Program]:
    """Debian's perftest: each option with each tool that knows it. Runs of all sizes (-a) take
    seconds: for each size perftest measures the CPU's clock for 0.2 s."""
    programs = []
    for tool in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
        programs += [
            perftest(f"{tool} -d soft0 -n 1000"),
            perftest(f"{tool} -d soft1 -s 8 -N -n 20000"),
            perftest(f"{tool} -d soft0 -a -n 100", LARGEST_ROW),
            perftest(f"{tool} -d soft0 -b -n 500"),
            perftest(f"{tool} -d soft0 -q 8 -n 500"),
            perftest(f"{tool} -d soft0 -l 16 -n 1600 -s 1024"),
        ]
    programs += [
        perftest("ib_atomic_bw -d soft0 -n 1000"),
        perftest("ib_atomic_bw -d soft0 -A CMP_AND_SWAP -n 1000"),
        perftest("ib_atomic_bw -d soft0 -b -n 1000"),
        perftest("ib_atomic_bw -d soft0 -q 8 -n 500"),
        perftest("ib_write_bw -d soft0 -I 64 -s 64 -n 1000"),
        perftest("ib_send_bw -d soft0 -I 64 -s 64 -n 1000"),
        perftest("ib_send_bw -d soft0 --use-srq -n 1000"),
        perftest("ib_send_bw -d soft0 --use-srq -q 8 -n 500"),
        perftest("ib_write_lat -d soft0 -I 64 -s 64 -n 1000"),
        perftest("ib_send_lat -d soft0 -I 64 -s 64 -n 1000"),
        perftest("ib_send_lat -d soft0 --use-srq -n 1000"),
        perftest("ib_atomic_lat -d soft0 -n 1000"),
        perftest("ib_atomic_lat -d soft0 -e -n 300"),
    ]
    for tool in ("ib_write_bw", "ib_send_bw"):
        programs += [
            perftest(f"{tool} -d soft0 -c UC -n 1000"),
            perftest(f"{tool} -d soft0 -c UC -a -n 100", LARGEST_ROW),
            perftest(f"{tool} -d soft1 -c UC -q 8 -n 500"),
        ]
    for tool in ("ib_write_lat", "ib_send_lat"):
        programs.append(perftest(f"{tool} -d soft0 -c UC -n 1000"))
    programs += [
        perftest("ib_send_bw -d soft0 -c UD -n 1000"),
        perftest("ib_send_bw -d soft0 -c UD -b -n 500"),
        perftest("ib_send_bw -d soft1 -c UD -q 8 -n 500"),
        perftest("ib_send_bw -d soft0 -c UD --use-srq -n 1000"),
        perftest("ib_send_lat -d soft0 -c UD -n 1000"),
        perftest("ib_send_lat -d soft0 -c UD -e -n 300"),
    ]
    for tool in ("ib_write_lat", "ib_read_lat", "ib_send_lat"):
        programs += [
            perftest(f"{tool} -d soft0 -s 8 -n 1000"),
            perftest(f"{tool} -d soft1 -a -n 50", LARGEST_ROW),
        ]
    # A write raises no event where it arrives, so perftest has none for it.
    for tool in ("ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_read_lat", "ib_send_lat"):
        programs.append(perftest(f"{tool} -d soft0 -e -n 300"))
    return programs


def example_programs() -> list[Program]:
    """The programs that come with libibverbs."""
    alone = [
        (("ibv_devices",), r"soft1\s+[0-9a-f]{16}"),
        (("ibv_devinfo", "-v", "-d", "soft0"), r"GID\[ +2\]:.*::ffff:127\.0\.0\.1, RoCE v2"),
        (("ibv_devinfo", "-d", "soft1"), "PORT_ACTIVE"),
        (("ibv_devinfo", "-l"), "HCAs? found"),
    ]
    programs = [Program(words, shows, pair=False) for words, shows in alone]
    # Not -e with -t: it takes an event without a completion for an error, which the specification
    # allows when a completion came after the queue was armed and was polled all the same.
    options = ("", "-e", "-c", "-N", "-t", "-N -t -c", "-s 100000 -n 50")
    programs += [pingpong(f"ibv_rc_pingpong -d soft0 -g 1 {it}") for it in options]
    programs += [pingpong(f"ibv_uc_pingpong -d soft0 -g 1 {it}") for it in ("", "-e", "-c")]
    programs += [pingpong(f"ibv_ud_pingpong -d soft0 -g 2 {it}") for it in ("", "-e", "-c")]
    programs += [pingpong(f"ibv_srq_pingpong -d soft0 -g 2 -q 4 {it}") for it in ("", "-e", "-c")]
    return programs


def listening(port: int) -> bool:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            text = Path(table).read_text(encoding="ascii")
        except OSError:
            continue
        if re.search(rf"^ *\d+: [0-9A-F]+:{port:04X} [0-9A-F]+:0000 0A", text, re.M):
            return True
    return False


def await_rdma_port(port, process: subprocess.Popen) -> bool:
    """Until some process has that port of rdma_cm on the software device. False: `process` ended before, or too late."""
    limit = time.monotonic() + LISTEN_S
    while time.monotonic() < limit and process.poll() is None:
        names = Path("/proc/net/unix").read_text(encoding="ascii", errors="replace")
        if re.search(rf"@gdrperf-softnic-cm\d+\.[0-9a-f]+\.{port}\.", names):
            return True
        time.sleep(0.01)
    return False


def tail(label: str, text: str) -> str:
    return "".join(f"    {label}: {line}\n" for line in text.splitlines()[-TAIL_LINES:])


class Runner:
    """Runs programs under scripts/softnic. `runner` is that script's words."""

    def __init__(self, runner: list[str], env: dict[str, str], first_port: int):
        self.runner = runner
        self.env = env
        self.port = first_port

    def run(self, program: Program) -> Verdict:
        if shutil.which(program.words[0]) is None:
            return Verdict(program.name, "skipped", f"{program.words[0]} is not installed")
        reason = self.run_pair(program) if program.pair else self.run_alone(program)
        return Verdict(program.name, "FAILED" if reason else "passed", reason)

    def client(self, words: list[str], shows: str) -> str:
        """Empty when all went well, else what did not."""
        try:
            done = subprocess.run(words, env=self.env, capture_output=True, text=True, errors="replace",
                                  timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return f"did not end within {LIMIT_S} s"
        output = done.stdout + done.stderr
        if done.returncode != 0:
            return f"exit status {done.returncode}\n{tail('client', output)}"
        if not re.search(shows, output, re.M):
            return f"its output lacks {shows}\n{tail('client', output)}"
        return ""

    def run_alone(self, program: Program) -> str:
        return self.client(self.runner + list(program.words), program.shows)

    def run_pair(self, program: Program) -> str:
        # A port of its own: the last connection may linger on the one before.
        self.port += 1
        words = self.runner + list(program.words) + ["-p", str(self.port)]
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            server = subprocess.Popen(words, env=self.env, stdout=log, stderr=subprocess.STDOUT,
                                      stdin=subprocess.DEVNULL)
            try:
                reason = self.against(server, words, program)
            finally:
                if server.poll() is None:
                    server.kill()
                server.wait()
            log.seek(0)
            return f"{reason}\n{tail('server', log.read())}".strip("\n") if reason else ""

    def against(self, server: subprocess.Popen, words: list[str], program: Program) -> str:
        limit = time.monotonic() + LISTEN_S
        while not listening(self.port):
            if server.poll() is not None or time.monotonic() > limit:
                return "the server does not listen"
            time.sleep(0.01)
        reason = self.client(words + ["127.0.0.1"], program.shows)
        if reason:
            return reason
        try:
            status = server.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"the server did not end within {LIMIT_S} s"
        return f"the server's exit status is {status}" if status != 0 else ""
