#!/usr/bin/env python3
"""Placement from end to end: recorded machines simulated and compared, and devices that say where they are."""

import json
import os
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from made_machine import MachineTest, machine
from support import main, rates, run, softnic_works

# GB/s. So slow that messages for many milliseconds are under way: a machine that is busy
# with other tests loses the CPU for less.
MODEL = {"PIX": 0.2, "PHB": 0.15, "SYS": 0.05}


class Placement(MachineTest):
    def model(self):
        lines = [f"{relation} rate={rate}GB/s,latency=5us  # GB/s" for relation, rate in MODEL.items()]
        return self.write("links.txt", "\n".join(["# a slow machine", *lines]))

    def simulate(self, path, *options):
        document = self.scratch() + "/r.json"
        result = run("sweep", "--machine", path, "--link-model", self.model(), "--ops", "write_bw", "--json",
                     document, *options)
        self.expect_swept(result)
        with open(document, encoding="utf-8") as file:
            content = json.load(file)
        self.check_document(content)
        return result, content, document


def pci_function():
    """A network or storage function of this machine: hwloc's trees hold such."""
    folder = "/sys/bus/pci/devices"
    for address in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        with open(f"{folder}/{address}/class", encoding="ascii") as file:
            if file.read().startswith(("0x02", "0x01")):
                return address
    return None


@unittest.skipIf(softnic_works(), "no software device")
class DeclaredPlace(Placement):
    def test_a_software_device_is_where_it_says(self):
        address = pci_function() or "0000:3b:00.0"
        env = {"SOFTNIC": f"soft0:pci={address},numa=0;soft1"}
        result = run("devices", "--softnic", "--json", env=env)
        self.expect_ok(result)
        placed, other = json.loads(result.out)["devices"]
        self.assertEqual((placed["pci_address"], placed["numa_node"], placed["kind"]), (address, 0, "software"))
        self.assertEqual((other["pci_address"], other["numa_node"], other["kind"]), ("", None, "software"))
        document = self.scratch() + "/r.json"
        self.expect_ok(run("write_bw", "--local", "--softnic", "-n", "50", "--json", document, env=env))
        with open(document, encoding="utf-8") as file:
            content = json.load(file)
        self.check_document(content)
        placed, other = content["topology"]["nics"]
        self.assertEqual((placed["pci_address"], placed["numa_node"]), (address, 0))
        self.assertIsNone(other["pci_address"])
        self.assertIsNone(self.runs_of(content)[0]["ceiling_gbps"], "no path of that bus carried the data")
        if pci_function() is None:
            self.skipTest("no PCI function here that a NIC could be at")
        result = run("topo", "--softnic", "--json", env=env)
        self.expect_ok(result)
        document = json.loads(result.out)
        # Beside the matrix of nvidia-smi, which knows no software device, the PCI tree has a member of its own.
        tree = document.get("tree", document)
        self.assertIn(("soft0", address), [(nic["name"], nic["busid"]) for nic in tree["nics"]])


