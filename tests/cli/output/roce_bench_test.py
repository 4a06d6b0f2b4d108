#!/usr/bin/env python3
"""The Google Benchmark program, driven as one drives any; and what Google's own compare.py makes of its JSON."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, environment, main, run

TESTS = ["write_bw", "write_lat", "send_bw", "send_lat", "read_bw", "read_lat"]
SHORT = ("--local", "--softnic", "--devices", "soft0", "-n", "20")
COMPARE = "/usr/share/benchmark/compare.py"  # of the package libbenchmark-tools
PYTHON = "/usr/bin/python3"  # the one that the distribution's modules are for

# GPU0 and the NIC behind one switch, GPU1 on the other socket.
MATRIX = "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\nGPU0\t X \tSYS\tPIX\t0-1\nGPU1\tSYS\t X \tSYS\t2-3\n" \
         "mlx5_0\tPIX\tSYS\t X \t\n"


def names_of(result):
    return result.out.split()


@unittest.skipIf(run("--local", "--softnic", "--benchmark_list_tests").code, "no software device")
class RoceBench(CliTest):
    def machine(self):
        path = self.scratch() + "/matrix.txt"
        with open(path, "w", encoding="utf-8") as file:
            file.write(MATRIX)
        return path

    def test_every_test_memory_and_size_has_a_name(self):
        result = run("--local", "--softnic", "--sizes", "8,64K", "--benchmark_list_tests")
        self.expect_ok(result)
        self.assertEqual(sorted(names_of(result)),
                         sorted(f"{test}/HOST/host:{device}/{size}/manual_time" for test in TESTS
                                for device in ("soft0", "soft1") for size in (8, 65536)))

    def test_pairs_are_named_by_relation(self):
        result = run("--machine", self.machine(), "--ops", "write_bw", "--sizes", "64K", "--benchmark_list_tests")
        self.expect_ok(result)
        self.assertEqual(names_of(result), [
            f"write_bw/{where}>host:mlx5_0/65536/simulated/manual_time"
            for where in ("PIX/GPU0:mlx5_0", "SYS/GPU1:mlx5_0")])

    def test_filter_repetitions_and_both_documents(self):
        folder = self.scratch()
        result = run("--machine", self.machine(), "-n", "20", "--sizes", "64,4K",
                     "--benchmark_filter=write_bw/PIX/.*/4096",
                     "--benchmark_repetitions=3", f"--benchmark_out={folder}/theirs.json", "--json",
                     f"{folder}/ours.json")
        self.expect_ok(result)
        with open(f"{folder}/theirs.json", encoding="utf-8") as file:
            theirs = [one for one in json.load(file)["benchmarks"] if one["run_type"] == "iteration"]
        with open(f"{folder}/ours.json", encoding="utf-8") as file:
            ours = json.load(file)
        self.check_document(ours)
        self.assertEqual({one["name"] for one in theirs},
                         {"write_bw/PIX/GPU0:mlx5_0>host:mlx5_0/4096/simulated/manual_time"})
        records = ours["relations"].pop("PIX")["write_bw"]
        self.assertEqual(ours["relations"], {})
        self.assertEqual([one["pair"] for one in records], ["GPU0/mlx5_0"] * 3)
        self.assertIn("GPU0/mlx5_0", ours["topology"]["pairs"])
        for one, record in zip(theirs, records):
            self.assertAlmostEqual(one["bytes_per_second"] / (record["bw"]["median_gbps"] / 8 * 1e9), 1, delta=1e-3)
            self.assertAlmostEqual(one["real_time"] * one["bytes_per_second"] / 1e9, 4096, delta=10)
            self.assertEqual(one["iterations"], 1)

    def test_a_run_that_fails_is_marked_and_told(self):
        folder = self.scratch()
        result = run("--local", "--softnic", "--devices", "soft0", "-n", "20", "--ops", "write_bw", "--sizes", "64",
                     "--peer-dev", "soft7", f"--benchmark_out={folder}/theirs.json")
        self.assertEqual(result.code, 2, str(result))
        with open(f"{folder}/theirs.json", encoding="utf-8") as file:
            (one,) = json.load(file)["benchmarks"]
        self.assertTrue(one["error_occurred"])
        self.assertIn("soft7", one["error_message"])

    def test_standard_output_is_google_benchmarks(self):
        for option in (("--json", "-"), ("--csv", "-"), ("--format", "csv")):
            result = run(*SHORT, *option)
            self.assertEqual(result.code, 2, str(result))
            self.assertIn("standard output", result.err)
        self.assertEqual(run(*SHORT, "--benchmark_such").code, 2)
        self.assertEqual(run("--softnic").code, 2)

    @unittest.skipUnless(os.path.exists(COMPARE), "Google Benchmark's compare.py is not installed")
    def test_googles_compare_reads_it(self):
        if subprocess.run([PYTHON, "-c", "import numpy, scipy"], capture_output=True).returncode:
            self.skipTest("compare.py needs python3-scipy")
        folder = self.scratch()
        for name in ("old", "new"):
            self.expect_ok(run(*SHORT, "--ops", "write_bw,read_lat", "--sizes", "64", "--benchmark_repetitions=3",
                               f"--benchmark_out={folder}/{name}.json"))
        done = subprocess.run([PYTHON, "-B", COMPARE, "benchmarks", f"{folder}/old.json", f"{folder}/new.json"],
                              env=environment(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("write_bw/HOST/host:soft0/64", "read_lat/HOST/host:soft0/64", "_pvalue"):
            self.assertIn(name, done.stdout)


if __name__ == "__main__":
    main()
