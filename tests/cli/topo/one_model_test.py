#!/usr/bin/env python3
"""`gdrperf topo` and `gdrperf doctor` on each recorded machine: the same pairs, the same relations, the same GB/s."""

import json
import os
import pathlib
import re
import shlex
import sys
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from data_direct_test import write_sysfs
from support import CliTest, main, run

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Other people's machines stay where they are; without them our own are left.
SHARED = ROOT.parent / "shared/fixtures/doctor/stories2"
RECORDED = sorted((ROOT / "tests/data/doctor").rglob("*.machine"))
FOREIGN = sorted(SHARED.glob("*.machine")) + sorted(SHARED.glob("*.dir"))


def write_machine(text, folder):
    """Files, folders and links of a recorded machine (docs/how-to/doctor.md) below `folder`."""
    entries = [(shlex.split(head), body) for head, body in re.findall(r"(?ms)^== (.*?)$\n?(.*?)(?=^== |\Z)", text)]
    # Links first: what lies behind one is then written where it leads.
    for (kind, *words), body in sorted(entries, key=lambda entry: entry[0][0] != "link"):
        if kind not in ("file", "link", "folder"):
            continue
        place = pathlib.Path(f"{folder}{words[0]}")
        if place.parent.is_file():  # a path that was only listed, and then looked into
            place.parent.unlink()
        os.makedirs(os.path.realpath(place.parent), exist_ok=True)
        if kind == "folder":
            os.makedirs(os.path.realpath(place), exist_ok=True)
        elif kind == "file" and not place.is_dir():
            place.write_text(body, encoding="utf-8")
        elif kind == "link" and not place.is_symlink():
            target = words[1] if not words[1].startswith("/") else os.path.relpath(folder + words[1], place.parent)
            place.symlink_to(target)


def told_by_topo(folder):
    """(GPU, NIC) -> (relation, GB/s); None for what has no PCI bus."""
    result = run("topo", "--sysfs", folder, "--json")
    if result.code:
        return None
    return {tuple(key.split("/")): (path["relation"], path["expected"])
            for key, path in json.loads(result.out).get("paths", {}).items()}


def told_by_doctor(folder):
    pairs = json.loads(run("doctor", "--root", folder, "--json").out)["pairs"]
    return {(pair["gpu"], pair["nic"]): pair for pair in pairs}


class OneModel(CliTest):
    def agree(self, folder, name):
        topo, doctor = told_by_topo(str(folder)), told_by_doctor(str(folder))
        if topo is None:
            self.assertEqual(doctor, {}, name)
            return 0
        self.assertEqual(sorted(topo), sorted(doctor), name)
        for key, (relation, expected) in topo.items():
            self.assertEqual(doctor[key]["relation"], relation, (name, key))
            gbytes = expected["most_gbps"] / 8 if expected else 0
            self.assertAlmostEqual(doctor[key]["expected_gbytes"], gbytes, delta=0.005, msg=str((name, key)))
        return len(topo)

    def all_agree(self, machines):
        pairs = 0
        for path in machines:
            with self.subTest(machine=path.name), tempfile.TemporaryDirectory() as folder:
                if path.is_dir():
                    pairs += self.agree(path, path.name)
                else:
                    write_machine(path.read_text(encoding="utf-8", errors="replace"), folder)
                    pairs += self.agree(folder, path.name)
        return pairs

    def test_our_recordings(self):
        self.assertGreater(self.all_agree(RECORDED), 10)

    @unittest.skipUnless(FOREIGN, "no folder of other people's recordings")
    def test_recordings_of_others(self):
        self.assertGreater(self.all_agree(FOREIGN), 10)

    def test_data_direct(self):
        with tempfile.TemporaryDirectory() as folder:
            write_sysfs(pathlib.Path(folder))
            self.assertGreater(self.agree(folder, "gb300"), 3)
            self.assertIn("PXB", {pair["relation"] for pair in told_by_doctor(folder).values()})

    def test_a_port_that_is_down_is_not_ready(self):
        text = (ROOT / "tests/data/doctor/stories/gh200-c2c.machine").read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            write_machine(text.replace("4: ACTIVE", "1: DOWN"), folder)
            pairs = told_by_doctor(folder)
            self.assertTrue(pairs)
            for pair in pairs.values():
                self.assertFalse(pair["ready"])
                self.assertIn("no port of the NIC is up", pair["words"])


if __name__ == "__main__":
    main()
