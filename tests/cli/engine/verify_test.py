#!/usr/bin/env python3
"""Data that is compared byte by byte: gdrperf verify, and --verify in a test."""

import json
import os
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import fault_matrix
from support import SCHEMA, CliTest, Server, cases, main, run, softnic_works

TESTS = ["write_bw", "write_lat", "send_bw", "send_lat", "read_bw", "read_lat"]


@unittest.skipIf(softnic_works(), "no software device")
class Verify(CliTest):
    def test_a_verdict_for_every_test_and_the_proof_from_device_to_device(self):
        result = run("verify", "--local", "--softnic", "--buffers", "host", "--sizes", "1,4097,1048583")
        self.assertEqual(result.code, 0, str(result))
        for test in TESTS:
            self.assertEqual(result.out.count(f"  {test:<10} PASSED"), 2, result.out)
        self.assertIn("host of soft0 to host of soft1", result.out)
        self.assertIn("12 passed, 0 failed, 0 not possible here", result.out)

    def test_against_a_server(self):
        with Server() as server:
            result = run("verify", "127.0.0.1", "-p", str(server.port), "--softnic", "--buffers", "host", "--ops",
                         "write_bw,send_lat",
                         "--sizes", "9")
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("2 passed", result.out)

    def test_options_that_change_nothing_are_told(self):
        words = ("--cap", "1s", "--precision", "5%", "--chunk", "64K", "-r", "16", "--verify", "--peer-buffer", "host")
        result = run("verify", "--local", "--softnic", "--buffers", "host", "--ops", "write_bw", "--sizes", "9", *words)
        self.assertEqual(result.code, 0, str(result))
        for flag in (word for word in words if word.startswith("-")):
            self.assertIn(f"note: {flag} changes nothing: ", result.err)
        self.assertNotIn("note",
                         run("verify", "--local", "--softnic", "--buffers", "host", "--ops", "send_bw", "--sizes", "9",
                                     "-r", "16", "-n", "30").err)

    def test_no_fault_is_missed(self):
        wrong, tried = fault_matrix.missed(())
        every = (((), ("atomic_bw",), (8,)), ((), ("write_bw",), (1, 64)), (("-A", "cmp_swap"), ("atomic_bw",), (8,)))
        for ends, tests, sizes in cases(every[:1], every):
            more, also = fault_matrix.missed(ends, tests=tests, sizes=sizes)
            wrong, tried = wrong + more, tried + also
        print(f"{tried} combinations of fault, test and size, {len(wrong)} missed", flush=True)
        self.assertEqual(wrong, [])

    def results(self, text):
        document = json.loads(text)
        self.assertEqual(document["schema"], "gdrperf-verify/1")
        try:
            import jsonschema
        except ImportError:
            return document
        with open(os.path.join(os.path.dirname(SCHEMA), "verify-schema.json"), encoding="utf-8") as schema:
            jsonschema.validate(document, json.load(schema))
        return document

    def test_verdicts_as_json(self):
        few = ["verify", "--local", "--softnic", "-d", "soft0", "--peer-dev", "soft0", "--buffers", "host", "--sizes",
               "1,4097"]
        path = self.scratch() + "/v.json"
        self.expect_ok(run(*few, "--ops", "write_bw,read_lat", "--json", path))
        with open(path, encoding="utf-8") as file:
            document = self.results(file.read())
        self.assertEqual(document["counts"], {"passed": 2, "failed": 0, "impossible": 0})
        self.assertEqual([one["op"] for one in document["results"]], ["write_bw", "read_lat"])
        for one in document["results"]:
            self.assertEqual((one["verdict"], one["sizes_bytes"]), ("passed", [1, 4097]))
            self.assertGreater(one["messages"], 0)
        wrong = run(*few, "--ops", "write_bw", "--json", "-", env={"SOFTNIC": "soft0:fault=flip:every=90"})
        self.assertEqual(wrong.code, 5, str(wrong))
        document = self.results(wrong.out)
        self.assertEqual(document["counts"], {"passed": 0, "failed": 1, "impossible": 0})
        (one,) = document["results"]
        self.assertIn(one["failed_size_bytes"], (1, 4097))
        self.assertIn("data is wrong", one["reason"])
        self.assertIn("FAILED", wrong.err, "the table made way")

    def test_other_exports_are_not_offered(self):
        for option in ("--csv=x", "--format=csv", "--output=x", "--report_gbits", "--min-gbps=1"):
            self.expect_error(run("verify", "--local", "--softnic", option), 2, f"unknown option '{option}'")
        self.expect_error(run("verify", "--local", "--softnic", "--json", "/nonexistent/x"), 3, "--json /nonexistent/x")

    def test_needs_a_target(self):
        result = run("verify", "--softnic")
        self.assertEqual(result.code, 2)
        self.assertIn("--local", result.err)

    def test_a_verified_run_says_so(self):
        path = self.scratch() + "/r.json"
        result = run("write_bw", "--local", "--softnic", "--seed", "9", "-n", "3000", "--json", path)
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("every message verified", result.out)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        self.assertEqual([one["verified"] for one in self.runs_of(document)], [True])


if __name__ == "__main__":
    main()
