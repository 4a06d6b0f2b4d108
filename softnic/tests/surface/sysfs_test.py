#!/usr/bin/env python3
"""The class files of a software device, read by programs that nobody here wrote (ls, find, readlink, Python) and
by one of C++, with the device's library in front of libc.

Usage: sysfs_test.py LIBRARY PROGRAM
"""

import os
import re
import subprocess
import sys
import unittest

LIBRARY, PROGRAM = sys.argv[1:3]
CLASS = "/sys/class/infiniband"
# What a reader of sysfs finds of a NIC.
DEVICE = ("board_id", "fw_ver", "hca_type", "hw_rev", "node_desc", "node_guid", "node_type", "sys_image_guid", "uevent")
PORT = ("cap_mask", "lid", "link_layer", "phys_state", "rate", "sm_lid", "state", "pkeys/0", "gids/0", "gids/2",
        "gid_attrs/types/2", "gid_attrs/ndevs/2", "counters/symbol_error", "counters/link_downed")
PARENT = ("class", "vendor", "device", "numa_node", "local_cpulist", "uevent", "current_link_speed",
          "current_link_width",
          "max_link_speed", "max_link_width")
PYTHON = """
import os, sys
count = 0
for folder, folders, files in os.walk(sys.argv[1]):
    for name in files:
        open(os.path.join(folder, name)).read(); count += 1
print(count)
print(os.path.realpath(sys.argv[1] + '/device'))
"""


