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
# What a busy machine does to a program, not the device: perftest gives up the CPU's clock, which it measures by regression;
# a server that has bound its port is kept from listening until the client's patience is over.
BUSY = r"Correlation coefficient r\^2: [0-9.]+ <|RDMA_CM_EVENT_REJECTED; error: 8\.|RDMA_CM_EVENT_UNREACHABLE; error: 1\."
TRIES = 5

# A line of perftest's table: bytes, iterations, and at least two figures.
PERFTEST_ROW = r"^ *\d+ +\d+ +[0-9.]+ +[0-9.]+"
LARGEST_ROW = r"^ *8388608 +\d+ +[0-9.]+ +[0-9.]+"


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


def perftest(line: str, shows: str = PERFTEST_ROW) -> Program:
    return Program(tuple(line.split()), shows)


def pingpong(line: str) -> Program:
    return Program(tuple(line.split()), r"\d+ iters in")


def short_list(programs: list[Program]) -> list[Program]:
    """Each tool once with what is cheap, for builds in which everything is slow."""
    chosen = {}
    for program in programs:
        key = (program.tool, "-e" in program.words)
        if program.short and not (program.tool.startswith("ib_") and "-a" in program.words):
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
    for tool in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_write_lat", "ib_read_lat", "ib_send_lat", "ib_atomic_lat"):
        programs.append(perftest(f"{tool} -d soft0 -c XRC -n 500"))
    programs += [
        perftest("ib_send_bw -d soft0 -c XRC -b -q 4 -n 500"),
        perftest("ib_send_bw -d soft0 -c XRC -e -n 300"),
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
    programs += [Program(tuple(f"ibv_xsrq_pingpong -d soft0 -g 2 {it}".split()), "^success") for it in ("", "-e")]
    return programs


def pair(server: str, client: str, shows: str, listens: str = "rdma", stays: bool = False, short: bool = False,
         skip: str = "") -> Program:
    """Two command lines."""
    return Program(tuple(server.split()), shows, client=tuple(client.split()), listens=listens, stays=stays, short=short,
                   skip=skip)


def rdma_cm_programs() -> list[Program]:
    """The programs that come with librdmacm, and perftest over it."""
    here = "127.0.0.1"
    programs = [
        pair(f"rping -s -a {here} -p {{port}} -C 50 -V", f"rping -c -a {here} -p {{port}} -C 50 -v -V", "rdma-ping-49:", short=True),
        pair("rping -s -a ::1 -p {port} -C 50", "rping -c -a ::1 -p {port} -C 50 -v", "rdma-ping-49:"),
        pair("rping -s -a 0.0.0.0 -p {port} -C 5 -S 60000", f"rping -c -a 127.0.0.2 -I {here} -p {{port}} -C 5 -v -S 60000",
             "rdma-ping-4:"),
        pair("rdma_server -p {port}", f"rdma_client -s {here} -p {{port}}", "end 0", short=True),
        pair("rdma_xserver -p {port}", f"rdma_xclient -s {here} -p {{port}}", "end 0"),
        pair("ucmatose -p {port} -c 10 -C 20", f"ucmatose -p {{port}} -c 10 -C 20 -s {here}", "return status 0"),
        pair("ucmatose -p {port} -c 200 -C 1 -m", f"ucmatose -p {{port}} -c 200 -C 1 -m -s {here}", "return status 0"),
        pair("udaddy -c 4", f"udaddy -c 4 -s {here}", "return status 0", listens="rdma:7174", short=True),
        pair("rstream -p {port} -S 65536 -I 10 -C 10", f"rstream -p {{port}} -S 65536 -I 10 -C 10 -s {here}", "custom +64k"),
        pair("rstream -p {port} -S 4096 -I 10 -C 10 -T v", f"rstream -p {{port}} -S 4096 -I 10 -C 10 -T v -s {here}",
             "custom +4k"),
        pair("rstream -p {port} -S 1000 -I 10 -C 10 -T r", f"rstream -p {{port}} -S 1000 -I 10 -C 10 -T r -s {here}", "custom +1000"),
        pair("riostream -p {port} -S 65536 -I 10 -C 10", f"riostream -p {{port}} -S 65536 -I 10 -C 10 -s {here}", "custom +64k"),
        pair("rcopy -p {port}", f"rcopy /etc/os-release {here}:copy -p {{port}}", "bytes in", stays=True),
        pair("cmtime -p {port} -c 50", f"cmtime -p {{port}} -c 50 -s {here}", r"disconnect +: +\d", stays=True),
        pair("udpong -p {port}", f"udpong -p {{port}} -s {here}", "latency", listens="tcp",
             skip="its address handles have no GRH, which RoCE wants"),
        # Groups of their own: other programs of this host may be in those that have names.
        pair("mckey -m {group}", "mckey -m {group} -s", "return status 0", listens="group"),
        pair("mckey -m {group6} -b ::1 -c 2 -C 50", "mckey -m {group6} -b ::1 -c 2 -C 50 -s", "return status 0", listens="group"),
    ]
    for line in ("ib_write_bw -n 500", "ib_write_lat -n 500", "ib_read_bw -n 500 -q 4", "ib_read_lat -n 500", "ib_send_bw -n 500",
                 "ib_send_lat -n 500", "ib_atomic_bw -n 500", "ib_send_bw -n 500 -c UD"):
        programs.append(pair(f"{line} -R -p {{port}}", f"{line} -R -p {{port}} {here}", PERFTEST_ROW))
    return programs


def library_programs() -> list[Program]:
    """Libraries above verbs, by the programs that come with them."""
    here = "127.0.0.1"
    fabric_row = r"^4k +\d+ +=\d+"
    programs = [
        pair(f"fi_pingpong -p {provider} -e {kind} -I 20 -B {{port}}", f"fi_pingpong -p {provider} -e {kind} -I 20 -P {{port}} {here}",
             fabric_row, listens="tcp")
        for provider, kind in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm"), ("verbs", "dgram"))]
    for verb in ("write", "read"):
        job = "--ioengine=rdma --port={port} --bs=64k --size=4m --iodepth=4 --thread"
        programs.append(pair(f"fio --name=server --filename=. --rw=read {job}",
                             f"fio --name=client --rw=write {job} --verb={verb} --hostname={here}", "err= 0"))
    # fio asks for no retry where no receive is posted, and waits for ever when that is answered: all of them are there first.
    job = "--ioengine=rdma --port={port} --bs=64k --size=4m --thread"
    programs.append(pair(f"fio --name=server --filename=. --rw=read --iodepth=64 {job}",
                         f"timeout 60 fio --name=client --rw=write --iodepth=4 {job} --verb=send --hostname={here}", "err= 0"))
    for test in ("rc_lat", "rc_bw", "rc_rdma_write_bw", "rc_rdma_read_lat", "rc_fetch_add_mr"):
        programs.append(pair("qperf -lp {port}", f"qperf -lp {{port}} -t 1 -cm1 {here} {test}", r"(latency|bw|msg_rate) +=",
                             listens="tcp", stays=True))
    # Of Open MPI's ranks each is an end; they start each other.
    missing = "" if shutil.which("NPopenmpi") else "NPopenmpi is not installed"
    for transports in ("all", "ib,self"):
        line = f"env UCX_TLS={transports} mpirun --allow-run-as-root --oversubscribe -np 2 --mca pml ucx NPopenmpi -u 4096 -n 10 -o /dev/null"
        programs.append(Program(tuple(line.split()), r"^ *\d+: +4096 bytes +\d+ times -->", pair=False, short=False, skip=missing))
    missing = "" if Path("/usr/lib/python3/dist-packages/mpi4py").is_dir() else "python3-mpi4py is not installed"
    line = ("env UCX_TLS=ib,self mpirun --allow-run-as-root --oversubscribe -np 2 --mca pml ucx "
            "/usr/bin/python3 -m mpi4py.bench ringtest")
    programs.append(Program(tuple(line.split()), r"time for \d+ loops", pair=False, short=False, skip=missing))
    # rsockets in place of TCP, beside what stands in front of libc already.
    missing = "" if shutil.which("iperf") else "iperf is not installed"
    iperf = "LD_PRELOAD=$LD_PRELOAD:/usr/lib/$(uname -m)-linux-gnu/rsocket/librspreload.so exec iperf -p {port}"
    programs.append(Program(("sh", "-c", f"{iperf} -s -P 1 -B {here}"), r"bits/sec$", short=False, skip=missing,
                            listens="rdma", client=("sh", "-c", f"{iperf} -t 1 -c {here}")))
    programs.append(Program(("ibstat", "soft0"), "Link layer: Ethernet", pair=False))
    programs += [Program(("softnic_rpma",), "bytes written and read back", pair=False, short=False),
                 Program(("softnic_gloo",), "sums right", pair=False, short=False)]
    cm = "env UCX_SOCKADDR_TLS_PRIORITY=rdmacm"
    programs.append(pair(f"{cm} io_demo -p {{port}}", f"{cm} io_demo -p {{port}} -i 50 -d 4096 {here}", "exit with status 'OK'",
                         stays=True))
    for transports in ("all", "ib"):
        for test in ("tag_lat", "tag_bw", "ucp_put_bw", "ucp_get", "ucp_am_lat", "stream_bw", "ucp_add"):
            line = f"env UCX_TLS={transports} ucx_perftest -p {{port}} -n 500 -w 10 -t {test}"
            programs.append(pair(line, f"{line} {here}", "Final:", listens="tcp"))
    return programs


def infiniband_programs() -> list[Program]:
    """What finds its peer by LID, on devices whose link layer is InfiniBand."""
    env = "env SOFTNIC=ib0:link_layer=infiniband;ib1:link_layer=infiniband"
    programs = [pingpong(f"{env} ibv_{it}") for it in ("rc_pingpong -d ib0", "uc_pingpong -d ib1 -e", "ud_pingpong -d ib0", "srq_pingpong -d ib0 -q 4")]
    programs += [perftest(f"{env} {it}") for it in ("ib_write_bw -d ib0 -n 500", "ib_read_lat -d ib1 -n 500", "ib_send_bw -d ib0 -c UD -n 500")]
    for test in ("rc_lat", "rc_bw", "uc_bw", "ud_lat", "rc_rdma_read_bw"):
        programs.append(pair(f"{env} qperf -lp {{port}}", f"{env} qperf -lp {{port}} -t 1 127.0.0.1 {test}", r"(latency|bw|msg_rate) +=",
                             listens="tcp", stays=True))
    return programs


def two_port_programs() -> list[Program]:
    """On the second port of a device. Its address is behind those of all first ports."""
    env = "env SOFTNIC=soft0:ports=2;soft1"
    programs = [Program((*env.split(), "ibv_devinfo", "-d", "soft0"), r"(?s)phys_port_cnt:\s+2\n.*port:\s+2\n\s+state:\s+PORT_ACTIVE", pair=False)]
    programs += [pingpong(f"{env} ibv_{it}") for it in ("rc_pingpong -d soft0 -i 2 -g 2", "uc_pingpong -d soft0 -i 2 -g 1", "ud_pingpong -d soft0 -i 2 -g 2",
                                                        "srq_pingpong -d soft0 -i 2 -g 2 -q 4")]
    programs += [perftest(f"{env} {it}") for it in ("ib_write_bw -d soft0 -i 2 -n 500", "ib_read_lat -d soft0 -i 2 -n 500", "ib_send_bw -d soft0 -i 2 -c UD -n 500",
                                                    "ib_send_lat -d soft0 -i 2 -e -n 300", "ib_write_bw -d soft0 -O -q 2 -n 500")]
    programs += [pair(f"{env} rping -s -a 0.0.0.0 -p {{port}} -C 50", f"{env} rping -c -a 127.0.0.3 -p {{port}} -C 50 -v", "rdma-ping-49:"),
                 pair(f"{env} UCX_NET_DEVICES=soft0:2 ucx_perftest -p {{port}} -n 500 -w 10 -t tag_lat",
                      f"{env} UCX_NET_DEVICES=soft0:2 ucx_perftest -p {{port}} -n 500 -w 10 -t tag_lat 127.0.0.1", "Final:", listens="tcp")]
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

        values = {"{port}": str(self.port), "{group}": self.group(), "{group6}": f"ff0e::{self.port:x}"}

        def made(words: tuple[str, ...]) -> list[str]:
            return self.runner + [values.get(it, it.replace("{port}", str(self.port))) for it in words]

        server_words = made(program.words) + ([] if program.client else ["-p", str(self.port)])
        client_words = made(program.client) if program.client else server_words + ["127.0.0.1"]
        with tempfile.TemporaryFile("w+", errors="replace") as log, tempfile.TemporaryDirectory() as folder:
            server = subprocess.Popen(server_words, env=self.env, cwd=folder, stdout=log, stderr=subprocess.STDOUT,
                                      stdin=subprocess.DEVNULL)
            try:
                reason = self.against(server, client_words, program)
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

    def against(self, server: subprocess.Popen, words: list[str], program: Program) -> str:
        if not self.await_server(server, program):
            return "the server does not listen"
        reason = self.client(words, program.shows)
        if reason or program.stays:
            return reason
        try:
            status = server.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"the server did not end within {LIMIT_S} s"
        return f"the server's exit status is {status}" if status != 0 else ""
