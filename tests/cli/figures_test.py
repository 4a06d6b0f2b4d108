"""What a run's figure stands on: N means N, unstable is marked whatever ended the run, a stopped end shows."""

import json
import os
import signal
import time
import unittest

import support
from support import CliTest, Background, Server, run

LINK = {"SOFTNIC": "soft0:rate=1GB/s,latency=4us;soft1:rate=1GB/s,latency=4us"}


@unittest.skipIf(support.softnic_works(), "no software device")
class FiguresTest(CliTest):
    def setUp(self):
        self.document = os.path.join(self.scratch(), "run.json")

    def measured(self, *args, target=("--local",), env=None):
        result = run(*args, *target, "--softnic", "--json", self.document, env=env)
        self.expect_ok(result)
        with open(self.document, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        return self.runs_of(document), result

    def test_n_means_n_for_every_test_and_direction(self):
        with Server() as server:
            target = ("127.0.0.1", "-p", server.port)
            for test in ("write_bw", "send_bw", "read_bw", "write_lat", "send_lat", "read_lat"):
                bandwidth = test.endswith("_bw")
                for extra in ([], ["--verify"], *([["-b"], ["-b", "--verify"], ["-q", 3, "-t", 60, "-l", 4, "-Q", 12]]
                                                  if bandwidth else [])):
                    for number in (1, 133):
                        runs, _ = self.measured(test, "-s", 64, "-n", number, *extra, target=target)
                        with self.subTest(test=test, extra=extra, n=number):
                            self.assertEqual([run["iterations"] for run in runs], [number])
                            self.assertEqual(runs[0]["stop"], "iterations")

    def test_too_short_for_an_interval_is_marked_and_said(self):
        for args in (["-n", 3], ["-D", "1ms", "-s", "8M"]):
            runs, result = self.measured("write_bw", *args, env=LINK)
            self.assertTrue(runs[0]["unstable"])
            self.assertEqual(runs[0]["unstable_reason"], "short")
            self.assertIsNone(runs[0]["bw"]["ci95_gbps"])
            self.assertIn("too short for an interval", result.out)
            self.assertIn("!", result.out)

    def test_unstable_after_a_duration_carries_mark_reason_and_advice(self):
        # Nothing is known within a hundredth of a thousandth.
        runs, result = self.measured("write_bw", "-D", "300ms", "--precision", "0.00001%")
        self.assertTrue(runs[0]["unstable"])
        self.assertEqual(runs[0]["stop"], "duration")
        self.assertIn(runs[0]["unstable_reason"], ("steps", "drift", "bimodal", "periodic", "scatter"))
        self.assertRegex(runs[0]["warnings"][0], r"known within \+-.* %, not \+-1e-05 %, after")
        self.assertIn("unstable: not known within the asked precision", result.out)

    def test_a_sweep_without_a_stable_run_says_so_last_and_exits_4(self):
        result = run("sweep", "--local", "--softnic", "--sizes", "64", "--ops", "write_bw,read_bw", "-n", "3",
                     "--json", self.document)
        self.assertEqual(result.code, 4, str(result))
        self.assertIn("runs is stable: no figure here", result.err.splitlines()[-1])

    def test_a_stopped_end_is_named_and_the_run_unstable(self):
        for test, end in (("write_bw", "client"), ("write_bw", "server"), ("send_bw", "server"), ("read_lat", "server")):
            with Server() as server:
                client = Background(test, "127.0.0.1", "-p", server.port, "--softnic", "-D", "2s", "--json", self.document)
                with client:
                    client.wait_busy()
                    stopped = client if end == "client" else server
                    stopped.signal(signal.SIGSTOP)
                    time.sleep(2.2)  # what is measured, not what is waited for
                    stopped.signal(signal.SIGCONT)
                    code = client.wait()
            with self.subTest(test=test, end=end):
                self.assertEqual(code, 0, client.err)
                with open(self.document, encoding="utf-8") as file:
                    measured, = self.runs_of(json.load(file))
                self.assertTrue(measured["unstable"])
                self.assertTrue(any(f"the {end} stood still for 2." in text for text in measured["warnings"]),
                                measured["warnings"])

    def test_a_stopped_process_with_both_ends_names_both(self):
        with Background("write_bw", "--local", "--softnic", "-D", "1s", "--json", self.document) as both:
            both.wait_busy()
            both.signal(signal.SIGSTOP)
            time.sleep(1.4)
            both.signal(signal.SIGCONT)
            self.assertEqual(both.wait(), 0, both.err)
        with open(self.document, encoding="utf-8") as file:
            measured, = self.runs_of(json.load(file))
        self.assertEqual(measured["unstable_reason"], "suspended")
        for end in ("client", "server"):
            self.assertTrue(any(f"the {end} stood still" in text for text in measured["warnings"]), measured["warnings"])


if __name__ == "__main__":
    support.main()
