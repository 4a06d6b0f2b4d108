#!/usr/bin/env python3
"""gdrperf doctor: verdicts, exit code, JSON, captured text, recordings."""

import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import BINARY, Background, CliTest, environment, main, run, softnic_works

LSMOD = "nvidia_peermem 16384 0\nib_core 434176 1 ib_uverbs\nnvidia 56717312 4 nvidia_peermem\n"
SOURCE = pathlib.Path(__file__).resolve().parents[3]
DATA = SOURCE / "tests/data/doctor"
STORIES = DATA / "stories"
KEYS = {"check", "group", "subject", "verdict", "found", "why", "fix", "for_good", "undo", "holds", "evidence"}


def large_machine():
    """Eight switches, each with a GPU and two NICs."""
    text = ["== file /proc/sys/kernel/osrelease", "6.8.0", "== file /proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build"]
    probe = []

    def add(path, value):
        text.extend([f"== file {path}", str(value)])

    def function(bus, slot, above, vendor, device, code, driver=""):
        address = f"0000:{bus:02x}:{slot:02x}.0"
        real = f"/sys/devices/pci0000:{above[0][5:7]}/" + "/".join([*above, address]) if above else \
            f"/sys/devices/pci0000:{bus:02x}/{address}"
        text.append(f"== link /sys/bus/pci/devices/{address} {real}")
        if driver:
            text.append(f"== link {real}/driver /sys/bus/pci/drivers/{driver}")
        for name, value in (("vendor", vendor), ("device", device), ("class", code), ("numa_node", 0),
                            ("current_link_speed", "32.0 GT/s PCIe"), ("max_link_speed", "32.0 GT/s PCIe"),
                            ("current_link_width", 16), ("max_link_width", 16)):
            add(f"{real}/{name}", value)
        return address, real

    for switch in range(8):
        bus = 0x10 + 0x10 * switch
        root, _ = function(bus, 0, [], "0x8086", "0x352a", "0x060400")
        up, _ = function(bus + 1, 0, [root], "0x1000", "0xc030", "0x060400")
        down, _ = function(bus + 2, 0, [root, up], "0x1000", "0xc030", "0x060400")
        gpu, _ = function(bus + 3, 0, [root, up, down], "0x10de", "0x2330", "0x030200", "nvidia")
        probe.append(f"gpu {gpu} gdr=1 dmabuf=1 NVIDIA H100")
        for nic in (2 * switch, 2 * switch + 1):
            port, _ = function(bus + 2, 1 + nic % 2, [root, up], "0x1000", "0xc030", "0x060400")
            address, real = function(bus + 4 + nic % 2, 0, [root, up, port], "0x15b3", "0x1021", "0x020000",
                                     "mlx5_core")
            name = f"mlx5_{nic}"
            text.append(f"== link /sys/class/infiniband/{name}/device {real}")
            ports = f"/sys/class/infiniband/{name}/ports/1"
            for key, value in (("state", "4: ACTIVE"), ("phys_state", "5: LinkUp"), ("link_layer", "InfiniBand"),
                               ("rate", "400 Gb/sec (4X NDR)")):
                add(f"{ports}/{key}", value)
            add(f"/sys/class/infiniband_verbs/uverbs{nic}/ibdev", name)
            add(f"/dev/infiniband/uverbs{nic}", "")
            probe.append(f"nic {name} dmabuf 9 Bad file descriptor")
    for switch in range(8):
        for nic in range(16):
            probe.append(f"reg mlx5_{nic} 0000:{0x13 + 0x10 * switch:02x}:00.0 dmabuf 0 ok")
    return "\n".join([*text, "== program gdr-probe", *probe]) + "\n"


