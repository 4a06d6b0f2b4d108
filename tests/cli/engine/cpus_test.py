#!/usr/bin/env python3
"""Two ends on one host run on CPUs of their own, and say so where they cannot."""

import json
import os
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, Server, main, run, softnic_works

CPUS = sorted(os.sched_getaffinity(0))
SHORT = ["--softnic", "-n", "200", "-s", "8"]


@unittest.skipIf(softnic_works(), "no software device")
class Cpus(CliTest):
    def cpus_and_warnings(self, *words, **options):
        result = run(*words, "--json", "-", **options)
        self.expect_ok(result)
        (record,) = self.runs_of(json.loads(result.out))
        return [record[end]["cpu"] for end in ("client", "server")], " ".join(record["warnings"])

    def expect_apart(self, *words):
        cpus, warnings = self.cpus_and_warnings(*words)
        self.assertEqual(len(set(cpus)), 2, cpus)
        self.assertNotIn("client and server ran on CPU ", warnings)
        return cpus

    @unittest.skipIf(len(CPUS) < 2, "one CPU")
    def test_both_ends_in_one_process_have_their_own(self):
        for test in ("write_bw", "write_lat", "send_lat"):
            with self.subTest(test):
                self.expect_apart(test, "--local", *SHORT)
        for flag, end in (("--cpu", 0), ("--peer-cpu", 1)):
            for cpu in CPUS[:2]:
                with self.subTest(flag, cpu=cpu):
                    self.assertEqual(self.expect_apart("write_lat", "--local", *SHORT, flag, cpu)[end], cpu)

    @unittest.skipIf(len(CPUS) < 2, "one CPU")
    def test_so_have_two_processes_of_one_host(self):
        with Server() as server:
            there = ["write_lat", "127.0.0.1", "-p", server.port, *SHORT]
            self.expect_apart(*there)
            for cpu in CPUS[:2]:
                self.expect_apart(*there, "--cpu", cpu)
                self.expect_apart(*there, "--peer-cpu", cpu)
            # A client that taskset leaves one CPU: the server moves away.
            cpus, _ = self.cpus_and_warnings(*there, command=["taskset", "-c", str(CPUS[0])])
            self.assertEqual(cpus[0], CPUS[0])
            self.assertNotEqual(cpus[1], CPUS[0])

    def test_one_cpu_for_both_is_a_warning(self):
        cpu = CPUS[-1]
        for words, options in ((["--cpu", cpu, "--peer-cpu", cpu], {}),
                               ([], {"command": ["taskset", "-c", str(cpu)]})):
            with self.subTest(words):
                cpus, warnings = self.cpus_and_warnings("write_lat", "--local", *SHORT, *words, **options)
                self.assertEqual(cpus, [cpu, cpu])
                self.assertIn(f"client and server ran on CPU {cpu}, ", warnings)
                self.assertIn("--peer-cpu", warnings)
        table = run("write_lat", "--local", *SHORT, "--cpu", cpu, "--peer-cpu", cpu)
        self.assertIn(f"client and server ran on CPU {cpu}", table.out)


if __name__ == "__main__":
    main()
