"""What a run's figure stands on: N means N, unstable is marked whatever ended the run, a stopped end shows."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from proxy import Proxy
from support import CliTest, Background, Server, run

LINK = {"SOFTNIC": "soft0:rate=1GB/s,latency=4us;soft1:rate=1GB/s,latency=4us"}
# With -e, ends that sleep most of the time.
SLOW = {"SOFTNIC": "soft0:rate=100MB/s,latency=1ms;soft1:rate=100MB/s,latency=1ms"}


@unittest.skipIf(support.softnic_works(), "no software device")
class FiguresTest(CliTest):
    def setUp(self):
        self.document = os.path.join(self.scratch(), "run.json")

    def measured(self, *args, target=("--local",), env=None):
        result = run(*args, *target, "--softnic", "--json", self.document, env=env)
        self.expect_ok(result)
        with open(self.document, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        return self.runs_of(document), result

    def test_a_direction_that_takes_longer_is_waited_for(self):
        # Both ends send N messages. The server's take six seconds, the client's 0.6.
        fast, slow = ({"SOFTNIC": f"soft0:rate={rate}"} for rate in ("100MB/s", "10MB/s"))
        with Server(env=slow) as server:
            result = run("write_bw", "127.0.0.1", "-p", server.port, "--softnic", "-b", "-e", "-s", "1M", "-n", 60,
                         "--json", self.document, env=fast)
        self.expect_swept(result)
        with open(self.document, encoding="utf-8") as file:
            (measured,) = self.runs_of(json.load(file))
        self.assertEqual((measured["iterations"], measured["stop"]), (60, "iterations"))
        self.assertAlmostEqual(measured["server"]["sent_gbps"], 0.08, delta=0.01)

    def test_n_means_n_for_every_test_and_direction(self):
        bandwidth = ["write_bw", "send_bw", "read_bw", "write_imm_bw", "atomic_bw"]
        every = bandwidth + [test.replace("_bw", "_lat") for test in bandwidth]
        with Server() as server:
            target = ("127.0.0.1", "-p", server.port)
            for tests, extra in ((every, []), (every, ["--verify"]), (bandwidth, ["-b"]),
                                 (bandwidth, ["-b", "--verify"]),
                                 (bandwidth, ["-q", 3, "-t", 60, "-l", 4, "-Q", 12])):
                for number in support.cases((133,), (1, 133)):
                    # One program for all tests: too short for a stable run, which is its exit status then.
                    swept = run("sweep", *target, "--softnic", "--devices", "soft0", "--ops", ",".join(tests),
                                "--sizes", 8, "-n", number, *extra, "--json", self.document)
                    self.expect_swept(swept)
                    with open(self.document, encoding="utf-8") as file:
                        document = json.load(file)
                    self.check_document(document)
                    with self.subTest(extra=extra, n=number):
                        self.assertEqual({one["op"]: (one["iterations"], one["stop"])
                                          for one in self.runs_of(document)},
                                         dict.fromkeys(tests, (number, "iterations")))
            runs, _ = self.measured("write_bw", "-n", 133, target=target)
            self.assertEqual([run["iterations"] for run in runs], [133])

    def test_an_atomic_has_8_bytes_and_says_which_it_is(self):
        # 4: too short for a figure that stands, which is not what this is about.
        swept = run("sweep", "--local", "--softnic", "--devices", "soft0", "--ops", "atomic_bw,atomic_lat",
                    "--sizes", "8,64K", "-n", 100, "-A", "CMP_AND_SWAP", "--json", self.document)
        self.assertIn(swept.code, (0, 4), swept)
        with open(self.document, encoding="utf-8") as file:
            runs = self.runs_of(json.load(file))
        self.assertEqual([(run["op"], run["size_bytes"], run["atomic"]) for run in runs],
                         [("atomic_bw", 8, "cmp_swap"), ("atomic_lat", 8, "cmp_swap")])
        runs, _ = self.measured("atomic_bw", "-n", 100)
        self.assertNotIn("atomic", runs[0])
        self.expect_error(run("atomic_bw", "--local", "--softnic", "-s", 64), 2,
                          "-s 64 B: an operation of atomic_bw has 8 bytes")
        self.expect_error(run("read_bw", "--local", "--softnic", "--atomic", "cmp_swap"), 2,
                          "-A: read_bw does no atomics")

    def test_a_flow_label_is_recorded_and_refused_where_it_cannot_be(self):
        runs, _ = self.measured("write_bw", "-s", 64, "-n", 100, "--flow-label", 7)
        self.assertEqual(runs[0]["flow_label"], 7)
        runs, _ = self.measured("write_bw", "-s", 64, "-n", 100)
        self.assertNotIn("flow_label", runs[0])
        beyond = run("write_bw", "--local", "--softnic", "--flow-label", 1 << 20)
        self.expect_error(beyond, 2, "--flow-label 1048576: a flow label is from 0 to 1048575")
        self.expect_error(run("write_bw", "--local", "--softnic", "--flow-label", 7, "-R"), 2,
                          "rdma_cm chooses the path")

    def test_too_short_for_an_interval_is_marked_and_said(self):
        for args in (["-n", 3], ["-D", "1ms", "-s", "8M"]):
            runs, result = self.measured("write_bw", *args, env=LINK)
            self.assertTrue(runs[0]["unstable"])
            self.assertEqual(runs[0]["unstable_reason"], "short")
            self.assertIsNone(runs[0]["bw"]["ci95_gbps"])
            self.assertIn("too short for an interval", result.out)
            self.assertIn("!", result.out)

    def test_unstable_after_a_duration_carries_mark_reason_and_advice(self):
        # Nothing is known within a hundredth of a thousandth.
        runs, result = self.measured("write_bw", "-D", "2s", "--precision", "0.00001%")
        self.assertTrue(runs[0]["unstable"])
        self.assertEqual(runs[0]["stop"], "duration")
        self.assertIn(runs[0]["unstable_reason"], ("steps", "drift", "bimodal", "periodic", "scatter"))
        self.assertRegex(runs[0]["warnings"][0],
                         r"known (within \+-.* %|\(the interval is wider than the value\)), not \+-1e-05 %, after")
        self.assertIn("unstable: not known within the requested precision", result.out)

    def test_a_rate_that_halves_is_marked_and_its_levels_are_listed(self):
        """The link's truth: 20 MB/s for 320 messages (1.05 s), 10 MB/s from then on. Warm-up it is not."""
        link = "rate=20MB/s,latency=20us,react=0us"
        runs, result = self.measured("send_bw", "-s", "64K", "-t", 16, "-D", "3s", "-e", "-d", "soft0", "--peer-dev",
                                     "soft1",
                                     env={"SOFTNIC": f"soft0:{link},fault=stall:time=3277us:from=320;soft1:{link}"})
        self.assertTrue(runs[0]["unstable"], result.out)
        self.assertLess(runs[0]["warmup_cut_s"], 0.9, "a level is no warm-up")
        self.assertIn("levels", runs[0])
        self.assertGreaterEqual(len(runs[0]["levels"]), 2)
        self.assertIn("levels", result.out)

    def test_a_sweep_without_a_stable_run_says_so_last_and_exits_4(self):
        result = run("sweep", "--local", "--softnic", "--sizes", "64", "--ops", "write_bw,read_bw", "-n", "3",
                     "--json", self.document)
        self.assertEqual(result.code, 4, str(result))
        self.assertIn("runs is stable: no result is known", result.err.splitlines()[-1])

    def test_the_live_line_of_a_terminal_says_rate_interval_and_time_left(self):
        for test, figure, more in (("write_bw", rb"[0-9.e+-]+ GB/s", ["-e"]),
                                   ("send_lat", rb"p50 [0-9.e+]+ us", ["-e"])):
            # Interval: none before there are batches; time left: always, of a run that is limited by time.
            # The interval: only where the machine let enough batches through.
            interval = figure + rb" \+-[0-9.e-]+ %, [0-9.]+ s left"
            for _ in range(3):
                code, out, err = on_terminal(test, "--local", "--softnic", *more, "-D", "2s")
                if re.search(interval, err):
                    break
            with self.subTest(test):
                self.assertEqual(code, 0, err)
                self.assertRegex(err, rb"\r\033\[K" + test.encode() + rb" [0-9]+ K?i?B: (measuring|" + figure +
                                 rb"), [0-9.]+ s left")
                self.assertRegex(err, interval)
                self.assertTrue(err.endswith(b"\r\033[K"), err[-100:])  # nothing of it stays
                self.assertNotIn(b"\033[K", out)
        _, _, err = on_terminal("sweep", "--local", "--softnic", "--devices", "soft0", "--ops", "write_bw,read_bw",
                                "--sizes", "64",
                                "-e", "-D", "1s")
        self.assertRegex(err, rb"\[0/[0-9]+\] write_bw 64 B soft0: [0-9.e-]+ GB/s")

    def test_progress_is_lines_for_logs_and_nothing_elsewhere(self):
        result = run("write_bw", "--local", "--softnic", "-e", "-D", "2s", "--progress", env=SLOW)
        self.expect_ok(result)
        lines = [line for line in result.err.splitlines() if line.startswith("gdrperf: write_bw 64 KiB: ")]
        self.assertTrue(any(re.search(r"[0-9.]+ GB/s.*[0-9.]+ s left", line) for line in lines), result.err)
        self.assertNotIn("\033", result.err)
        self.assertNotIn("left", run("write_bw", "--local", "--softnic", "-e", "-D", "1s", env=SLOW).err)


