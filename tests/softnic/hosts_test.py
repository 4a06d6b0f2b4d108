#!/usr/bin/env python3
"""The software device between two network namespaces, which meet over TCP alone.

Usage: hosts_test.py LIBRARY GDRPERF
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import namespaces

LIBRARY, GDRPERF = sys.argv[1:3]
LIMIT_S = 100
SERVER = namespaces.ADDRESSES[0]
# Of perftest and the pingpongs, and of gdrperf.
PORT, SERVE_PORT = 18515, 18601


class Between(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.token = Path(cls.folder.name) / "token"
        cls.token.write_text("a secret of 24 characters")
        cls.token.chmod(0o600)
        try:
            cls.hosts = namespaces.Hosts()
        except namespaces.NotAllowed as error:
            cls.folder.cleanup()
            raise unittest.SkipTest(str(error))

    @classmethod
    def tearDownClass(cls):
        cls.hosts.close()
        cls.folder.cleanup()

    def softnic(self, more=""):
        return f"soft0:tcp=on,token={self.token}{more}"

    def start(self, host, words, softnic):
        return subprocess.Popen(self.hosts.command(host, words), env=namespaces.environment(LIBRARY, softnic),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def pair(self, words, client_words=(), port=PORT, softnic=None, client_softnic=None):
        """A server in one namespace, a client in the other: what both said, and their exit codes."""
        softnic = softnic or self.softnic()
        server = self.start(0, words, softnic)
        try:
            self.hosts.await_listener(0, port, server)
            client = self.start(1, client_words or [*words, SERVER], client_softnic or softnic)
            try:
                told = client.communicate(timeout=LIMIT_S)
            finally:
                client.kill()
            if client.returncode:
                server.kill()
            heard = server.communicate(timeout=LIMIT_S)
        finally:
            server.kill()
        return client.returncode, server.returncode, "".join(told), "".join(heard)

    def passes(self, words, shows):
        if not shutil.which(words[0]):
            self.skipTest(f"{words[0]} is not installed")
        code, server_code, told, heard = self.pair(words)
        self.assertEqual((code, server_code), (0, 0), f"{words}\n{told}\n{heard}")
        self.assertRegex(told, shows)

    def test_perftest_unmodified(self):
        for line in ("ib_write_bw -s 1048576 -n 200", "ib_send_bw -s 65536 -n 200", "ib_read_bw -s 65536 -n 200", "ib_atomic_bw -n 100",
                     "ib_write_lat -s 8 -n 200", "ib_send_lat -s 8 -n 200", "ib_read_lat -s 8 -n 100", "ib_write_bw -q 4 -s 4096 -n 200",
                     "ib_send_bw -e -s 4096 -n 200", "ib_write_bw -b -s 65536 -n 200", "ib_send_bw -c UC -s 4096 -n 100"):
            with self.subTest(line):
                self.passes([*line.split(), "-d", "soft0", "-p", str(PORT)], r"(?m)^ *\d+ +\d+ +[0-9.]+ +[0-9.]+")

    def test_pingpong_unmodified(self):
        for name in ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_srq_pingpong"):
            with self.subTest(name):
                self.passes([name, "-d", "soft0", "-g", "2", "-n", "200"], r"\d+ iters in")

    def gdrperf(self, words, softnic=None, client_softnic=None):
        with tempfile.TemporaryDirectory() as folder:
            serve = [GDRPERF, "serve", "--once", "-p", SERVE_PORT, "--bind", SERVER]
            out = Path(folder) / "record.json"
            client = [GDRPERF, *words, "-d", "soft0", SERVER, "-p", SERVE_PORT, "--json", out]
            code, _, told, heard = self.pair(serve, client, SERVE_PORT, softnic, client_softnic)
            return code, told + heard, json.loads(out.read_text()) if out.exists() else None

    def test_gdrperf(self):
        for words in (["write_bw", "-s", "1M", "-n", "300"], ["read_bw", "-s", "64K", "-n", "300"], ["send_bw", "-s", "4K", "-n", "500"],
                      ["write_lat", "-s", "8", "-n", "300"], ["send_lat", "-s", "8", "-n", "300"], ["read_lat", "-s", "8", "-n", "300"],
                      ["write_bw", "-s", "64K", "-n", "200", "--verify"]):
            with self.subTest(" ".join(words)):
                code, said, record = self.gdrperf(words)
                self.assertEqual(code, 0, said)
                self.assertIsNotNone(record)


if __name__ == "__main__":
    sys.argv[1:] = sys.argv[3:]
    if os.environ.get("PATH", "").find("/sbin") < 0:
        os.environ["PATH"] += ":/usr/sbin:/sbin"
    done = unittest.main(exit=False, verbosity=2).result
    sys.exit(77 if done.skipped and not done.testsRun else not done.wasSuccessful())
