#!/usr/bin/env python3
"""gdrperf doctor on forty servers without a fault: nothing fails, and at most one warning each."""

import json
import pathlib
import subprocess
import unittest

from healthy_machines import machines
from support import BINARY, CliTest, environment, main


class Healthy(CliTest):
    def test_no_alarm(self):
        folder = pathlib.Path(self.scratch())
        count = 0
        alarms = []
        for name, text in machines():
            count += 1
            path = folder / f"{name}.machine"
            path.write_text(text, encoding="utf-8")
            done = subprocess.run([BINARY, "doctor", "--root", str(path), "--json"], env=environment(), capture_output=True, text=True,
                                  timeout=60, check=False)
            document = json.loads(done.stdout)
            self.assertTrue(document["checks"], name)
            bad = [f"{it['verdict']} {it['check']} {it['subject']}: {it['found']}" for it in document["checks"] if it["verdict"] in ("WARN", "FAIL")]
            if done.returncode or len(bad) > 1:
                alarms.append((name, bad))
        self.assertEqual(count, 40)
        self.assertEqual(alarms, [])


if __name__ == "__main__":
    main()
