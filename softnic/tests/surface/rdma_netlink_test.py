#!/usr/bin/env python3
"""RDMA netlink, asked by iproute2's `rdma`: it finds the software devices as the kernel's.

Usage: rdma_netlink_test.py LIBRARY
"""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

LIBRARY = sys.argv[1]
RDMA = shutil.which("rdma", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")


def rdma(*words, softnic="soft0;soft1:port=down"):
    return subprocess.run([RDMA, *words], env=dict(os.environ, LD_PRELOAD=LIBRARY, SOFTNIC=softnic),
                          capture_output=True,
                          text=True, timeout=60, check=False)


@unittest.skipIf(RDMA is None, "rdma of iproute2 is not installed")
class Rdma(unittest.TestCase):
    def said(self, *words, **more):
        done = rdma(*words, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_links(self):
        text = self.said("link")
        self.assertRegex(text, r"(?m)^link soft0/1 .*state ACTIVE physical_state LINK_UP netdev lo")
        self.assertRegex(text, r"(?m)^link soft1/1 .*state DOWN physical_state DISABLED netdev lo")
        one = self.said("link", "show", "soft1/1")
        self.assertEqual(re.findall(r"soft\d", one), ["soft1"])

    def test_two_ports(self):
        softnic = "soft0:ports=2,port2=down;soft1"
        text = self.said("link", softnic=softnic)
        self.assertEqual(re.findall(r"(?m)^link (soft\d/\d) .*?\bstate (\w+)", text),
                         [("soft0/1", "ACTIVE"), ("soft0/2", "DOWN"), ("soft1/1", "ACTIVE")])
        self.assertEqual(re.findall(r"soft\d/\d", self.said("link", "show", "soft0/2", softnic=softnic)), ["soft0/2"])
        self.assertNotEqual(rdma("link", "show", "soft1/2", softnic=softnic).returncode, 0)

    def test_links_as_json(self):
        links = [it for it in json.loads(self.said("-j", "link")) if it["ifname"].startswith("soft")]
        self.assertEqual([(it["ifname"], it["port"], it["netdev"]) for it in links],
                         [("soft0", 1, "lo"), ("soft1", 1, "lo")])

    def test_devices(self):
        text = self.said("dev")
        self.assertRegex(text, r"(?m)^\d+: soft0: node_type ca .*fw softnic.* node_guid 0053:4eff:fe00:0000 ")
        indices = re.findall(r"(?m)^(\d+): soft\d:", text)
        self.assertEqual(len(set(indices)), 2)
        self.assertIn("soft1", self.said("-d", "dev", "show", "soft1"))

    def test_what_is_not_there_is_refused(self):
        self.assertNotEqual(rdma("dev", "show", "nothing0").returncode, 0)
        self.assertNotEqual(rdma("dev", "set", "soft0", "name", "soft7").returncode, 0)

    def test_no_device_at_all(self):
        done = rdma("link", softnic="soft0:port=sideways")
        self.assertNotIn("soft0/1", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
