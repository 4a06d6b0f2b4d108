"""perftest at the other end of the port: both ends of gdrperf say who it is and what to do."""

import re
import subprocess
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import perftest_ends
import support
from support import Server, run


def version():
    """As its ends tell each other."""
    text = subprocess.run(["ib_write_bw", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"[0-9]+\.[0-9]+", text)
    return found.group() if found else "?"


@perftest_ends.installed
@unittest.skipIf(support.softnic_works(), "no software device")
@unittest.skipIf(support.sanitized(), "perftest loads no sanitized software device here")
class PerftestAtThePort(unittest.TestCase):
    def test_a_client_of_several_sizes_meets_perftests_server(self):
        _, port = perftest_ends.serve(self, "ib_write_bw")
        result = run("write_bw", "127.0.0.1", "-p", port, "--softnic", "-s", "64,4K")
        self.assertEqual(result.code, 5, result)
        self.assertIn(f"server 127.0.0.1:{port}: perftest {version()} listens there, not 'gdrperf serve'", result.err)
        self.assertIn("hint: start 'gdrperf serve' there", result.err)

    def test_perftests_client_meets_a_server_which_serves_on(self):
        with Server() as server:
            client = perftest_ends.start("ib_read_bw", "-p", server.port, "127.0.0.1")
            client.communicate(timeout=support.PATIENCE_S)
            self.assertNotEqual(client.returncode, 0)
            line = server.wait_line("perftest")
            self.assertRegex(
                line,
                rf"client 127\.0\.0\.1:[0-9]+: it is perftest {re.escape(version())}, which does not name its test; "
                "start the server of that test instead, like 'gdrperf ib_write_bw'")
            after = run("write_bw", "127.0.0.1", "-p", server.port, "--softnic", "-n", "500", "--quiet")
            self.assertEqual(after.code, 0, after)


if __name__ == "__main__":
    support.main()