class Doctor(CliTest):
    def document(self, *args, code, env=None):
        result = run("doctor", "--json", *args, env=env)
        self.assertEqual(result.code, code, result)
        document = json.loads(result.out)
        for check in document["checks"]:
            self.assertEqual(set(check), KEYS)
        for verdict in ("OK", "WARN", "FAIL", "SKIP"):
            self.assertEqual(document["counts"][verdict],
                             sum(check["verdict"] == verdict for check in document["checks"]))
        return document

    def checks(self, *args, code, env=None):
        return {check["check"]: check for check in self.document(*args, code=code, env=env)["checks"]}

    def read(self, text, code):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as capture:
            capture.write(text)
            capture.flush()
            return self.checks("--read", capture.name, code=code)

    def test_this_machine(self):
        result = run("doctor", "-v")
        nothing = run("doctor").code == 3
        self.assertEqual(result.code, 3 if nothing else 1 if "  FAIL  " in result.out else 0, result)
        self.assertEqual(result.err, "")
        if run("devices").code != 0:
            self.assertIn("FAIL  rdma-device", result.out)
            self.assertIn("--softnic", result.out)

    def test_a_machine_with_nothing_gets_a_page_that_helps(self):
        if run("devices").code == 0 or "GPU" in run("topo").out:
            self.skipTest("this machine has something")
        page = run("doctor")
        self.assertEqual(page.code, 3, page)
        self.assertIn("Nothing to check", page.out)
        self.assertIn("--softnic", page.out)
        self.assertNotIn("SKIP", page.out)

    @unittest.skipIf(softnic_works(), "no software device")
    def test_the_software_device(self):
        checks = self.checks("--softnic", code=0)
        self.assertIn("soft0 (software)", checks["rdma-device"]["found"])
        self.assertEqual(checks["port-state"]["verdict"], "OK")
        checks = self.checks("--softnic", code=1, env={"SOFTNIC": "soft0:port=down"})
        self.assertEqual(checks["port-state"]["verdict"], "FAIL")
        self.assertNotEqual(checks["port-state"]["fix"], "")

    def test_captured_text(self):
        self.assertEqual(self.read(LSMOD, code=1)["peermem"]["verdict"], "FAIL")

    def test_several_captures_are_compared(self):
        document = self.document("--read",
                                 STORIES / "mtu-differs-a.txt",
                                 "--read",
                                 STORIES / "mtu-differs-b.txt",
                                 code=1)
        self.assertIn("the two hosts differ", document["checks"][0]["found"])

    def test_standard_input(self):
        done = subprocess.run([BINARY, "doctor", "--read", "-"], env=environment(), text=True,
                              input="mlx5_0 port 1 ==> eth2 (Up)\n", capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("port-state", done.stdout)
        self.assertTrue(done.stdout.startswith("all is well: 1 ok, 0 skipped\n"), done.stdout)

    def test_the_first_line_is_the_cause_and_the_second_what_to_do(self):
        lines = [
            line for line in (DATA / "first-lines.tsv").read_text(encoding="utf-8").splitlines()
            if line and not line.startswith("#")
        ]
        self.assertGreaterEqual(len(lines), 10)
        for names, cause, cure in (line.split("\t") for line in lines):
            flag = "--root" if names.endswith(".machine") else "--read"
            words = [word for name in names.split() for word in (flag, str(STORIES / name))]
            first, second = run("doctor", *words).out.splitlines()[:2]
            self.assertTrue(first.startswith(cause), f"{names}: {first}")
            self.assertTrue(second.startswith("  do: "), f"{names}: {second}")
            self.assertIn(cure, second, names)

    def test_unknown_text_could_not_be_looked_at(self):
        self.assertIn("none of the outputs", self.read("hello\nworld\n", code=3)["capture"]["found"])

    def test_a_capture_that_is_not_there(self):
        self.expect_error(run("doctor", "--read", "/nowhere"), 2, "/nowhere")

    def test_an_unknown_option(self):
        self.expect_error(run("doctor", "--jsn"), 2, "--json")

    def test_only_and_list(self):
        listed = run("doctor", "--list")
        self.assertEqual(listed.code, 0)
        for group in ("RDMA device", "Ports", "PCIe", "GPUDirect RDMA", "Host"):
            self.assertIn(group, listed.out)
        checks = self.document("--root", STORIES / "mtu-1500.machine", "--only", "mtu,gid", code=0)["checks"]
        self.assertEqual({check["check"] for check in checks}, {"mtu", "gid"})
        self.expect_error(run("doctor", "--only", "mtuu"), 2, "mtu")

    def test_words_of_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".words") as file:
            file.write("class: ours\nsource: our logs\n\ncheck: ours\nverdict: WARN\nline: ourfs lost\nfound: it went "
                       "away\n"
                       "why: it does\nfix: bring it back\n")
            file.flush()
            done = subprocess.run([BINARY, "doctor", "--words", file.name, "--read", "-"], input="ourfs lost it\n",
                                  env=environment(),
                                  capture_output=True, text=True, timeout=60)
            self.assertIn("bring it back", done.stdout)
            self.assertIn("our logs", run("doctor", "--words", file.name, "--list-words").out)
            file.write("colour: red\n")
            file.flush()
            self.expect_error(run("doctor", "--words", file.name, "--read", "-"), 2, f"{file.name}:10", "colour")

    def test_sources_of_known_messages(self):
        classes = json.loads(run("doctor", "--list-words", "--json").out)
        self.assertGreater(sum(each["messages"] for each in classes), 800)
        for name in ("mlx5_core", "NCCL", "irdma", "efa", "ionic"):
            self.assertIn(name, {each["class"] for each in classes})

    def test_one_source_at_a_time(self):
        self.expect_error(run("doctor", "--root", STORIES, "--read", "-"), 2, "one at a time")

    def test_a_recording_says_what_the_machine_said(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = f"{folder}/here.tar.gz"
            done = run("doctor", "--record", recording)
            self.assertEqual(done.code, 0, done)
            with tarfile.open(recording) as archive:
                names = archive.getnames()
                # No link in it leads out of the folder it is unpacked in.
                safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                archive.extractall(f"{folder}/tree", **safely)
            self.assertIn("gdrperf-recording", names)
            here = self.verdicts(run("doctor", "--json", "--only", "memlock,governor,numa-balancing,iommu,gpu-link"))
            for root in (recording, f"{folder}/tree"):
                there = run("doctor", "--json", "--root", root, "--only",
                            "memlock,governor,numa-balancing,iommu,gpu-link")
                self.assertEqual(self.verdicts(there), here)

    @staticmethod
    def verdicts(result):
        return [(check["check"], check["subject"], check["verdict"], check["found"])
                for check in json.loads(result.out)["checks"] if check["check"] != "recording"]

    def test_a_recording_that_leads_out_or_is_cut_is_a_finding(self):
        with tempfile.TemporaryDirectory() as folder:
            sysfs = pathlib.Path(folder, "tree/sys/class/infiniband")
            sysfs.mkdir(parents=True)
            (sysfs / "mlx5_0").symlink_to("../../../../../etc/passwd")
            (sysfs / "large").write_bytes(b"x" * (5 << 20))
            document = self.document("--root", f"{folder}/tree", code=3)
            found = " ".join(check["found"] for check in document["checks"] if check["check"] == "recording")
            self.assertIn("leads out of the recording", found)
            self.assertIn("larger than 4 MiB", found)
            with tarfile.open(f"{folder}/whole.tar.gz", "w:gz") as archive:
                archive.add(STORIES / "mtu-1500.machine", arcname="sys/a")
            cut = pathlib.Path(folder, "cut.tar.gz")
            cut.write_bytes(pathlib.Path(folder, "whole.tar.gz").read_bytes()[:200])
            found = run("doctor", "--json", "--root", cut).out
            self.assertIn("cut off", found)

    def test_an_empty_recording_could_not_be_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            result = run("doctor", "--root", folder)
            self.assertEqual(result.code, 3, result)

    def test_a_file_that_is_no_recording(self):
        self.expect_error(run("doctor", "--root", __file__), 2, "neither a folder")

    def test_the_script_asks_before_each_step(self):
        script = run("doctor", "--fix-script", "--root", STORIES / "numa-balancing.machine").out
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
            file.write(script)
            file.flush()
            dry = subprocess.run(["sh", file.name, "--dry-run"], capture_output=True, text=True, timeout=60)
            asked = subprocess.run(["sh", file.name], capture_output=True, text=True, timeout=60, input="")
        self.assertEqual((dry.returncode, dry.stderr), (0, ""))
        self.assertIn("sysctl -w kernel.numa_balancing=0", dry.stdout)
        self.assertIn("run it? [y/N]", asked.stdout)
        self.assertIn("left out", asked.stdout)

    @unittest.skipIf(softnic_works(), "no software device")
    def test_json_goes_to_a_file_as_in_every_other_command(self):
        with tempfile.TemporaryDirectory() as folder:
            text = run("doctor", "--softnic", "--only", "mtu,gid", "--json", f"{folder}/d.json")
            self.assertTrue(text.out.startswith("all is well: "), text)
            self.assertEqual(len(json.loads(pathlib.Path(folder, "d.json").read_text())["checks"]), json.loads(
                run("doctor", "--softnic", "--only", "mtu,gid", "--json", "-").out)["counts"]["OK"])
            self.expect_error(run("doctor", "--json", f"{folder}/none/d.json"), 3, "--json")

    def test_a_machine_that_is_well_takes_one_line(self):
        result = run("doctor", "--root", STORIES / "emerald-rapids-ordering.machine")
        self.assertEqual(result.code, 0, result)
        self.assertRegex(
            result.out,
            r"\Aall is well: \d+ ok, \d+ skipped; the GPU has a direct path to its nearest NIC \(-v: .*\)\n\Z")
        ill = run("doctor", "--root", STORIES / "numa-balancing.machine")
        self.assertRegex(ill.out, r"(?m)^\d+ failed, \d+ warnings?, ")

    @unittest.skipIf(softnic_works(), "no software device")
    def test_both_ends_are_compared(self):
        with Background("serve", "-p", "0", "--softnic") as server:
            port = server.wait_line("port ").split("port ")[1].split(";")[0]
            document = self.document("--softnic", "127.0.0.1", "-p", port, code=0)
        ends = [check for check in document["checks"] if check["check"] == "both-ends"]
        self.assertIn("active MTU: 4096 on both hosts", [check["found"] for check in ends])
        probes = [check for check in document["checks"] if check["check"] == "probe"]
        self.assertEqual([check["subject"] for check in probes], ["to 127.0.0.1", "from 127.0.0.1"])
        for probe in probes:
            self.assertRegex(probe["found"], r"^[0-9.]+ GB/s")

    def test_no_server_there(self):
        self.assertEqual(run("doctor", "127.0.0.1", "-p", "1").code, 5)

    def test_starts_where_libibverbs_is_missing(self):
        launcher = BINARY + "-doctor"
        with tempfile.TemporaryDirectory() as folder:
            # The dynamic linker takes this file for the library, and it is none.
            pathlib.Path(folder, "libibverbs.so.1").write_bytes(b"")
            env = environment({"LD_LIBRARY_PATH": folder})
            whole = subprocess.run([BINARY, "doctor"], env=env, capture_output=True, text=True, timeout=60)
            # Linked to it the program does not start; with -Dverbs=loaded it does, and says the same as the launcher.
            if whole.returncode not in (0, 1):
                self.assertNotEqual(whole.stderr, "")
                whole = subprocess.run([launcher], env=env, capture_output=True, text=True, timeout=60)
            done = subprocess.run([launcher, "--json"], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(whole.returncode, 1, whole)
        # Also on a machine without hardware, where nothing else is looked at.
        self.assertIn("libibverbs.so.1: file too short", " ".join(whole.stdout.split()))
        self.assertNotIn("exit status 3", whole.stdout)
        checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(checks["libibverbs"]["verdict"], "FAIL")
        self.assertRegex(checks["libibverbs"]["found"],
                         r"libibverbs\.so\.1: file too short: no RDMA program runs here$")
        self.assertIn("libibverbs", checks["libibverbs"]["fix"])
        listed = subprocess.run([launcher, "--list"], env=environment(), capture_output=True, text=True, timeout=60)
        self.assertEqual(listed.stdout, run("doctor", "--list").out)

    def test_eight_gpus_and_sixteen_nics_fit_on_two_screens(self):
        with tempfile.NamedTemporaryFile("w", suffix=".machine") as machine:
            machine.write(large_machine())
            machine.flush()
            brief = run("doctor", "--root", machine.name)
            whole = self.document("--root", machine.name, code=brief.code)
        self.assertLess(len(brief.out.splitlines()), 100, brief.out)
        self.assertEqual(len(whole["pairs"]), 8 * 16)
        for gpu in range(8):
            self.assertRegex(brief.out,
                             rf"GPU{gpu} <-> mlx5_{2 * gpu}, mlx5_{2 * gpu + 1} PIX: direct path ready, expect 50 GB/s")

    def test_the_document_lists_the_checks_of_the_code(self):
        text = (SOURCE / "docs/how-to/doctor.md").read_text()
        table = run("doctor", "--list", "--json").out
        for check in json.loads(table):
            row = f"| `{check['check']}` | {check['looks_at']} | {check['bad_when']} |"
            self.assertIn(row, text)
        self.assertEqual(text.count("\n| `"), len(json.loads(table)))


if __name__ == "__main__":
    main()
