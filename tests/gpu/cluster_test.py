#!/usr/bin/env python3
"""`gdrperf cluster` between GPUs over software devices that are placed on this machine's PCI bus: a slow one is named,
with buffers in GPU memory and staged."""

import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from data_test import GPUS  # noqa: E402
from placement_test import pci_function  # noqa: E402
from support import Background, free_port, main, softnic_works  # noqa: E402

RANKS = 6
SLOW = 2


@unittest.skipIf(GPUS == 0, "no GPU")
@unittest.skipIf(softnic_works(), "no software device")
@unittest.skipIf(pci_function() is None, "no PCI bus")
class GpuCluster(unittest.TestCase):
    def measure(self, buffer):
        devices = ";".join(f"nic{rank}:rate=100MB/s,react=200ms,pci={pci_function()}" + (",slow=1.25" if rank == SLOW else "") for rank in range(RANKS))
        port = free_port()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = [Background("cluster", "--softnic", "--rank", rank, "--ranks", RANKS, "--root", f"127.0.0.1:{port}", "-s", "256K", "--small", "0",
                                "-D", "250ms", "--buffer", buffer, *(["--json", path] if rank == 0 else []), env={"SOFTNIC": devices})
                     for rank in range(RANKS)]
            # Staged, each run first tries chunks of several sizes: 105 s in all on one H200.
            codes = [rank.wait(timeout=400) for rank in ranks]
            print(ranks[0].out, ranks[0].err, flush=True)
            self.assertEqual(codes[0], 1, ranks[0].err)
            with open(path, encoding="utf-8") as file:
                return json.load(file)

    def check(self, buffer, kind):
        document = self.measure(buffer)
        self.assertEqual(document["test"]["buffer"], buffer)
        self.assertTrue(all(nic["buffer"].startswith(kind) for nic in document["nics"]), document["nics"])
        self.assertEqual(document["failed"], [])
        self.assertEqual([(each["part"], each["rank"]) for each in document["suspects"] if each["verdict"] == "slow"], [("nic", SLOW)])

    def test_buffers_in_the_nearest_gpu(self):
        self.check("gpu", "cuda:")

    def test_buffers_staged_through_host_memory(self):
        self.check("staged", "staged:")


if __name__ == "__main__":
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    main()
