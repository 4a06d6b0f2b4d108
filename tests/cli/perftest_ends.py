"""Debian's own perftest over the software device: both ends of one of its tests."""

import functools
import pathlib
import shutil
import subprocess
import time
import unittest

import support

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRIES = 5


class GaveUp(Exception):
    """It measures the CPU's clock by a regression, which a busy machine spoils; then it ends without its figures."""


def patient(function):
    """Calls `function` again after GaveUp."""
    @functools.wraps(function)
    def repeated(*args, **options):
        for _ in range(TRIES - 1):
            try:
                return function(*args, **options)
            except GaveUp:
                pass
        return function(*args, **options)
    return repeated


def look(said):
    """What perftest said; throws GaveUp."""
    if "Correlation coefficient r^2" in said:
        raise GaveUp(said)
    return said


def installed(case):
    """For tests that run it."""
    here = unittest.skipUnless(shutil.which("ib_write_bw"), "perftest is not installed")
    return here(support.not_emulated("perftest is this machine's and cannot load the device")(case))


def environment():
    """What scripts/softnic sets, for programs of the system's."""
    build = pathlib.Path(support.BINARY).resolve().parents[2]
    return support.environment({"GDRPERF_BUILD": str(build)})


def listens(port):
    """Whether a TCP socket of this host listens at `port`; connecting would end perftest's server."""
    wanted = f":{port:04X}"
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(name).read_text(encoding="ascii").splitlines()[1:]:
            words = line.split()
            if words[1].endswith(wanted) and words[3] == "0A":
                return True
    return False


def start(program, *args, **options):
    command = [*support.WITH_THE_TEST, str(ROOT / "scripts/softnic"), program, "-d", "soft0", *map(str, args)]
    return subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **options)


def wait_listening(process, port):
    deadline = time.monotonic() + support.PATIENCE_S
    while not listens(port):
        if process.poll() is not None:
            raise AssertionError(f"perftest's server ended with {process.returncode}:\n{process.stdout.read()}")
        assert time.monotonic() < deadline, "perftest's server does not listen"
        time.sleep(0.02)


def serve(case, program):
    """Its server, which listens, and the port; killed when the test `case` is over."""
    port = support.free_port()
    server = start(program, "-p", port)
    case.addCleanup(server.stdout.close)
    case.addCleanup(server.wait)
    case.addCleanup(server.kill)
    wait_listening(server, port)
    return server, port


@patient
def both(program, *args, cwd=None):
    """The client's output, after both ends have ended well."""
    port = support.free_port()
    server = start(program, "-p", port, *args, cwd=cwd)
    try:
        wait_listening(server, port)
        client = start(program, "-p", port, *args, "127.0.0.1", cwd=cwd)
        text = look(client.communicate(timeout=support.PATIENCE_S)[0])
        assert client.returncode == 0, text
        server.communicate(timeout=support.PATIENCE_S)
        return text
    finally:
        for each in (server, locals().get("client")):
            if each and each.poll() is None:
                each.kill()
                each.wait()
            if each:
                each.stdout.close()
