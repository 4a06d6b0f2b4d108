#!/usr/bin/env python3
"""What figures must reach: --min-gbps, --max-p99-us, --min-efficiency."""

import csv
import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import PROMISE_S, CliTest, main, run, softnic_works

LOCAL = ["--local", "--softnic", "-n", "50"]


@unittest.skipIf(softnic_works(), "no software device")
class Required(CliTest):
    def measured(self, *args):
        path = self.scratch() + "/r.json"
        result = run(*args, "--json", path)
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except FileNotFoundError:
            self.fail(str(result))
        self.check_document(document)
        return result, self.runs_of(document)

    def test_bandwidth_that_is_reached_and_one_that_is_not(self):
        result, (one,) = self.measured("write_bw", *LOCAL, "--min-gbps", "0.0001")
        self.expect_ok(result)
        self.assertIn("Required: met by 1 run", result.out)
        self.assertEqual(one["required"], {"min_gbps": 0.0001, "met": "yes"})
        result, runs = self.measured("write_bw", *LOCAL, "-s", "4K,64K", "--min-gbps", "1000000")
        self.assertEqual(result.code, 1, str(result))
        for size, one in zip((4096, 65536), runs):
            self.assertIn(f"MISSED   write_bw/HOST/host:soft0/{size}: ", result.out)
            self.assertEqual(one["required"], {"min_gbps": 1e6, "met": "no"})
        self.assertIn("is below --min-gbps 1e+06", result.out)
        self.assertIn("Required of 2 runs: 2 missed", result.out)

    def test_a_unit_may_be_given(self):
        result, (one,) = self.measured("write_bw", *LOCAL, "--min-gbps", "1MB/s")
        self.expect_ok(result)
        self.assertEqual(one["required"]["min_gbps"], 0.008)

    def test_latency(self):
        result, (one,) = self.measured("write_lat", *LOCAL, "--max-p99-us", "0.00001")
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("MISSED   write_lat/HOST/host:soft0/2: a p99 of ", result.out)
        self.assertEqual(one["required"], {"max_p99_us": 0.00001, "met": "no"})
        result, _ = self.measured("write_lat", *LOCAL, "--max-p99-us", "60000000")
        self.expect_ok(result)

    def test_a_share_of_no_ceiling_cannot_be_judged(self):
        result, (one,) = self.measured("write_bw", *LOCAL, "--min-efficiency", "90%")
        self.assertEqual(result.code, 4, str(result))
        self.assertIn("UNKNOWN  write_bw/HOST/host:soft0/65536: has no known theoretical maximum", result.out)
        self.assertEqual(one["required"], {"min_efficiency": 0.9, "met": "unknown"})

    def test_a_share_of_the_ceiling_is_in_the_document_of_a_sweep(self):
        path = self.scratch() + "/r.json"
        result = run("sweep", *LOCAL, "--ops", "write_bw,read_bw", "--sizes", "64,4K", "-d", "soft0",
                     "--min-efficiency", "90%",
                     "--json", path)
        self.assertEqual(result.code, 4, str(result))
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        self.assertEqual([one["required"] for one in self.runs_of(document)],
                         [{"min_efficiency": 0.9, "met": "unknown"}] * 4)
        self.assertIn("Required of 4 runs: 0 missed, 4 could not be judged", result.out)

    def test_a_sweep_asks_each_test_what_concerns_it(self):
        rows = self.scratch() + "/r.csv"
        result = run("sweep", *LOCAL, "--ops", "write_bw,write_lat", "--sizes", "64", "-d", "soft0", "--min-gbps",
                     "0.0001",
                     "--max-p99-us", "0.00001", "--csv", rows)
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("Required of 2 runs: 1 missed, 0 could not be judged", result.out)
        with open(rows, encoding="utf-8") as file:
            self.assertEqual([row["required_met"] for row in csv.DictReader(file)], ["yes", "no"])

    def test_what_cannot_be_asked(self):
        for args, text in ((["write_bw", "--max-p99-us", "3"], "write_bw measures no latency"),
                           (["read_lat", "--min-gbps", "3"], "read_lat measures no bandwidth"),
                           (["write_bw", "--min-gbps", "fast"], "--min-gbps"),
                           (["write_bw", "--min-gbps", "-1"], "--min-gbps '-1'"),
                           (["write_bw", "--min-gbps", "inf"], "--min-gbps"),
                           (["write_lat", "--max-p99-us", "3us"], "--max-p99-us '3us'"),
                           (["write_bw", "--min-efficiency", "120%"], "--min-efficiency '120%'")):
            self.expect_error(run(args[0], *LOCAL, *args[1:]), 2, text, within=PROMISE_S)


if __name__ == "__main__":
    main()
