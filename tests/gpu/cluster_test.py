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
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / folder) for folder in ("cli", "cli/topo")]
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
        devices = ";".join(f"nic{rank}:rate=100MB/s,react=200ms,pci={pci_function()}" +
                           (",slow=1.25" if rank == SLOW else "") for rank in range(RANKS))
        port = free_port()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = [Background("cluster", "--softnic", "--rank", rank, "--ranks", RANKS, "--root", f"127.0.0.1:{port}",
                                "-s", "256K", "--small", "0",
                                "-D", "250ms", "--buffer", buffer, *(["--json", path] if rank == 0 else []),
                                env={"SOFTNIC": devices})
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
        self.assertEqual([(each["part"], each["rank"]) for each in document["suspects"] if each["verdict"] == "slow"],
                         [("nic", SLOW)])

    def test_buffers_in_the_nearest_gpu(self):
        self.check("gpu", "cuda:")

    @unittest.skipIf(GPUS < 2, "a collective is of two GPUs")
    def test_a_collective_of_all_gpus(self):
        """NCCL's own way between GPUs of one host."""
        devices = "nic0:rate=100MB/s,react=200ms;nic1:rate=100MB/s,react=200ms"
        port = free_port()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = [Background("cluster", "--softnic", "--rank", rank, "--ranks", 2, "--root", f"127.0.0.1:{port}",
                                "-s", "1M", "--small", "0", "-D", "250ms", "--patterns", "nccl",
                                *(["--json", path] if rank == 0 else []), env={"SOFTNIC": devices})
                     for rank in range(2)]
            codes = [rank.wait(timeout=400) for rank in ranks]
            print(ranks[0].out, ranks[0].err, flush=True)
            if "no NCCL" in ranks[0].err:
                self.skipTest("no libnccl.so.2")
            self.assertIn(codes[0], (0, 4), ranks[0].err)
            with open(path, encoding="utf-8") as file:
                collectives = json.load(file)["collectives"]
        self.assertEqual([(each["step"], each["gpus"], each["failed"]) for each in collectives],
                         [("all_reduce 1 MiB", GPUS, []), ("all_reduce 128 MiB", GPUS, [])])
        for each in collectives:
            self.assertGreater(each["bus_gbytes"], 0)
            self.assertIsNone(each["share_of_pairs"], "GPUs of one host do not need NICs")

    def test_buffers_staged_through_host_memory(self):
        self.check("staged", "staged:")


if __name__ == "__main__":
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    main()
