#!/usr/bin/env python3
"""A machine whose NICs reach GPUs through DMA functions of their own (Data Direct): pairs, and the path without it."""

import json
import os
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, main, run

MACHINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/topo-sysfs/gb300.txt")
# Of NVIDIA's guide: RDMA device, GPU, DMA function.
PUBLISHED = [("ibp3s0", "0009:06:00.0", "0009:03:00.0"), ("ibP2p3s0", "0008:06:00.0", "0008:03:00.0"),
             ("ibP16p3s0", "0019:06:00.0", "0019:03:00.0")]
PRODUCT = "NVIDIA ConnectX-8, made"


def resource(tag, data):
    return bytes([tag]) + len(data).to_bytes(2, "little") + data


def vpd(v3):
    """Vital product data with a serial number in front of V3."""
    fields = b"".join(name + bytes([len(value)]) + value
                      for name, value in ((b"SN", b"MT0000X00000"), (b"V3", v3.encode())))
    return resource(0x82, PRODUCT.encode()) + resource(0x90, fields) + b"\x78"


def write_sysfs(folder, readable=True):
    """The machine as a copy of /sys; without `readable` as others than root get it."""
    with open(MACHINE, encoding="utf-8") as lines:
        functions = [line.split() for line in lines if not line.startswith("#")]
    for path, ids, code, node, v3, device in functions:
        place = os.path.join(folder, "sys/devices", path)
        os.makedirs(place)
        vendor, number = ids.split(":")
        files = {"vendor": f"0x{vendor}", "device": f"0x{number}", "class": f"0x{code}", "numa_node": node,
                 "current_link_speed": "64.0 GT/s PCIe", "current_link_width": "16"}
        for name, text in files.items():
            with open(os.path.join(place, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        if v3 != "-" and readable:
            with open(os.path.join(place, "vpd"), "wb") as file:
                file.write(vpd(v3))
        if device != "-":
            os.makedirs(os.path.join(place, "infiniband", device))
        devices = os.path.join(folder, "sys/bus/pci/devices")
        os.makedirs(devices, exist_ok=True)
        os.symlink(os.path.join("../../../devices", path), os.path.join(devices, os.path.basename(path)))
    return folder


class DataDirect(CliTest):
    def topo(self, *words, **options):
        result = run("topo", "--sysfs", write_sysfs(self.scratch(), **options), *words)
        self.expect_ok(result)
        return result.out

    def test_the_published_pairs_come_out(self):
        machine = json.loads(self.topo("--json"))
        gpu_at = {gpu["busid"]: gpu["label"] for gpu in machine["gpus"]}
        self.assertEqual(len(gpu_at), 4)
        for nic, address, dma in PUBLISHED:
            gpu = gpu_at[address]
            self.assertEqual(machine["best_nic"][gpu], nic)
            self.assertEqual(machine["best_gpu"][nic], gpu)
            pair = machine["paths"][f"{gpu}/{nic}"]
            self.assertEqual((pair["relation"], pair["data_direct"]), ("PXB", dma))
            self.assertEqual(machine["relations"][gpu][nic], "PXB")
            self.assertEqual(machine["relations_nccl"][gpu][nic], "PXB")
            # Without it: through the CPU and the link that joins GPU and CPU.
            self.assertEqual(pair["through_cpu"]["relation"], "NODE")
            self.assertEqual(pair["through_cpu"]["hops"][0]["cpu_link"], "NVLink-C2C")
            self.assertTrue(pair["through_cpu"]["expected"]["bound"])
            self.assertNotIn("NVLink-C2C", [hop["cpu_link"] for hop in pair["hops"]])
        near = [key for key, pair in machine["paths"].items() if pair["relation"] in ("PIX", "PXB")]
        self.assertEqual(len(near), 4, "one NIC for each GPU")

    def test_both_ways_are_shown(self):
        shown = self.topo("-v")
        self.assertIn("ibp3s0 by CPU", shown)
        told = self.topo("--explain", "GPU1", "ibp3s0")
        for text in ("GPU1 and ibp3s0: PXB", "Its DMA function (Data Direct) is 0009:03:00.0", "own function: NODE",
                     "their lowest common bridge is 0009:01:00.0"):
            self.assertIn(text, told)

    def test_the_products_name_is_read_too(self):
        machine = json.loads(self.topo("--json"))
        self.assertEqual({nic["data_direct"] for nic in machine["nics"]},
                         {"0008:03:00.0", "0009:03:00.0", "0018:03:00.0", "0019:03:00.0"})

    def test_what_cannot_be_read_is_said(self):
        machine = json.loads(self.topo("--json", readable=False))
        self.assertEqual(machine["paths"]["GPU1/ibp3s0"]["relation"], "NODE")
        self.assertNotIn("data_direct", machine["paths"]["GPU1/ibp3s0"])
        self.assertIn("0008:03:00.0 is a DMA function (Data Direct)", machine["notes"][0])

    def test_nvidia_smis_word_about_the_own_function(self):
        nics = [nic for nic, _, _ in PUBLISHED]
        gpus = [f"GPU{n}" for n in range(4)]
        rows = ["\t" + "\t".join(gpus + nics)]
        for gpu in gpus:
            rows.append("\t".join([gpu] + [" X " if other == gpu else "NV18" for other in gpus] + ["NODE"] * 3))
        for nic in nics:
            rows.append("\t".join([nic] + ["NODE"] * 4 + [" X " if other == nic else "NODE" for other in nics]))
        folder = self.scratch()
        matrix = os.path.join(folder, "matrix.txt")
        with open(matrix, "w", encoding="utf-8") as file:
            file.write("\n".join(rows) + "\n")
        machine = json.loads(self.topo("--json", "--nvidia-smi", matrix))
        self.assertEqual(machine["paths"]["GPU1/ibp3s0"]["relation"], "PXB")
        self.assertEqual(machine["best_nic"]["GPU1"], "ibp3s0")
        said = [each["explanation"] for each in machine["differences"]
                if (each["gpu"], each["nic"]) == ("GPU1", "ibp3s0")]
        self.assertIn("DMA function 0009:03:00.0, which is PXB to the GPU", said[0])


if __name__ == "__main__":
    main()
