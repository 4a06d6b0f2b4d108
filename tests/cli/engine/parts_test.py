#!/usr/bin/env python3
"""--threads and --rails: runs at the same time, their sum and each one's part, and what becomes of one that fails."""

import csv
import json
import signal
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import Background, CliTest, Server, cases, long, main, run, softnic_works

LOCAL = ("--local", "--softnic")
RATE = 20e6
PLACES = """\tGPU0\tGPU1\tGPU2\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV4\tNV4\tSYS\tPIX\tPIX\t0-7\t0\t\tN/A
GPU1\tNV4\t X \tNV4\tSYS\tPIX\tPXB\t0-7\t0\t\tN/A
GPU2\tNV4\tNV4\t X \tPHB\tSYS\tSYS\t8-15\t1\t\tN/A
NIC0\tSYS\tSYS\tPHB\t X \tSYS\tSYS\t\t\t\t
NIC1\tPIX\tPIX\tSYS\tSYS\t X \tPIX\t\t\t\t
NIC2\tPIX\tPXB\tSYS\tSYS\tPIX\t X \t\t\t\t

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
  NIC2: mlx5_2
"""
RAILS = {"SOFTNIC": ";".join(f"soft{n}:rate=20MB/s,copy=edges" for n in range(8))}


@unittest.skipIf(softnic_works(), "no software device")
class Parts(CliTest):
    def measured(self, *words, env=None):
        result = run(*words, "--json", "-", env=env)
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        (one,) = self.runs_of(document)
        self.check_parts(one)
        return one, result

    def check_parts(self, one):
        each = one["parts"]["each"]
        # Each mean is written with seven digits: half of the last one is up to 5e-7 of a part, and as much of the sum.
        self.assertAlmostEqual(sum(part["mean_gbps"] for part in each) / one["bw"]["mean_gbps"], 1, delta=1e-6)
        if len({part["device"] for part in each}) in (1, len(each)):
            # Several may have the least mean as far as seven digits tell.
            (slowest,) = (part for part in each if part["name"] == one["parts"]["slowest"])
            self.assertEqual(slowest["mean_gbps"], min(part["mean_gbps"] for part in each))

    def test_threads_have_their_own_qps(self):
        for words in (("write_bw",), ("send_bw",), ("read_bw",), ("write_bw", "-b"), ("send_bw", "-b"),
                      ("send_bw", "--transport", "ud", "-s", "1K"), ("atomic_bw",)):
            one, result = self.measured(*words, *LOCAL, "--threads", "2", "-q", "3", "-D", "300ms")
            self.assertEqual((one["threads"], one["qps"]), (2, 3))
            self.assertEqual([(part["name"], part["qps"]) for part in one["parts"]["each"]],
                             [("thread 0", 2), ("thread 1", 1)])
            self.assertRegex(result.err, r"slowest: thread [01], [\d.]+ % of the mean; all began within [\d.e+]+ us")

    def test_a_number_of_messages_and_a_rate_are_dealt(self):
        one, _ = self.measured("write_bw", *LOCAL, "--threads", "3", "-n", "1000")
        self.assertEqual((one["iterations"], one["stop"], one["qps"]), (1000, "iterations", 3))
        one, _ = self.measured("write_bw", *LOCAL, "--threads", "2", "--rate", "2000", "-n", "600", "-s", "64")
        self.assertGreater(one["duration_s"], 0.298)
        self.assertEqual(one["rate_per_s"], 2000)

    def test_without_a_limit_all_end_together(self):
        one, _ = self.measured("write_bw", *LOCAL, "--threads", "2", "--cap", "400ms", "--precision", "50%")
        self.assertIn(one["stop"], ("precision", "cap"))

    def test_rails_add_up(self):
        """Eight modelled ports: what each carries is known."""
        rails = cases(("soft0,soft1,soft2,soft3,soft4,soft5,soft6,soft7",),
                      ("soft0,soft1,soft2,soft3,soft4,soft5,soft6,soft7", "all"))
        for names in rails:
            one, result = self.measured("write_bw", *LOCAL, "--rails", names, "-s", "64K", "-D", "800ms", env=RAILS)
            self.assertEqual([part["device"] for part in one["parts"]["each"]], [f"soft{n}" for n in range(8)])
            self.assertLess(one["bw"]["mean_gbps"], 8 * RATE * 8e-9 * 1.01)
            self.assertEqual(one["rails"], names)
            self.assertIn("rail soft7", result.err)

    def test_the_slow_rail_is_named(self):
        # So slow that a thread which waits for its CPU half of the time is faster.
        slow = dict(RAILS, SOFTNIC=RAILS["SOFTNIC"].replace("soft2:", "soft2:slow=8,"))
        one, result = self.measured("write_bw", *LOCAL, "--rails", "soft0,soft1,soft2,soft3", "-s", "64K", "-t", "16",
                                    "-D", "800ms", env=slow)
        self.assertEqual(one["parts"]["slowest"], "rail soft2")
        self.assertIn("slowest: rail soft2", result.err)
        one, result = self.measured("write_bw", *LOCAL, "--rails", "soft1,soft2", "--threads", "2", "-s", "64K",
                                    "-t", "16", "-D", "800ms", env=slow)
        self.assertEqual(one["parts"]["slowest"], "rail soft2")
        self.assertEqual([rail["name"] for rail in one["parts"]["rails"]], ["rail soft1", "rail soft2"])

    def test_other_names_at_the_server(self):
        one, _ = self.measured("write_bw", *LOCAL, "--rails", "soft0,soft1", "--peer-rails", "soft3,soft2", "-n", "200",
                               env=RAILS)
        self.assertEqual([part["server_device"] for part in one["parts"]["each"]], ["soft3", "soft2"])

    def test_verified_laps_are_common(self):
        """Filled, begun at one moment, compared: the rate is of the time from the first post to the last completion."""
        some = (("send_bw", "--threads", "2", "-q", "3"), ("read_bw", "--rails", "soft0,soft1"))
        for words in cases(some, (*some, ("write_bw", "--threads", "2"), ("atomic_bw", "--threads", "2"),
                                  ("write_imm_bw", "--incast", "2"))):
            one, _ = self.measured(*words, *LOCAL, "--verify", "-D", "300ms")
            self.assertEqual(one["verified"], 1)
            self.assertGreater(one["bw"]["mean_gbps"], 0)
        one, _ = self.measured("send_bw", *LOCAL, "--threads", "2", "--verify", "-n", "501", "-s", "4K")
        self.assertEqual((one["iterations"], one["stop"]), (501, "iterations"))
        one, _ = self.measured("write_bw", *LOCAL, "--rails", "soft0,soft1", "--verify", "-s", "64K", "-t", "8", "-D",
                               "500ms",
                               env={"SOFTNIC": "soft0:rate=20MB/s;soft1:rate=20MB/s"})
        self.assertLess(one["bw"]["mean_gbps"], 2 * RATE * 8e-9 * 1.02, "each port carries so much while it sends")

    def test_one_wrong_byte_ends_all_by_its_name(self):
        bad = dict(SOFTNIC="soft0;soft1:fault=flip:every=90")
        self.expect_error(run("send_bw", *LOCAL, "--rails", "soft0,soft1", "--verify", "-D", "5s", env=bad), 5,
                          "rail soft1: ", "data is wrong in ")

    def test_reversed_rails_begin_together(self):
        """The servers' ports send; what they carry is known."""
        for words in cases((("send_bw",),), (("write_bw",), ("send_bw",), ("read_bw",))):
            one, result = self.measured(*words, *LOCAL, "--reverse", "--rails", "soft0,soft1", "--peer-rails",
                                        "soft2,soft3", "-s", "64K", "-D", "500ms", env=RAILS)
            self.assertIs(one["reverse"], True)
            self.assertLess(one["bw"]["mean_gbps"], 2 * RATE * 8e-9 * 1.01)
            self.assertIn("all began within", result.err)
        one, _ = self.measured("send_bw", *LOCAL, "--reverse", "--threads", "2", "-n", "1001", "-s", "512")
        self.assertEqual((one["iterations"], one["stop"]), (1001, "iterations"))
        one, _ = self.measured("write_bw", *LOCAL, "--reverse", "--threads", "2", "--cap", "2s", "--precision", "50%")
        self.assertIn(one["stop"], ("precision", "cap"))

    def test_reversed_in_two_processes(self):
        with Server() as server:
            there = ("127.0.0.1", "-p", str(server.port), "--softnic")
            one, _ = self.measured("send_bw", *there, "--reverse", "--incast", "2", "-D", "200ms")
            self.assertEqual(len(one["parts"]["each"]), 2)
            with Background("send_bw", *there, "--reverse", "--threads", "2", "-D", "1h", "--progress", "--json",
                            "-") as client:
                client.wait_line("measuring")
                client.signal(signal.SIGINT)
                self.assertEqual(client.wait(), -signal.SIGINT, client.err)
            self.expect_ok(run("write_bw", *there, "-n", "100"))

    def test_intervals_of_all_by_one_clock(self):
        folder = self.scratch()
        # A queue of 16 messages is through soon at such ports, also on a busy machine: most of the time is measured.
        one, _ = self.measured("write_bw", *LOCAL, "--devices", "soft0,soft1", "-s", "64K", "-t", "16", "-D", "900ms",
                               "--interval", "200ms", "--interval-file", folder + "/i", env=RAILS)
        self.assertEqual(one["rails"], "soft0,soft1")
        with open(folder + "/i", encoding="utf-8") as file:
            intervals = [json.loads(line) for line in file]
        self.assertGreaterEqual(len(intervals), 3)
        for each in intervals[:-1]:
            end = each["start_s"] + each["duration_s"]
            self.assertAlmostEqual(end, round(end / 0.2) * 0.2, places=5, msg="whatever batches each one ends with")
        for each in intervals:
            self.assertEqual([part["name"] for part in each["parts"]], ["rail soft0", "rail soft1"])
            self.assertAlmostEqual(sum(part["mean_gbps"] for part in each["parts"]), each["mean_gbps"],
                                   delta=0.01 * each["mean_gbps"])
            self.assertLess(each["mean_gbps"], 2 * RATE * 8e-9 * 1.1)
        self.assertGreater(sum(each["counters"].get("port_xmit_packets", 0) for each in intervals), 0)
        with Background("write_bw", *LOCAL, "--threads", "2", "-D", "700ms", "--interval", "200ms") as client:
            self.assertRegex(client.wait_line("thread "), r"[\d.]+ thread [01]: [\d.]+")
            self.assertEqual(client.wait(), 0, client.err)

    def test_samples_name_their_part(self):
        folder = self.scratch()
        for more in ((), ("--reverse",), ("--verify",)):
            self.measured("write_bw", *LOCAL, "--threads", "2", "-D", "300ms", *more, "--samples", folder + "/s")
            with open(folder + "/s", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self.assertEqual({row["part"] for row in rows}, {"thread 0", "thread 1"}, more)
            self.assertGreater(min(float(row["gbps"]) for row in rows), 0)

    def test_messages_both_ways_take_the_time_of_the_slower_way(self):
        links = {"SOFTNIC": "soft0:rate=200MB/s,copy=edges;soft1:rate=20MB/s,copy=edges"}
        one, _ = self.measured("write_bw", *LOCAL, "-d", "soft0", "--peer-dev", "soft1", "--bidirectional", "--threads",
                               "2", "-s", "64K", "-n", "100", env=links)
        self.assertLess(one["bw"]["mean_gbps"], 2 * RATE * 8e-9 * 1.01, "as many bytes went the fast way")
        self.assertAlmostEqual(one["bw"]["mean_gbps"] * one["duration_s"] / (2 * 100 * 65536 * 8e-9), 1, places=4)

    @long
    def test_both_ways_take_turns_at_their_queues(self):
        """The slow end's threads have a queue of 0.8 s each, one behind the other."""
        links = {"SOFTNIC": "soft0:rate=100MB/s,copy=edges;soft1:rate=10MB/s,copy=edges"}
        one, _ = self.measured("send_bw", *LOCAL, "-d", "soft0", "--peer-dev", "soft1", "--bidirectional", "--threads",
                               "2", "-s", "64K", "-D", "3s", env=links)
        self.assertLess(one["bw"]["max_gbps"], 110e6 * 8e-9 * 1.01, "what a pause ended with was spread over it")

    def test_two_processes(self):
        with Server() as server:
            there = ("127.0.0.1", "-p", str(server.port), "--softnic")
            for words in (("write_bw", "--threads", "2"), ("send_bw", "--threads", "2", "-b"),
                          ("read_bw", "--rails", "soft0,soft1")):
                one, _ = self.measured(*words, *there, "-D", "200ms")
                self.assertEqual(len(one["parts"]["each"]), 2)
            self.expect_ok(run("write_bw", *there, "-n", "100"))

    def test_one_that_fails_ends_all_by_its_name(self):
        self.expect_error(run("write_bw", *LOCAL, "--rails", "soft0,nosuch"), 2,
                          "rail nosuch: -d nosuch: there is no such RDMA device")
        with Server() as server:
            with Background("write_bw", "127.0.0.1", "-p", str(server.port), "--softnic", "--threads", "2", "-D", "1h",
                            "--progress") as client:
                client.wait_measuring()
                server.signal(signal.SIGKILL)
                self.assertEqual(client.wait(), 5, client.err)
                self.assertRegex(client.err, r"thread [01]: ")
            server.wait()

    def test_a_signal_ends_all(self):
        with Background("write_bw", *LOCAL, "--threads", "2", "-D", "1h", "--progress", "--json", "-") as client:
            client.wait_measuring()
            client.signal(signal.SIGINT)
            self.assertEqual(client.wait(), -signal.SIGINT, client.err)
        (one,) = self.runs_of(json.loads(client.out))
        self.assertEqual(one["stop"], "signal")

    def test_an_incast_shares_one_port(self):
        """Three ports to one of the same rate, and a latency test behind their queue of 12 messages."""
        words = ("write_bw", *LOCAL, "--incast", "3", "--rails", "soft1,soft2,soft3", "--peer-dev", "soft0", "-s",
                 "64K", "-t", "4")
        port = dict(RAILS, SOFTNIC=RAILS["SOFTNIC"].replace("soft0:", "soft0:ingress=on,"))
        one, result = self.measured(*words, "--victim", "soft4", "-D", "600ms", env=port)
        parts = one["parts"]
        self.assertEqual([part["name"] for part in parts["each"]],
                         ["client 0 soft1", "client 1 soft2", "client 2 soft3"])
        self.assertEqual({part["server_device"] for part in parts["each"]}, {"soft0"})
        self.assertLess(one["bw"]["mean_gbps"], RATE * 8e-9 * 1.01)
        self.assertEqual((one["incast"], one["stop"], one["warnings"]),
                         (3, "duration", [w for w in one["warnings"] if "signal" not in w]))
        rates = [part["mean_gbps"] for part in parts["each"]]
        self.assertAlmostEqual(one["fairness"], sum(rates) ** 2 / (3 * sum(rate ** 2 for rate in rates)), places=6)
        message_ns = 65536 / RATE * 1e9
        self.assertGreater(one["victim_latency"]["p50_ns"], message_ns)
        self.assertLess(one["victim_latency"]["idle_p50_ns"], one["victim_latency"]["p50_ns"])
        self.assertRegex(result.err, r"fairness \(Jain's index\): [01]\.\d{4}\n  victim: write_lat from soft4\n")

    def test_servers_that_send_to_one_end(self):
        """An incast of processes that were started apart: two servers, on two addresses of the loopback."""
        links = {"SOFTNIC": "soft0:rate=20MB/s,copy=edges,ingress=on;"
                            "soft1:rate=20MB/s,copy=edges;soft2:rate=20MB/s,copy=edges"}
        with Server("--bind", "127.0.0.1", env=links) as server:
            with Server("--bind", "127.0.0.2", port=server.port, env=links):
                there = ("127.0.0.1,127.0.0.2", "-p", str(server.port), "--softnic", "--reverse", "-d", "soft0",
                         "--peer-dev", "soft1")
                for words in (("write_bw", "-s", "64K", "-D", "500ms"), ("send_bw", "-s", "4K,64K", "-n", "60")):
                    result = run(*words, *there, "--json", "-", env=links)
                    self.expect_ok(result)
                    document = json.loads(result.out)
                    self.check_document(document)
                    for one in self.runs_of(document):
                        self.check_parts(one)
                        self.assertEqual([part["name"] for part in one["parts"]["each"]],
                                         ["host 127.0.0.1", "host 127.0.0.2"])
                        self.assertEqual((one["incast"], one["reverse"]), (2, True))
                        self.assertLess(one["bw"]["mean_gbps"], RATE * 8e-9 * 1.02, "one port takes in")
                        self.assertLessEqual(one["fairness"], 1 + 1e-9)
                for words, text in (((), "HOST 127.0.0.1,127.0.0.2: several servers send to one client"),
                                    (("--reverse", "--incast", "3"), "and --incast 3: 2 servers")):
                    self.expect_error(run("write_bw", *there[:4], *words), 2, text)
                self.expect_error(run("write_bw", "127.0.0.1,127.0.0.1", *there[1:]), 2, "127.0.0.1 stands there twice")
            result = run("write_bw", *there, "-D", "300ms", env=links)
            self.expect_error(result, 5, "host 127.0.0.2: ")

    def test_clients_of_one_device(self):
        with Server() as server:
            there = ("127.0.0.1", "-p", str(server.port), "--softnic")
            for words in (("send_bw", "-n", "300"), ("read_bw", "--victim", "any", "-D", "200ms")):
                one, _ = self.measured(*words, *there, "--incast", "3")
                self.assertEqual([part["name"] for part in one["parts"]["each"]], ["client 0", "client 1", "client 2"])
                self.assertEqual("victim_latency" in one, "--victim" in words)

    def test_rails_have_gpus_of_their_own(self):
        """By a capture of another machine's places: no GPU is here."""
        capture = self.scratch() + "/topo.txt"
        with open(capture, "w", encoding="utf-8") as file:
            file.write(PLACES)
        nics = dict(SOFTNIC="mlx5_0;mlx5_1;mlx5_2;other")
        plan = ("write_bw", *LOCAL, "--buffer", "cuda", "--nvidia-smi", capture, "--dry-run")
        for words, text in ((("--rails", "mlx5_0,mlx5_1,mlx5_2"),
                             "GPUs of the rails: mlx5_0 GPU2 (PHB), mlx5_1 GPU1 (PIX), mlx5_2 GPU0 (PIX)\n"),
                            (("--rails", "mlx5_2,mlx5_1", "--peer-rails", "mlx5_0,mlx5_2", "--peer-buffer", "cuda"),
                             "mlx5_2 GPU0 (PIX), mlx5_1 GPU1 (PIX); at the server: mlx5_0 GPU2 (PHB), mlx5_2 GPU0 "
                             "(PIX)\n"),
                            (("--rails", "mlx5_0,mlx5_1,mlx5_2,mlx5_1"), " GPU0 (PIX, shared)\n")):
            result = run(*plan, *words, env=nics)
            self.expect_ok(result)
            self.assertIn(text, result.err)
        rails = ("--rails", "mlx5_0,other")
        self.expect_error(run(*plan, *rails, env=nics), 3,
                          "--buffer cuda: there is no GPU whose place relative to other is known")
        self.expect_error(run("write_bw", *LOCAL, *rails, "--buffer", "host,hugepage,host", env=nics), 2,
                          "--buffer host,hugepage,host: 3 for 2 rails")
        self.expect_error(run("write_bw", *LOCAL, "--buffer", "host,host", env=nics), 2,
                          "--buffer 'host,host': no such kind of memory")
        self.expect_error(run("write_bw", "127.0.0.1", "--softnic", *rails, "--peer-buffer", "cuda", "--nvidia-smi",
                              capture, env=nics), 2,
                          "--peer-buffer cuda: which of its GPUs is near which NIC only the server knows")

    def test_rails_have_memory_of_their_own(self):
        one, _ = self.measured("write_bw", *LOCAL, "--rails", "soft0,soft1", "--peer-buffer", "host,host", "-n", "200",
                               env=RAILS)
        self.assertEqual([(part["buffer"], part["server_buffer"]) for part in one["parts"]["each"]],
                         [("host", "host")] * 2)

    def test_what_an_incast_cannot_be(self):
        for words, text in ((("--incast", "0"), "--incast 0: an incast has from 1 to 64 clients"),
                            (("--incast", "2", "--threads", "2"),
                             "--incast 2 and --threads: each client has one thread"),
                            (("--incast", "2", "--rails", "soft0,soft1", "--peer-rails", "soft0,soft1"),
                             "--incast 2 and --peer-rails: "),
                            (("--incast", "64", "--victim", "any"),
                             "65 runs at the same time: a client has 64 at most"),
                            (("--incast", "2", "--victim", "any", "-n", "9"), "--incast 2 and -n: "),
                            (("--victim", "any"), "--victim any: there are no clients"),
                            (("--incast", "2", "--victim", "nosuch"),
                             "--victim nosuch: -d nosuch: there is no such RDMA device")):
            self.expect_error(run("write_bw", *words, *LOCAL), 2, text)

    def test_what_cannot_be(self):
        for words, text in ((("write_bw", "--threads", "0"), "--threads 0: a run has from 1 to 64 threads"),
                            (("write_bw", "--threads", "65"), "--threads 65: a run has from 1 to 64 threads"),
                            (("write_bw", "--threads", "2", "-n", "1"), "-n 1: fewer than the 2 simultaneous runs"),
                            (("write_bw", "--threads", "2", "--verify", "-b"),
                             "--threads 2 and -b: the server's verified laps begin at no common moment"),
                            (("write_bw", "--threads", "2", "--verify", "--interval", "1s"),
                             "--interval: verified laps of runs at the same time"),
                            (("write_bw", "--incast", "2", "--victim", "any", "--verify"),
                             "--victim: nothing is sent while verified laps are compared"),
                            (("write_bw", "--incast", "2", "--victim", "any", "--reverse"),
                             "--incast 2 and --reverse: "), (("write_bw", "--rails", "soft0", "--devices", "soft0"),
                                                             "--rails and --devices exclude each other"),
                            (("write_bw", "--threads", "2", "--cpu", "0"),
                             "--threads 2 and --cpu: "), (("write_bw", "--threads", "2", "--spread", "2"),
                                                          "--threads 2 and --spread: "),
                            (("write_bw", "--rails", "soft0", "-d", "soft0"),
                             "--rails and -d: "), (("write_bw", "--peer-rails", "soft0"),
                                                   "--peer-rails: the client has one device"),
                            (("write_bw", "--rails", "soft0,soft1", "--peer-rails", "soft0"),
                             "--peer-rails soft0: 1 devices, but the client has 2"),
                            (("write_bw", "--threads", "2", "--reverse", "--interval", "1s"),
                             "--interval: in a reversed run the server counts"),
                            (("write_lat", "--threads", "2"), "--threads 2: write_lat has one message in flight")):
            self.expect_error(run(*words, *LOCAL), 2, text)


if __name__ == "__main__":
    main()
