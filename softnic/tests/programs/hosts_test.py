#!/usr/bin/env python3
"""The software device between two network namespaces, which meet over TCP alone.

Usage: hosts_test.py LIBRARY GDRPERF
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import hosts_pair
import namespaces
from hosts_pair import GDRPERF, LIMIT_S, PORT, SERVE_PORT, SERVER


class Between(hosts_pair.Pair):
    def test_perftest_unmodified(self):
        for line in hosts_pair.cases(("ib_write_bw -s 1048576 -n 200", "ib_send_bw -s 65536 -n 200",
                                      "ib_read_bw -s 65536 -n 200", "ib_atomic_bw -n 100",
                     "ib_write_lat -s 8 -n 200", "ib_send_lat -s 8 -n 200", "ib_read_lat -s 8 -n 100",
                     "ib_write_bw -q 4 -s 4096 -n 200",
                     "ib_send_bw -e -s 4096 -n 200", "ib_write_bw -b -s 65536 -n 200",
                     "ib_send_bw -c UC -s 4096 -n 100")):
            with self.subTest(line):
                self.passes([*line.split(), "-d", "soft0", "-p", str(PORT)], r"(?m)^ *\d+ +\d+ +[0-9.]+ +[0-9.]+")

    def test_pingpong_unmodified(self):
        for name in hosts_pair.cases(("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_srq_pingpong")):
            with self.subTest(name):
                self.passes([name, "-d", "soft0", "-g", "2", "-n", "200"], r"\d+ iters in")

    def test_datagrams_unmodified(self):
        figures = r"(?m)^ *\d+ +\d+ +[0-9.]+ +[0-9.]+"
        for line in hosts_pair.cases(("ib_send_bw -c UD -s 1024 -n 500", "ib_send_lat -c UD -s 8 -n 200",
                                      "ib_send_bw -c UD -b -n 200")):
            with self.subTest(line):
                self.passes([*line.split(), "-d", "soft0", "-p", str(PORT)], figures)
        with self.subTest("ibv_ud_pingpong"):
            self.passes(["ibv_ud_pingpong", "-d", "soft0", "-g", "2", "-n", "200"], r"\d+ iters in")

    def test_ipv6_addresses(self):
        if not self.hosts.ipv6:
            self.skipTest("no IPv6 here")
        for line, shows in hosts_pair.cases((("ib_write_bw -x 3 -s 65536 -n 200", r"GID: 253:119:"),
                                             ("ib_send_lat -x 3 -n 200", r"GID: 253:119:"),
                                             ("ib_send_bw -c UD -x 3 -s 1024 -n 200", r"GID: 253:119:"))):
            with self.subTest(line):
                self.passes([*line.split(), "-d", "soft0", "-p", str(PORT)], shows)
        # The second cable has no IPv4 address.
        for name in ("ibv_rc_pingpong", "ibv_ud_pingpong"):
            with self.subTest(name):
                self.passes([name, "-d", "soft0", "-g", "3", "-n", "200"], r"GID fd78::2\n[^!]*iters in",
                            softnic=self.softnic(",netdev=cable6"))

    def test_xrc_is_refused_by_the_call_that_connects(self):
        words = ["ibv_xsrq_pingpong", "-d", "soft0", "-g", "2", "-n", "10"]
        code, _, told, heard = self.pair(words)
        self.assertNotEqual(code, 0, told + heard)
        self.assertIn("Failed to modify", told + heard)

    def gdrperf(self, words, softnic=None, client_softnic=None):
        with tempfile.TemporaryDirectory() as folder:
            serve = [GDRPERF, "serve", "--once", "-p", SERVE_PORT, "--bind", SERVER]
            out = Path(folder) / "record.json"
            client = [GDRPERF, *words, "-d", "soft0", SERVER, "-p", SERVE_PORT, "--json", out]
            code, _, told, heard = self.pair(serve, client, SERVE_PORT, softnic, client_softnic)
            return code, told + heard, json.loads(out.read_text()) if out.exists() else None

    def test_gdrperf(self):
        for words in hosts_pair.cases((["write_bw", "-s", "1M", "-n", "300"], ["read_bw", "-s", "64K", "-n", "300"],
                                       ["send_bw", "-s", "4K", "-n", "500"],
                      ["write_lat", "-s", "8", "-n", "300"], ["send_lat", "-s", "8", "-n", "300"],
                      ["read_lat", "-s", "8", "-n", "300"],
                      ["write_bw", "-s", "64K", "-n", "200", "--verify"])):
            with self.subTest(" ".join(words)):
                code, said, record = self.gdrperf(words)
                self.assertEqual(code, 0, said)
                self.assertIsNotNone(record)

    def test_the_link_model_works_across(self):
        # Nothing is hidden of what the program takes: whatever comes on top, it is not less.
        model = self.softnic(",latency=5ms,react=0us")
        code, said, record = self.gdrperf(["write_lat", "-s", "8", "-n", "40"], model)
        self.assertEqual(code, 0, said)
        self.assertGreaterEqual(record_latency(record), 5e6)

    def test_the_list_of_ways_has_tcp(self):
        done = subprocess.run(self.hosts.command(0, [GDRPERF, "devices", "-v"]), capture_output=True, text=True,
                              timeout=LIMIT_S,
                              env=namespaces.environment(self.library, self.softnic()), check=False)
        self.assertRegex(done.stdout, r"(?m)^ +tcp +used next: other hosts and network namespaces")
        self.assertIn("10.77.0.1", done.stdout)

    def test_other_tokens_are_refused_in_words(self):
        other = Path(self.folder.name) / "other"
        other.write_text("another secret of 32 characters.")
        code, said, _ = self.gdrperf(["write_bw", "-n", "10"], client_softnic=f"soft0:tcp=on,token={other}")
        self.assertNotEqual(code, 0)
        self.assertRegex(said,
                         r"softnic: peer 10\.77\.0\.[12] not reached: the two ends share no secret: give both the "
                         r"same token=FILE")

    def test_without_a_token_one_user_meets_himself(self):
        if self.hosts.user_namespace:
            self.skipTest("the key in /dev/shm is the user's outside this user namespace")
        code, said, _ = self.gdrperf(["write_bw", "-n", "50"], "soft0:tcp=on")
        self.assertEqual(code, 0, said)

    def test_without_a_token_other_users_are_refused(self):
        if self.hosts.user_namespace or os.geteuid() != 0:
            self.skipTest("becoming another user takes root")
        code, server_code, told, heard = self.pair_of_users("soft0:tcp=on")
        self.assertNotEqual((code, server_code), (0, 0), told + heard)
        self.assertIn("the two ends share no secret", told + heard)
        # With a token of theirs, which both can read.
        shared = Path("/dev/shm") / f"softnic-test-token.{os.getpid()}"
        shared.write_text("a secret of two users")
        try:
            code, server_code, told, heard = self.pair_of_users(f"soft0:tcp=on,token={shared}")
        finally:
            shared.unlink()
        self.assertEqual((code, server_code), (0, 0), told + heard)

    def pair_of_users(self, softnic):
        words = ["ibv_rc_pingpong", "-d", "soft0", "-g", "2", "-n", "50", "-e"]
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        return self.pair(words, [*nobody, *words, SERVER], softnic=softnic)

    def test_another_version_is_refused_in_words(self):
        # 1: another version; its own is 99.
        script = ("import socket, struct; s = socket.create_server(('', 4791)); print('ready', flush=True)\n"
                  "while True:\n c = s.accept()[0]; c.recv(80); c.sendall(b'softnic\\n' + struct.pack('<II', 99, 1) + "
                  "bytes(48))")
        strange = self.start(1, [sys.executable, "-c", script], "soft1")
        try:
            self.assertEqual(strange.stdout.readline().strip(), "ready")
            words = ["ibv_rc_pingpong", "-d", "soft0", "-g", "2", "-n", "50", "-e"]
            _, _, told, heard = self.pair(words, client_softnic=self.softnic().replace("tcp=on", "tcp=4800"))
        finally:
            strange.kill()
            strange.communicate()
        self.assertRegex(told + heard,
                         r"has another version of the software device \(its TCP protocol is 99, here it is 2\): use "
                         r"the same build")

    def test_a_killed_end_is_told_at_once(self):
        server = self.start(0, ["ib_write_bw", "-d", "soft0", "-p", PORT, "-D", "60"], self.softnic())
        try:
            self.hosts.await_listener(0, PORT, server)
            client = self.start(1, ["ib_write_bw", "-d", "soft0", "-p", PORT, "-D", "60", SERVER], self.softnic())
            try:
                self.hosts.await_connection(0, 4791, client)
                server.kill()
                told = "".join(client.communicate(timeout=LIMIT_S))
            finally:
                client.kill()
        finally:
            server.kill()
            server.communicate()
        self.assertNotEqual(client.returncode, 0, told)


def record_latency(record):
    (runs,) = record["relations"]["HOST"].values()
    return runs[0]["latency"]["p50_ns"]


if __name__ == "__main__":
    hosts_pair.main()
