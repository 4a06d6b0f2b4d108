"""gdrperf accept: a machine of eight GPUs and eight NICs, one pair of which is slow."""

import json
import re
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from made_machine import MachineTest, bridge
from support import run

GPU = '<object type="PCIDev" pci_busid="0000:{0:02x}:00.0" pci_type="0302 [10de:2330] [10de:0000] a1" pci_link_speed="63.0">' \
      '<object type="OSDev" name="cuda{1}" osdev_type="5"><info name="NVIDIAUUID" value="GPU-{1}"/></object></object>'
NIC = '<object type="PCIDev" pci_busid="0000:{0:02x}:00.0" pci_type="0200 [15b3:1021] [15b3:0000] 00" pci_link_speed="63.0">' \
      '<object type="OSDev" name="mlx5_{1}" osdev_type="3"><info name="NodeGUID" value="1:2:3:{1}"/></object></object>'
# So slow that a busy machine keeps up, and a quarter of it is asked; the planted pair has a tenth of what its relation
# has.
LINKS = "PIX rate=0.2GB/s,latency=5us\nPHB rate=0.2GB/s,latency=5us\nSYS rate=0.16GB/s,latency=5us\n"
PLANTED = "GPU5:mlx5_5 rate=0.02GB/s,latency=5us   # x1 in place of x16\n"
FLOORS = "all 0.05GB/s   # what is asked of each\nSYS 0.04GB/s\n"
QUICK = ["-s", "64K", "-D", "80ms"]


def switch(first, number):
    """A GPU and a NIC below one switch, at buses from `first` on."""
    inner = bridge(f"0000:{first + 1:02x}:00.0", NIC.format(first + 2, number)) + \
        bridge(f"0000:{first + 1:02x}:01.0", GPU.format(first + 3, number))
    return bridge(f"0000:{first - first % 0x80:02x}:{number % 4 + 1:02x}.0", bridge(f"0000:{first:02x}:00.0", inner))


def eight():
    text = '<?xml version="1.0"?><topology version="2.0"><object type="Machine" nodeset="0x00000003">'
    for socket in (0, 1):
        root = 0x80 * socket
        switches = "".join(switch(root + 1 + 8 * at, 4 * socket + at) for at in range(4))
        text += f'<object type="Package" nodeset="0x0000000{socket + 1}"><object type="Bridge" bridge_type="0-1" ' \
                f'bridge_pci="0000:[{root:02x}-{root + 0x3f:02x}]">{switches}</object></object>'
    return text + "</object></topology>"


class AcceptTest(MachineTest):
    def accept(self, links, *args):
        return run("accept", "--machine", self.write("machine.xml", eight()), "--link-model",
                   self.write("links.txt", links),
                   "--floors", self.write("floors.txt", FLOORS), *QUICK, *args)


@unittest.skipIf(support.softnic_works(), "no software device")
@support.rates
class EightByEight(AcceptTest):
    def test_one_planted_pair_is_named_in_eight_by_eight(self):
        file = self.scratch() + "/accept.json"
        result = self.accept(LINKS + PLANTED, "--ops", "write_bw", "--json", file)
        self.assertEqual(result.code, 1, result)
        with open(file, encoding="utf-8") as opened:
            document = json.load(opened)
        self.check_document(document)
        runs = self.runs_of(document)
        self.assertEqual(len(runs), 64)
        self.assertEqual([each["pair"] for each in runs if each["required"]["met"] == "no"], ["GPU5/mlx5_5"], result)
        self.assertEqual(len(re.findall("^MISSED ", result.out, re.M)), 1, result)
        self.assertIn("likely: this one alone: ", result.out)
        self.assertIn("Required of 64 runs: 1 missed", result.out)
        self.assertIn("not accepted: see MISSED", result.err)
        # GPUs against NICs, within 80 columns.
        self.assertRegex(result.out, r"(?m)^  GPU5( +[0-9.]+!?){8}")
        matrix = [line for line in result.out.splitlines() if re.match("  (GPU| +mlx5)", line)]
        self.assertGreater(len(matrix), 2 * 9 - 1)
        self.assertLessEqual(max(map(len, matrix)), 80)

    def test_a_slow_port_is_one_finding(self):
        """All pairs of one NIC: not each of them alone."""
        slow = "".join(f"GPU{gpu}:mlx5_3 rate=0.02GB/s,latency=5us\n" for gpu in range(4))
        result = self.accept(LINKS + slow, "--ops", "write_bw", "--pairs",
                             ",".join(f"GPU{gpu}:mlx5_{nic}" for gpu in range(4) for nic in (2, 3)) + ",GPU0:mlx5_7")
        self.assertEqual(result.code, 1, result)
        self.assertEqual(len(re.findall("^MISSED ", result.out, re.M)), 1, result)
        self.assertRegex(result.out, r"MISSED +mlx5_3: each of its 4 runs: \d+ to \d+ % of what is required")
        self.assertNotIn("this one alone", result.out)

    def test_a_sound_machine_is_accepted(self):
        result = self.accept(LINKS, "--pairs", "PIX,GPU0:mlx5_7")
        self.assertIn(result.code, (0, 4), result)  # 4: a busy machine, no run of which is stable
        self.assertIn("Required: met by 18 runs", result.out)

    def test_the_worst_comes_first_and_far_relations_are_named(self):
        floors = self.write("high.txt", "all 0.0001GB/s\nPIX 0.05GB/s\nSYS 1GB/s write_bw\n")
        result = run("accept", "--machine", self.write("machine.xml", eight()), "--link-model",
                     self.write("links.txt", LINKS + PLANTED),
                     "--floors", floors, *QUICK, "--pairs", "GPU5:mlx5_5,GPU4:mlx5_4,GPU0:mlx5_7")
        self.assertEqual(result.code, 1, result)
        missed = re.findall(r"^MISSED +(\w+)/(\w+)/(GPU\d)", result.out, re.M)
        self.assertEqual([it[1:] for it in missed], [("SYS", "GPU0"), ("PIX", "GPU5"), ("PIX", "GPU5")], result)
        self.assertIn("the data cross the link between NUMA nodes (SYS)", " ".join(result.out.split()))
        self.assertNotIn("read_bw/SYS", result.out.split("MISSED", 1)[1].split("Required")[0])


