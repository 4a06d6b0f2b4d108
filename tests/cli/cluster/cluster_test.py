#!/usr/bin/env python3
"""`gdrperf cluster` over the software device: how ranks come together, by which launchers, how they are lost and a job
goes on, and what is written down. Whether it names what is slow: cluster_rates_test.py."""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from cluster_ranks import RANKS, WITHOUT_LEAKS, ClusterTest, devices, load, options, rank_servers, start


class Ranks(ClusterTest):
    @support.long
    def test_a_killed_job_goes_on_where_it_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(None, path)
            deadline = time.monotonic() + support.PATIENCE_S
            while not os.path.exists(path) and time.monotonic() < deadline:
                time.sleep(0.02)
            for rank in ranks:
                rank.signal(signal.SIGKILL)
            for rank in ranks:
                rank.wait()
            begun = self.check_document(path)
            self.assertTrue(begun["partial"])
            self.assertLess(begun["test"]["rounds_done"], RANKS - 1, "killed in time")
            other = start(None, os.path.join(folder, "other.json"), ["--resume", path, "--seed", "9"])
            self.assertEqual(other[0].wait(), 2)
            self.assertIn("--resume: that run had", other[0].err)
            for rank in other:
                rank.wait()
            again = start(None, os.path.join(folder, "whole.json"), ["--resume", path])
            for rank in again:
                rank.wait()
            whole = self.check_document(os.path.join(folder, "whole.json"))
        self.assertFalse(whole["partial"])
        self.assertEqual(whole["test"]["rounds_done"], RANKS - 1)
        self.assertEqual(whole["measurements"][:len(begun["measurements"])], begun["measurements"])
        self.assertEqual(len(whole["measurements"]), RANKS * (RANKS - 1), whole["failed"])

    @support.long
    def test_environments_of_other_launchers(self):
        """What torchrun, a LeaderWorkerSet and an indexed Job set, replayed."""
        for name, rank_variable, more in (("torchrun", "RANK", {"WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1"}),
                                          ("LeaderWorkerSet", "LWS_WORKER_INDEX",
                                           {"LWS_GROUP_SIZE": "4", "LWS_LEADER_ADDRESS": "127.0.0.1"}),
                                          ("indexed Job", "JOB_COMPLETION_INDEX", {})):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "cluster.json")
                port = support.free_port()
                given = ["--ranks", "4"] if not more else []
                ranks = [support.Background(*options(port, *given, *(["--json", path] if rank == 0 else [])),
                                            env={"SOFTNIC": devices(), rank_variable: str(rank), **more})
                         for rank in range(4)]
                for rank in ranks:
                    rank.wait()
                document = self.check_document(path)
            self.assertEqual(document["launcher"], name)
            self.assertEqual(len(document["ranks"]), 4)
            # Six devices on four ranks: two have two each, and meet on both rails.
            self.assertEqual(len(document["measurements"]), 14)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_mpirun_starts_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            done = subprocess.run(
                ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "3", support.BINARY,
                 *options(None, "--json", path, "-D", "50ms")],
                env=support.environment({"SOFTNIC": devices(count=3), "ASAN_OPTIONS": WITHOUT_LEAKS}),
                capture_output=True, text=True, timeout=120, check=False)
            self.assertIn(done.returncode, (0, 1, 4), done.stdout + done.stderr)
            document = self.check_document(path)
        self.assertIn(document["launcher"], ("OpenMPI", "PMIx"))
        self.assertEqual([each["rank"] for each in document["ranks"] if not each["lost"]], [0, 1, 2])
        self.assertEqual(len(document["measurements"]), 6)

    @unittest.skipUnless(shutil.which("mpiexec.hydra"), "no mpiexec.hydra here")
    def test_hydra_starts_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            done = subprocess.run(
                ["mpiexec.hydra", "-np", "4", support.BINARY, *options(None, "--json", path)],
                env=support.environment({"SOFTNIC": devices()}), capture_output=True, text=True,
                timeout=120, check=False)
            self.assertIn(done.returncode, (0, 1, 4), done.stdout + done.stderr)
            document = self.check_document(path)
        self.assertEqual(document["launcher"], "PMI-1")
        self.assertEqual([each["rank"] for each in document["ranks"] if not each["lost"]], [0, 1, 2, 3])

    def check_lost(self, document, code, words):
        """4, with a rank lost: unless other work on this machine slowed one of those that are left, too."""
        slow = [each for each in document["suspects"] if each["verdict"] == "slow"]
        self.assertEqual(code, 1 if slow else 4, words)

    def test_a_killed_rank_is_named_and_the_rest_has_its_result(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(None, path, ["-D", "50ms"])
            ranks[0].wait_line("ranks are here")
            ranks[2].signal(signal.SIGKILL)
            codes = [rank.wait() for rank in ranks]
            document = self.check_document(path)
        self.check_lost(document, codes[0], ranks[0].out + ranks[0].err)
        self.assertIn("rank 2", ranks[0].out)
        self.assertIn("lost:", ranks[0].out)
        self.assertEqual([each["rank"] for each in document["ranks"] if each["lost"]], [2])
        # The five that are left met each other, all that were not paired with the lost one.
        self.assertGreaterEqual(len(document["measurements"]), 12)

    @support.long
    def test_a_rank_that_stops_is_dropped_after_the_deadline(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(None, path, ["-D", "50ms", "--deadline", "10s"])
            ranks[0].wait_line("ranks are here")
            ranks[2].signal(signal.SIGSTOP)
            codes = [rank.wait() for rank in ranks if rank is not ranks[2]]
            ranks[2].signal(signal.SIGKILL)
            ranks[2].wait()
            document = self.check_document(path)
        self.check_lost(document, codes[0], ranks[0].out + ranks[0].err)
        self.assertEqual(codes[1:], [0] * (RANKS - 2), [rank.err for rank in ranks])
        self.assertRegex(ranks[0].out, r"lost: rank 2 on .* 10 s")
        self.assertEqual([each["rank"] for each in document["ranks"] if each["lost"]], [2])
        self.assertEqual(document["test"]["rounds_done"], RANKS - 1)

    def test_a_tree_loses_a_rank_on_which_others_hang(self):
        """Two hang on each: rank 1 has ranks below it, which come to rank 0 when it is gone."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(None, path, ["--fanout", "2", "-D", "50ms"], every=["--fanout", "2"])
            ranks[0].wait_line("ranks are here")
            ranks[1].signal(signal.SIGKILL)
            codes = [rank.wait() for rank in ranks]
            self.assertEqual(codes[2:], [0] * (RANKS - 2), [rank.err for rank in ranks])
            document = self.check_document(path)
        self.assertEqual([each["rank"] for each in document["ranks"] if each["lost"]], [1])
        sent = {one[0] for one in document["measurements"]}
        self.assertEqual(sent - {1}, {0, 2, 3, 4, 5}, "all others were measured")
        # Their pairs that did not fall into the round in which rank 1 was lost.
        self.assertGreaterEqual(len(document["measurements"]), 10)

    def test_latency_and_small_messages_are_measured_besides(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            # A program that is late stays late here: a link that makes up for it would be faster for a while.
            links = ";".join(f"nic{i}:rate=20MB/s,react=0us" for i in range(4))
            port = support.free_port()
            ranks = [support.Background(*options(port, "--ranks", 2, "--rank", rank,
                                                 *(["--json", path, "--small", "64", "-D", "100ms"] if rank == 0
                                                   else [])),
                                        env={"SOFTNIC": links}) for rank in range(2)]
            codes = [rank.wait() for rank in ranks]
            self.assertIn(codes[0], (0, 1, 4), [rank.err for rank in ranks])
            document = self.check_document(path)
        more = {each["series"]: each for each in document["more"]}
        self.assertEqual({name: (each["test"], each["size_bytes"]) for name, each in more.items()},
                         {"small_bandwidth": ("write_bw", 64), "latency": ("send_lat", 16384),
                          "small_latency": ("send_lat", 64)})
        for each in more.values():
            self.assertEqual(len(each["measurements"]), 4, "two NICs of each of two ranks, on the same rail")
        # 16 KiB at 20 MB/s take 0.8 ms.
        self.assertGreater(more["latency"]["typical"], 16384 / 20)
        self.assertGreater(more["small_latency"]["typical"], 64 / 20)
        self.assertIn("latency of 64 B: typical ", ranks[0].out)

    def test_servers_are_ranks_without_a_launcher(self):
        with rank_servers(3) as hosts, tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            client = support.run(*options(None, "--hosts", hosts, "--json", path, "-D", "50ms"))
            self.assertIn(client.code, (0, 1, 4), client)
            document = self.check_document(path)
        self.assertEqual(document["launcher"], "--hosts")
        self.assertEqual([each["rank"] for each in document["ranks"] if each["devices"]], [1, 2, 3])
        self.assertEqual(len(document["measurements"]), 6)

    @support.long
    def test_patterns_are_measured_after_the_pairs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(None, path, ["--patterns", "bisection,ring,incast,all"])
            for rank in ranks:
                rank.wait()
            document = self.check_document(path)
        steps = {(each["pattern"], each["step"]): each for each in document["patterns"]}
        flows = {key: each["flows"] + each["failed"] for key, each in steps.items()}
        self.assertEqual(flows, {("bisection", "both halves"): RANKS, ("ring", "each to the next"): RANKS,
                                 ("incast", "the victim alone"): 0, ("incast", "2 to one"): 2,
                                 ("all", "each to all others"): RANKS * (RANKS - 1)})
        for name in (("ring", "each to the next"), ("all", "each to all others"), ("incast", "2 to one")):
            self.assertGreater(steps[name]["share_of_pairs"], 0, steps[name])
            self.assertGreaterEqual(steps[name]["share_of_pairs"], steps[name]["slowest_share"])
        self.assertIsNone(steps["incast", "the victim alone"]["share_of_pairs"])
        self.assertRegex(ranks[0].out, r"ring, each to the next: .*; \d+ % of\s+pairs' rate")
        self.assertGreater(steps["incast", "the victim alone"]["victim_gbytes"], 0)
        two = steps["incast", "2 to one"]
        self.assertGreater(two["victim_gbytes"], 0)
        self.assertEqual(two["failed"], 0, document["failed"])
        self.assertIn("incast, 2 to one: 2 flows, ", ranks[0].out)

    def test_a_collective_without_gpus_is_refused_before_anything_is_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(None, path, ["--patterns", "ring,nccl"])
            self.assertEqual(ranks[0].wait(), 3, ranks[0].err)
            for rank in ranks[1:]:
                rank.wait()
            self.assertFalse(os.path.exists(path))
        self.assertIn("--patterns nccl: it takes two GPUs or more; rank 0 on ", ranks[0].err)

    def test_leaves_come_from_files_and_from_slurm(self):
        host = socket.gethostname().split(".")[0]
        files = {"topology.conf": f"SwitchName=leafA Nodes={host},other[1-3]\nSwitchName=spine Switches=leafA\n",
                 "ibnetdiscover": f'Switch\t40 "S-b8599f0300aa"\t\t# "leafA" enhanced port 0 lid 3\n'
                                  f'[3]\t"H-248a070300bb"[1](248a070300bb) \t\t# "{host} mlx5_0" lid 7 4xEDR\n',
                 "leaves.json": json.dumps({"leafA": [host], "leafB": ["other"]})}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            for name, content in files.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(content)
                document = self.few(path, "--topology", os.path.join(folder, name))
                self.assertEqual({each["leaf"] for each in document["ranks"]}, {"leafA"}, name)
            document = self.few(path, env={"SLURM_TOPOLOGY_ADDR": f"spine.leafA.{host}", "SLURMD_NODENAME": "n7"})
            self.assertEqual({each["node"] for each in document["ranks"]}, {"n7"}, "as the scheduler names it")
            self.assertEqual({each["leaf"] for each in document["ranks"]}, {"leafA"}, "SLURM_TOPOLOGY_ADDR")

    def test_hops_are_recorded_and_judged_by_nobody(self):
        """Each of a host's NICs hangs on the switch that ibnetdiscover or LLDP names for it."""
        host = socket.gethostname().split(".")[0]
        ib = "".join(f'Switch\t40 "S-{leaf}"\t# "leaf{leaf}" base\n[1]\t"H-{leaf}"[1](a) # "{host} nic{nic}" lid 7\n'
                     f'[9]\t"S-f"[{leaf}]\t# "spine" lid 1\n\n' for leaf, nic in ((1, 0), (2, 1)))

        def neighbor(interface, switch):
            return {interface: {"chassis": {switch: {"id": {"type": "mac", "value": "00:01"}}}, "port": {}}}

        lldp = {"hosts": {host: {"lldp": {"interface": [neighbor("nic0", "leaf1"), neighbor("nic1", "leaf2")]}}},
                "switches": {"spine": {"lldp": {"interface": [neighbor("p1", "leaf1"), neighbor("p2", "leaf2")]}}}}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            topology = os.path.join(folder, "topology")
            for text in (ib, json.dumps(lldp)):
                with open(topology, "w", encoding="utf-8") as file:
                    file.write(text)
                document = self.few(path, "--topology", topology)
                self.assertEqual([each["switch"] for each in document["nics"]], ["leaf1", "leaf2"])
                self.assertEqual(document["hops"]["between"], [[1, 3], [3, 1]])
                self.assertEqual([(each["series"], each["hops"], each["measurements"])
                                  for each in document["hops"]["measured"]], [("bandwidth", 3, 2)])
            self.assertIsNone(self.few(path)["hops"])
            for text, wanted in ((ib + "[2]\t\"H-9\n", "topology:9: no neighbor in quotes"),
                                 (json.dumps(lldp)[:-1], "topology:1: no JSON from here on")):
                with open(topology, "w", encoding="utf-8") as file:
                    file.write(text)
                refused = support.run(*options(support.free_port(), "--rank", 0, "--ranks", 1, "--topology", topology),
                                      env={"SOFTNIC": devices(count=2)})
                self.assertEqual(refused.code, 2, refused)
                self.assertIn(wanted, refused.err)

    def test_pairs_in_a_file_beside_are_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            document = self.few(path, "--compact", nics=4)
            self.assertEqual(document["measurements_file"], "cluster.json.pairs")
            self.assertEqual(document["measurements"], [])
            with open(path + ".pairs", "rb") as file:
                pairs = list(struct.iter_unpack("<IIf", file.read()))
            self.assertEqual(len({(one, other) for one, other, _ in pairs}), 4,
                             "two NICs of each of two ranks, on the same rail")
            self.assertTrue(all(rate > 0 for _, _, rate in pairs))
            self.assertEqual(support.run("compare", path, path).code, 0)
            port = support.free_port()
            fewer = [support.Background(*options(port, "--ranks", 2, "--rank", rank,
                                                 *(["--resume", path, "-D", "50ms"] if rank == 0 else [])),
                                        env={"SOFTNIC": devices(count=2)}) for rank in range(2)]
            codes = [rank.wait() for rank in fewer]
            self.assertEqual(codes[0], 2, fewer[0].err)
            self.assertIn("--resume: that run had other ranks, hosts or NICs", fewer[0].err)
            self.assertIn("leave --resume out on other nodes; scripts/cluster/gdrperf.sbatch does so", fewer[0].err)
            again = self.few(os.path.join(folder, "again.json"), "--resume", path, nics=4)
            self.assertEqual(len(again["measurements"]), 4, "read from the file beside")
            self.check_baseline(folder, path)

    def check_baseline(self, folder, path):
        """Against results in which all was ten times as fast, all became slow."""
        faster = load(path)
        faster["typical_gbytes"] *= 10
        with open(path, "w", encoding="utf-8") as file:
            json.dump(faster, file)
        store = os.path.join(folder, "baselines")
        added = support.run("baseline", "add", path, "--dir", store)
        self.assertIn(": 1 added, 0 there already, 1 sessions now", added.out, added)
        self.assertIn("0 added, 1 there already", support.run("baseline", "add", path, "--dir", store).out)
        name = added.out.split(":")[0][len(store) + 1:]
        self.assertRegex(name, r"^clusters/hosts1-nics4-[0-9a-f]{16}$")
        self.assertIn(f"{name}  1 ", support.run("baseline", "list", "--dir", store).out)
        self.assertIn(f"{faster['verdict']}  16 KiB", support.run("baseline", "show", name, "--dir", store).out)
        self.assertEqual(support.run("compare", store, path).code, 0)
        port = support.free_port()
        ranks = [support.Background(*options(port, "--ranks", 2, "--rank", rank,
                                             *(["--baseline", store] if rank == 0 else [])),
                                             env={"SOFTNIC": devices(count=4)})
                 for rank in range(2)]
        codes = [rank.wait() for rank in ranks]
        self.assertIn("SLOWER NIC", ranks[0].out)
        self.assertIn(codes[0], (1, 4) if "undecided" in ranks[0].out else (1,), ranks[0].out)
        removed = support.run("baseline", "rm", name, "--dir", store)
        self.assertEqual(removed.code, 0, removed)
        none = support.run(*options(None, "--rank", 0, "--ranks", 1, "--root", "127.0.0.1", "--baseline", store),
                           env={"SOFTNIC": devices(count=4)})
        self.assertEqual(none.code, 2, none)
        self.assertIn("gdrperf baseline add RESULT", none.err)

    def test_buffers_of_gpus_need_gpus(self):
        """Software devices have no place on the PCI bus, and with that no relation to a GPU."""
        alone = support.run(*options(support.free_port(), "--rank", 0, "--ranks", 1, "--buffer", "gpu"),
                            env={"SOFTNIC": devices()})
        self.assertEqual(alone.code, 3, alone)
        self.assertIn("--buffer gpu: rank 0 on ", alone.err)
        self.assertIn("has no GPU whose relation to nic0 is known", alone.err)
        refused = support.run("cluster", "--buffer", "cuda:0")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("there are host, gpu (the GPU nearest to each NIC) and staged", refused.err)

    def test_one_rank_measures_between_its_nics(self):
        with tempfile.TemporaryDirectory() as folder:
            document = self.few(os.path.join(folder, "cluster.json"), ranks=1, nics=3)
        self.assertEqual(len(document["measurements"]), 6)
        self.assertEqual({each["rank"] for each in document["nics"]}, {0})


if __name__ == "__main__":
    support.main()
