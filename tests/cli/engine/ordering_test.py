#!/usr/bin/env python3
"""Relaxed against strict ordering, measured in turn, on a simulated host where strictly ordered writes are slow."""

import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from made_machine import MachineTest
from support import CliTest, main, rates, run

# Strict messages reach a quarter of the port's rate. A large `react` hides what else this machine does.
HOST = "rate=400MB/s,latency=2us,react=100ms,copy=edges"
SLOW_WHEN_STRICT = f"soft0:{HOST},strict=100MB/s;soft1:{HOST},strict=100MB/s"


class OrderingTest(CliTest):
    def paired(self, test, *words, softnic=SLOW_WHEN_STRICT):
        result = run(test, "--local", "--softnic", "--peer-dev", "soft1", "--relaxed-ordering", "both", *words,
                     "--json", "-",
                     env={"SOFTNIC": softnic})
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        return document, result


class Ordering(OrderingTest):
    def test_a_test_that_cannot_be_relaxed_is_run_once(self):
        document, _ = self.paired("write_lat", "-n", "100")
        self.assertEqual(len(document["relations"]["HOST"]["write_lat"]), 1)
        self.assertNotIn("orderings", document)
        self.assertNotIn("relaxed_ordering", document["relations"]["HOST"]["write_lat"][0])

    def test_of_a_sweep_with_its_plan(self):
        result = run("sweep", "--local", "--softnic", "--ops", "write_bw,write_lat", "--sizes", "64,4K", "--devices",
                     "soft0",
                     "--relaxed-ordering", "both", "-n", "100", "--json", "-", env={"SOFTNIC": "soft0"})
        self.expect_swept(result)
        document = json.loads(result.out)
        self.check_document(document)
        self.assertEqual(len(self.runs_of(document)), 2 * 2 + 2)
        self.assertEqual([len(each["sizes"]) for each in document["orderings"]], [2])

    def test_a_wrong_word(self):
        self.expect_error(run("write_bw", "--local", "--relaxed-ordering", "maybe"), 2, "--relaxed-ordering")


class OnAMachine(MachineTest):
    def test_a_wrong_rate_is_named(self):
        links = self.write("links.txt", "PIX rate=200MB/s,strict=fast\n")
        result = run("sweep", "--machine", self.three_relations(), "--link-model", links)
        self.expect_error(result, 2, "links.txt:1: strict")


# What is held against a model of the host. Runs alone.
@rates
class Rates(OrderingTest, MachineTest):
    def test_what_it_is_worth_is_said(self):
        for test in ("write_bw", "send_bw", "read_bw"):
            document, result = self.paired(test, "-s", "64K", "-D", "300ms")
            runs = document["relations"]["HOST"][test]
            self.assertEqual([each["relaxed_ordering"] for each in runs], ["on", "off"])
            [verdict] = document["orderings"]
            [size] = verdict["sizes"]
            self.assertGreater(size["relaxed_over_strict"], 1.5, str(result))
            if not size["unstable"]:
                self.assertTrue(size["differ"], str(result))
                self.assertIn("relaxed ordering is worth +", verdict["worth"])
            self.assertIn("relaxed or strict ordering", result.err)

    def test_each_relation_has_what_it_is_worth_there(self):
        host = "latency=5us,react=100ms"
        links = self.write("links.txt", f"PIX rate=200MB/s,strict=50MB/s,{host}\nPHB rate=100MB/s,{host}\n")
        result = run("sweep", "--machine", self.three_relations(), "--link-model", links, "--pairs", "PIX,PHB", "--ops",
                     "write_bw",
                     "--sizes", "64K", "-D", "400ms", "--relaxed-ordering", "both", "--json", "-")
        self.expect_swept(result)
        document = json.loads(result.out)
        self.check_document(document)
        worth = {each["relation"]: each["sizes"][0]["relaxed_over_strict"] for each in document["orderings"]}
        self.assertEqual(set(worth), {"PIX", "PHB"}, str(result))
        self.assertGreater(worth["PIX"], 2, str(result))
        self.assertLess(worth["PHB"], 2, str(result))
        # Figures of one order alone are compared between relations.
        self.assertIn("write_bw/simulated, relaxed ordering, GB/s", result.err)
        self.assertIn("write_bw/simulated, strict ordering, GB/s", result.err)
        self.assertNotIn("write_bw/simulated, GB/s", result.err)


if __name__ == "__main__":
    main()
