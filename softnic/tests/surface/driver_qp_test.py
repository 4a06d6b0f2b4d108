#!/usr/bin/env python3
"""QPs of DC and SRD, with libraries that stand in for libmlx5 and libefa.

usage: driver_qp_test.py GDRPERF SOFTNIC_LIBRARY MLX5_LIBRARY EFA_LIBRARY
"""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

GDRPERF, SOFTNIC, MLX5, EFA = sys.argv[1:5]
STANDINS = {"dc": MLX5, "srd": EFA}


def run(transport, *words, standin=None):
    """(exit code, what it printed, number of QPs of each kind)"""
    with tempfile.TemporaryDirectory(prefix="gdrperf-dc-") as folder:
        preload = SOFTNIC if standin == "" else f"{standin or STANDINS[transport]} {SOFTNIC}"
        env = {**os.environ, "LD_PRELOAD": preload, "STANDIN_FOLDER": folder, "SOFTNIC": "soft0"}
        transports = [] if "-c" in words else ["--transport", transport]
        done = subprocess.run([GDRPERF, *words, "--local", "-d", "soft0", *transports],
                              env=env, capture_output=True, text=True, timeout=120)
        log = pathlib.Path(folder, "log")
        calls = collections.Counter(log.read_text().split() if log.exists() else [])
        return done.returncode, done.stdout + done.stderr, calls


class Dc(unittest.TestCase):
    def test_every_test_runs_over_initiators_and_targets(self):
        for op in ("write", "send", "read", "write_imm", "send_imm", "atomic"):
            for what in ("bw", "lat"):
                with self.subTest(op=op, what=what):
                    code, text, made = run("dc", f"{op}_{what}", "-n", "500")
                    self.assertEqual((code, made), (0, {"dci": 2, "dct": 2}), text)

    def test_every_byte_arrives(self):
        for words in (["write_bw", "-s", "5000"], ["send_bw", "-s", "64K", "-q", "3"], ["read_bw", "-s", "1M", "-b"],
                      ["write_lat", "-s", "8"], ["send_lat", "-s", "100"], ["send_bw", "--sge", "4", "-s", "8K"]):
            with self.subTest(words):
                code, text, _ = run("dc", *words, "--verify", "-n", "64")
                self.assertEqual(code, 0, text)

    def test_each_qp_has_an_initiator_and_a_target(self):
        code, text, made = run("dc", "write_bw", "-q", "4", "-n", "100")
        self.assertEqual((code, made), (0, {"dci": 8, "dct": 8}), text)

    def test_perftests_spelling(self):
        code, text, _ = run("dc", "ib_send_bw", "-c", "DC", "-n", "100", "-F")
        self.assertEqual(code, 0, text)
        self.assertIn("Connection type : DC", text)


class Srd(unittest.TestCase):
    def test_every_test_but_atomics(self):
        for op in ("write", "send", "read", "write_imm", "send_imm"):
            for what in ("bw", "lat"):
                with self.subTest(op=op, what=what):
                    code, text, made = run("srd", f"{op}_{what}", "-n", "500")
                    self.assertEqual((code, made["srd"] >= 2), (0, True), text)
        code, text, _ = run("srd", "atomic_bw", "-n", "10")
        self.assertEqual(code, 2, text)
        self.assertIn("verbs have no atomic over SRD", text)

    def test_every_byte_arrives(self):
        for words in (["write_bw", "-s", "5000", "-q", "2"], ["read_bw", "-s", "64K"], ["write_lat", "-s", "64"]):
            with self.subTest(words):
                code, text, _ = run("srd", *words, "--verify", "-n", "64")
                self.assertEqual(code, 0, text)

    def test_what_has_no_order_is_refused(self):
        for words, why in ((["send_bw", "--verify"], "arrive in any order"),
                           (["write_lat", "--signal", "write"], "may overtake"),
                           (["send_bw", "--srq"], "not for SRD")):
            with self.subTest(words):
                code, text, made = run("srd", *words, "-n", "10")
                self.assertEqual((code, made), (2, {}), text)
                self.assertIn(why, text)

    def test_a_request_has_at_most_what_the_device_takes(self):
        code, text, _ = run("srd", "write_bw", "-s", "2M", "-n", "10")
        self.assertEqual(code, 2, text)
        self.assertIn("takes RDMA requests over SRD up to 1 MiB", text)


class Missing(unittest.TestCase):
    def test_it_says_what_is_missing(self):
        for transport, standin, why in (("dc", "", "soft0 is no device of mlx5_core"),
                                        ("srd", "", "soft0 is no device of efa"),
                                        ("dc", EFA, "no device of mlx5_core (NVIDIA's ConnectX and BlueField) but of "
                                         "efa"),
                                        ("srd", MLX5, "mlx5dv")):
            with self.subTest(transport=transport, why=why):
                code, text, made = run(transport, "write_bw", "-n", "10", standin=standin)
                self.assertEqual((code, made), (3, {}), text)
                self.assertIn(why if why != "mlx5dv" else "efadv_create_qp_ex alone makes SRD", text)
                self.assertIn("--transport rc", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
