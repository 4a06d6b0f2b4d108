#!/usr/bin/env python3
"""--token: every way to be served, and every peer that cannot prove the token."""

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import perftest_ends
import support
from support import Background, CliTest, main, run

SECRET = "0123456789abcdef0123456789abcdef\n"
OTHER = "fedcba9876543210fedcba9876543210\n"
# A name for each service of a server, and the client that asks for it.
ENTRIES = {
    "tests": ["write_bw", "HOST", "-n", "10", "--softnic"],
    "tests, the server sends": ["write_bw", "HOST", "-n", "10", "--softnic", "--reverse"],
    "sweep": ["sweep", "HOST", "--ops", "write_bw", "--sizes", "64K", "--cap", "50ms", "--softnic"],
    "verify": ["verify", "HOST", "--ops", "write_bw", "-s", "4K", "--softnic"],
    "further connections of a client": ["write_bw", "HOST", "-n", "10", "--softnic", "--threads", "2"],
    "latency under load": ["write_lat", "HOST", "-n", "10", "--softnic", "--load", "50%"],
    "acceptance": ["accept", "HOST", "--softnic"],
    "bring-up": ["bringup", "HOST", "--softnic"],
    "doctor": ["doctor", "HOST", "--softnic"],
    "cluster": ["cluster", "--hosts", "HOST:PORT", "--softnic", "--start-timeout", "2s"],
}


class Silent:
    """Accepts and says nothing; keeps what it hears."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.heard = b""
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self):
        connection, _ = self.listener.accept()
        with connection:
            while data := connection.recv(4096):
                self.heard += data


@unittest.skipIf(support.softnic_works(), "no software device")
class Tokens(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.files = {}
        for name, text in (("mine", SECRET), ("other", OTHER)):
            self.files[name] = os.path.join(folder.name, name)
            with open(self.files[name], "w", encoding="ascii") as file:
                file.write(text)

    def test_each_entry_wants_the_token(self):
        with Background("serve", "--softnic", "--port", "0", "--token", self.files["mine"], "--cluster") as server:
            port = re.search(r"port (\d+)", server.wait_line("port ")).group(1)
            for name, words in ENTRIES.items():
                words = [it.replace("HOST", "127.0.0.1").replace("PORT", port) for it in words]
                if name != "cluster":
                    words += ["-p", port]
                for wrong in ([], ["--token", self.files["other"]]):
                    with self.subTest(entry=name, token=wrong[1:]):
                        result = run(*words, *wrong)
                        self.assertNotEqual(result.code, 0, result)
                        self.assertIn("token", result.err + result.out, result)
            self.expect_ok(run(*[it.replace("HOST", "127.0.0.1") for it in ENTRIES["tests"]], "-p", port, "--token",
                               self.files["mine"]))

    def test_a_further_connection_wants_the_token_before_its_ticket(self):
        with Background("serve", "--softnic", "--port", "0", "--token", self.files["mine"]) as server:
            port = int(re.search(r"port (\d+)", server.wait_line("port ")).group(1))
            for token, reason in ((0, "only clients that have its token"), (1, "where proof was due")):
                with support.Peer.connect(port) as peer:
                    peer.greet(token=token)
                    peer.send(type="enter", beside="0" * 64)
                    self.assertIn(reason, peer.receive()["reason"])

    def test_rank_0_of_a_cluster_wants_the_token(self):
        port = support.free_port()
        common = ["cluster", "--softnic", "--ranks", "2", "--root", f"127.0.0.1:{port}", "--start-timeout"]
        with Background(*common, "60s", "--rank", "0", "--token", self.files["mine"]) as root:
            for wrong in ([], ["--token", self.files["other"]]):
                with self.subTest(token=wrong[1:]):
                    result = run(*common, "3s", "--rank", "1", *wrong)
                    self.assertNotEqual(result.code, 0, result)
                    self.assertIn("token", result.err, result)
            self.assertIsNone(root.process.poll(), "it waits for a rank with the token")

    @perftest_ends.installed
    @unittest.skipIf(support.sanitized(), "perftest loads no sanitized software device here")
    def test_a_client_of_perftest_is_refused(self):
        with Background("ib_write_bw", "-p", "0", "--softnic", "--token", self.files["mine"]) as server:
            port = re.search(r"port (\d+)", server.wait_line("waiting for one client")).group(1)
            client = perftest_ends.start("ib_write_bw", "-p", port, "-n", "1000", "127.0.0.1")
            try:
                said = client.communicate(timeout=support.PATIENCE_S)[0]
            except subprocess.TimeoutExpired:
                client.kill()
                said = client.communicate()[0]
            self.assertNotEqual(client.returncode, 0, said)
            self.assertNotIn("BW average[MB/sec]   MsgRate", said[said.find("BW peak"):].splitlines()[1:2], said)
            server.wait_line("cannot prove a token")
            # It goes on for who can.
            self.expect_ok(run("write_bw", "127.0.0.1", "-p", port, "--softnic", "-n", "10", "--token",
                               self.files["mine"]))

    @perftest_ends.installed
    @unittest.skipIf(support.sanitized(), "perftest loads no sanitized software device here")
    def test_a_server_of_perftest_is_refused(self):
        _, port = perftest_ends.serve(self, "ib_write_bw")
        result = run("ib_write_bw", "127.0.0.1", "-p", port, "--softnic", "-n", "1000", "--token", self.files["mine"])
        self.assertEqual(result.code, 5, result)
        self.assertIn("token", result.err, result)

    def test_a_silent_server_learns_no_address(self):
        server = Silent()
        self.addCleanup(server.listener.close)
        result = run("ib_write_bw", "127.0.0.1", "-p", server.port, "--softnic", "-n", "10", "--token",
                     self.files["mine"])
        self.assertEqual(result.code, 5, result)
        self.assertIn("token", result.err, result)
        self.assertNotIn(b"rkey", server.heard)
        # Two greetings of perftest are a version and then hexadecimal addresses with colons.
        self.assertNotRegex(server.heard, rb"^\d\.\d\d")


if __name__ == "__main__":
    main()
