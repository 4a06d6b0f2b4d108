#!/usr/bin/env python3
"""Memory of AMD's and Intel's GPUs (--buffer rocm:N, ze:N), with libraries that stand in for their makers'.

usage: accelerators_test.py GDRPERF SCHEMA; GDRPERF_STANDINS: the folder of the libraries
"""

import json
import os
import sys
import unittest
from ctypes.util import find_library

sys.path.insert(0, sys.path[0] + "/..")
import support
from support import CliTest, run

STANDIN = {"LD_LIBRARY_PATH": os.environ.get("GDRPERF_STANDINS", "/nonexistent")}
LOCAL = ["--local", "--softnic"]
# kind: (maker, library, what to install, its GPU's name, place of GPU 1)
MAKERS = {"rocm": ("AMD", "libamdhip64", "ROCm's runtime", "AMD GPU", "0000:84:00.0"),
          "ze": ("Intel", "libze_loader", "Level Zero", "Intel stand-in GPU", "0000:42:00.0")}


class Words(CliTest):
    def test_without_the_library_it_says_what_to_install(self):
        missing = {kind: words for kind, words in MAKERS.items() if not find_library(words[1].removeprefix("lib"))}
        if not missing:
            self.skipTest("this machine has the libraries of all makers")
        for kind, (maker, library, install, *_) in missing.items():
            result = run("write_bw", *LOCAL, "--buffer", f"{kind}:0", "-n", "10",
                         env={"LD_LIBRARY_PATH": "/nonexistent"})
            self.expect_error(result, 3, f"no {maker} GPU can be used", library, install)

    def test_a_gpu_that_is_not_there(self):
        for kind, (maker, *_) in MAKERS.items():
            result = run("write_bw", *LOCAL, "--buffer", f"{kind}:7", "-n", "10", env=STANDIN)
            self.expect_error(result, 2, f"--buffer {kind}:7", f"{maker} GPUs 0 to 1", f"give {kind}:N")
            result = run("write_bw", *LOCAL, "--buffer", f"{kind}:", "-n", "10", env=STANDIN)
            self.expect_error(result, 2, "--buffer", "no such kind")

    def test_what_is_for_nvidias_gpus(self):
        for kind, (maker, *_) in MAKERS.items():
            result = run("write_bw", *LOCAL, "--buffer", f"{kind}:0", "--path", "staged", env=STANDIN)
            self.expect_error(result, 2, "--path staged", maker)
            result = run("write_bw", *LOCAL, "--buffer", f"{kind}:0", "--register", "data-direct", "-n", "10",
                         env=STANDIN)
            self.expect_error(result, 2, "--register data-direct", "NVIDIA")


@unittest.skipIf(support.softnic_works(), "no software device")
class Runs(CliTest):
    def test_every_byte_of_every_test(self):
        for kind in MAKERS:
            for test in ("write_bw", "send_bw", "read_bw", "write_lat", "send_lat", "read_lat"):
                for size in ("8", "5000"):
                    with self.subTest(kind=kind, test=test, size=size):
                        result = run(test, *LOCAL, "--buffer", f"{kind}:0", "--peer-buffer", f"{kind}:1", "--verify",
                                     "-s", size, "-n", "64", env=STANDIN)
                        self.expect_ok(result)

    def test_the_record_names_memory_and_registration(self):
        for kind, (_, _, _, name, place) in MAKERS.items():
            typed = ["--use_rocm=1"] if kind == "rocm" else ["--buffer", f"{kind}:1"]
            result = run("write_bw", *LOCAL, *typed, "-n", "64", "--json", "-", env=STANDIN)
            self.expect_ok(result)
            for text in (f"{kind}:1", name, place):
                self.assertIn(text, result.out)

    def test_ranks_of_a_cluster_reduce_over_the_gpus_they_see(self):
        port = support.free_port()
        env = {**STANDIN, "SOFTNIC": "nic0:rate=2MB/s,react=500ms;nic1:rate=2MB/s,react=500ms"}
        for fault, failed in (({}, 0), ({"RCCL_STANDIN_FAULT": "flip"}, 4)):
            ranks = [support.Background("cluster", "--softnic", "-e", "--rank", rank, "--ranks", 2, "--root",
                                        f"127.0.0.1:{port}", "-s", "16K", "--small", "0", "-D", "100ms",
                                        *(["--patterns", "nccl", "--json", "-"] if rank == 0 else []),
                                        env={**env, **fault}) for rank in range(2)]
            codes = [rank.wait() for rank in ranks]
            self.assertEqual(codes, [4, 0], ranks[0].err)
            steps = json.loads(ranks[0].out)["collectives"]
            self.assertEqual([(each["step"], each["gpus"], each["library"]) for each in steps],
                             [("all_reduce 16 KiB", 2, "RCCL 2.21.5"), ("all_reduce 2 MiB", 2, "RCCL 2.21.5")])
            self.assertEqual(sum(len(each["failed"]) for each in steps), failed, steps)
            for each in steps:
                self.assertTrue(all("wrong data after ncclAllReduce" in why for why in each["failed"]), each)
                self.assertEqual(each["bus_gbytes"] is None, failed > 0)
                self.assertIsNone(each["share_of_pairs"], "GPUs of one host need no NICs")

    def test_memory_is_registered_as_asked(self):
        def registered(kind, *words):
            result = run("reg_lat", "--softnic", "--buffer", f"{kind}:0", *words, "-s", "64K", "--time", "1ms",
                         "--json", "-", env=STANDIN)
            return json.loads(result.out)["registrations"][0]
        for kind in MAKERS:
            for words in ([], ["--register", "peermem"]):
                self.assertEqual(registered(kind, *words)["registration"], "peermem")
            # The stand-in exports a file descriptor that is no dma-buf: the library does its part, the device refuses.
            self.assertIn(f"{kind}:0: ibv_reg_dmabuf_mr: ", registered(kind, "--register", "dmabuf")["error"])


if __name__ == "__main__":
    support.main()
