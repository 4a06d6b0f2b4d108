"""A program from outside this project, run on the software device, and how one run is judged: one process alone, or a
server and a client of one host."""

import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

# A machine that is busy with other things makes perftest very slow: both ends spin.
LIMIT_S = 240
LISTEN_S = 60
TAIL_LINES = 12
# What a busy machine does to a program, not the device: perftest gives up the CPU's clock, which it measures by
# regression; a server that has bound its port is kept from listening until the client's patience is over.
BUSY = (r"Correlation coefficient r\^2: [0-9.]+ <|"
        r"RDMA_CM_EVENT_REJECTED; error: 8\.|RDMA_CM_EVENT_UNREACHABLE; error: 1\.")
TRIES = 5
# After its last ping rping's thread of events may ask for one more event of the channel that main() has closed, and end
# the process as failed (mended in rdma-core 59).
RPING_AFTER_THE_END = "rdma_get_cm_event: Bad file descriptor"


def went_well(words: list[str], status: int, said: str) -> bool:
    """By its exit status. Of rping's pings the caller looks at what it printed."""
    late = "rping" in words and status == 255 and RPING_AFTER_THE_END in said and " failed" not in said
    return status == 0 or late


@dataclass(frozen=True)
class Program:
    """A command line, and what the output of the client (or of the only process) must show."""

    words: tuple[str, ...]  # of the server too; {port} in them is replaced
    shows: str
    pair: bool = True
    client: tuple[str, ...] = ()  # where it is not the server's with -p PORT 127.0.0.1
    listens: str = "tcp"  # or "rdma", a port of rdma_cm; "rdma:N", one that cannot be chosen; "group", of multicast
    stays: bool = False  # the server serves on
    short: bool = True  # among those of --short
    skip: str = ""  # why it cannot run here

    @property
    def name(self) -> str:
        return " ".join(self.client or self.words)

    @property
    def tool(self) -> str:
        return next(it for it in self.words if it != "env" and "=" not in it)


@dataclass
class Verdict:
    name: str
    outcome: str  # "passed", "skipped" or "FAILED"
    reason: str = ""


OLD_PROGRAMS = "the distribution's programs are of rdma-core 33 or older, the stand-in is one of 34 and later"


def takes_the_stand_in() -> bool:
    """Whether the distribution's programs find its private functions of libibverbs there."""
    program = shutil.which("ibv_devinfo")
    return program is not None and b"IBVERBS_PRIVATE_34" in Path(program).read_bytes()


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
    """Until some process has that port of rdma_cm on the software device. False: `process` ended before, or too
    late."""
    return await_name(rf"cm\d+\.[0-9a-f]+\.{port}\.", process)


def await_name(pattern: str, process: subprocess.Popen) -> bool:
    """Until a process of the software device has a socket with such a name."""
    limit = time.monotonic() + LISTEN_S
    while time.monotonic() < limit and process.poll() is None:
        names = Path("/proc/net/unix").read_text(encoding="ascii", errors="replace")
        if re.search(f"@gdrperf-softnic-{pattern}", names):
            return True
        time.sleep(0.01)
    return False


def tail(label: str, text: str) -> str:
    """The last lines, and before them what a program said of a busy machine: stderr comes before what it printed."""
    lines = text.splitlines()
    shown = [line for line in lines[:-TAIL_LINES] if re.search(BUSY, line)] + lines[-TAIL_LINES:]
    return "".join(f"    {label}: {line}\n" for line in shown)


class Runner:
    """Runs programs under scripts/softnic. `runner` is that script's words."""

    def __init__(self, runner: list[str], env: dict[str, str], first_port: int):
        self.runner = runner
        self.env = env
        self.port = first_port

    def run(self, program: Program) -> Verdict:
        if shutil.which(program.tool) is None:
            return Verdict(program.name, "skipped", f"{program.tool} is not installed")
        if program.skip:
            return Verdict(program.name, "skipped", program.skip)
        for _ in range(TRIES):
            reason = self.run_pair(program) if program.pair else self.run_alone(program)
            if not re.search(BUSY, reason):
                break
        return Verdict(program.name, "FAILED" if reason else "passed", reason)

    def client(self, words: list[str], shows: str) -> str:
        """Empty when all went well, else what did not."""
        try:
            done = subprocess.run(words, env=self.env, capture_output=True, text=True, errors="replace",
                                  timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return f"did not end within {LIMIT_S} s"
        output = done.stdout + done.stderr
        if not went_well(words, done.returncode, output):
            return f"exit status {done.returncode}\n{tail('client', output)}"
        if not re.search(shows, output, re.M):
            return f"its output lacks {shows}\n{tail('client', output)}"
        return ""

    def run_alone(self, program: Program) -> str:
        return self.client(self.runner + list(program.words), program.shows)

    def run_pair(self, program: Program) -> str:
        # A port of its own: the last connection may linger on the one before.
        self.port += 1

        values = {"{port}": str(self.port), "{group}": self.group(), "{group6}": f"ff0e::{self.port:x}"}

        def made(words: tuple[str, ...]) -> list[str]:
            return self.runner + [values.get(it, it.replace("{port}", str(self.port))) for it in words]

        server_words = made(program.words) + ([] if program.client else ["-p", str(self.port)])
        client_words = made(program.client) if program.client else server_words + ["127.0.0.1"]
        with tempfile.TemporaryFile("w+", errors="replace") as log, tempfile.TemporaryDirectory() as folder:
            server = subprocess.Popen(server_words, env=self.env, cwd=folder, stdout=log, stderr=subprocess.STDOUT,
                                      stdin=subprocess.DEVNULL)
            try:
                reason = self.against(server, client_words, program, log)
            finally:
                if server.poll() is None:
                    server.kill()
                server.wait()
            log.seek(0)
            return f"{reason}\n{tail('server', log.read())}".strip("\n") if reason else ""

    def group(self) -> str:
        """A multicast address that goes with the port."""
        return f"239.7.{self.port >> 8}.{self.port & 255}"

    def await_server(self, server: subprocess.Popen, program: Program) -> bool:
        if program.listens == "group":
            return await_name(f"mcast[0-9]+\\.[0-9a-f]{{28}}{self.port:04x}\\.", server)
        if program.listens.startswith("rdma"):
            return await_rdma_port(program.listens[5:] or self.port, server)
        limit = time.monotonic() + LISTEN_S
        while not listening(self.port):
            if server.poll() is not None or time.monotonic() > limit:
                return False
            time.sleep(0.01)
        return True

    def against(self, server: subprocess.Popen, words: list[str], program: Program, log: TextIO) -> str:
        if not self.await_server(server, program):
            return "the server does not listen"
        reason = self.client(words, program.shows)
        if reason or program.stays:
            return reason
        try:
            status = server.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"the server did not end within {LIMIT_S} s"
        log.seek(0)
        return "" if went_well(list(program.words), status, log.read()) else f"the server's exit status is {status}"
