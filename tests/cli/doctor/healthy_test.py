#!/usr/bin/env python3
"""gdrperf doctor on servers without a fault: nothing fails, and at most one warning each.

Forty are made up; of about twenty the PCI tree was captured by others, and some are copies of /sys or outputs of
programs.
Those are read where they are, beside the tree of sources, and left out where they are missing.
"""

import itertools
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from given_machines import given_machines
from healthy_machines import machines
from support import BINARY, CliTest, environment, main, sanitized

SHARED = pathlib.Path(__file__).resolve().parents[4] / "shared/fixtures"
# Outputs that show nothing wrong.
CAPTURES = ("ethtool-i-mlx5-annotated", "ethtool-i-mlx5", "lsmod-peermem-bound-ib-core",
            "lsmod-peermem-bound-ib-uverbs", "lspci-acsctl-all-off", "lspci-vvv-connectx7-acs-off",
            "lspci-vvv-gpu-link-downgraded", "show_gids-bond")
# Copies of /sys of machines with an RDMA device; and what the doctor does not read of them, half of their files.
COPIES = ("sysfs-32em64t-mlx4-mic", "sysfs-40intel64-qib-unusual-numa")
UNREAD = re.compile(r"/cpu\d+/cache/|/power/|/LNXSYSTM:00/|^[^/]*/dev/")


# What the doctor says of each is the same under sanitizers, and they find the same in a few.
EACH = 4 if sanitized() else 1


class Healthy(CliTest):
    def alarms(self, *arguments):
        """Findings of the doctor beyond one warning; all of them where anything failed."""
        done = subprocess.run([BINARY, "doctor", *arguments, "--json"],
                              env=environment(),
                              capture_output=True,
                              text=True,
                              timeout=60,
                              check=False)
        document = json.loads(done.stdout)
        self.assertTrue(document["checks"], arguments)
        bad = [
            f"{it['verdict']} {it['check']} {it['subject']}: {it['found']}" for it in document["checks"]
            if it["verdict"] in ("WARN", "FAIL")
        ]
        return bad if done.returncode or len(bad) > 1 else []

    def judge(self, named_machines):
        folder = pathlib.Path(self.scratch())
        count, found = 0, []
        for name, text in itertools.islice(named_machines, 0, None, EACH):
            count += 1
            path = folder / f"{name}.machine"
            path.write_text(text, encoding="utf-8")
            if bad := self.alarms("--root", str(path)):
                found.append((name, bad))
        self.assertEqual(found, [])
        return count

    def test_made_up(self):
        self.assertEqual(self.judge(machines()), 40 // EACH)

    @unittest.skipUnless((SHARED / "topology").is_dir(), "no captured trees beside this one")
    def test_captured_trees(self):
        self.assertGreaterEqual(self.judge((name, text) for name, text, _, _ in given_machines(SHARED / "topology")),
                                16 // EACH)

    @unittest.skipUnless((SHARED / "topology").is_dir(), "no copies of /sys beside this tree")
    def test_copies_of_sysfs(self):
        for name in COPIES[::EACH]:
            folder = pathlib.Path(self.scratch()) / name
            with tarfile.open(SHARED / "topology/hwloc" / f"{name}.tar.bz2") as archive:
                archive.extractall(folder, [each for each in archive if not UNREAD.search(each.name)])
            self.assertEqual(self.alarms("--root", str(next(folder.iterdir()))), [], name)

    @unittest.skipUnless((SHARED / "doctor").is_dir(), "no captured outputs beside this tree")
    def test_captured_outputs(self):
        for name in CAPTURES:
            self.assertEqual(self.alarms("--read", str(SHARED / "doctor" / f"{name}.txt")), [], name)


if __name__ == "__main__":
    main()