@unittest.skipIf(softnic_works(), "no software device")
class Sweep(Placement):
    def test_a_wrong_link_model_is_named_by_its_line(self):
        path = self.write("links.txt", "# a model\nPIX rate=11GB/s,latency=2\n")
        result = run("sweep", "--machine", self.three_relations(), "--link-model", path)
        self.expect_error(result, 2, "links.txt:2: latency '2'", "with a unit")
        self.assertNotIn("runs failed", result.err)

    def test_a_required_share_of_the_ceiling_is_judged_for_each_pair(self):
        # Of links of a few GB/s, more than a millionth and less than 99.9 % is reached of what the slots carry.
        for percent, met, code in (("0.0001%", "yes", (0, 4)), ("99.9%", "no", (1,))):
            result = run("sweep", "--machine", self.three_relations(), "--link-model", self.model(), "--ops",
                         "write_bw",
                         "--sizes", "64K", "-n", "200", "--min-efficiency", percent, "--json", "-")
            self.assertIn(result.code, code, str(result))
            self.assertEqual([one["required"]["met"] for one in self.runs_of(json.loads(result.out))],
                             [met] * len(MODEL))

    def test_no_reporter_drops_that_it_is_simulated(self):
        path = self.three_relations()
        result, document, _ = self.simulate(path, "--sizes", "64K", "-n", "50", "--csv",
                                            self.scratch() + "/r.csv")
        self.assertTrue(document["simulated"])
        for one in self.runs_of(document):
            self.assertEqual(one["device_kind"], "simulated")
            self.assertIn("simulated", one["client"]["buffer"])
            self.assertIn(one["pair"], document["topology"]["pairs"])
            self.assertGreater(one["ceiling_gbps"], 0)
        self.assertIn("not of hardware", result.out)
        for form in ("google-benchmark", "csv", "prometheus", "bmf", "custom-bigger-is-better", "jsonl"):
            told = run("sweep", "--machine", path, "--ops", "write_bw", "--sizes", "64K", "-n", "50",
                       "--format", form)
            self.expect_swept(told)
            self.assertIn("simulated", told.out, form)

    def test_pairs_are_chosen(self):
        _, document, _ = self.simulate(self.three_relations(), "--sizes", "64K", "-n", "50", "--pairs",
                                       "SYS,GPU0:mlx5_0")
        self.assertEqual([one["pair"] for one in self.runs_of(document)], ["GPU0/mlx5_0", "GPU2/mlx5_0"])
        path = self.three_relations()
        self.expect_error(run("sweep", "--machine", path, "--pairs", "NODE"), 2, "--pairs", "PIX, PHB, SYS")
        self.expect_error(run("sweep", "--machine", path, "--pairs", "GPU9:mlx5_0"), 2, "--pairs")
        self.expect_error(run("sweep", "--machine", path, "node2"), 2, "--machine")
        self.expect_error(run("sweep", "--local", "--link-model", path), 2, "--link-model")
        wrong = self.write("wrong.txt", "PIX rate=2GB/s\nPUX rate=1GB/s\n")
        self.expect_error(run("sweep", "--machine", path, "--link-model", wrong), 2, f"{wrong}:2", "PUX")

    def test_it_runs_where_it_is_told_to(self):
        path = self.scratch() + "/r.json"
        self.expect_error(run("write_bw", "--local", "--softnic", "-n", "10", "--numa", "4000"), 2, "--numa 4000")
        if not os.path.isdir("/sys/devices/system/node/node0"):
            self.skipTest("this kernel tells no NUMA nodes")
        result = run("write_bw", "--local", "--softnic", "-n", "10", "--numa", "0", "--peer-numa", "0", "--json", path)
        if "no CPU of that NUMA node" in result.err:
            self.skipTest("taskset leaves no CPU of node 0")
        self.expect_ok(result)
        with open(path, encoding="utf-8") as file:
            one = self.runs_of(json.load(file))[0]
        self.assertEqual((one["client"]["numa"], one["server"]["numa"]), (0, 0))
        self.assertIsNone(one["host_node"], "the software device is on no node")


@unittest.skipIf(softnic_works(), "no software device")
@rates
class Rates(Placement):
    """What holds measured rates against the model's: with nothing beside it."""

    def test_the_report_gives_back_the_rates_put_in(self):
        result, document, _ = self.simulate(self.three_relations(), "--sizes", "64K,256K", "-D", "600ms")
        self.assertEqual(list(document["relations"]), list(MODEL))
        slower = []
        for relation, rate in MODEL.items():
            runs = document["relations"][relation]["write_bw"]
            self.assertEqual([one["size_bytes"] for one in runs], [65536, 262144])
            for one in runs:
                off = one["bw"]["median_gbps"] / (rate * 8) - 1
                self.assertLess(off, 0.02, (relation, one))
                if off <= -0.02:
                    self.assertTrue(one["unstable"], (relation, one))
                    slower.append(f"{relation} by {-off:.0%}")
        self.assertIn("Relations compared", result.out)
        self.assertNotIn("Published for", result.out, "a model is no match for machines")
        if slower:
            self.skipTest(f"slower than the model, and marked: other programs ran ({', '.join(slower)})")

    def test_a_card_moved_to_another_slot_is_found(self):
        before = self.write("before.xml", machine([(0, "a")], [(1, "b")], [(2, "c")]))
        # The card on the other socket and the one beside the NIC have changed places.
        after = self.write("after.xml", machine([(0, "c")], [(1, "b")], [(2, "a")]))
        _, _, first = self.simulate(before, "--sizes", "256K", "-D", "200ms")
        _, _, second = self.simulate(after, "--sizes", "256K", "-D", "200ms")
        result = run("compare", "--by", "relation", first, second, "--json", self.scratch() + "/c.json")
        self.expect_ok(result)
        self.assertIn("GPU2/mlx5_0 (now GPU0/mlx5_0) moved from SYS to PIX", result.out)
        self.assertIn("GPU0/mlx5_0 (now GPU2/mlx5_0) moved from PIX to SYS", result.out)
        self.assertNotIn("GPU1/mlx5_0", result.out)
        self.expect_error(run("compare", "--by", "slot", first, second), 2, "--by")


if __name__ == "__main__":
    main()