@unittest.skipIf(support.softnic_works(), "no software device")
class Stopped(CliTest):
    """Ends that stand still for a second, on links on which both sleep most of the time."""

    def setUp(self):
        self.document = os.path.join(self.scratch(), "run.json")

    def stop(self, who):
        """Stopped for a second within the run: the stop is what is measured, not what is waited for."""
        who.signal(signal.SIGSTOP)
        time.sleep(1.0)
        who.signal(signal.SIGCONT)

    def expect_named(self, *ends):
        with open(self.document, encoding="utf-8") as file:
            measured, = self.runs_of(json.load(file))
        self.assertTrue(measured["unstable"], measured["warnings"])
        self.assertEqual(measured["unstable_reason"], "suspended", measured["warnings"])
        found = dict(re.findall(r"the (client|server) stood still for ([0-9.]+) s", "\n".join(measured["warnings"])))
        self.assertEqual(sorted(found), sorted(ends), measured["warnings"])
        for end in ends:
            # Of the second: what the end then waits for a CPU, on a busy machine, it does not call standing still.
            self.assertGreater(float(found[end]), 0.7)

    def test_a_stopped_end_is_named_and_the_run_unstable(self):
        # The stop follows the first word that the run is on: it falls into the warm-up, which is watched as well.
        every = (("write_bw", "client", []), ("write_bw", "server", ["-e"]), ("send_bw", "server", ["-e"]),
                 ("read_lat", "server", []))
        for test, end, more in support.cases(every[1:2], every):
            with Server(env=SLOW) as server:
                client = Background(test, "127.0.0.1", "-p", server.port, "--softnic", "-D", "3s", "--progress",
                                    "--json", self.document, *more, env=SLOW)
                with client:
                    client.wait_measuring()
                    self.stop(client if end == "client" else server)
                    code = client.wait()
            with self.subTest(test=test, end=end):
                self.assertEqual(code, 0, client.err)
                self.expect_named(end)

    @support.not_emulated("without process_vm_writev() the device copies in the server's thread, for which the client "
                          "waits")
    def test_a_server_stopped_before_it_reads_start_is_named(self):
        """The client is told that all is ready and runs; the server, stopped meanwhile, would otherwise begin to watch
        only when the run is over."""
        with Server() as server:
            ready = threading.Event()

            def hold(sender, message):
                """Stops the server while Start is on its way to it."""
                if sender == "client" and message["type"] == "start":
                    server.signal(signal.SIGSTOP)
                    ready.set()
                return False

            with Proxy(server.port, hold) as proxy:
                client = Background("write_bw", "127.0.0.1", "-p", proxy.port, "--softnic", "-D", "2s", "--json",
                                    self.document)
                with client:
                    self.assertTrue(ready.wait(support.PATIENCE_S), client.lines)
                    time.sleep(1.0)
                    server.signal(signal.SIGCONT)
                    self.assertEqual(client.wait(), 0, client.err)
            self.expect_named("server")

    def test_a_stopped_process_with_both_ends_names_both(self):
        with Background("write_bw", "--local", "--softnic", "-e", "-D", "3s", "--progress", "--json", self.document,
                        env=SLOW) as both:
            both.wait_measuring()
            self.stop(both)
            self.assertEqual(both.wait(), 0, both.err)
        self.expect_named("client", "server")


def on_terminal(*args):
    """Exit code, standard output and what a terminal at standard error was sent."""
    master, slave = pty.openpty()
    process = subprocess.Popen([support.BINARY, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave,
                               env=support.environment({"TERM": "xterm", **SLOW}))
    os.close(slave)
    written = b""
    # A terminal whose other side has gone reads as an error.
    with contextlib.suppress(OSError):
        while piece := os.read(master, 4096):
            written += piece
    os.close(master)
    out, _ = process.communicate(timeout=support.PATIENCE_S)
    return process.returncode, out, written


if __name__ == "__main__":
    support.main()
