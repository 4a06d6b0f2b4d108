#!/usr/bin/env python3
"""--register all where there is no GPU: it says so in words."""

import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, main, run


class RegisterAll(CliTest):
    def test_host_memory_has_nothing_to_try(self):
        self.expect_error(run("write_bw", "--local", "--softnic", "--register", "all"), 2, "--register all",
                          "neither buffer is in GPU memory", "cuda:0")

    def test_a_sweep_does_not_have_it(self):
        self.expect_error(run("sweep", "--local", "--softnic", "--register", "all"), 2,
                          "--register all: of one test at a time")

    def test_without_a_gpu(self):
        result = run("write_bw", "--local", "--softnic", "--buffer", "cuda:0", "--register", "all")
        if result.code == 0:
            self.assertIn("GPU memory given to", result.out)  # a machine with a GPU
            return
        self.expect_error(result, 3, "--buffer cuda:0")

    def test_each_way_is_a_word(self):
        for way in ("data-direct", "dmabuf", "dmabuf-pcie", "peermem"):
            result = run("write_bw", "--local", "--softnic", "--register", way, "-n", "10")
            self.expect_ok(result)
        self.expect_error(run("write_bw", "--local", "--register", "magic"), 2, "--register", "data-direct")


if __name__ == "__main__":
    main()