def run(*words, softnic="soft0;soft1", check=True):
    done = subprocess.run(words, env=dict(os.environ, LD_PRELOAD=LIBRARY, SOFTNIC=softnic), capture_output=True,
                          text=True, check=False)
    if check and (done.returncode != 0 or done.stderr):
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Sysfs(unittest.TestCase):
    def test_ls_shows_every_folder(self):
        listed = run("ls", "-lR", CLASS + "/", "/sys/class/infiniband_verbs/", "/dev/infiniband")
        self.assertIn("soft1 -> ../../devices/softnic/soft1/", listed)
        self.assertRegex(listed, r"(?m)^crw-rw-rw-.* uverbs\d")
        deep = run("ls", "-lR", f"{CLASS}/soft0/", f"{CLASS}/soft0/device/")
        for name in DEVICE + PORT + PARENT:
            self.assertRegex(deep, rf"(?m)^-r--r--r--.* {name.rsplit('/', maxsplit=1)[-1]}$", name)

    def test_every_file_that_a_nic_has_can_be_read(self):
        paths = ([f"{CLASS}/soft0/{it}" for it in DEVICE] + [f"{CLASS}/soft0/ports/1/{it}" for it in PORT]
                 + [f"{CLASS}/soft0/device/{it}" for it in PARENT])
        for path in paths:
            self.assertRegex(run("cat", path), r"\S\n\Z", path)

    def test_what_the_files_say(self):
        soft0 = f"{CLASS}/soft0"
        self.assertEqual(run("cat", f"{soft0}/ports/1/gids/2"), "0000:0000:0000:0000:0000:ffff:7f00:0001\n")
        self.assertEqual(run("cat", f"{soft0}/ports/1/gid_attrs/types/2"), "RoCE v2\n")
        self.assertEqual(run("cat", f"{soft0}/node_guid"), "0053:4eff:fe00:0000\n")
        self.assertEqual(run("cat", f"{soft0}/device/class"), "0x020000\n")
        down = "soft0:port=down,rate=1.25GB/s"
        self.assertEqual(run("cat", f"{soft0}/ports/1/phys_state", softnic=down), "3: Disabled\n")
        self.assertEqual(run("cat", f"{soft0}/ports/1/rate", softnic=down), "10 Gb/sec (4X)\n")
        self.assertEqual(run("cat", f"{soft0}/device/current_link_speed", softnic=down), "2.5 GT/s PCIe\n")

    def test_two_ports(self):
        softnic = "soft0:ports=2,port2=down,rate=1.25GB/s;soft1"
        self.assertEqual(run("ls", f"{CLASS}/soft0/ports", softnic=softnic), "1\n2\n")
        self.assertEqual(run("ls", f"{CLASS}/soft1/ports", softnic=softnic), "1\n")
        for name in PORT + ("counters/port_xmit_data", "hw_counters/messages"):
            self.assertRegex(run("cat", f"{CLASS}/soft0/ports/2/{name}", softnic=softnic), r"\S\n\Z", name)
        self.assertEqual(run("cat", f"{CLASS}/soft0/ports/2/state", softnic=softnic), "1: DOWN\n")
        # Behind those of all devices' first ports.
        self.assertEqual(run("cat", f"{CLASS}/soft0/ports/2/gids/2", softnic=softnic),
                         "0000:0000:0000:0000:0000:ffff:7f00:0003\n")

    def test_a_function_of_the_pci_bus(self):
        softnic = "soft0:pci=0123:4b:00.1,numa=3"
        parent = run("readlink", "-f", f"{CLASS}/soft0/device", softnic=softnic).strip()
        self.assertEqual(parent, "/sys/devices/pci0123:4b/0123:4b:00.1")
        self.assertEqual(run("readlink", f"{parent}/subsystem", softnic=softnic), "/sys/bus/pci\n")
        self.assertEqual(run("cat", f"{parent}/numa_node", softnic=softnic), "3\n")
        self.assertIn("PCI_SLOT_NAME=0123:4b:00.1\n", run("cat", f"{parent}/uevent", softnic=softnic))
        self.assertEqual(run("ls", f"{parent}/infiniband", softnic=softnic), "soft0\n")

    def test_find(self):
        found = run("find", f"{CLASS}/soft0/", "-type", "f").split()
        self.assertIn(f"{CLASS}/soft0/ports/1/gid_attrs/types/0", found)
        self.assertEqual(len(found), len(set(found)))
        # With links followed sysfs has loops, here as on any machine.
        self.assertEqual(run("find", "-L", CLASS, "-maxdepth", "2", "-name", "fw_ver", check=False).count("fw_ver"), 2)

    def test_python_walks(self):
        count, real = run("/usr/bin/python3", "-c", PYTHON, f"{CLASS}/soft0").split()
        self.assertEqual(int(count), len(run("find", f"{CLASS}/soft0/", "-type", "f").split()))
        self.assertEqual(real, "/sys/devices/softnic/soft0/hca.0000")

    def test_a_program_of_cpp(self):
        out = run(PROGRAM, "soft0")
        files = len(run("find", f"{CLASS}/soft0/", "-type", "f").split())
        self.assertRegex(out, rf"tree files {files} folders \d+ links 2\n")
        for line in ("link ../../devices/softnic/soft0/hca.0000/infiniband/soft0",
                     "canonical /sys/devices/softnic/soft0/hca.0000",
                     "realpath /sys/devices/softnic/soft0/hca.0000/infiniband/soft0", "scandir 5",
                     f"glob {CLASS}/soft0/ports/1/state", "openat 4: ACTIVE", "same 1", "fstatat 01", "faccessat 0-1",
                     "absent -10", "node 010 1", "opened 1"):
            self.assertIn(line + "\n", out)
        self.assertNotIn("unreadable", out)

    def test_the_rest_of_the_file_system_is_the_kernels(self):
        for words in (["ls", "/sys/class/net/lo/"], ["readlink", "-f", "/sys/class/net/lo"], ["ls", "/dev/null"],
                      ["ls", "/sys/bus/pci/devices/"]):
            with self.subTest(words=words):
                bare = subprocess.run(words, capture_output=True, text=True, check=False).stdout
                self.assertEqual(run(*words, check=False), bare)
        bare = set(subprocess.run(["ls", "/sys/class"], capture_output=True, text=True, check=True).stdout.split())
        self.assertEqual(set(run("ls", "/sys/class").split()), bare | {"infiniband", "infiniband_verbs"})

    def test_the_real_libibverbs_sees_no_device_of_ours(self):
        done = subprocess.run(["ibv_devices"], env=dict(os.environ, LD_PRELOAD=LIBRARY), capture_output=True, text=True,
                              check=False)
        self.assertEqual(len(re.findall(r"^ +soft\d", done.stdout, re.M)), 2, done.stdout)
        self.assertNotIn("no userspace device-specific driver", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
