#!/usr/bin/env python3
"""Data between GPUs, host and kinds of memory over the software device, compared byte by byte, in one
process and between two."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import fault_matrix  # noqa: E402
from support import CliTest, Server, main, run, softnic_works  # noqa: E402


def gpu_count():
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    except OSError:
        return 0
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


GPUS = gpu_count()
SIZES = "1,9,4097,65536,1048583,67108864"


@unittest.skipIf(GPUS == 0, "no GPU")
@unittest.skipIf(softnic_works(), "no software device")
class Data(CliTest):
    def passes(self, *options):
        result = run("verify", *options, "--softnic", "--sizes", SIZES, timeout=400)
        print(result.out, flush=True)
        self.assertEqual(result.code, 0, str(result))
        self.assertIn(" 0 failed, 0 not possible here", result.out)
        return result

    def test_every_kind_of_memory_in_one_process(self):
        result = self.passes("--local")
        self.assertIn("host of soft0 to cuda:0 of soft1", result.out)
        if GPUS > 1:
            self.assertIn("cuda:0 to cuda:1", result.out)

    def test_between_two_processes(self):
        with Server() as server:
            self.passes("127.0.0.1", "-p", str(server.port), "--buffers", "host,cuda:0,staged:0")
            if GPUS > 1:
                self.passes("127.0.0.1", "-p", str(server.port), "--buffers", "cuda:0,cuda:1")

    def test_no_fault_is_missed(self):
        wrong, tried = [], 0
        at_server, at_client = ("--peer-buffer", "cuda:0"), ("--buffer", "cuda:0")
        for test, ends, sizes in (("write_bw", at_server, (1, 64, 4097, 65536)),
                                  ("send_bw", at_server, (1, 4097)),
                                  ("read_bw", at_client, (1, 4097, 65536)),
                                  ("write_bw", (*at_client, *at_server), (4097,)),
                                  ("read_bw", (*at_client, *at_server), (4097,)),
                                  ("write_bw", ("--peer-buffer", "staged:0"), (4097,))):
            missed, count = fault_matrix.missed(ends, (test,), sizes)
            wrong += missed
            tried += count
        print(f"{tried} combinations of fault, test, memory and size, {len(wrong)} missed", flush=True)
        self.assertEqual(wrong, [])

    def record(self, *options):
        path = self.scratch() + "/r.json"
        result = run("write_bw", "--local", "--softnic", "--verify", "-n", "100", "--json", path, *options)
        self.assertEqual(result.code, 0, str(result))
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        return self.runs_of(document)[0]

    def test_the_record_says_how_and_where(self):
        one = self.record("--buffer", "cuda:0")
        self.assertEqual(one["client"]["registration"], "dmabuf")
        self.assertEqual(one["server"]["registration"], "host")
        self.assertTrue(one["client"]["gpu"]["uuid"].startswith("GPU-"))
        self.assertEqual(one["path"], "direct")
        self.assertEqual(one["checked_by"], ["gpu", "cpu"])
        self.assertEqual(self.record("--use_cuda=0", "--register", "peermem")["client"]["registration"], "peermem")
        for order in (["--use_cuda_dmabuf", "--use_cuda=0"], ["--use_cuda", "0", "--use_cuda_dmabuf"]):
            self.assertEqual(self.record(*order)["client"]["registration"], "dmabuf")
        address = one["client"]["gpu"]["pci_address"]
        self.assertEqual(self.record("--use_cuda_bus_id", address)["client"]["gpu"]["index"], 0)

    def test_write_latency_ends_by_immediate(self):
        result = run("write_lat", "--local", "--softnic", "--buffer", "cuda:0", "-s", "8", "-n", "200")
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("write with immediate", result.out)


if __name__ == "__main__":
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    main()
