#!/usr/bin/env python3
"""Memory of AMD's GPUs (--buffer rocm:N), with a library that stands in for ROCm's.

usage: rocm_test.py GDRPERF SCHEMA; GDRPERF_ROCM_STANDIN: the folder of the library
"""

import json
import os
import unittest

import support
from support import CliTest, run

STANDIN = {"LD_LIBRARY_PATH": os.environ.get("GDRPERF_ROCM_STANDIN", "/nonexistent")}
LOCAL = ["--local", "--softnic"]


class Words(CliTest):
    def test_without_the_library_it_says_what_to_install(self):
        result = run("write_bw", *LOCAL, "--buffer", "rocm:0", "-n", "10", env={"LD_LIBRARY_PATH": "/nonexistent"})
        self.expect_error(result, 3, "no AMD GPU can be used", "libamdhip64", "ROCm's runtime")

    def test_a_gpu_that_is_not_there(self):
        self.expect_error(run("write_bw", *LOCAL, "--buffer", "rocm:7", "-n", "10", env=STANDIN), 2, "--buffer rocm:7", "AMD GPUs 0 to 1")
        self.expect_error(run("write_bw", *LOCAL, "--buffer", "rocm:", "-n", "10", env=STANDIN), 2, "--buffer", "no such kind")

    def test_what_is_for_nvidias_gpus(self):
        self.expect_error(run("write_bw", *LOCAL, "--buffer", "rocm:0", "--path", "staged", env=STANDIN), 2, "--path staged", "AMD")
        self.expect_error(run("write_bw", *LOCAL, "--buffer", "rocm:0", "--register", "data-direct", "-n", "10", env=STANDIN), 2, "--register data-direct", "NVIDIA")


@unittest.skipIf(support.softnic_works(), "no software device")
class Runs(CliTest):
    def test_every_byte_of_every_test(self):
        for test in ("write_bw", "send_bw", "read_bw", "write_lat", "send_lat", "read_lat"):
            for size in ("8", "5000"):
                with self.subTest(test=test, size=size):
                    result = run(test, *LOCAL, "--buffer", "rocm:0", "--peer-buffer", "rocm:1", "--verify", "-s", size, "-n", "64", env=STANDIN)
                    self.expect_ok(result)

    def test_the_record_names_memory_and_registration(self):
        result = run("write_bw", *LOCAL, "--use_rocm=1", "-n", "64", "--json", "-", env=STANDIN)
        self.expect_ok(result)
        text = result.out
        self.assertIn("rocm:1", text)
        self.assertIn("AMD GPU", text)

    def test_memory_is_registered_as_asked(self):
        def registered(*words):
            result = run("reg_lat", "--softnic", "--buffer", "rocm:0", *words, "-s", "64K", "--time", "1ms", "--json", "-", env=STANDIN)
            return json.loads(result.out)["registrations"][0]
        for words in ([], ["--register", "peermem"]):
            self.assertEqual(registered(*words)["registration"], "peermem")
        # What stands in exports a file descriptor that is no dma-buf: the library's part is done, the device refuses.
        self.assertIn("rocm:0: ibv_reg_dmabuf_mr: ", registered("--register", "dmabuf")["error"])


if __name__ == "__main__":
    support.main()
