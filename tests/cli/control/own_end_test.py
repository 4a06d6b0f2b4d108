#!/usr/bin/env python3
"""What is typed where a one-shot test serves counts for that end."""

import json
import os
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import Background, CliTest, main, run, softnic_works

CPU = max(os.sched_getaffinity(0))


@unittest.skipIf(softnic_works(), "no software device")
class OwnEnd(CliTest):
    def measure(self, typed, *words):
        """The record, and what the serving end said."""
        with Background("write_bw", "-p", "0", "--softnic", *typed) as server:
            port = server.wait_line(", port ").split(", port ")[1].split(";")[0]
            result = run("write_bw", "127.0.0.1", "-p", port, "--softnic", "-n", "50", "-s", "64", *words, "--json",
                         "-")
            self.expect_ok(result)
            self.assertEqual(server.wait(), 0, server.err)
            (record,) = self.runs_of(json.loads(result.out))
            return record, server.err

    def test_device_and_cpu_of_the_serving_end(self):
        record, said = self.measure(["-d", "soft1", "--cpu", CPU])
        self.assertEqual((record["client"]["device"], record["server"]["device"]), ("soft0", "soft1"))
        self.assertEqual(record["server"]["cpu"], CPU)
        self.assertIn(f"the server uses device soft1, CPU {CPU}, as given on its command line", " ".join(
            record["warnings"]))
        self.assertNotIn("ignored", said)

    def test_what_the_client_says_comes_first(self):
        record, _ = self.measure(["-d", "soft1"], "--peer-dev", "soft0")
        self.assertEqual(record["server"]["device"], "soft0")
        self.assertNotIn("the server uses", " ".join(record["warnings"]))

    def test_memory_that_the_client_asks_for_comes_first_also_where_it_is_the_default(self):
        record, _ = self.measure(["--buffer", "hugepage"], "--peer-buffer", "host")
        self.assertEqual(record["server"]["buffer"], "host")
        self.assertNotIn("the server uses", " ".join(record["warnings"]))

    def test_what_only_a_client_decides_is_told(self):
        record, said = self.measure(["-s", "4K", "-q", "2", "--buffer", "host"])
        self.assertEqual((record["size_bytes"], record["qps"]), (64, 1))
        self.assertIn("ignored here: -s -q", said)
        self.assertNotIn("--buffer", said)

    def test_a_device_that_is_not_there_is_told_at_once(self):
        self.expect_error(run("write_bw", "-p", "0", "--softnic", "-d", "soft9"), 2, "-d soft9", "soft0, soft1")


if __name__ == "__main__":
    main()
