#!/usr/bin/env python3
"""gdrperf doctor: verdicts, exit code, JSON, captured text."""

import json
import subprocess
import tempfile
import unittest

from support import BINARY, CliTest, environment, main, run, softnic_works

LSMOD = "nvidia_peermem 16384 0\nib_core 434176 1 ib_uverbs\nnvidia 56717312 4 nvidia_peermem\n"


class Doctor(CliTest):
    def checks(self, *args, code, env=None):
        result = run("doctor", "--json", *args, env=env)
        self.assertEqual(result.code, code, result)
        document = json.loads(result.out)
        checks = document["checks"]
        for check in checks:
            self.assertEqual(set(check), {"check", "subject", "verdict", "found", "why", "fix"})
        for verdict in ("OK", "WARN", "FAIL", "SKIP"):
            self.assertEqual(document["counts"][verdict],
                             sum(check["verdict"] == verdict for check in checks))
        return {check["check"]: check for check in checks}

    def test_this_machine(self):
        result = run("doctor")
        self.assertEqual(result.code, 1 if "\nFAIL" in result.out else 0, result)
        self.assertEqual(result.err, "")
        if run("devices").code != 0:
            self.assertIn("FAIL     rdma-device", result.out)
            self.assertIn("--softnic", result.out)

    @unittest.skipIf(softnic_works(), "no software device")
    def test_the_software_device(self):
        checks = self.checks("--softnic", code=0)
        self.assertIn("soft0 (software)", checks["rdma-device"]["found"])
        self.assertEqual(checks["port-state"]["verdict"], "OK")
        checks = self.checks("--softnic", code=1, env={"SOFTNIC": "soft0:port=down"})
        self.assertEqual(checks["port-state"]["verdict"], "FAIL")
        self.assertNotEqual(checks["port-state"]["fix"], "")

    def test_captured_text(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as capture:
            capture.write(LSMOD)
            capture.flush()
            checks = self.checks("--read", capture.name, code=1)
        self.assertEqual(checks["peermem"]["verdict"], "FAIL")

    def test_standard_input(self):
        done = subprocess.run([BINARY, "doctor", "--read", "-"], env=environment(), text=True,
                              input="mlx5_0 port 1 ==> eth2 (Up)\n", capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("mlx5_0/1", done.stdout)
        self.assertIn("1 ok, 0 warnings, 0 failed, 0 skipped", done.stdout)

    def test_a_capture_that_is_not_there(self):
        self.expect_error(run("doctor", "--read", "/nowhere"), 2, "/nowhere")

    def test_an_unknown_option(self):
        self.expect_error(run("doctor", "--jsn"), 2, "--json")


if __name__ == "__main__":
    main()
