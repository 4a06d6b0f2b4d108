#!/usr/bin/env python3
"""Placement from end to end: recorded machines shown, refused, simulated and compared."""

import json
import os
import tarfile
import unittest

from support import CliTest, main, run, sanitized, softnic_works

GPU = '<object type="PCIDev" pci_busid="{}" pci_type="0302 [10de:2330] [10de:0000] a1" pci_link_speed="63.0">' \
      '<object type="OSDev" name="cuda{}" osdev_type="5"><info name="NVIDIAUUID" value="GPU-{}"/></object></object>'
NIC = '<object type="PCIDev" pci_busid="{}" pci_type="0200 [15b3:1021] [15b3:0000] 00" pci_link_speed="31.5">' \
      '<object type="OSDev" name="mlx5_0" osdev_type="3"><info name="NodeGUID" value="1:2:3:4"/></object></object>'


def bridge(address, inner):
    return f'<object type="Bridge" bridge_type="1-1" bridge_pci="0000:[00-ff]" pci_busid="{address}" ' \
           f'pci_type="0604 [8086:352a] [0000:0000] 00" pci_link_speed="63.0">{inner}</object>'


def machine(near, other_port, other_socket):
    """A server of two sockets: GPUs (number, UUID) beside the NIC on its switch, on another
    port of its root complex, and on the other socket."""
    switch = bridge("0000:01:00.0", bridge("0000:02:00.0", NIC.format("0000:03:00.0")) +
                    bridge("0000:02:01.0", "".join(GPU.format("0000:04:00.0", *gpu) for gpu in near)))
    first = bridge("0000:00:01.0", switch) + bridge(
        "0000:00:02.0", "".join(GPU.format("0000:09:00.0", *gpu) for gpu in other_port))
    second = bridge("0000:80:01.0", "".join(GPU.format("0000:81:00.0", *gpu) for gpu in other_socket))
    socket = '<object type="Package" nodeset="0x0000000{}"><object type="Bridge" bridge_type="0-1" ' \
             'bridge_pci="0000:[{}]">{}</object></object>'
    return '<?xml version="1.0"?><topology version="2.0"><object type="Machine" nodeset="0x00000003">' + \
        socket.format(1, "00-1f", first) + socket.format(2, "80-9f", second) + "</object></topology>"


# GB/s. So slow that messages for many milliseconds are under way: a machine that is busy
# with other tests loses the CPU for less.
MODEL = {"PIX": 0.2, "PHB": 0.15, "SYS": 0.05}


class Placement(CliTest):
    def write(self, name, content):
        path = os.path.join(self.scratch(), name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def three_relations(self):
        return self.write("machine.xml", machine([(0, "a")], [(1, "b")], [(2, "c")]))

    def model(self):
        lines = [f"{relation} rate={rate}GB/s,latency=5us  # GB/s" for relation, rate in MODEL.items()]
        return self.write("links.txt", "\n".join(["# a slow machine", *lines]))

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

    def test_a_wrong_link_model_is_named_by_its_line(self):
        path = self.write("links.txt", "# a model\nPIX rate=11GB/s,latency=2\n")
        result = run("sweep", "--machine", self.three_relations(), "--link-model", path)
        self.expect_error(result, 2, "links.txt:2: latency '2'", "with a unit")
        self.assertNotIn("runs failed", result.err)

    def simulate(self, path, *options):
        document = self.scratch() + "/r.json"
        result = run("sweep", "--machine", path, "--link-model", self.model(), "--ops", "write_bw", "--json",
                     document, *options)
        self.expect_swept(result)
        with open(document, encoding="utf-8") as file:
            content = json.load(file)
        self.check_document(content)
        return result, content, document


class Topo(Placement):
    def test_a_recorded_machine_is_shown(self):
        result = run("topo", "--hwloc", self.three_relations())
        self.expect_ok(result)
        for text in ("PIX", "PHB", "SYS", "best NIC", "<= 400", "22.3 to 28.8", "up to 28.8"):
            self.assertIn(text, result.out)
        told = run("topo", "--hwloc", self.three_relations(), "--explain", "GPU0", "mlx5_0")
        self.expect_ok(told)
        self.assertIn("the lowest bridge they share is 0000:01:00.0", told.out)
        self.assertIn("Expected either way: 22.3 to 28.8 GB/s; likely:", told.out)
        far = run("topo", "--hwloc", self.three_relations(), "--explain", "GPU2", "mlx5_0")
        self.assertIn("Expected where the NIC reads GPU memory: up to 28.8 GB/s; bound:", far.out)
        self.expect_error(run("topo", "--hwloc", self.three_relations(), "--explain", "GPU7", "mlx5_0"), 2,
                          "GPU7")

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


DUMPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared/fixtures/topology/hwloc")


@unittest.skipUnless(os.path.isdir(DUMPS), "no recorded copies of /sys at " + DUMPS)
class SysfsDumps(Placement):
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
        self.assertIn(("soft0", address), [(nic["name"], nic["busid"]) for nic in json.loads(result.out)["nics"]])


@unittest.skipIf(softnic_works(), "no software device")
class Sweep(Placement):
    def test_the_report_gives_back_the_rates_put_in(self):
        path = self.three_relations()
        least = 1 if sanitized() else 0.02  # too slow for the model then, and still never above it
        for attempt in range(3):  # a busy machine can be slower than any model
            result, document, _ = self.simulate(path, "--sizes", "64K,256K", "-D", "600ms")
            self.assertEqual(list(document["relations"]), list(MODEL))
            off = []
            for relation, rate in MODEL.items():
                runs = document["relations"][relation]["write_bw"]
                self.assertEqual([one["size_bytes"] for one in runs], [65536, 262144])
                off += [f"{relation} {one['bw']['median_gbps']} Gb/s, not {rate * 8}" for one in runs
                        if not -least < one["bw"]["median_gbps"] / (rate * 8) - 1 < 0.02]
            if not off:
                break
        self.assertEqual(off, [])
        self.assertIn("Relations compared", result.out)
        self.assertNotIn("Published for", result.out, "a model is no match for machines")

    def test_a_required_share_of_the_ceiling_is_judged_for_each_pair(self):
        # Of links of a few GB/s, more than a millionth and less than 99.9 % is reached of what the slots carry.
        for percent, met, code in (("0.0001%", "yes", (0, 4)), ("99.9%", "no", (1,))):
            result = run("sweep", "--machine", self.three_relations(), "--link-model", self.model(), "--ops", "write_bw",
                         "--sizes", "64K", "-n", "200", "--min-efficiency", percent, "--json", "-")
            self.assertIn(result.code, code, str(result))
            self.assertEqual([one["required"]["met"] for one in self.runs_of(json.loads(result.out))], [met] * len(MODEL))

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
