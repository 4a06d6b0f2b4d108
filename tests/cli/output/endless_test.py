#!/usr/bin/env python3
"""--forever and --interval: intervals as they end, the whole at a signal, dips dated."""

import json
import os
import signal
import sys
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, sys.path[0] + "/..")
from support import PATIENCE_S, Background, CliTest, Server, main, run, softnic_works

LOCAL = ("--local", "--softnic")


def records(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file.read().splitlines()]


def wait_for(path, number):
    """Until `path` has so many whole records."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                if file.read().count("\n") >= number:
                    return
        time.sleep(0.05)
    raise AssertionError(f"{path} has fewer than {number} records")


@unittest.skipIf(softnic_works(), "no software device")
class Endless(CliTest):
    def ended(self, *words, env=None, number=4, by=signal.SIGINT):
        """Runs until there are `number` intervals, ends it by a signal: (record of the whole, intervals)."""
        folder = self.scratch()
        intervals, whole = folder + "/intervals.jsonl", folder + "/run.json"
        with Background(*words, "--forever", "--interval", "200ms", "--interval-file", intervals, "--json", whole,
                        env=env) as client:
            wait_for(intervals, number)
            client.signal(by)
            self.assertEqual(client.wait(), 0, client.err)
        with open(whole, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        (one,) = self.runs_of(document)
        self.assertIn(one["op"], client.out)
        return one, records(intervals)

    def check_whole(self, one, intervals, *, number=4):
        self.assertEqual(one["stop"], "signal")
        self.assertFalse(any("before its time" in text for text in one["warnings"]), one["warnings"])
        self.assertGreaterEqual(len(intervals), number)
        for before, after in zip(intervals, intervals[1:]):
            self.assertAlmostEqual(before["start_s"] + before["duration_s"], after["start_s"], places=3)
        for each in intervals[:-1]:
            self.assertGreater(each["messages"], 0)
            self.assertGreaterEqual(each["duration_s"], 0.2)
            self.assertEqual((each["op"], each["size_bytes"]), (one["op"], one["size_bytes"]))

    def test_bandwidth(self):
        for words in (("write_bw", "-s", "4K"), ("send_bw", "-s", "4K", "-b"),
                      ("read_bw", "-s", "4K", "--rate", "2000")):
            one, intervals = self.ended(*words, *LOCAL, by=signal.SIGTERM)
            self.check_whole(one, intervals)
            self.assertGreaterEqual(one["duration_s"] + one["warmup_cut_s"], 0.6)
            for each in intervals:
                self.assertLessEqual(each["min_gbps"], each["mean_gbps"] * 1.001)

    def test_latency(self):
        one, intervals = self.ended("send_lat", *LOCAL, "-s", "8")
        self.check_whole(one, intervals)
        for each in intervals:
            self.assertLessEqual(each["p50_ns"], each["p99_ns"])
            self.assertLessEqual(each["p999_ns"], each["max_ns"] * 1.004)
            self.assertLessEqual(each["min_per_s"], each["mean_per_s"] * 1.001)

    def test_verified_laps(self):
        # An interval is of the measured time, which is a small part of what laps take.
        one, intervals = self.ended("send_bw", *LOCAL, "-s", "4K", "--verify", number=1)
        self.check_whole(one, intervals, number=2)

    def test_a_server_serves_on(self):
        with Server("--max-time", "0") as server:
            there = ("127.0.0.1", "-p", str(server.port), "--softnic")
            self.check_whole(*self.ended("write_bw", *there, "-s", "4K"))
            self.expect_ok(run("write_bw", *there, "-n", "100"))

    def test_a_server_with_a_limit_says_which(self):
        with Server("--max-time", "60s") as server:
            result = run("write_bw", "127.0.0.1", "-p", str(server.port), "--softnic", "--forever")
            self.expect_error(result, 2, "--forever: this server allows runs of 60 s",
                              "start 'gdrperf serve' with --max-time 0")

    def test_counters_of_the_port(self):
        _, intervals = self.ended("write_bw", *LOCAL, "-s", "4K", env={"SOFTNIC": "soft0:rate=1GB/s;soft1:rate=1GB/s"})
        self.assertGreater(sum(each["counters"].get("port_xmit_packets", 0) for each in intervals), 0, intervals)

    def test_a_standstill_is_dated(self):
        """The port stands still for a second at a message that the link cannot have carried earlier."""
        size, rate, message, depth = 65536, 0.25e9, 4000, 16
        link = f"soft0:rate=0.25GB/s,latency=2us,fault=stall:time=1s:from={message}:count=1"
        folder = self.scratch()
        intervals = folder + "/intervals.jsonl"
        with Background("write_bw", *LOCAL, "-d", "soft0", "-s", str(size), "-t", str(depth), "--forever", "--interval",
                        "200ms",
                        "--interval-file", intervals, env={"SOFTNIC": link}) as client:
            deadline = time.monotonic() + PATIENCE_S
            while not self.longest(intervals, 0.9) and time.monotonic() < deadline:
                time.sleep(0.1)
            client.signal(signal.SIGINT)
            self.assertEqual(client.wait(), 0, client.err)
        dip = self.longest(intervals, 0.9)
        self.assertIsNotNone(dip, records(intervals))
        # Batches are of 5 ms; what comes later is the machine's.
        self.assertGreater(dip["start_s"], (message - 2 * depth) * size / rate - 0.01)
        self.assertGreaterEqual(dip["duration_s"], 0.99)

    @staticmethod
    def longest(path, least_s):
        """The longest dip that is not shorter than `least_s`."""
        dips = [dip for each in (records(path) if os.path.exists(path) else []) for dip in each["dips"]
                if dip["duration_s"] >= least_s]
        return max(dips, key=lambda dip: dip["duration_s"], default=None)

    def test_lines(self):
        with Background("write_bw", *LOCAL, "-s", "4K", "-D", "700ms", "--interval", "200ms") as client:
            self.assertRegex(client.wait_line(" to s "), r"gdrperf: +from s +to s +messages +GB/s")
            self.assertRegex(client.wait_line("  0."), r"gdrperf: +0\.\d\d +0\.[2-9]\d +\d+ +[\d.]+")
            self.assertEqual(client.wait(), 0, client.err)
        with Background("read_lat", *LOCAL, "-s", "4K", "-D", "700ms", "--interval", "200ms") as client:
            self.assertRegex(client.wait_line(" to s "), r"gdrperf: +from s +to s +round trips +p50 us +p99 us +max us")
            self.assertRegex(client.wait_line("  0."), r"gdrperf: +0\.\d\d +0\.[2-9]\d +\d+ +[\d.]+ +[\d.]+ +[\d.]+")
            self.assertEqual(client.wait(), 0, client.err)

    def test_records_on_standard_output(self):
        result = run("write_bw", *LOCAL, "-s", "64,4K", "-D", "300ms", "--interval", "100ms", "--interval-file", "-")
        self.expect_ok(result)
        sizes = {json.loads(line)["size_bytes"] for line in result.out.splitlines()}
        self.assertEqual(sizes, {64, 4096})
        self.assertIn("GB/s", result.err, "the table makes room")

    def need_metrics(self):
        if "was built without libmicrohttpd" in run("write_bw", *LOCAL, "-n", "5", "--listen-metrics", "0").err:
            self.skipTest("this gdrperf was built without libmicrohttpd")

    def test_metrics_over_http(self):
        self.need_metrics()
        with Background("write_bw", *LOCAL, "-s", "4K", "--forever", "--interval", "200ms", "--interval-file",
                        self.scratch() + "/i", "--listen-metrics", "0",
                        env={"SOFTNIC": "soft0:rate=1GB/s;soft1:rate=1GB/s"}) as client:
            url = client.wait_line("metrics at ").split("metrics at ")[1]
            deadline = time.monotonic() + PATIENCE_S
            text = ""
            while "gdrperf_payload_bytes_per_second" not in text and time.monotonic() < deadline:
                time.sleep(0.1)
                with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                    self.assertIn("version=0.0.4", answer.headers["Content-Type"])
                    text = answer.read().decode()
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url.replace("/metrics", "/"), timeout=PATIENCE_S)
            self.assertEqual(refused.exception.code, 404)
            self.expect_error(run("write_bw", *LOCAL, "--listen-metrics", url.split("/")[2]), 3,
                              "--listen-metrics " + url.split("/")[2])
            client.signal(signal.SIGINT)
            self.assertEqual(client.wait(), 0, client.err)
        samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        labels = '{op="write_bw",size_bytes="4096",device="soft0"}'
        self.assertEqual(float(samples["gdrperf_payload_bytes_total" + labels]),
                         4096 * float(samples["gdrperf_messages_total" + labels]))
        self.assertGreater(float(samples['gdrperf_port_counter_total{device="soft0",counter="port_xmit_packets"}']), 0)
        try:
            from prometheus_client.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("no reader of Prometheus' text is installed (python3-prometheus-client)")
        self.assertGreater(len(list(text_string_to_metric_families(text))), 5)

    def test_metrics_addresses(self):
        self.need_metrics()
        for where, text in (("metrics", "--listen-metrics 'metrics': give PORT, or ADDRESS:PORT"),
                            ("99999", "--listen-metrics '99999': give PORT"),
                            ("nohost:1", "'nohost' is no address")):
            self.expect_error(run("write_bw", *LOCAL, "-n", "5", "--listen-metrics", where), 2, text)
        for where in ("0", "127.0.0.1:0"):
            result = run("read_lat", *LOCAL, "-n", "50", "--listen-metrics", where)
            self.expect_ok(result)
            self.assertIn("metrics at http://127.0.0.1:", result.err)

    def test_what_cannot_be(self):
        for words, text in ((("write_bw", "--forever", "-n", "5"), "--forever and -n exclude each other"),
                            (("write_bw", "--forever", "-D", "1s"), "--forever and -D exclude each other"),
                            (("write_bw", "--forever", "-s", "1,2"),
                             "--forever: only the first of several runs would begin"),
                            (("sweep", "--forever"), "--forever: only the first of several runs would begin"),
                            (("verify", "--forever"), "--forever: only the first of several runs would begin"),
                            (("write_bw", "--interval", "1ms"), "--interval 1ms: an interval is 100 ms or more"),
                            (("write_bw", "--interval-file", "file"),
                             "--interval-file means nothing without --interval"),
                            (("write_bw", "-n", "5", "--interval", "1s", "--interval-file", "-", "--json", "-"),
                             "standard output can carry one of them"),
                            (("write_bw", "-n", "5", "--interval", "1s", "--interval-file", "/nowhere/file"),
                             "/nowhere/file")):
            result = run(*words, *LOCAL)
            self.assertIn(result.code, (2, 3), str(result))
            self.assertIn(text, result.err)

    def test_what_changes_nothing_is_noted(self):
        result = run("write_bw", *LOCAL, "--forever", "--cap", "1s", "--dry-run")
        self.expect_ok(result)
        self.assertIn("--cap changes nothing: --forever decides when the run ends", result.err)
        self.assertIn("no end", result.out)


if __name__ == "__main__":
    main()