@unittest.skipIf(support.softnic_works(), "no software device")
class Accept(AcceptTest):
    def test_a_wrong_floor_is_named_by_its_line(self):
        for text, words in [("PIX 22\n", "wrong.txt:1"),
                            ("# x\nPIX 22GB/s read_lat\n", "wrong.txt:2: 'read_lat' is no bandwidth test"),
                            ("PIZ 22GB/s\n", "wrong.txt:1: 'PIZ' is no pair"),
                            ("PIX 1GB/s\nPIX 2GB/s\n", "wrong.txt:2: PIX comes twice"),
                            ("GPU9:mlx5_0 1GB/s\n", "wrong.txt:1: no run is of GPU9:mlx5_0"),
                            ("# nothing\n", "it has no required rate")]:
            with self.subTest(text):
                result = run("accept", "--machine", self.write("machine.xml", eight()), "--floors",
                             self.write("wrong.txt", text), *QUICK)
                self.assertEqual(result.code, 2, result)
                self.assertIn(words, result.err)


@unittest.skipIf(support.softnic_works(), "no software device")
class OneMachine(support.CliTest):
    def test_the_share_of_the_ceiling_is_asked_where_no_floor_is(self):
        result = run("accept", "--local", "--softnic", "--devices", "soft0", "-n", "100", "-s", "4K")
        self.assertEqual(result.code, 4, result)  # a software device has no ceiling
        self.assertIn("has no known theoretical maximum, which --min-efficiency 90% refers to", " ".join(
            result.out.split()))
        self.assertIn("undecided", result.err)
        missing = run("accept", "--local", "--softnic", "--devices", "soft0", "-n", "100", "-s", "4K", "--expect",
                      "nics=9")
        self.assertEqual(missing.code, 1, missing)
        self.assertRegex(missing.err, r"MISSED +\d NICs? with an active port, 9 expected \(--expect\)")
        planned = run("accept", "--local", "--softnic", "--dry-run")
        self.assertEqual(planned.code, 0, planned)
        self.assertIn("read_bw", planned.out)

    @support.long
    def test_bring_up_is_a_page_of_four_steps(self):
        with support.Server() as server:
            result = run("bringup", "127.0.0.1", "-p", server.port, "--softnic", timeout=3 * support.PATIENCE_S)
        rows = re.findall(r"^(PASS|UNSURE|FAIL) +(\w[\w ]*\w) +[0-9.]+ s  gdrperf (\w+)", result.out, re.M)
        self.assertEqual([row[1:] for row in rows], [("this machine", "doctor"), ("both hosts", "doctor"),
                                                     ("every byte arrives", "verify"), ("rates", "accept")], result)
        verdicts = dict((row[1], row[0]) for row in rows)
        self.assertEqual(verdicts["every byte arrives"], "PASS", result)
        self.assertEqual(verdicts["rates"], "UNSURE", result)  # a software device has no ceiling
        failed = "FAIL" in verdicts.values()
        self.assertEqual(result.code, 1 if failed else 4, result)
        self.assertIn("Verdict: not ready; run 'gdrperf " if failed else "Verdict: undecided; run 'gdrperf ",
                      result.out)

    def test_expectations_that_are_none_are_refused(self):
        for command in (("bringup", "node2"), ("accept", "node2"), ("cluster",)):
            refused = run(*command, "--expect", "nics=eight")
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("--expect 'nics=eight': the number is none from 0 to 1024", refused.err)

    def test_bring_up_without_a_server_is_not_ready(self):
        result = run("bringup", "127.0.0.1", "-p", "1", "--softnic", timeout=3 * support.PATIENCE_S)
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.out, r"(?m)^FAIL +every byte arrives")
        self.assertIn("nothing listens there", result.out)


if __name__ == "__main__":
    support.main()
