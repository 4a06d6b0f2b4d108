#!/usr/bin/env python3
"""What a run says of the network by the counters of both ends' ports: loss that is injected is found, a clean run is
not flagged.

usage: network_test.py GDRPERF SCHEMA [--runs N]     N (3) with loss, ten times as many without
"""

import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support

# A message of 64 B takes 142 ns of such a link.
MODEL = "rate=1GB/s,latency=2us,header=78,react=100ms"
RUNS = 3
CLEAN_RUNS = 3
MESSAGES = 100_000


def find(value):
    """Every run of a document."""
    if isinstance(value, dict):
        if "op" in value and "warnings" in value:
            yield value
        for each in value.values():
            yield from find(each)
    elif isinstance(value, list):
        for each in value:
            yield from find(each)


def run(test, softnic, *words):
    """The record of one run between two ends in one process."""
    done = support.run("write_bw", "--local", "--softnic", "--peer-dev", "soft1", *words, "--json", "-",
                       env={"SOFTNIC": softnic})
    test.assertEqual(done.code, 0, done)
    return next(find(json.loads(done.out)))


def modelled(fault=""):
    return f"soft0:{MODEL}{fault};soft1:{MODEL}"


# How each sentence on a network begins (src/report/network.cc).
FINDINGS = ("the network lost", "the ports' counters", "the sender was", "PCIe links of")


class Network(unittest.TestCase):
    def test_a_loss_of_one_in_ten_thousand_is_found_each_time(self):
        # 10 of 100,000 on average: none in one of 20,000 runs, and with these seeds in none.
        for seed in range(1, RUNS + 1):
            record = run(self, modelled(f",fault=loss:p=1e-4:seed={seed}:time=20us"), "-s", "64", "-n", MESSAGES)
            found = record["network"]
            self.assertEqual(found["verdict"], "lossy", record)
            self.assertTrue(0 < found["resent_per_million"] < 400, found)
            self.assertEqual(len([each for each in record["warnings"] if each.startswith("the network lost packets")]),
                             1, record["warnings"])
            self.assertEqual(record["client"]["counters"]["packet_seq_err"],
                             record["server"]["counters"]["out_of_sequence"])

    def test_a_clean_run_is_not_flagged(self):
        for _ in range(CLEAN_RUNS):
            record = run(self, modelled(), "-s", "64", "-n", 2000)
            self.assertEqual(record["network"]["verdict"], "clean", record)
            self.assertEqual(record["network"]["resent_per_million"], 0)
            self.assertEqual([each for each in record["warnings"] if each.startswith(FINDINGS)], [])

    def test_headers_show_on_the_wire(self):
        record = run(self, modelled(), "-s", "4K", "-n", 2000)
        self.assertAlmostEqual(record["network"]["wire_bytes_per_byte"], (4096 + 78) / 4096, places=3, msg=record)

    def test_a_device_without_counters_says_nothing(self):
        record = run(self, "soft0;soft1", "-n", 1000)
        self.assertNotIn("network", record)
        self.assertNotIn("counters", record["client"])


if __name__ == "__main__":
    if "--runs" in sys.argv:
        at = sys.argv.index("--runs")
        RUNS, CLEAN_RUNS = int(sys.argv[at + 1]), 10 * int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    support.main()
