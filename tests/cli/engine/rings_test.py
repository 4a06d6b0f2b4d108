#!/usr/bin/env python3
"""Messages that threads post to the rings of mlx5 QPs themselves (--initiator cpu-rings; gpu without a GPU is refused):
rings_test.py GDRPERF SCHEMA.

The device is the software device as an mlx5; the threads run the code that a GPU's kernel runs.
"""

import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, main, run

DEVICE = "mlx5_0:mlx5=on"
BANDWIDTH = ("write_bw", "write_imm_bw", "read_bw", "send_bw", "atomic_bw")
LATENCY = ("write_lat", "write_imm_lat", "read_lat", "send_lat", "atomic_lat")


class Rings(CliTest):
    def measure(self, test, *words, device=DEVICE):
        return run(test, "--local", "--softnic", "--initiator", "cpu-rings", *words, "--json", "-",
                   env={"SOFTNIC": device}, timeout=120)

    def record(self, test, *words):
        result = self.measure(test, *words)
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        return self.runs_of(document)[0]

    def test_every_operation_moves_what_it_should(self):
        for test in BANDWIDTH + LATENCY:
            with self.subTest(test=test):
                sizes = "8" if test.startswith("atomic") else "1,4096"
                self.expect_ok(self.measure(test, "-s", sizes, "-n", "300" if test in BANDWIDTH else "30", "--verify"))

    def test_the_record_says_who_posted_and_how(self):
        record = self.record("write_bw", "-s", "4K", "-D", "0.3s")
        self.assertEqual(record["initiator"], "cpu-rings")
        self.assertEqual(record["client"]["doorbells"], "uar")
        self.assertNotIn("doorbells", record["server"])
        # One clock, read by two threads of one host.
        self.assertLess(abs(record["poster_clock_ppm"]), 500 + record["poster_clock_doubt_ppm"])

    def test_a_count_is_kept(self):
        for words in (("-q", "3"), ("-l", "4"), ("-Q", "7"), ("-t", "4", "-l", "4", "-Q", "4")):
            with self.subTest(words=words):
                record = self.record("send_bw", "-s", "64", "-n", "1001", *words)
                self.assertEqual(record["iterations"], 1001)

    def test_both_directions(self):
        self.expect_ok(self.measure("send_bw", "-s", "4K", "-n", "300", "-b"))
        self.expect_ok(self.measure("write_bw", "-s", "4K", "-n", "300", "-b", "--verify"))
        self.expect_ok(self.measure("write_bw", "-s", "4K", "-n", "300", "--reverse"))

    def test_a_put_with_a_signal(self):
        for signal in ("write", "imm", "atomic"):
            with self.subTest(signal=signal):
                self.expect_ok(self.measure("write_lat", "-s", "4K", "-n", "50", "--signal", signal))

    def test_refusals_name_what_is_missing(self):
        refusals = (
            (("write_bw",), "soft0", 3, "soft0 is not an mlx5 device"),
            (("write_bw", "--transport", "uc"), DEVICE, 2, "--initiator cpu-rings and --transport"),
            (("write_bw", "--gpu-threads", "4"), DEVICE, 2, "--gpu-threads: no kernel posts messages"),
            (("write_bw", "-I", "16"), DEVICE, 2, "the threads do not send inline"),
            (("write_lat", "-q", "2"), DEVICE, 2, "who posts waits for one QP"),
        )
        for words, device, code, text in refusals:
            with self.subTest(words=words):
                result = self.measure(*words, device=device)
                self.assertEqual(result.code, code, result.err)
                self.assertIn(text, result.err)

    def test_gpu_asks_for_memory_of_a_gpu(self):
        result = run("write_bw", "--local", "--softnic", "--initiator", "gpu", env={"SOFTNIC": DEVICE})
        self.assertEqual(result.code, 2)
        self.assertIn("is not in a GPU of NVIDIA's", result.err)
        self.assertIn("--buffer cuda:N", result.err)


if __name__ == "__main__":
    main()
