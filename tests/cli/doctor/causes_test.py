#!/usr/bin/env python3
"""gdrperf doctor names the cause in failures of others, which are read where they are."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import BINARY, CliTest, environment, main

SOURCE = pathlib.Path(__file__).resolve().parents[3]
STORIES = SOURCE.parent / "shared/fixtures/doctor/stories2"
EXPECTED = SOURCE / "tests/data/doctor/causes.tsv"
# Harmful, or without effect where these stories happened.
HARMFUL = [r"one firmware for all", r"MAX_ACC_OUT_READ=(0|44)\b", r"PCI_WR_ORDERING=1", r"NCCL 2\.21 finds it"]


def findings_of(path):
    option = "--root" if path.suffix in (".machine", ".dir") else "--read"
    done = subprocess.run([BINARY, "doctor", option, str(path), "--json"], env=environment(), capture_output=True,
                          text=True, timeout=60, check=False)
    return json.loads(done.stdout)["checks"]


@unittest.skipUnless(STORIES.is_dir(), f"needs {STORIES}")
class Causes(CliTest):
    def test_the_cause_and_its_cure_are_named(self):
        named, all_of_them = [], []
        for line in EXPECTED.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                continue
            number, verdict, cause, cure = line.split("\t")
            findings = [it for path in sorted(STORIES.glob(f"{number}[a-z]-*")) for it in findings_of(path)]
            all_of_them.append(number)
            cures = [it["fix"] + " / " + it["for_good"] for it in findings]
            for pattern in HARMFUL:
                self.assertFalse([cured for cured in cures if re.search(pattern, cured)], f"story {number}")
            if any(it["verdict"] == verdict and re.search(cause, it["found"]) and re.search(cure, cured)
                   for it, cured in zip(findings, cures)):
                named.append(number)
        print(f"{len(named)} of {len(all_of_them)} causes are named; not: {sorted(set(all_of_them) - set(named))}")
        self.assertEqual(named, all_of_them)


if __name__ == "__main__":
    main()
