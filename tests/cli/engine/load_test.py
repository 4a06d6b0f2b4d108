#!/usr/bin/env python3
"""--load: a latency test beside a stream; idle and loaded against what the link's queue gives by arithmetic."""

import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, Server, main, rates, run, softnic_works

# A message of the stream occupies a port for 3.3 ms; up to 16 reads of a QP are under way.
LINK = {"SOFTNIC": "soft0:rate=20MB/s,latency=200us,copy=edges;soft1:rate=20MB/s,latency=200us,copy=edges"}
MESSAGE_NS = 65536 / 20e6 * 1e9
READS = 16
ENDS = ("--softnic", "-d", "soft0", "--peer-dev", "soft1")


class Measured(CliTest):
    def measured(self, *words, env=None):
        result = run(*words, "--json", "-", env=env)
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        (one,) = self.runs_of(document)
        return one, result

    def check_ratios(self, one):
        under = one["under_load"]
        for figure in ("p50", "p99"):
            loaded = under[f"{figure}_ratio"] * under[f"idle_{figure}_ns"]
            self.assertAlmostEqual(loaded / one["latency"][f"{figure}_ns"], 1, places=5)


@unittest.skipIf(softnic_works(), "no software device")
@rates
class FullQueue(Measured):
    def test_a_full_queue_by_arithmetic(self):
        """Each read waits for the 16 of the stream that were queued before it; for 15 where the stream's thread was
        held up. bench/loaded_latency.py has more, closer."""
        one, result = self.measured("read_lat", "--local", *ENDS, "-s", "2", "--load", "100%", "-D", "1500ms", env=LINK)
        self.check_ratios(one)
        loaded = one["latency"]["p50_ns"] / (READS * MESSAGE_NS) - 1
        idle = one["under_load"]["idle_p50_ns"] / 400e3 - 1
        carried = one["under_load"]["stream_carried_gbps"] / 0.16 - 1
        self.assertLess(abs(loaded), 2 / READS, one["under_load"])
        self.assertLess(carried, 0.01)
        self.assertGreater(idle, -0.01)
        self.assertEqual(one["load"], "100%")
        self.assertNotIn("stream_offered_gbps", one["under_load"])
        self.assertRegex(result.err, r"with read_bw of 64 KiB: [\d.]+ GB/s carried, [\d.]+ GB/s alone")
        self.assertRegex(result.err,
                         r"idle +[\d.]+ +[\d.]+ +[\d.]+\n +loaded +[\d.]+ +[\d.]+ +[\d.]+\n +ratio +[\d.]+ ")


@unittest.skipIf(softnic_works(), "no software device")
class Load(Measured):
    def test_each_test_and_both_ways_to_say_it(self):
        fast = {"SOFTNIC": "soft0:rate=200MB/s,copy=edges;soft1:rate=200MB/s,copy=edges"}
        for test in ("write_lat", "send_lat", "write_imm_lat", "atomic_lat"):
            one, _ = self.measured(test, "--local", *ENDS, "--load", "50%", "--load-size", "16K", "-D", "200ms",
                                   env=fast)
            self.check_ratios(one)
            under = one["under_load"]
            self.assertAlmostEqual(2 * under["stream_offered_gbps"] / under["stream_alone_gbps"], 1, places=5)
            self.assertEqual(one["load_size"], 16384)
        for text, gbps in (("0.4Gb/s", 0.4), ("50MB/s", 0.4), ("1000", 65536 * 8e-6)):
            one, _ = self.measured("read_lat", "--local", *ENDS, "--load", text, "-n", "300", env=fast)
            self.assertAlmostEqual(one["under_load"]["stream_offered_gbps"] / gbps, 1, places=5)
            self.assertEqual((one["iterations"], one["load"]), (300, text))
            self.assertNotIn("stream_alone_gbps", one["under_load"])

    def test_two_processes(self):
        with Server() as server:
            there = ("127.0.0.1", "-p", str(server.port), "--softnic")
            for test in ("write_lat", "read_lat"):
                one, _ = self.measured(test, *there, "--load", "20%", "-D", "200ms")
                self.check_ratios(one)
            self.expect_ok(run("write_bw", *there, "-n", "100"))

    def test_a_plain_run_has_none(self):
        one, result = self.measured("write_lat", "--local", "--softnic", "-n", "100")
        self.assertNotIn("under_load", one)
        self.assertNotIn("load", one)
        self.assertNotIn("loaded", result.err)

    def test_what_cannot_be(self):
        for words, text in ((("write_lat", "--load", "0%"), "--load 0%: a share is above 0 and up to 100 %"),
                            (("write_lat", "--load", "120%"), "--load 120%: a share is above 0 and up to 100 %"),
                            (("write_lat", "--load", "much"), "--load 'much': no rate"),
                            (("write_lat", "--load", "5Tb/s"), "--load '5Tb/s': no rate"),
                            (("write_lat", "--load-size", "1M"), "--load-size: there is no stream"),
                            (("write_lat", "--load", "50%", "--verify"),
                             "--load: verified messages are sent in rounds"),
                            (("write_bw", "--load", "50%"), "--load: write_bw is no latency test")):
            self.expect_error(run(*words, "--local", "--softnic"), 2, text)


if __name__ == "__main__":
    main()
