#!/usr/bin/env python3
"""Recorded machines shown, and refused where they are none."""

import json
import os
import sys
import tarfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from made_machine import NIC, MachineTest
from support import main, run


class Topo(MachineTest):
    def test_a_machine_without_gpus_and_nics_says_so(self):
        nothing = '<?xml version="1.0"?><topology version="2.0"><object type="Machine" nodeset="0x1"/></topology>'
        path = self.write("nothing.xml", nothing)
        self.expect_error(run("topo", "--hwloc", path), 2, path, "no GPU and no RDMA NIC", "lstopo")
        no_nic = self.write("gpus.txt", "\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n")
        result = run("topo", "--nvidia-smi", no_nic)
        self.expect_ok(result)
        self.assertIn("There is no RDMA NIC in it.", result.out)

    def test_a_thousand_nics_are_a_machine(self):
        nics = [f"NIC{n}" for n in range(1000)]
        header = "\tGPU0\t" + "\t".join(nics)
        rows = ["GPU0\t X \t" + "\t".join("SYS" for _ in nics)]
        rows += [f"{nic}\tSYS\t" + "\t".join(" X " if other == nic else "SYS" for other in nics) for nic in nics]
        path = self.write("many.txt", "\n".join([header, *rows]) + "\n")
        result = run("topo", "--nvidia-smi", path, "--json")
        self.expect_ok(result)
        self.assertEqual(len(json.loads(result.out)["nics"]), 1000)
        functions = "".join(NIC.format(f"0000:{n // 32 + 16:02x}:{n % 32:02x}.0").replace("mlx5_0", f"mlx5_{n}")
                            for n in range(1000))
        bridge = f'<object type="Bridge" bridge_type="0-1" bridge_pci="0000:[00-ff]">{functions}</object>'
        tree = self.write("many.xml", f'<?xml version="1.0"?><topology version="2.0"><object type="Machine" '
                          f'nodeset="0x1">{bridge}</object></topology>')
        result = run("topo", "--hwloc", tree, "--json")
        self.expect_ok(result)
        self.assertEqual(len(json.loads(result.out)["nics"]), 1000)

    def test_a_recorded_machine_is_shown(self):
        result = run("topo", "--hwloc", self.three_relations())
        self.expect_ok(result)
        answer, _, matrix = result.out.partition("\n\n")
        self.assertEqual(answer.split()[:3], ["GPU", "best", "NIC"])
        self.assertIn("22.3 to 28.8", answer)
        self.assertEqual(matrix.splitlines()[0].split(), ["relation", "mlx5_0"], "GPUs in rows, NICs in columns")
        for text in ("PIX", "PHB", "SYS"):
            self.assertIn(text, matrix)
        self.assertNotIn("narrowest", result.out)
        everything = run("topo", "--hwloc", self.three_relations(), "-v")
        self.expect_ok(everything)
        for text in ("best NIC", "best GPU", "narrowest link", "<= 400", "at most 28.8, published "):
            self.assertIn(text, everything.out)
        told = run("topo", "--hwloc", self.three_relations(), "--explain", "GPU0", "mlx5_0")
        self.expect_ok(told)
        self.assertIn("their lowest common bridge is 0000:01:00.0", told.out)
        self.assertRegex(told.out, r"Expected when the NIC (reads|writes) GPU memory: 2\d\.\d to 28\.8 GB/s; likely:")
        far = run("topo", "--hwloc", self.three_relations(), "--explain", "GPU2", "mlx5_0")
        self.assertIn("Expected when the NIC reads GPU memory: at most 28.8, published ", far.out)
        self.expect_error(run("topo", "--hwloc", self.three_relations(), "--explain", "GPU7", "mlx5_0"), 2,
                          "GPU7")

    def test_what_rocm_smi_shows_is_refused_with_what_to_give(self):
        path = self.write("rocm.txt",
                          "=== Weight between two GPUs ===\n       GPU0  GPU1\nGPU0   0     15\nGPU1   15    0\n")
        self.expect_error(run("topo", "--nvidia-smi", path), 2, "rocm-smi --showtopo", "--lspci", f"{path}:1")

    def test_a_header_that_a_terminal_broke_is_one(self):
        path = self.write("wrapped.txt",
                          "        GPU0    GPU1    mlx5_0  CPU\nAffinity NUMA Affinity\nGPU0     X      NV18    PIX   "
                          "  0-47    0\n"
                                         "GPU1    NV18     X      SYS     48-95   1\nmlx5_0  PIX     SYS      X\n")
        shown = run("topo", "--nvidia-smi", path)
        self.expect_ok(shown)
        self.assertRegex(shown.out, r"GPU0\s+mlx5_0\s+PIX")

    def test_a_legend_that_is_cut_leaves_the_others_their_labels(self):
        rows = "\tGPU0\tNIC0\tNIC1\nGPU0\t X \tPIX\tSYS\nNIC0\tPIX\t X \tSYS\nNIC1\tSYS\tSYS\t X \n" \
            "\nNIC Legend:\n\n  NIC0: mlx5_4\n"
        path = self.write("cut.txt", rows + "  ...\n")
        shown = run("topo", "-v", "--nvidia-smi", path)
        self.expect_ok(shown)
        self.assertRegex(shown.out, r"GPU0\s+mlx5_4\s+PIX")
        self.assertRegex(shown.out, r"NIC1\s+GPU0\s+SYS")
        # Without that mark a line is missing by mistake.
        self.expect_error(run("topo", "--nvidia-smi", self.write("lacks.txt", rows)), 2,
                          "NIC1 is not in the NIC legend")

    def test_where_all_pairs_are_alike_a_tie_is_told(self):
        rows = ["        GPU0    GPU1    mlx5_0  mlx5_1", "GPU0     X      NV18    SYS     SYS",
                "GPU1    NV18     X      SYS     SYS",
                "mlx5_0  SYS     SYS      X      SYS", "mlx5_1  SYS     SYS     SYS      X"]
        path = self.write("tie.txt", "\n".join(rows) + "\n")
        self.assertIn("A tie: all pairs are SYS", run("topo", "--nvidia-smi", path).out)
        near = self.write("near.txt", "\n".join(rows).replace("NV18    SYS     SYS", "NV18    PIX     SYS", 1)
                          .replace("mlx5_0  SYS", "mlx5_0  PIX", 1) + "\n")
        self.assertNotIn("A tie", run("topo", "--nvidia-smi", near).out)

    def test_hostile_files_are_one_message(self):
        folder = self.scratch()
        long_line = os.path.join(folder, "long.txt")
        with open(long_line, "wb") as file:
            for _ in range(100):
                file.write(b"a" * (1 << 20))
        binary = os.path.join(folder, "binary")
        with open(binary, "wb") as file:
            file.write(bytes(range(256)) * 64)
        columns = self.write("columns.txt", "\tGPU0" + "\tmlx5_0" * 1_000_000 + "\nGPU0\t X \n")
        for flag in ("--nvidia-smi", "--hwloc", "--lspci", "--nccl-xml"):
            for path in (long_line, binary, columns, "/dev/null"):
                result = run("topo", flag, path, "--json")
                self.expect_error(result, 2, f"{path}:1", within=20)
                self.assertLess(len(result.err), 800)
        self.expect_error(run("topo", "--sysfs", folder), 2, "no sysfs")
        self.expect_error(run("topo", "--hwloc", binary, "--lspci", binary), 2)


DUMPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../shared/fixtures/topology/hwloc")


@unittest.skipUnless(os.path.isdir(DUMPS), "no recorded copies of /sys at " + DUMPS)
class SysfsDumps(MachineTest):
    def topo(self, name):
        """What the tool says of a dump; unpacked as far as it is about PCI."""
        folder = self.scratch()
        wanted = ("/sys/bus/pci", "/sys/devices/pci", "/sys/devices/system/node", "/proc/driver")
        with tarfile.open(os.path.join(DUMPS, name)) as dump:
            members = [each for each in dump if any(part in "/" + each.name for part in wanted)]
            dump.extractall(folder, members)
        result = run("topo", "--sysfs", os.path.join(folder, os.listdir(folder)[0]), "--json")
        self.expect_ok(result)
        return json.loads(result.out)

    def test_the_nic_and_no_management_vga(self):
        machine = self.topo("sysfs-32em64t-mlx4-mic.tar.bz2")
        self.assertEqual(machine["gpus"], [])
        self.assertEqual([(nic["name"], nic["busid"], nic["numa"], nic["bridges"]) for nic in machine["nics"]],
                         [("mlx4_0", "0000:82:00.0", [1], ["0000:80:02.2"])])

    def test_a_root_complex_of_several_nodes(self):
        machine = self.topo("sysfs-40intel64-qib-unusual-numa.tar.bz2")
        self.assertEqual(([nic["name"] for nic in machine["nics"]], machine["gpus"]), (["qib0"], []))

    def test_functions_without_parents(self):
        machine = self.topo("sysfs-ac922-6gpu-flat-bus-only.tar.bz2")
        self.assertEqual(len(machine["gpus"]), 6)
        self.assertEqual(machine["gpu_gpu"]["GPU0"], {"GPU1": "PIX..NODE", "GPU2": "NODE", "GPU3": "SYS",
                                                      "GPU4": "SYS", "GPU5": "SYS"})
        self.assertIn("plain folders", machine["notes"][0])

    def test_a_domain_of_five_digits(self):
        machine = self.topo("sysfs-vm-32bit-pci-domain.tar.bz2")
        self.assertEqual((machine["gpus"], machine["nics"]), ([], []))


if __name__ == "__main__":
    main()
