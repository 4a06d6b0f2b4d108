#!/usr/bin/env python3
"""gdrperf doctor: verdicts, exit code, JSON, captured text, recordings."""

import json
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

from support import BINARY, CliTest, environment, main, run, softnic_works

LSMOD = "nvidia_peermem 16384 0\nib_core 434176 1 ib_uverbs\nnvidia 56717312 4 nvidia_peermem\n"
SOURCE = pathlib.Path(__file__).resolve().parents[2]
STORIES = SOURCE / "tests/data/doctor/stories"
KEYS = {"check", "group", "subject", "verdict", "found", "why", "fix", "for_good", "undo", "evidence"}


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
        self.assertEqual(result.code, 1 if "  FAIL  " in result.out else 0, result)
        self.assertEqual(result.err, "")
        if run("devices").code != 0:
            self.assertIn("FAIL  rdma-device", result.out)
            self.assertIn("--softnic", result.out)

    def test_a_machine_with_nothing_gets_a_page_that_helps(self):
        if run("devices").code == 0 or "GPU" in run("topo").out:
            self.skipTest("this machine has something")
        page = run("doctor")
        self.assertEqual(page.code, 1, page)
        self.assertIn("nothing is broken", page.out)
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
        checks = self.checks("--read", STORIES / "mtu-differs-a.txt", "--read", STORIES / "mtu-differs-b.txt", code=1)
        self.assertIn("the two ends differ", checks["mtu"]["found"])

    def test_standard_input(self):
        done = subprocess.run([BINARY, "doctor", "--read", "-"], env=environment(), text=True,
                              input="mlx5_0 port 1 ==> eth2 (Up)\n", capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("port-state", done.stdout)
        self.assertIn("1 ok, 0 warnings, 0 failed, 0 skipped", done.stdout)

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
                there = run("doctor", "--json", "--root", root, "--only", "memlock,governor,numa-balancing,iommu,gpu-link")
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
            document = self.document("--root", f"{folder}/tree", code=1)
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

    def test_the_document_lists_the_checks_of_the_code(self):
        text = (SOURCE / "docs/doctor.md").read_text()
        table = run("doctor", "--list", "--json").out
        for check in json.loads(table):
            row = f"| `{check['check']}` | {check['looks_at']} | {check['bad_when']} |"
            self.assertIn(row, text)
        self.assertEqual(text.count("\n| `"), len(json.loads(table)))


if __name__ == "__main__":
    main()
