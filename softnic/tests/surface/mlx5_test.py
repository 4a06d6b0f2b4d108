#!/usr/bin/env python3
"""What is asked of libmlx5, with one that stands in for it: QPs that place packets out of order, ports of a bond.

usage: mlx5_test.py GDRPERF SOFTNIC_LIBRARY MLX5_LIBRARY
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

GDRPERF, SOFTNIC, MLX5 = sys.argv[1:4]


def runs_of(value):
    if isinstance(value, dict):
        if "op" in value and "warnings" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from runs_of(each)


class Mlx5(unittest.TestCase):
    def run_test(self, *words, receives=None, test="send_bw", preload=True):
        """Exit code, what it said, its record, and what libmlx5 was asked for."""
        with tempfile.TemporaryDirectory() as folder:
            log, document = pathlib.Path(folder, "log"), pathlib.Path(folder, "run.json")
            env = {**os.environ, "LD_PRELOAD": f"{MLX5} {SOFTNIC}" if preload else SOFTNIC, "MLX5_LOG": str(log),
                   "SOFTNIC": "soft0;soft1"}
            if receives is not None:
                env["MLX5_OOO"] = str(receives)
            done = subprocess.run([GDRPERF, test, "--local", "-d", "soft0", "--peer-dev", "soft1", "-n", "100",
                                   "--json", document, *words],
                                  env=env, capture_output=True, text=True, timeout=120)
            record = next(runs_of(json.loads(document.read_text())), {}) if done.returncode == 0 else {}
            return done.returncode, done.stdout + done.stderr, record, log.read_text().split() if log.exists() else []

    def granted(self, *words, **how):
        code, said, record, asked = self.run_test(*words, **how)
        self.assertEqual(code, 0, said)
        self.assertTrue(record["placed_out_of_order"], record)
        self.assertEqual(set(asked), {"create_flags=128"}, asked)
        return record, asked

    def refused(self, code, *words, names=(), **how):
        got, said, _, asked = self.run_test(*words, **how)
        self.assertEqual((got, asked), (code, []), said)
        for name in names:
            self.assertIn(name, said)

    def in_order(self, why, *words, **how):
        code, said, record, asked = self.run_test(*words, **how)
        self.assertEqual((code, asked), (0, []), said)
        self.assertNotIn("placed_out_of_order", record)
        self.assertEqual([why in each for each in record["warnings"]
                          if each.startswith("--ooo auto: packets are placed in order")], [True], record["warnings"])

    def test_both_ends_make_such_qps(self):
        for words in (("--ooo", "on"), ("--ooo", "auto"), ("--use_ooo",)):
            record, asked = self.granted(*words, receives=512)
            self.assertEqual((record["ooo"], len(asked)), (words[1] if len(words) > 1 else "on", 2))
        _, asked = self.granted("--ooo", "on", "-q", "3", receives=512, test="write_bw")
        self.assertEqual(len(asked), 6)
        self.granted("--ooo", "on", "--verify", receives=512, test="write_bw")

    def test_nobody_is_asked_without_the_option(self):
        for words in ((), ("--ooo", "off"), ("--no_enhanced_reorder",)):
            code, said, record, asked = self.run_test(*words, receives=512)
            self.assertEqual((code, asked), (0, []), said)
            self.assertNotIn("placed_out_of_order", record)

    def test_a_device_without_it_is_named(self):
        self.refused(3, "--ooo", "on",
                     names=["--ooo on: soft1 has no QPs that place packets out of order", "knows of none"])
        self.refused(3, "--ooo", "on", receives=0, names=["--ooo on: soft", "ooo_recv_wrs_caps"])
        self.refused(3, "--ooo", "on", receives=256, names=["256 receives per QP", "512 (-r)"])
        self.refused(3, "--ooo", "on", preload=False, names=["--ooo on: soft1", "mlx5 devices alone"])
        self.in_order("knows of none", "--ooo", "auto")
        self.in_order("mlx5 devices alone", "--ooo", "auto", preload=False)

    def test_not_where_the_order_is_needed(self):
        self.refused(2, "--ooo", "on", receives=512, test="write_lat",
                     names=["--ooo on: write_lat waits for the last byte"])
        self.refused(2, "--ooo", "on", "-R", receives=512, names=["--ooo on: rdma_cm"])
        self.refused(2, "--ooo", "on", "--verify", receives=512, names=["in the order of the receives"])
        self.in_order("waits for the last byte", "--ooo", "auto", receives=512, test="write_lat")
        self.in_order("in the order of the receives", "--ooo", "auto", "--verify", receives=512)

    def test_ports_of_a_bond_are_dealt_in_turn(self):
        code, said, record, asked = self.run_test("--lag-port", "1,2", "-q", "3", test="write_bw")
        self.assertEqual(code, 0, said)
        self.assertEqual((record["lag_port"], sorted(asked)), ("1,2", ["lag_port=1"] * 4 + ["lag_port=2"] * 2))
        code, said, _, _ = self.run_test("--lag-port", "3", test="write_bw")
        self.assertEqual(code, 3, said)
        self.assertIn("--lag-port 3: soft", said)
        self.assertIn("is it a bond of at least 3 ports?", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
