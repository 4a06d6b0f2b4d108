#!/usr/bin/env python3
"""The whole matrix in one command; what fails is noted and the rest goes on."""

import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, Server, main, run, softnic_works

TESTS = ["write_bw", "write_lat", "send_bw", "send_lat", "read_bw", "read_lat"]


@unittest.skipIf(softnic_works(), "no software device")
class Sweep(CliTest):
    def sweep(self, *options, target=("--local",), code=None, env=None):
        """Runs it; the result and the validated document. Twenty messages are seldom a stable run: where not a
        single one is, the code is 4."""
        path = self.scratch() + "/r.json"
        result = run("sweep", *target, "--softnic", "-n", "20", "--json", path, *options, env=env)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        if code is None:
            code = 4 if all(one["unstable"] for one in self.runs_of(document)) else 0
            self.assertEqual("runs is stable" in result.err, code == 4, str(result))
        self.assertEqual(result.code, code, str(result))
        return result, document

    def test_the_default_is_everything(self):
        result, document = self.sweep("--devices", "soft0")
        self.assertEqual(sorted(document["relations"]["HOST"]), sorted(TESTS))
        for test, runs in document["relations"]["HOST"].items():
            self.assertEqual([one["size_bytes"] for one in runs], [2 ** n for n in range(1, 24)], test)
        self.assertEqual(document["warnings"], [])
        self.assertEqual([line for line in result.err.splitlines() if "runs is stable" not in line], [])

    def test_over_every_device_by_itself(self):
        _, document = self.sweep("--ops", "write_bw", "--sizes", "64")
        self.assertEqual([one["client"]["device"] for one in self.runs_of(document)],
                         ["soft0", "soft1"])

    def test_choices(self):
        _, document = self.sweep("--devices", "soft1,soft0", "--ops", "read_lat,write_bw", "--sizes",
                                 "8,1K:2K:x2", "--buffers", "host")
        runs = self.runs_of(document)
        self.assertEqual(len(runs), 2 * 2 * 3)
        self.assertEqual({one["op"] for one in runs}, {"read_lat", "write_bw"})
        self.assertEqual({one["client"]["device"] for one in runs}, {"soft0", "soft1"})

    def test_settings_of_bandwidth_do_not_stop_the_other_tests(self):
        _, document = self.sweep("-d", "soft0", "--sizes", "64", "-q", "2", "-b", "-t", "16", "-l", "4",
                                 "-I", "16", "-e")
        runs = {one["op"]: one for one in self.runs_of(document)}
        self.assertEqual(sorted(runs), sorted(TESTS))
        self.assertEqual((runs["write_bw"]["qps"], runs["write_lat"]["qps"]), (2, 2))
        self.assertEqual(runs["write_bw"]["direction"], "bidirectional")
        self.assertEqual((runs["write_lat"]["wait"], runs["send_lat"]["wait"]), ("poll", "event"))

    def test_one_server_for_all_of_it(self):
        with Server() as server:
            _, document = self.sweep("--sizes", "64,4K", "--devices", "soft0",
                                     target=("127.0.0.1", "-p", str(server.port)))
            self.assertEqual(len(self.runs_of(document)), 12)
            server.wait_line("done, 12 runs")

    def test_a_failing_device_is_noted_and_the_rest_goes_on(self):
        result, document = self.sweep("--sizes", "64,128", "--ops", "write_bw,read_bw", code=3,
                                      env={"SOFTNIC": "soft0:fail=reg_mr:ENOMEM;soft1"})
        self.assertEqual([one["client"]["device"] for one in self.runs_of(document)], ["soft1"] * 4)
        self.assertEqual(len(document["warnings"]), 4)
        for warning in document["warnings"]:
            self.assertIn("ibv_reg_mr", warning)
        self.assertIn("4 of 8 runs failed", result.err)
        self.assertIn("write_bw 64 B soft0", result.err)
        self.assertEqual(result.err.count("hint:"), 1, result.err)

    def test_the_worst_code_counts(self):
        result, _ = self.sweep("--sizes", "64", "--ops", "write_bw", "--peer-dev", "soft9", code=2)
        self.assertIn("2 of 2 runs failed", result.err)

    def test_a_device_without_a_port_is_left_out_and_said(self):
        result, document = self.sweep("--sizes", "64", "--ops", "write_bw",
                                      env={"SOFTNIC": "soft0:port=down;soft1"})
        self.assertEqual([one["client"]["device"] for one in self.runs_of(document)], ["soft1"])
        self.assertIn("soft0: left out", result.err)
        self.assertIn("soft0: left out", document["warnings"][0])

    def test_an_unknown_device_ends_it_before_it_begins(self):
        result = run("sweep", "--local", "--softnic", "--devices", "soft0,soft9")
        self.expect_error(result, 2, "'soft9'", "soft0, soft1", within=5)
        self.assertEqual(result.out, "")


if __name__ == "__main__":
    main()
