"""The programs from outside this project that run on the software device, and their options."""

import shutil
from pathlib import Path

from programs import Program

# A line of perftest's table: bytes, iterations, and at least two figures.
PERFTEST_ROW = r"^ *\d+ +\d+ +[0-9.]+ +[0-9.]+"
LARGEST_ROW = r"^ *8388608 +\d+ +[0-9.]+ +[0-9.]+"


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
    seconds: for each size perftest measures the CPU's clock for 0.2 s, of latency at both ends.
    Where both ends do that, a few sizes stand for all; those up to 8 bytes are copied in another way."""
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
            perftest(f"{tool} -d soft1 -c UC -q 8 -n 500"),
        ]
    programs.append(perftest("ib_write_bw -d soft0 -c UC -a -n 100", LARGEST_ROW))
    programs += [perftest(f"ib_send_bw -d soft0 -c UC -s {size} -n 100") for size in (8, 4096)]
    programs.append(perftest("ib_send_bw -d soft0 -c UC -s 8388608 -n 100", LARGEST_ROW))
    for tool in ("ib_write_lat", "ib_send_lat"):
        programs.append(perftest(f"{tool} -d soft0 -c UC -n 1000"))
    for tool in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_write_lat", "ib_read_lat",
                 "ib_send_lat", "ib_atomic_lat"):
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
        programs.append(perftest(f"{tool} -d soft0 -s 8 -n 1000"))
        programs += [perftest(f"{tool} -d soft1 -s {size} -n 50") for size in (4096, 65536)]
        programs.append(perftest(f"{tool} -d soft1 -s 8388608 -n 50", LARGEST_ROW))
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
    return Program(tuple(server.split()), shows, client=tuple(client.split()), listens=listens, stays=stays,
                   short=short,
                   skip=skip)


def rdma_cm_programs() -> list[Program]:
    """The programs that come with librdmacm, and perftest over it."""
    here = "127.0.0.1"
    programs = [
        pair(f"rping -s -a {here} -p {{port}} -C 50 -V", f"rping -c -a {here} -p {{port}} -C 50 -v -V", "rdma-ping-49:",
             short=True),
        pair("rping -s -a ::1 -p {port} -C 50", "rping -c -a ::1 -p {port} -C 50 -v", "rdma-ping-49:"),
        pair("rping -s -a 0.0.0.0 -p {port} -C 5 -S 60000",
             f"rping -c -a 127.0.0.2 -I {here} -p {{port}} -C 5 -v -S 60000",
             "rdma-ping-4:"),
        pair("rdma_server -p {port}", f"rdma_client -s {here} -p {{port}}", "end 0", short=True),
        pair("rdma_xserver -p {port}", f"rdma_xclient -s {here} -p {{port}}", "end 0"),
        pair("ucmatose -p {port} -c 10 -C 20", f"ucmatose -p {{port}} -c 10 -C 20 -s {here}", "return status 0"),
        pair("ucmatose -p {port} -c 200 -C 1 -m", f"ucmatose -p {{port}} -c 200 -C 1 -m -s {here}", "return status 0"),
        pair("udaddy -c 4", f"udaddy -c 4 -s {here}", "return status 0", listens="rdma:7174", short=True),
        pair("rstream -p {port} -S 65536 -I 10 -C 10", f"rstream -p {{port}} -S 65536 -I 10 -C 10 -s {here}",
             "custom +64k"),
        pair("rstream -p {port} -S 4096 -I 10 -C 10 -T v", f"rstream -p {{port}} -S 4096 -I 10 -C 10 -T v -s {here}",
             "custom +4k"),
        pair("rstream -p {port} -S 1000 -I 10 -C 10 -T r", f"rstream -p {{port}} -S 1000 -I 10 -C 10 -T r -s {here}",
             "custom +1000"),
        pair("riostream -p {port} -S 65536 -I 10 -C 10", f"riostream -p {{port}} -S 65536 -I 10 -C 10 -s {here}",
             "custom +64k"),
        pair("rcopy -p {port}", f"rcopy /etc/os-release {here}:copy -p {{port}}", "bytes in", stays=True),
        pair("cmtime -p {port} -c 50", f"cmtime -p {{port}} -c 50 -s {here}", r"disconnect +: +\d", stays=True),
        pair("udpong -p {port}", f"udpong -p {{port}} -s {here}", "latency", listens="tcp",
             skip="its address handles have no GRH, which RoCE wants"),
        # Groups of their own: other programs of this host may be in those that have names.
        pair("mckey -m {group}", "mckey -m {group} -s", "return status 0", listens="group"),
        pair("mckey -m {group6} -b ::1 -c 2 -C 50", "mckey -m {group6} -b ::1 -c 2 -C 50 -s", "return status 0",
             listens="group"),
    ]
    for line in ("ib_write_bw -n 500", "ib_write_lat -n 500", "ib_read_bw -n 500 -q 4", "ib_read_lat -n 500",
                 "ib_send_bw -n 500",
                 "ib_send_lat -n 500", "ib_atomic_bw -n 500", "ib_send_bw -n 500 -c UD"):
        programs.append(pair(f"{line} -R -p {{port}}", f"{line} -R -p {{port}} {here}", PERFTEST_ROW))
    return programs


def library_programs() -> list[Program]:
    """Libraries above verbs, by the programs that come with them."""
    here = "127.0.0.1"
    fabric_row = r"^4k +\d+ +=\d+"
    programs = [
        pair(f"fi_pingpong -p {provider} -e {kind} -I 20 -B {{port}}",
             f"fi_pingpong -p {provider} -e {kind} -I 20 -P {{port}} {here}",
             fabric_row, listens="tcp")
        for provider, kind in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm"), ("verbs", "dgram"))]
    for verb in ("write", "read"):
        job = "--ioengine=rdma --port={port} --bs=64k --size=4m --iodepth=4 --thread"
        programs.append(pair(f"fio --name=server --filename=. --rw=read {job}",
                             f"fio --name=client --rw=write {job} --verb={verb} --hostname={here}", "err= 0"))
    # fio asks for no retry where no receive is posted, and waits for ever when that is answered: all of them are there
    # first.
    job = "--ioengine=rdma --port={port} --bs=64k --size=4m --thread"
    programs.append(pair(f"fio --name=server --filename=. --rw=read --iodepth=64 {job}",
                         f"timeout 60 fio --name=client --rw=write --iodepth=4 {job} --verb=send --hostname={here}",
                         "err= 0"))
    for test in ("rc_lat", "rc_bw", "rc_rdma_write_bw", "rc_rdma_read_lat", "rc_fetch_add_mr"):
        programs.append(pair("qperf -lp {port}", f"qperf -lp {{port}} -t 1 -cm1 {here} {test}",
                             r"(latency|bw|msg_rate) +=",
                             listens="tcp", stays=True))
    # Of Open MPI's ranks each is an end; they start each other.
    missing = "" if shutil.which("NPopenmpi") else "NPopenmpi is not installed"
    for transports in ("all", "ib,self"):
        line = f"env UCX_TLS={transports} mpirun --allow-run-as-root --oversubscribe -np 2 --mca pml ucx " \
               "NPopenmpi -u 4096 -n 10 -o /dev/null"
        programs.append(Program(tuple(line.split()), r"^ *\d+: +4096 bytes +\d+ times -->", pair=False, short=False,
                                skip=missing))
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
    programs.append(pair(f"{cm} io_demo -p {{port}}", f"{cm} io_demo -p {{port}} -i 50 -d 4096 {here}",
                         "exit with status 'OK'",
                         stays=True))
    for transports in ("all", "ib"):
        for test in ("tag_lat", "tag_bw", "ucp_put_bw", "ucp_get", "ucp_am_lat", "stream_bw", "ucp_add"):
            line = f"env UCX_TLS={transports} ucx_perftest -p {{port}} -n 500 -w 10 -t {test}"
            programs.append(pair(line, f"{line} {here}", "Final:", listens="tcp"))
    return programs


def infiniband_programs() -> list[Program]:
    """What finds its peer by LID, on devices whose link layer is InfiniBand."""
    env = "env SOFTNIC=ib0:link_layer=infiniband;ib1:link_layer=infiniband"
    programs = [pingpong(f"{env} ibv_{it}") for it in ("rc_pingpong -d ib0", "uc_pingpong -d ib1 -e",
                                                       "ud_pingpong -d ib0", "srq_pingpong -d ib0 -q 4")]
    programs += [perftest(f"{env} {it}")
                 for it in ("ib_write_bw -d ib0 -n 500", "ib_read_lat -d ib1 -n 500", "ib_send_bw -d ib0 -c UD -n 500")]
    for test in ("rc_lat", "rc_bw", "uc_bw", "ud_lat", "rc_rdma_read_bw"):
        programs.append(pair(f"{env} qperf -lp {{port}}", f"{env} qperf -lp {{port}} -t 1 127.0.0.1 {test}",
                             r"(latency|bw|msg_rate) +=",
                             listens="tcp", stays=True))
    return programs


def two_port_programs() -> list[Program]:
    """On the second port of a device. Its address is behind those of all first ports."""
    env = "env SOFTNIC=soft0:ports=2;soft1"
    programs = [Program((*env.split(), "ibv_devinfo", "-d", "soft0"),
                        r"(?s)phys_port_cnt:\s+2\n.*port:\s+2\n\s+state:\s+PORT_ACTIVE", pair=False)]
    programs += [pingpong(f"{env} ibv_{it}")
                 for it in ("rc_pingpong -d soft0 -i 2 -g 2", "uc_pingpong -d soft0 -i 2 -g 1",
                            "ud_pingpong -d soft0 -i 2 -g 2",
                                                        "srq_pingpong -d soft0 -i 2 -g 2 -q 4")]
    programs += [perftest(f"{env} {it}")
                 for it in ("ib_write_bw -d soft0 -i 2 -n 500", "ib_read_lat -d soft0 -i 2 -n 500",
                            "ib_send_bw -d soft0 -i 2 -c UD -n 500",
                                                    "ib_send_lat -d soft0 -i 2 -e -n 300",
                                                    "ib_write_bw -d soft0 -O -q 2 -n 500")]
    programs += [pair(f"{env} rping -s -a 0.0.0.0 -p {{port}} -C 50",
                      f"{env} rping -c -a 127.0.0.3 -p {{port}} -C 50 -v", "rdma-ping-49:"),
                 pair(f"{env} UCX_NET_DEVICES=soft0:2 ucx_perftest -p {{port}} -n 500 -w 10 -t tag_lat",
                      f"{env} UCX_NET_DEVICES=soft0:2 ucx_perftest -p {{port}} -n 500 -w 10 -t tag_lat 127.0.0.1",
                      "Final:", listens="tcp")]
    return programs
