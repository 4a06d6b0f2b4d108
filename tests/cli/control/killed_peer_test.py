#!/usr/bin/env python3
"""A peer killed in the middle of a run: told within 5 s, and the server serves on."""

import signal
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import PROMISE_S, Background, CliTest, Server, cases, main, run, softnic_works

LONG_RUN = ["--softnic", "-D", "60s", "-s", "64", "--progress"]
SHORT_RUN = ["--softnic", "-n", "100", "-s", "64"]
CASES = cases([["write_bw"], ["send_lat"], ["read_bw"], ["send_bw", "-b"]],
              [["write_bw"], ["write_lat"], ["send_bw"], ["send_lat"], ["read_bw"], ["read_lat"],
               ["write_bw", "-b"], ["send_bw", "-b"], ["send_bw", "-e"]])


@unittest.skipIf(softnic_works(), "no software device")
class Killed(CliTest):
    def test_the_server(self):
        for case in CASES:
            with self.subTest(" ".join(case)), Server() as server:
                with Background(case[0], "127.0.0.1", "-p", server.port, *case[1:], *LONG_RUN) as client:
                    server.wait_line("serving client")
                    client.wait_measuring()
                    client.wait_line(" GB/s" if case[0].endswith("bw") else " us")
                    server.signal(signal.SIGKILL)
                    self.assertEqual(client.wait(PROMISE_S), 5, client.err)
                    self.assertIn(f"gdrperf: error: server 127.0.0.1:{server.port}: ", client.err)
                    self.assertNotIn("\nhint: \n", client.err)
                    self.assertRegex(client.err, r"gdrperf: until then: (p50 )?[\d.]+ (GB/s|us)\b.*, after [\d.]+ s")

    def test_the_client(self):
        with Server() as server:
            for case in CASES:
                with self.subTest(" ".join(case)):
                    with Background(case[0], "127.0.0.1", "-p", server.port, *case[1:],
                                    *LONG_RUN) as client:
                        server.wait_line("serving client")
                        client.wait_measuring()
                        client.signal(signal.SIGKILL)
                        client.wait()
                        server.wait_line("failed", PROMISE_S)
                    after = run(case[0], "127.0.0.1", "-p", server.port, *SHORT_RUN)
                    self.expect_ok(after)
                    self.assertLess(after.seconds, PROMISE_S, str(after))
                    server.wait_line("done, 1 run")

    def test_the_client_while_another_waits(self):
        with Server() as server:
            with Background("write_bw", "127.0.0.1", "-p", server.port, *LONG_RUN) as first:
                server.wait_line("serving client")
                first.wait_measuring()
                with Background("read_bw", "127.0.0.1", "-p", server.port, *SHORT_RUN) as second:
                    second.wait_line("waiting")
                    first.signal(signal.SIGKILL)
                    self.assertEqual(second.wait(PROMISE_S), 0, second.err)


    def test_the_sweeps_server(self):
        with Server() as server:
            with Background("sweep", "127.0.0.1", "-p", server.port, "--devices", "soft0",
                            "--sizes", "64,4K", "--progress", *LONG_RUN[:3]) as client:
                server.wait_line("serving client")
                client.wait_measuring()
                server.signal(signal.SIGKILL)
                # One failed run, then nobody to connect to for 3 s.
                self.assertEqual(client.wait(2 * PROMISE_S), 5, client.err)
                self.assertIn("12 of 12 runs failed", client.err)

    def test_ctrl_c_at_the_client(self):
        with Server() as server:
            with Background("send_bw", "127.0.0.1", "-p", server.port, *LONG_RUN) as client:
                server.wait_line("serving client")
                client.wait_measuring()
                client.signal(signal.SIGINT)
                client.wait(PROMISE_S)
                # It says what it has, and good-bye.
                server.wait_line("done, 1 run", PROMISE_S)
            self.expect_ok(run("send_bw", "127.0.0.1", "-p", server.port, *SHORT_RUN))


if __name__ == "__main__":
    main()
