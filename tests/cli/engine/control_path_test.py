#!/usr/bin/env python3
"""What is not data: gdrperf reg_lat and gdrperf connect_rate.

usage: control_path_test.py GDRPERF SCHEMA
"""

import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from support import CliTest, run


class Words(CliTest):
    def test_bad_input_is_refused_in_words(self):
        self.expect_error(run("reg_lat", "--softnic", "-s", "0"), 2, "-s")
        self.expect_error(run("reg_lat", "--softnic", "--buffer", "tape"), 2, "--buffer", "no such kind")
        self.expect_error(run("reg_lat", "--softnic", "--register", "glue"), 2, "--register")
        self.expect_error(run("connect_rate", "--local", "-n", "0"), 2, "-n")
        self.expect_error(run("connect_rate", ""), 2, "HOST is empty")
        self.assertEqual(run("connect_rate", "--local", "node2").code, 2)


@unittest.skipIf(support.softnic_works(), "no software device")
class Costs(CliTest):
    def test_registration_by_size_with_and_without_odp(self):
        result = run("reg_lat", "--softnic", "-s", "4K,64K", "--time", "1ms", "--odp", "--json", "-")
        self.expect_ok(result)
        document = json.loads(result.out)
        self.assertEqual([(each["bytes"], each["odp"]) for each in document["registrations"]],
                         [(4096, False), (65536, False), (4096, True), (65536, True)])
        for each in document["registrations"]:
            self.assertGreaterEqual(each["samples"], 10)
            self.assertLessEqual(each["register"]["min_ns"], each["register"]["median_ns"])
            self.assertGreater(each["release"]["median_ns"], 0)
        table = run("reg_lat", "--softnic", "-s", "4K", "--time", "1ms")
        self.assertIn("REGISTER us", table.out)
        self.assertIn("device kind s", table.out)

    def test_memory_that_is_not_there_is_named(self):
        result = run("reg_lat", "--softnic", "-s", "1G", "--buffer", "hugepage", "--time", "1ms")
        if result.code == 0:
            self.skipTest("this machine has huge pages set aside")
        self.assertEqual(result.code, 3, str(result))
        self.assertIn("hugepage", result.out)

    def test_connections_in_one_process(self):
        result = run("connect_rate", "--local", "--softnic", "-n", "8", "--json", "-")
        self.expect_ok(result)
        steps = json.loads(result.out)["steps"]
        for name in ("qp_create", "qp", "address", "route", "connect", "first_message", "second_message", "disconnect",
                     "connection"):
            self.assertEqual(steps[name]["samples"], 8, name)
            self.assertGreater(steps[name]["median_ns"], 0, name)

    def test_connections_between_two_processes(self):
        with support.Background("connect_rate", "--softnic", "-p", "0") as server:
            line = server.wait_line(", port ")
            host = line.split(" at ")[1].split(",")[0]
            port = line.split(", port ")[1].split(";")[0]
            result = run("connect_rate", host, "-p", port, "--softnic", "-n", "4")
            self.expect_ok(result)
            self.assertIn("first message", result.out)
            self.assertEqual(server.wait(), 0, server.err)


if __name__ == "__main__":
    support.main()
