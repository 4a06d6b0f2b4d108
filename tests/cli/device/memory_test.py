"""What a run would take is known before anything is mapped, at either end."""

import json
import os
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from support import CliTest, Server, run

HUGE = "--max-memory", "100000000G"  # this end's own check out of the way


def peak_bytes(pid):
    """The most memory that the process has had so far."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


@unittest.skipIf(support.softnic_works(), "no software device")
class MemoryTest(CliTest):
    def test_a_small_request_for_much_memory_is_refused_by_the_server(self):
        with Server("--max-memory", "64M") as server:
            before = peak_bytes(server.process.pid)
            to = ("127.0.0.1", "-p", server.port, "--softnic", *HUGE)
            for test, flags in (("write_bw", ["--footprint", "1G"]), ("write_bw", ["--footprint", "1024G"]),
                                ("send_bw", ["-q", "100", "-r", "32768"]),
                                ("read_bw", ["-s", "1G", "-b"])):
                result = run(test, *to, *flags)
                self.expect_error(result, 3, "the server would need", "more than the 64 MiB it may take",
                                  "--max-memory", "serve")
            self.assertLess(peak_bytes(server.process.pid) - before, 32 << 20)
            # It goes on serving.
            self.expect_ok(run("write_bw", *to, "-n", "10"))

    def test_this_ends_own_memory_is_asked_first(self):
        result = run("write_bw", "--local", "--softnic", "--footprint", "100G", "-q", "20")
        self.expect_error(result, 3, "this host would need", "messages 1.95 TiB", "a quarter of the",
                          "--max-memory 204", within=support.PROMISE_S)
        result = run("write_bw", "--local", "--softnic", "--footprint", "64M", "--max-memory", "16M")
        self.expect_error(result, 3, "messages 64 MiB", "more than the 16 MiB")

    def test_the_devices_limits_are_asked_first(self):
        result = run("write_bw", "--local", "--softnic", "-q", "5000", "-n", "5000")
        self.expect_error(result, 2, "-q 5000", "QPs at most", within=support.PROMISE_S)

    def test_both_ends_in_one_process_share_the_devices_limit(self):
        result = run("write_bw", "--local", "--softnic", "-q", "4000", "-n", "8000")
        self.expect_error(result,
                          2,
                          "-q 4000: with client and server in this process that is 8000 QPs; soft0 has 4095 at most",
                          "-q 2047 at most, or run the server as 'gdrperf serve'",
                          within=support.PROMISE_S)

    def test_many_qps_take_little_memory(self):
        with Server() as server:
            document = os.path.join(self.scratch(), "run.json")
            self.expect_ok(run("write_bw", "127.0.0.1", "-p", server.port, "--softnic", "-q", "1000", "-n", "2000",
                               "--json", document))
            with open(document, encoding="utf-8") as file:
                measured, = self.runs_of(json.load(file))
            self.assertEqual(measured["iterations"], 2000)
            self.assertLessEqual(measured["footprint_bytes"] * 1000, 256 << 20)
            self.assertLess(peak_bytes(server.process.pid), 1 << 30)


if __name__ == "__main__":
    support.main()
