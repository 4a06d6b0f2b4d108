#!/usr/bin/env python3
"""rdma_cm on the software device: programs of librdmacm, unmodified, and what goes wrong.

Usage: rdma_cm_test.py LIBRARY [STANDIN]
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import programs

LIBRARY = pathlib.Path(sys.argv[1]).resolve()
# The device as a libibverbs.so.1, where it is built without sanitizers.
STANDIN = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
ROOT = pathlib.Path(__file__).resolve().parents[3]
LIMIT_S = 120


def softnic(*words):
    return [str(ROOT / "scripts" / "softnic"), *words]


class Server:
    """A program that listens at a port of rdma_cm."""

    def __init__(self, port, *words):
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(softnic(*words), env=environment(), stdout=self.log, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL)
        self.listens = programs.await_rdma_port(port, self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()

    def text(self):
        self.log.seek(0)
        return self.log.read()


def environment(**more):
    env = dict(os.environ, GDRPERF_BUILD=str(LIBRARY.parent), **more)
    env.pop("SOFTNIC", None)
    env["ASAN_OPTIONS"] = ":".join(["detect_leaks=0"] + [it for it in [env.get("ASAN_OPTIONS")] if it])
    return env


def run(*words):
    return subprocess.run(softnic(*words), env=environment(), capture_output=True, text=True, timeout=LIMIT_S,
                          check=False,
                          stdin=subprocess.DEVNULL)


@unittest.skipIf(shutil.which("rping") is None, "rping is not installed (rdmacm-utils)")
class Rping(unittest.TestCase):
    next_port = 30000 + os.getpid() % 2500  # conformance.py has those below

    def setUp(self):
        Rping.next_port += 1
        self.port = str(Rping.next_port)

    def went_well(self, done, server):
        said = done.stdout + done.stderr
        self.assertTrue(programs.went_well(done.args, done.returncode, said),
                        f"{done.returncode}: {said}{server.text()}")

    def ping(self, address, *more):
        with Server(self.port, "rping", "-s", "-a", address, "-p", self.port, "-C", "20", *more) as server:
            self.assertTrue(server.listens, server.text())
            done = run("rping", "-c", "-a", address, "-p", self.port, "-C", "20", "-v", *more)
            self.went_well(done, server)
            status = server.process.wait(LIMIT_S)
            self.assertTrue(programs.went_well(server.process.args, status, server.text()), server.text())
        self.assertEqual(done.stdout.count("ping data: rdma-ping-"), 20)

    def test_ping_over_the_loopback_address(self):
        self.ping("127.0.0.1", "-V", "-S", "4000")

    def test_ping_over_ipv6(self):
        self.ping("::1")

    def test_ping_between_two_devices(self):
        with Server(self.port, "rping", "-s", "-a", "127.0.0.2", "-p", self.port, "-C", "3") as server:
            done = run("rping", "-c", "-a", "127.0.0.2", "-I", "127.0.0.1", "-p", self.port, "-C", "3", "-v")
            self.went_well(done, server)
        self.assertEqual(done.stdout.count("ping data: rdma-ping-"), 3)

    @unittest.skipIf(STANDIN is None, "sanitized libraries are preloaded")
    @unittest.skipUnless(programs.takes_the_stand_in(), programs.OLD_PROGRAMS)
    def test_the_stand_in_is_found_by_its_name(self):
        env = environment(LD_LIBRARY_PATH=str(STANDIN.parent))
        words = ["rping", "-a", "127.0.0.1", "-p", self.port, "-C", "20"]
        with subprocess.Popen([*words, "-s"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as server:
            try:
                listens = programs.await_rdma_port(self.port, server)
                done = subprocess.run([*words, "-c", "-v"], env=env, capture_output=True, text=True, timeout=LIMIT_S,
                                      check=False)
                said = server.communicate(timeout=LIMIT_S)[0]
            finally:
                server.kill()
        self.assertTrue(listens, said)
        self.assertTrue(programs.went_well(words, done.returncode, done.stderr), done.stdout + done.stderr + said)
        self.assertEqual(done.stdout.count("ping data: rdma-ping-"), 20)

    def test_a_port_that_nobody_has_is_refused(self):
        done = run("rping", "-c", "-a", "127.0.0.1", "-p", self.port, "-C", "1")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout + done.stderr, "RDMA_CM_EVENT_REJECTED, error 8")

    def test_an_address_of_nobody_here_has_no_device(self):
        done = run("rping", "-c", "-a", "192.0.2.1", "-p", self.port, "-C", "1")
        self.assertNotEqual(done.returncode, 0)
        # With no route at all the call fails, else the event says it.
        self.assertRegex(done.stdout + done.stderr,
                         r"RDMA_CM_EVENT_ADDR_ERROR, error -19|rdma_resolve_addr: Network is unreachable")

    def test_a_taken_port_cannot_be_bound_again(self):
        with Server(self.port, "rping", "-s", "-a", "127.0.0.1", "-p", self.port) as server:
            self.assertTrue(server.listens, server.text())
            done = run("rping", "-s", "-a", "127.0.0.1", "-p", self.port)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stdout + done.stderr, "Address already in use")

    def test_a_killed_server_disconnects_the_client(self):
        with Server(self.port, "rping", "-s", "-a", "127.0.0.1", "-p", self.port) as server:
            client = subprocess.Popen(softnic("rping", "-c", "-a", "127.0.0.1", "-p", self.port, "-v"), text=True,
                                      env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            limit = threading.Timer(LIMIT_S, client.kill)
            limit.start()
            try:
                self.assertRegex(client.stdout.readline(), "rdma-ping-0")
                server.process.send_signal(signal.SIGKILL)
                output = client.communicate()[0]
            finally:
                limit.cancel()
                client.kill()
                client.wait()
        # A request that was under way may fail before rping looks at the event.
        self.assertRegex(output, "DISCONNECT EVENT|cq completion failed status 12")
        names = pathlib.Path("/proc/net/unix").read_text(encoding="ascii", errors="replace")
        self.assertFalse(re.search(rf"softnic-cm\d+\.[0-9a-f]+\.{self.port}\.", names),
                         "the killed server's port is left")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
