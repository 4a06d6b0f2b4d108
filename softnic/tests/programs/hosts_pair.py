"""What the tests of the software device between two network namespaces share: a server in one, a client in the
other."""

import ipaddress
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import namespaces
import programs

LIBRARY, GDRPERF = sys.argv[1:3]
LIMIT_S = 100
SERVER = namespaces.ADDRESSES[0]
# Of perftest and the pingpongs, and of gdrperf.
PORT, SERVE_PORT = 18515, 18601
SHORT = os.environ.get("GDRPERF_TESTS") == "short"


def cases(every):
    """All of them; every third in the quick run."""
    return every[::3] if SHORT else every


def threads_of(pid):
    """Name, state and system call (number, arguments) of each thread: where a process stands that does not end."""
    found = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        try:
            name, stat, call = ((task / file).read_text(encoding="utf-8").strip()
                                for file in ("comm", "stat", "syscall"))
        except OSError:
            continue  # it has ended, or this kernel does not tell
        found.append(f"{name} {stat.rsplit(')', 1)[1].split()[0]} {call}")
    return "; ".join(found)


class Pair(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.token = Path(cls.folder.name) / "token"
        cls.token.write_text("a secret of 24 characters")
        cls.token.chmod(0o600)
        # Other users may not get to where it was built.
        cls.public = tempfile.TemporaryDirectory()
        os.chmod(cls.public.name, 0o755)
        cls.library = shutil.copy(LIBRARY, cls.public.name)
        try:
            cls.hosts = namespaces.Hosts()
        except namespaces.NotAllowed as error:
            cls.folder.cleanup()
            cls.public.cleanup()
            raise unittest.SkipTest(str(error))

    @classmethod
    def tearDownClass(cls):
        cls.hosts.close()
        cls.folder.cleanup()
        cls.public.cleanup()

    def softnic(self, more=""):
        return f"soft0:tcp=on,token={self.token}{more}"

    def start(self, host, words, softnic):
        return subprocess.Popen(self.hosts.command(host, words), env=namespaces.environment(self.library, softnic),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def pair(self, words, client_words=(), port=PORT, softnic=None, client_softnic=None,
             rdma_port=None, group=None):
        """A server in one namespace, a client in the other: what both said, and their exit codes. The server listens at
        `port` of TCP, or at `rdma_port` of rdma_cm, or it is in the multicast `group`."""
        softnic = softnic or self.softnic()
        server = self.start(0, words, softnic)
        try:
            if group:
                self.await_group(0, group, server)
            elif rdma_port:
                self.await_rdma_port(0, rdma_port, server)
            else:
                self.hosts.await_listener(0, port, server)
            client = self.start(1, client_words or [*words, SERVER], client_softnic or softnic)
            try:
                told = client.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired as error:
                threads = f"client: {threads_of(client.pid)}\nserver: {threads_of(server.pid)}"
                client.kill()
                server.kill()
                both = "".join(client.communicate() + server.communicate())
                raise AssertionError(f"{error}\n{threads}\n{both}") from None
            finally:
                client.kill()
            if client.returncode:
                server.kill()
            heard = server.communicate(timeout=LIMIT_S)
        finally:
            server.kill()
        return client.returncode, server.returncode, "".join(told), "".join(heard)

    def passes(self, words, shows, client_words=(), port=PORT, rdma_port=None, softnic=None, group=None):
        if not shutil.which(words[0]):
            self.skipTest(f"{words[0]} is not installed")
        for _ in range(5):
            code, server_code, told, heard = self.pair(words, port=port, client_words=client_words, rdma_port=rdma_port,
                                                       softnic=softnic,
                                                      group=group)
            if not re.search(programs.BUSY, told + heard):
                break
        well = programs.went_well(words, code, told), programs.went_well(words, server_code, heard)
        self.assertEqual(well, (True, True), f"{words}: exit status {code}, {server_code}\n{told}\n{heard}")
        self.assertRegex(told, shows)

    def await_rdma_port(self, host, port, process):
        """Until somebody has that port of rdma_cm there, or `process` has ended."""
        while process.poll() is None:
            names = subprocess.run(self.hosts.command(host, ["cat", "/proc/net/unix"]), capture_output=True, text=True,
                                   timeout=20, check=False).stdout
            if re.search(rf"@gdrperf-softnic-cm\d+\.[0-9a-f]+\.{port}\.", names):
                return
            time.sleep(0.02)

    def await_group(self, host, group, process):
        """Until some QP there is in the group, or `process` has ended."""
        address = ipaddress.ip_address(group)
        gid = (bytes(10) + b"\xff\xff" if address.version == 4 else b"") + address.packed
        while process.poll() is None:
            names = subprocess.run(self.hosts.command(host, ["cat", "/proc/net/unix"]), capture_output=True, text=True,
                                   timeout=20, check=False).stdout
            if re.search(rf"@gdrperf-softnic-mcast\d+\.{gid.hex()}\.", names):
                return
            time.sleep(0.02)


def main():
    sys.argv[1:] = sys.argv[3:]
    if os.environ.get("PATH", "").find("/sbin") < 0:
        os.environ["PATH"] += ":/usr/sbin:/sbin"
    done = unittest.main(module="__main__", exit=False, verbosity=2).result
    sys.exit(77 if done.skipped and not done.testsRun else not done.wasSuccessful())
