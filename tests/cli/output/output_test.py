#!/usr/bin/env python3
"""Where results go: tables, JSON, CSV, full disks, topologies."""

import csv
import io
import json
import os
import pathlib
import platform
import signal
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import (BINARY, PATIENCE_S, PROMISE_S, WITH_THE_TEST, Background, CliTest, Server, environment, main,
                     run, softnic_works)

LOCAL = ["--local", "--softnic", "-n", "50"]

# Its number as a system call.
WRITE = {"x86_64": "1", "aarch64": "64"}.get(platform.machine())

MATRIX = """\
\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV4\tPIX\t0-7\t0
GPU1\tNV4\t X \tSYS\t8-15\t1
mlx5_0\tPIX\tSYS\t X \t\t
"""


@unittest.skipIf(softnic_works(), "no software device")
class Documents(CliTest):
    def document(self, path):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        return document

    def test_json_and_csv_files_and_a_table_on_stdout(self):
        folder = self.scratch()
        result = run("write_bw", *LOCAL, "-s", "64,4K", "--json", f"{folder}/r.json", "--csv",
                     f"{folder}/r.csv")
        self.expect_ok(result)
        self.assertIn("4 KiB", result.out)
        self.assertEqual(result.err, "")
        document = self.document(f"{folder}/r.json")
        runs = document["relations"]["HOST"]["write_bw"]
        self.assertEqual([one["size_bytes"] for one in runs], [64, 4096])
        for one in runs:
            self.assertEqual(one["device_kind"], "software")
            self.assertRegex(one["started"], r"^20[0-9-]+T[0-9:]+Z$")
        self.assertIn("--softnic", document["tool"]["argv"])
        for end in ("client", "server"):
            self.assertTrue(document["hosts"][end]["hostname"])
        self.assertEqual(sorted(nic["name"] for nic in document["topology"]["nics"])[:2],
                         ["soft0", "soft1"])
        with open(f"{folder}/r.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["started"] for row in rows], [one["started"] for one in runs])
        for row in rows:
            self.assertEqual([row["client_host"], row["server_host"]],
                             [document["hosts"][end]["hostname"] for end in ("client", "server")])
        self.assertEqual(sorted(os.listdir(folder)), ["r.csv", "r.json"])
        self.assertEqual(stat.S_IMODE(os.stat(f"{folder}/r.json").st_mode) & 0o444, 0o444)

    def test_formats_for_other_tools(self):
        two = ["--local", "--softnic", "-n", "50", "--ops", "write_bw,read_lat", "--sizes", "64,4K", "-d", "soft0"]
        names = [f"{test}/HOST/host:soft0/{size}" for test in ("write_bw", "read_lat") for size in (64, 4096)]
        for name in ("google-benchmark", "csv", "prometheus", "bmf", "custom-bigger-is-better",
                     "custom-smaller-is-better", "jsonl"):
            result = run("sweep", *two, "--format", name)
            self.expect_swept(result)
            self.assertIn("4 KiB", result.err, name)
            if name == "google-benchmark":
                self.assertEqual([one["name"] for one in json.loads(result.out)["benchmarks"]], names)
                self.compare_py(result.out)
            elif name == "jsonl":
                self.assertEqual([json.loads(line)["name"] for line in result.out.splitlines()], names)
            elif name == "bmf":
                self.assertEqual(list(json.loads(result.out)), names)
            elif name.startswith("custom"):
                half = names[:2] if "bigger" in name else names[2:]
                self.assertEqual([one["name"] for one in json.loads(result.out)], half)
            elif name == "csv":
                self.assertEqual(len(list(csv.DictReader(io.StringIO(result.out)))), 4)
            else:
                self.assertEqual(result.out.count("gdrperf_bandwidth_bytes_per_second{"), 2)
        self.expect_error(run("sweep", *two, "--format", "xml"), 2, "--format 'xml'", "bmf")
        self.expect_error(run("sweep", *two, "--format", "csv", "--json", "-"), 2, "--format", "--json")

    def compare_py(self, text):
        """Google Benchmark's own tool reads it, where it is installed."""
        tool = "/usr/share/benchmark/compare.py"
        if subprocess.run(["/usr/bin/python3", "-c", "import scipy"], capture_output=True).returncode or \
                not os.path.exists(tool):
            return
        path = f"{self.scratch()}/one.json"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(["/usr/bin/python3", tool, "benchmarks", path, path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("write_bw/HOST/host:soft0/4096", done.stdout)

    def test_json_on_stdout_moves_the_table(self):
        result = run("read_lat", *LOCAL, "--json", "-")
        self.expect_ok(result)
        self.check_document(json.loads(result.out))
        self.assertIn("p99", result.err)

    def test_csv_on_stdout_moves_the_table(self):
        result = run("read_lat", *LOCAL, "--csv", "-")
        self.expect_ok(result)
        (row,) = csv.DictReader(io.StringIO(result.out))
        self.assertEqual(row["op"], "read_lat")
        self.assertIn("p99", result.err)

    def test_a_server_over_tcp_is_in_the_document(self):
        with Server() as server:
            result = run("send_bw", "127.0.0.1", "-p", server.port, "--softnic", "-n", "50", "--json", "-")
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        self.assertEqual(document["hosts"]["server"]["hostname"], os.uname().nodename)

    def test_peer_dev_is_the_second_nic(self):
        result = run("write_bw", *LOCAL, "-d", "soft0", "--peer-dev", "soft1", "--json", "-")
        self.expect_ok(result)
        (one,) = self.runs_of(json.loads(result.out))
        self.assertEqual((one["client"]["device"], one["server"]["device"]), ("soft0", "soft1"))

    def test_one_file_cannot_carry_two(self):
        folder = self.scratch()
        os.symlink("a", f"{folder}/link")
        for json_file, csv_file in (("a", "a"), ("a", "./a"), ("a", "link"), ("link", "a")):
            result = run("write_lat", *LOCAL, "--json", f"{folder}/{json_file}", "--csv", f"{folder}/{csv_file}")
            self.expect_error(result, 2, "--json", "--csv", "the same file", within=PROMISE_S)
        result = run("write_lat", *LOCAL, "--format", "csv", "-o", f"{folder}/a", "--csv", f"{folder}/a")
        self.expect_error(result, 2, "--format csv -o", "the same file", within=PROMISE_S)
        self.assertEqual(os.listdir(folder), ["link"])

    def test_other_formats_go_to_a_file_as_well(self):
        folder = self.scratch()
        result = run("write_lat", *LOCAL, "--format", "prometheus", "-o", f"{folder}/r.prom")
        self.expect_ok(result)
        self.assertIn("p99", result.out, "the table keeps its place")
        with open(f"{folder}/r.prom", encoding="utf-8") as file:
            self.assertIn("gdrperf_latency_seconds_count{", file.read())
        self.assertEqual(os.listdir(folder), ["r.prom"])
        self.expect_error(run("write_lat", *LOCAL, "-o", f"{folder}/x"), 2, "-o ", "--format", within=PROMISE_S)
        self.expect_error(run("write_lat", *LOCAL, "--format", "csv", "-o", "/nonexistent/x"), 3, "-o /nonexistent/x")

    def test_closed_standard_output_is_an_error(self):
        for options in (["--json", "-"], ["--csv", "-"], ["--format", "prometheus"]):
            result = run("write_lat", *LOCAL, *options, command=["sh", "-c", 'exec "$0" "$@" >&-'])
            self.expect_error(result, 3, "cannot write standard output: it is closed")
            self.assertNotIn("write_lat  ", result.err, "said before anything is measured")

    def test_names_of_standard_output_are_streams(self):
        folder = self.scratch()
        os.symlink("/proc/self/fd/1", f"{folder}/link")
        for name in ("/dev/stdout", "/proc/self/fd/1", f"{folder}/link"):
            with self.subTest(name):
                was = os.lstat(name)
                with open(f"{folder}/out.json", "wb") as out:
                    done = subprocess.run([BINARY, "write_lat", *LOCAL, "--json", name], stdout=out,
                                          stderr=subprocess.PIPE, text=True, env=environment(), timeout=60, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(os.fstat(out.fileno()).st_ino, os.stat(f"{folder}/out.json").st_ino, "replaced")
                self.document(f"{folder}/out.json")
                self.assertIn("p99", done.stderr, "the table made way")
                self.assertEqual(stat.S_IFMT(os.lstat(name).st_mode), stat.S_IFMT(was.st_mode))
        self.assertEqual(sorted(os.listdir(folder)), ["link", "out.json"])

    def test_a_killed_sweep_leaves_whole_files_alone(self):
        folder = self.scratch()
        with Background("sweep", "--local", "--softnic", "--ops", "write_lat", "-D", "20ms", "--json",
                        f"{folder}/r.json") as sweep:
            deadline = time.monotonic() + PATIENCE_S
            while not os.path.exists(f"{folder}/r.json") and time.monotonic() < deadline:
                time.sleep(0.001)
            sweep.process.kill()
            sweep.process.wait()
        self.document(f"{folder}/r.json")
        self.assertLessEqual(set(os.listdir(folder)), {"r.json", "r.json.part"})

    def test_devices_that_are_no_files_are_written_to_not_replaced(self):
        folder = self.scratch()
        pipe = f"{folder}/pipe"
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
        result = run("write_lat", *LOCAL, "-s", "2,4", "--json", pipe)
        text, _ = reader.communicate(timeout=60)
        self.expect_ok(result)
        self.assertEqual(len(self.runs_of(json.loads(text))), 2)
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))

    def test_a_symbolic_link_stays_one(self):
        folder = self.scratch()
        os.mkdir(f"{folder}/real")
        with open(f"{folder}/real/r.json", "w", encoding="utf-8") as old:
            old.write("old")
        os.symlink("real/r.json", f"{folder}/latest.json")
        self.expect_ok(run("write_lat", *LOCAL, "--json", f"{folder}/latest.json"))
        self.assertTrue(os.path.islink(f"{folder}/latest.json"))
        self.document(f"{folder}/real/r.json")

    def test_what_was_measured_before_a_failure_is_kept(self):
        rows = self.scratch() + "/r.csv"
        with Server() as server:
            with Background("write_bw", "127.0.0.1", "-p", server.port, "--softnic", "-s", "64,128",
                            "-D", "1s", "--json", "-", "--csv", rows) as client:
                deadline = time.monotonic() + PATIENCE_S
                while not os.path.exists(rows) and time.monotonic() < deadline:
                    time.sleep(0.01)
                # The first size is through; the second is connecting, or takes another second.
                server.signal(signal.SIGKILL)
                self.assertEqual(client.wait(PROMISE_S), 5, client.err)
        self.assertRegex(client.err, "error: 128 B: (cannot connect to )?server ")
        document = json.loads(client.out)
        self.check_document(document)
        self.assertEqual([one["size_bytes"] for one in self.runs_of(document)], [64])
        self.assertIn("128 B: ", document["warnings"][0])

    @staticmethod
    def unread(pid, port):
        """Of the established connections of the process's network to this port, which their peers have not closed: the
        bytes that have come and were not read, in hexadecimal."""
        established = "01"
        lines = pathlib.Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        return [queues.split(":")[1] for _, _, peer, state, queues, *_ in map(str.split, lines)
                if peer.endswith(f":{port:04X}") and state == established]

    @unittest.skipUnless(WRITE and os.access("/proc/self/syscall", os.R_OK), "this kernel tells no system calls")
    def test_a_server_gone_between_two_sizes_is_an_error_of_the_second(self):
        """The client stands at a full pipe with the first size's row when its server dies, which has told since that it
        is there."""
        path = self.scratch() + "/r.json"
        here, its = os.pipe()
        with Server() as server, open(here, "rb") as rows:
            os.set_blocking(its, False)
            with self.assertRaises(BlockingIOError):
                while True:
                    os.write(its, b"#")
            os.set_blocking(its, True)
            words = ["write_bw", "127.0.0.1", "-p", str(server.port), "--softnic", "-s", "64,128", "-D", "100ms"]
            client = subprocess.Popen([*WITH_THE_TEST, BINARY, *words, "--json", path], env=environment(), stdout=its,
                                      stderr=subprocess.PIPE, text=True)
            os.close(its)
            deadline = time.monotonic() + PATIENCE_S
            # Of a process that waits in a system call: its number and its first argument, here standard output.
            while pathlib.Path(f"/proc/{client.pid}/syscall").read_text(encoding="ascii").split()[:2] != [WRITE, "0x1"]:
                self.assertLess(time.monotonic(), deadline, "the client never came to write its first row")
                time.sleep(0.01)
            while all(int(unread, 16) == 0 for unread in self.unread(client.pid, server.port)):
                self.assertLess(time.monotonic(), deadline, "the server never said that it is there")
                time.sleep(0.01)
            server.signal(signal.SIGKILL)
            server.process.wait()
            # On a busy machine the end of the connection arrives later than that of the process.
            while self.unread(client.pid, server.port):
                self.assertLess(time.monotonic(), deadline, "the connection outlived the server")
                time.sleep(0.01)
            rows.read()
            err = client.communicate()[1]
        self.assertEqual(client.returncode, 5, err)
        self.assertIn("error: 128 B: cannot connect to server 127.0.0.1:", err)
        self.assertNotIn("until then: ", err, "that was of the first size")
        document = self.document(path)
        self.assertEqual([one["size_bytes"] for one in self.runs_of(document)], [64])
        self.assertIn("128 B: ", document["warnings"][0])

    def test_the_topology_of_a_capture(self):
        folder = self.scratch()
        with open(f"{folder}/topo.txt", "w", encoding="utf-8") as capture:
            capture.write(MATRIX)
        result = run("write_lat", *LOCAL, "--nvidia-smi", f"{folder}/topo.txt", "--json", "-")
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        topology = document["topology"]
        self.assertEqual(topology["source"], "file")
        self.assertEqual([gpu["name"] for gpu in topology["gpus"]], ["GPU0", "GPU1"])
        self.assertEqual({pair: value["relation"] for pair, value in topology["pairs"].items()},
                         {"GPU0/mlx5_0": "PIX", "GPU1/mlx5_0": "SYS"})
        # Host buffers go under HOST whatever the GPUs.
        self.assertEqual(list(document["relations"]), ["HOST"])

    def test_a_capture_that_is_none(self):
        folder = self.scratch()
        with open(f"{folder}/topo.txt", "w", encoding="utf-8") as capture:
            capture.write("Wed Nov 19\n")
        result = run("write_lat", *LOCAL, "--nvidia-smi", f"{folder}/topo.txt")
        self.expect_error(result, 2, "topo.txt", within=PROMISE_S)
        result = run("write_lat", *LOCAL, "--nvidia-smi", f"{folder}/nothing.txt")
        self.expect_error(result, 2, "nothing.txt", "No such file", within=PROMISE_S)


@unittest.skipIf(softnic_works(), "no software device")
class FullDisks(CliTest):
    def test_dev_full_under_each_output(self):
        for options in (["--json", "/dev/full"], ["--csv", "/dev/full"]):
            with self.subTest(options[0]):
                result = run("write_lat", *LOCAL, *options)
                self.expect_error(result, 3, "cannot write /dev/full", "No space left on device",
                                  "free space", within=PROMISE_S)
                self.assertIn("p99", result.out, "the table was printed before")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))

    def test_dev_full_under_stdout(self):
        for options in ([], ["--json", "-"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([BINARY, "write_lat", *LOCAL, *options], stdout=full,
                                      stderr=subprocess.PIPE, text=True, env=environment(),
                                      timeout=60, check=False)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("standard output", done.stderr)

    def test_a_full_file_system(self):
        folder = self.scratch()
        mounted = ["unshare", "--mount", "--map-root-user", "sh", "-c",
                   'mount -t tmpfs -o size=4k none "$0" && echo old >"$0/r.json" && shift 0 && "$@"; '
                   'code=$?; ls -A "$0" >&2; cat "$0/r.json" >&2; exit $code', folder]
        probe = subprocess.run([*mounted, "true"], capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            self.skipTest("no file system can be mounted here: " + probe.stderr.strip())
        result = run("write_lat", *LOCAL, "-s", "2,4,8,16", "--json", f"{folder}/r.json",
                     command=mounted)
        self.expect_error(result, 3, f"cannot write {folder}/r.json", "No space left on device",
                          "free space", within=PROMISE_S)
        self.assertTrue(result.err.endswith("r.json\nold\n"),
                        "the old file stays, nothing beside it: " + result.err)


    def test_folders_that_are_not_there_are_noticed_before_measuring(self):
        for flag in ("--json", "--csv"):
            with self.subTest(flag):
                result = run("write_lat", *LOCAL, flag, "/nonexistent/folder/r.json")
                self.expect_error(result, 3, f"{flag} /nonexistent/folder/r.json",
                                  "No such file or directory", within=PROMISE_S)
                self.assertEqual(result.out, "")
        result = run("write_lat", *LOCAL, "--json", "/tmp")
        self.expect_error(result, 2, "--json /tmp", "directory", within=PROMISE_S)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_that_belongs_to_others(self):
        self.expect_error(run("write_lat", *LOCAL, "--json", "/etc/r.json"), 3, "Permission denied")


if __name__ == "__main__":
    main()
