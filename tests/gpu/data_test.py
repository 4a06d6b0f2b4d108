#!/usr/bin/env python3
"""Data between GPUs, host and kinds of memory over the software device, compared byte by byte, in one
process and between two."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / folder) for folder in ("cli", "cli/topo")]
import fault_matrix  # noqa: E402
from placement_test import pci_function  # noqa: E402
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
            self.passes("127.0.0.1", "-p", str(server.port), "--buffers", "host,cuda:0,staged:0,cuda-vmm:0")
            if GPUS > 1:
                self.passes("127.0.0.1", "-p", str(server.port), "--buffers", "cuda:0,cuda:1,cuda-vmm:1")

    @unittest.skipIf(GPUS < 2, "one GPU only")
    def test_kinds_of_memory_of_two_gpus(self):
        with Server() as server:
            for target in (("--local",), ("127.0.0.1", "-p", str(server.port))):
                for client, peer in (("cuda:0", "cuda-vmm:1"), ("cuda-vmm:0", "cuda:1"), ("cuda-vmm:0", "cuda-vmm:1")):
                    for test in ("write_bw", "read_bw"):
                        self.expect_ok(run(test, *target, "--softnic", "--buffer", client, "--peer-buffer", peer,
                                           "-s", "1,4097,8388611", "-n", "50", "--verify", timeout=120))

    def test_a_kernel_waits_and_starts(self):
        ends = [("cuda:0", "host"), ("host", "cuda:0"),
                ("cuda:0", "cuda:0")] + ([("cuda:0", "cuda:1")] if GPUS > 1 else [])
        with Server() as server:
            for target in (("--local",), ("127.0.0.1", "-p", str(server.port))):
                for client, peer in ends:
                    # Two processes take turns at one GPU, some ms each.
                    if client == peer and target[0] != "--local":
                        continue
                    words = ("write_lat", *target, "--softnic", "--buffer", client, "--peer-buffer", peer)
                    self.expect_ok(run(*words, "-s", "1,8,4096", "-n", "600", "--initiator", "gpu-proxy", "--verify",
                                       timeout=120))
                    result = run(*words, "-s", "8,4096", "-n", "2000", "--initiator", "both", "--json", "-",
                                 timeout=120)
                    self.expect_ok(result)
                    both = json.loads(result.out)["initiators"]
                    self.assertEqual([size["size_bytes"] for size in both[0]["sizes"]], [8, 4096], both)
                    print(client, peer, target[0], both[0]["worth"], both[0]["sizes"], flush=True)

    def test_staged_both_ways_at_once(self):
        ends = [("cuda:0", "cuda:0"), ("cuda:0", "host"), ("host", "cuda:0")]
        if GPUS > 1:
            ends.append(("cuda:0", "cuda:1"))
        for test in ("write_bw", "send_bw", "read_bw"):
            for client, server in ends:
                options = (test, "--local", "--softnic", "-b", "--path", "staged", "--buffer", client, "--peer-buffer",
                           server, "-n", "200")
                self.expect_ok(run(*options, "-s", "4097,3000001", "--verify", timeout=120))
                self.expect_ok(run(*options, "-s", "64K,8M", timeout=120))

    def test_no_fault_is_missed(self):
        wrong, tried = [], 0
        at_server, at_client = ("--peer-buffer", "cuda:0"), ("--buffer", "cuda:0")
        for test, ends, sizes in (("write_bw", at_server, (1, 64, 4097, 65536)),
                                  ("send_bw", at_server, (1, 4097)),
                                  ("read_bw", at_client, (1, 4097, 65536)),
                                  ("write_bw", (*at_client, *at_server), (4097,)),
                                  ("read_bw", (*at_client, *at_server), (4097,)),
                                  ("write_bw", ("--peer-buffer", "staged:0"), (4097,)),
                                  ("read_bw", ("--buffer", "staged:0"), (4097,))):
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

    def test_a_placed_device_has_the_relation_of_its_place(self):
        address = pci_function()
        if address is None:
            self.skipTest("no PCI function here that a NIC could be at")
        env = {"SOFTNIC": f"soft0:pci={address}"}
        shown = run("topo", "--softnic", "--json", env=env)
        self.expect_ok(shown)
        placed = json.loads(shown.out)["paths"]
        self.assertEqual(sorted(placed), [f"GPU{i}/soft0" for i in range(GPUS)])
        path = self.scratch() + "/r.json"
        self.expect_swept(run("sweep", "--local", "--softnic", "--ops", "write_bw,read_bw", "--sizes", "64K", "-n",
                              "100",
                              "--buffers", "host,cuda:all", "--path", "both", "--json", path, env=env))
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        self.assertEqual(document["topology"]["nics"][0]["pci_address"], address)
        self.assertEqual({key: pair["relation"] for key, pair in document["topology"]["pairs"].items()},
                         {key: pair["relation"] for key, pair in placed.items()})
        found = set()
        for relation, tests in document["relations"].items():
            for one in (run for runs in tests.values() for run in runs):
                expected = "HOST" if one["client"]["buffer"] == "host" else placed[one["pair"]]["relation"]
                self.assertEqual(relation, expected)
                found.add((str(one["pair"]), relation))
        print(f"soft0 at {address}:", sorted(found), flush=True)

    def test_write_latency_ends_by_immediate(self):
        result = run("write_lat", "--local", "--softnic", "--buffer", "cuda:0", "-s", "8", "-n", "200")
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("write with immediate", result.out)


if __name__ == "__main__":
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    main()
