#!/usr/bin/env python3
"""--reverse: the server sends, or reads; rates, ends and losses as of the other direction."""

import json
import signal
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import Background, CliTest, Server, main, rates, run, softnic_works

LOCAL = ("--local", "--softnic")


class Reversed(CliTest):
    def record_of(self, text):
        (one,) = self.runs_of(json.loads(text))
        return one

    def measured(self, *words, env=None):
        result = run(*words, "--reverse", "--json", "-", env=env)
        self.expect_ok(result)
        self.assertIn("reversed: the server", result.err)
        self.check_document(json.loads(result.out))
        one = self.record_of(result.out)
        self.assertIs(one["reverse"], True)
        return one


@unittest.skipIf(softnic_works(), "no software device")
class Reverse(Reversed):
    def test_a_number_of_messages(self):
        for words in (("write_bw",), ("send_bw",), ("read_bw",), ("atomic_bw",), ("send_bw", "-q", "3", "-l", "4"),
                      ("send_bw", "--transport", "ud"),
                      ("write_bw", "-e"), ("send_bw", "-R")):
            size = () if words[0] == "atomic_bw" else ("-s", "512")
            one = self.measured(*words, *LOCAL, *size, "-n", "2000")
            self.assertEqual((one["iterations"], one["stop"]), (2000, "iterations"), words)
        self.assertEqual(self.measured("write_bw", *LOCAL, "-n", "3")["iterations"], 3)

    def test_two_processes(self):
        with Server() as server:
            there = ("127.0.0.1", "-p", str(server.port), "--softnic")
            one = self.measured("send_bw", *there, "-s", "4K", "-D", "300ms")
            self.assertEqual(one["stop"], "duration")
            self.assertGreater(one["bw"]["median_gbps"], 0)
            one = self.measured("send_bw", *there, "-s", "512", "--transport", "ud", "-n", "1000")
            self.assertEqual(one["delivery"]["sent_messages"], 1000)
            one = self.measured("write_bw", *there, "-s", "64", "--rate", "2000", "-n", "400")
            self.assertGreater(one["duration_s"], 0.198)
            self.expect_ok(run("write_bw", *there, "-n", "100"))

    def test_a_signal_ends_it(self):
        for words, code in ((("-D", "1h"), -signal.SIGINT), (("--forever",), 0)):
            for test in ("write_bw", "send_bw"):
                with Server("--max-time", "0") as server:
                    with Background(test, "127.0.0.1", "-p", str(server.port), "--softnic", *words, "--reverse",
                                    "--progress", "--json", "-") as client:
                        client.wait_line("measuring")
                        client.signal(signal.SIGINT)
                        self.assertEqual(client.wait(), code, client.err)
                    self.assertEqual(self.record_of(client.out)["stop"], "signal")
                    self.expect_ok(run(test, "127.0.0.1", "-p", str(server.port), "--softnic", "-n", "100"))

    def test_an_end_that_dies_is_told(self):
        for test in ("write_bw", "send_bw"):
            with Server() as server:
                there = ("127.0.0.1", "-p", str(server.port), "--softnic")
                with Background(test, *there, "-D", "1h", "--reverse", "--progress") as client:
                    client.wait_line("measuring")
                    client.signal(signal.SIGKILL)
                    client.wait()
                self.expect_ok(run(test, *there, "-n", "100"))
                with Background(test, *there, "-D", "1h", "--reverse", "--progress") as client:
                    client.wait_line("measuring")
                    server.signal(signal.SIGKILL)
                    self.assertEqual(client.wait(), 5, client.err)
                server.wait()

    def test_perftests_word(self):
        result = run("ib_send_bw", *LOCAL, "--reversed", "-n", "500")
        self.expect_ok(result)

    def test_what_cannot_be(self):
        for words, text in ((("send_lat",), "--reverse: send_lat goes back and forth"),
                            (("send_bw", "-b"), "--reverse and -b: client and server both send then"),
                            (("send_bw", "--verify"), "--reverse: verified messages go from the client"),
                            (("send_bw", "--interval", "1s"), "--interval: in a reversed run the server counts")):
            self.expect_error(run(*words, *LOCAL, "--reverse"), 2, text)


@unittest.skipIf(softnic_works(), "no software device")
@rates
class Rates(Reversed):
    """Held against the model of a link."""

    def test_the_servers_port_sends(self):
        """What limits is the port that data leaves by: the server's, of reads the client's."""
        links = {"SOFTNIC": "soft0:rate=25MB/s;soft1:rate=50MB/s"}
        ends = (*LOCAL, "-d", "soft0", "--peer-dev", "soft1", "-s", "64K", "-D", "500ms")
        for test in ("write_bw", "send_bw", "write_imm_bw"):
            one = self.measured(test, *ends, env=links)
            self.assertGreater(one["bw"]["median_gbps"], 0.2 * 1.1, test)
            self.assertLess(one["bw"]["median_gbps"], 0.4 * 1.02, test)
        self.assertLess(self.measured("read_bw", *ends, env=links)["bw"]["median_gbps"], 0.2 * 1.02)


if __name__ == "__main__":
    main()
