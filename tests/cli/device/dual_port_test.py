#!/usr/bin/env python3
"""Both ports of a device at the same time: perftest's -O, and ports as rails.

usage: dual_port_test.py GDRPERF SCHEMA
"""

import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from support import CliTest, run

LOCAL = ["--local", "--softnic"]


@unittest.skipIf(support.softnic_works(), "no software device")
class DualPort(CliTest):
    PORTS = {"SOFTNIC": "soft0:ports=2"}

    def measured(self, *words):
        result = run("ib_write_bw", *LOCAL, *words, env=self.PORTS)
        self.expect_ok(result)
        heading, row = [line for line in result.out.splitlines() if line.startswith((" #bytes", " 65536"))]
        return heading, [float(word) for word in row.split()]

    def test_both_ports_are_used_and_added_up(self):
        heading, row = self.measured("-O", "-D", "0.2", "--report-per-port")
        self.assertIn("BW Port1[MiB/sec]   MsgRate Port1[Mpps]   BW Port2[MiB/sec]", heading)
        self.assertEqual(len(row), 9)
        self.assertGreater(min(row[5], row[7]), 0)
        self.assertAlmostEqual(row[5] + row[7], row[3], delta=row[3] * 0.01)
        self.assertAlmostEqual(row[6] + row[8], row[4], delta=row[4] * 0.01)

    def test_without_per_port_the_columns_are_the_usual_ones(self):
        heading, row = self.measured("--dualport", "-n", "200", "-i", "1", "-q", "2")
        self.assertNotIn("Port1", heading)
        self.assertEqual((len(row), row[1]), (5, 200))

    def test_two_processes(self):
        with support.Background("ib_write_bw", "-p", "0", "--softnic", "-O", "-d", "soft0", env=self.PORTS) as server:
            port = server.wait_line(", port ").split(", port ")[1].split(";")[0]
            client = run("ib_write_bw", "-O", "-d", "soft0", "-n", "200", "-p", port, "--softnic", "127.0.0.1",
                         env=self.PORTS)
            self.expect_ok(client)
            self.assertEqual(server.wait(), 0)

    def test_what_perftest_has_no_run_for(self):
        for words, why in ((("ib_write_lat", "-O"), "a latency test has one port"),
                           (("ib_write_bw", "-O", "-i", "2"), "-O: takes ports 1 and 2"),
                           (("ib_write_bw", "--report-per-port", "-D", "0.1"),
                            "--report-per-port: reports the ports of -O"),
                           (("ib_write_bw", "-O", "--report-per-port"), "in a run of -D"),
                           (("ib_send_bw", "-O", "-g"), "-O: multicast has one port")):
            self.expect_error(run(*words, *LOCAL, env=self.PORTS), 2, why)

    def test_a_device_of_one_port(self):
        alone = run("ib_write_bw", *LOCAL, "-O", "-n", "10", env={"SOFTNIC": "soft0"})
        self.expect_error(alone, 2, "port 2", "soft0 has no port 2")

    def test_ports_as_rails(self):
        result = run("write_bw", *LOCAL, "--rails", "soft0:2,soft0:1", "-n", "100", env=self.PORTS)
        self.expect_ok(result)
        self.assertIn("rail soft0:2", result.out)
        named = run("write_bw", *LOCAL, "--rails", "soft0:x", "-n", "10", env=self.PORTS)
        self.expect_error(named, 2, "--rails 'x': not a number")


if __name__ == "__main__":
    support.main()
