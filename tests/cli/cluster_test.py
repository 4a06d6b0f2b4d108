#!/usr/bin/env python3
"""`gdrperf cluster` over the software device: a planted slow NIC is named and nothing else, by plain
processes and by mpirun; a killed rank is named and the rest has its result; plans and refusals."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import support

# A sanitized build would end with what the process manager's library leaks.
WITHOUT_LEAKS = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

# A machine that other work keeps busy is one of which the program says that it cannot tell.
TRIES = 3
RANKS = 6
SLOW = 4


def devices(slow=None, count=RANKS):
    """Links, one for each rank, slow enough for any machine, which may be late (`react`)."""
    return ";".join(f"nic{rank}:rate=20MB/s,react=200ms" + (",slow=1.25" if rank == slow else "") for rank in range(count))


def options(port, *more):
    root = ["--root", f"127.0.0.1:{port}"] if port else []
    defaults = {"-s": "16K", "--small": "0", "-D": "250ms", "--deadline": "20s", "--start-timeout": "40s"}
    given = [word for name, value in defaults.items() if name not in more for word in (name, value)]
    return ["cluster", "--softnic", "-e", *root, *given, *more]


def start(slow=None, document=None, more=(), every=()):
    port = support.free_port()
    env = {"SOFTNIC": devices(slow)}
    ranks = []
    for rank in range(RANKS):
        own = ["--json", document, *more] if rank == 0 and document else []
        ranks.append(support.Background(*options(port, "--rank", rank, "--ranks", RANKS, *(own or every)), env=env))
    return ranks


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class ClusterTest(unittest.TestCase):
    def check_document(self, path):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        schema = os.path.join(os.path.dirname(support.SCHEMA), "cluster-schema.json")
        try:
            import jsonschema
        except ImportError:
            return document
        with open(schema, encoding="utf-8") as file:
            jsonschema.validate(document, json.load(file))
        return document

    def few(self, path, *more, ranks=2, nics=2, env=None):
        """A short run of `ranks`; the document."""
        port = support.free_port()
        started = [support.Background(*options(port, "--ranks", ranks, "--rank", rank, *(["--json", path, *more] if rank == 0 else []), "-D", "50ms"),
                                      env={"SOFTNIC": devices(count=nics), **(env or {})}) for rank in range(ranks)]
        for rank in started:
            rank.wait()
        self.assertIn(started[0].process.returncode, (0, 1, 4), started[0].err)
        return self.check_document(path)


class Rates(ClusterTest):
    """What holds measured rates against the links': with nothing beside it."""

    def check_slow(self, document):
        slow = [each for each in document["suspects"] if each["verdict"] == "slow"]
        self.assertEqual([(each["part"], each["rank"]) for each in slow], [("nic", SLOW)], document["suspects"])
        self.assertEqual(document["verdict"], "slow")
        self.assertLess(slow[0]["retest_shift_percent"], -15)
        self.assertGreater(slow[0]["retest_shift_percent"], -25)

    def test_a_slow_device_is_named_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            for _ in range(TRIES):
                ranks = start(SLOW, path)
                codes = [rank.wait() for rank in ranks]
                if codes[0] != 4:
                    break
            if support.sanitized() and codes[0] in (0, 4):
                self.skipTest("a sanitized build is too slow for these links, if anything runs beside it")
            self.assertEqual(codes, [1] + [0] * (RANKS - 1), [ranks[0].out, *(rank.err for rank in ranks)])
            self.assertIn(f"SLOW NIC nic{SLOW} of rank {SLOW}", ranks[0].out)
            self.assertIn("1 part is slow", ranks[0].out)
            document = self.check_document(path)
            self.check_other_forms(path)
        self.check_slow(document)
        self.assertEqual(len(document["measurements"]), RANKS * (RANKS - 1))
        self.assertFalse(document["partial"])
        self.assertEqual([each["nic"] for each in document["inspections"]], [SLOW])
        self.assertGreater(document["inspections"][0]["other_loopback_gbytes"], 0)
        self.assertIn("to itself it does ", ranks[0].out)
        heat = next(line for line in ranks[0].out.splitlines() if line.startswith("  rail 0 "))
        self.assertEqual(heat.split()[2][SLOW], "#", heat)
        self.assertIn(f"  # {document['ranks'][SLOW]['host']} nic{SLOW}", heat)

    def check_plan(self, path):
        """What is planned with a run's own time to start is what it took, rounds being alike."""
        took = load(path)["test"]
        plan = support.run("cluster", "--plan", "--ranks", RANKS, "-D", "250ms", "--small", "0", "--from", path)
        self.assertEqual(plan.code, 0, plan)
        seconds = float(plan.out.split("time: ")[1].split(" s")[0])
        self.assertAlmostEqual(seconds, took["seconds_per_round"] * took["rounds"], delta=0.2 * seconds)
        self.assertGreater(took["start_s"], 0)
        self.check_planned_patterns()
        self.check_planned_data(load(path))

    def check_planned_data(self, document):
        """Rounds, links and gigabytes of a plan without an earlier result, at the rate that the NICs then had."""
        test = document["test"]
        plan = support.run("cluster", "--plan", "--ranks", RANKS, "-D", "250ms", "--small", "0", "--nic-rate", f"{document['typical_gbytes']}GB/s")
        self.assertEqual(plan.code, 0, plan)
        self.assertIn(f"{test['rounds']} rounds of {test['runs_per_round']} runs each, {len(document['measurements']) // 2} links", plan.out)
        planned = float(plan.out.split("data: ")[1].split(" GB")[0])
        moved = sum(rate for _, _, rate in document["measurements"]) * test["duration_s"]
        self.assertAlmostEqual(planned, moved, delta=0.2 * moved)

    def check_planned_patterns(self):
        """8 nodes: ring, both halves, all, and an incast of 2 and 4 to one, before which the victim is alone."""
        plan = support.run("cluster", "--plan", "--ranks", 8, "-D", "1s", "-s", "16K", "--nic-rate", "10GB/s", "--patterns", "bisection,ring,incast,all")
        self.assertEqual(plan.code, 0, plan)
        self.assertIn("patterns: 6 steps on top, 6.9 s, ", plan.out)
        # What is in flight takes its time at both ends of a run, at 1 MB/s some.
        slow = support.run("cluster", "--plan", "--ranks", 2, "--small", "0", "-s", "16K", "--nic-rate", "1MB/s")
        self.assertIn(f"time: {2 * (0.25 + 0.15) + 4 * 32 * 16384 / 1e6:.1f} s, ", slow.out)

    def check_other_forms(self, path):
        self.check_plan(path)
        host = load(path)["ranks"][SLOW]["host"]
        for form, wanted in (("slurm", f"scontrol update NodeName={host} State=DRAIN Reason=\"gdrperf: NIC nic{SLOW} -"),
                             ("kubernetes", f"kubectl taint nodes {host} gdrperf/slow=true:NoSchedule"),
                             ("prometheus", 'gdrperf_cluster_verdict{verdict="slow"} 1'),
                             ("markdown", f"| NIC nic{SLOW} of {host} (rank {SLOW}) | slow |")):
            result = support.run("cluster", "--from", path, "--format", form)
            self.assertEqual(result.code, 0, result)
            self.assertIn(wanted, result.out)
        same = support.run("compare", path, path)
        self.assertEqual(same.code, 0, same)
        self.assertIn("no NIC is slower", same.out)
        slower = load(path)
        slower["typical_gbytes"] *= 0.9
        with open(path + ".slower", "w", encoding="utf-8") as file:
            json.dump(slower, file)
        worse = support.run("compare", path, path + ".slower", "--threshold", "5%")
        self.assertEqual(worse.code, 1, worse)
        self.assertIn("(-10.0 %)", worse.out)

    @support.long
    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_mpirun_names_a_slow_device(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            for _ in range(TRIES):
                done = subprocess.run(
                    ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(RANKS), support.BINARY,
                     *options(None, "--json", path)],
                    env=support.environment({"SOFTNIC": devices(SLOW), "ASAN_OPTIONS": WITHOUT_LEAKS}),
                    capture_output=True, text=True, timeout=120, check=False)
                if done.returncode != 4:
                    break
            if support.sanitized() and done.returncode in (0, 4):
                self.skipTest("a sanitized build is too slow for these links, if anything runs beside it")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            document = self.check_document(path)
        self.assertIn(document["launcher"], ("OpenMPI", "PMIx"))
        self.check_slow(document)

    @support.long
    def test_a_slow_device_of_servers_is_named(self):
        servers = [support.Background("serve", "--softnic", "--cluster", "-p", "0", "--bind", "127.0.0.1", env={"SOFTNIC": devices(SLOW)})
                   for _ in range(RANKS)]
        try:
            ports = [int(server.wait_line(", port ").split(", port ")[1].split(";")[0]) for server in servers]
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "cluster.json")
                hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
                for _ in range(TRIES):
                    client = support.Background(*options(None, "--hosts", hosts, "--json", path))
                    code = client.wait()
                    if code != 4:
                        break
                document = self.check_document(path)
        finally:
            for server in servers:
                server.signal(signal.SIGINT)
            for server in servers:
                server.wait()
        self.assertEqual(document["launcher"], "--hosts")
        self.assertEqual([each["rank"] for each in document["ranks"] if each["devices"]], list(range(1, RANKS + 1)))
        self.assertEqual(len(document["measurements"]), RANKS * (RANKS - 1))
        if support.sanitized() and code in (0, 4):
            self.skipTest("a sanitized build is too slow for these links, if anything runs beside it")
        self.assertEqual(code, 1, client.out + client.err)
        slow = [document["nics"][each["nic"]]["device"] for each in document["suspects"] if each["verdict"] == "slow"]
        self.assertEqual(slow, [f"nic{SLOW}"])


class Ranks(ClusterTest):
    """How ranks come together, are lost, and what is written down."""

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
        self.assertEqual(len(whole["measurements"]), RANKS * (RANKS - 1))

    @support.long
    def test_environments_of_other_launchers(self):
        """What torchrun, a LeaderWorkerSet and an indexed Job set, replayed."""
        for name, rank_variable, more in (("torchrun", "RANK", {"WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1"}),
                                          ("LeaderWorkerSet", "LWS_WORKER_INDEX", {"LWS_GROUP_SIZE": "4", "LWS_LEADER_ADDRESS": "127.0.0.1"}),
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
                ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "3", support.BINARY, *options(None, "--json", path, "-D", "50ms")],
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

    def test_a_killed_rank_is_named_and_the_rest_has_its_result(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(None, path, ["-D", "50ms"])
            ranks[0].wait_line("ranks are here")
            ranks[2].signal(signal.SIGKILL)
            codes = [rank.wait() for rank in ranks]
            document = self.check_document(path)
        self.assertEqual(codes[0], 4, ranks[0].out + ranks[0].err)
        self.assertIn("rank 2", ranks[0].out)
        self.assertIn("lost:", ranks[0].out)
        self.assertEqual([each["rank"] for each in document["ranks"] if each["lost"]], [2])
        # The five that are left met each other, all that were not paired with the lost one.
        self.assertGreaterEqual(len(document["measurements"]), 12)

    def test_a_tree_loses_a_rank_on_which_others_hang(self):
        """Two hang on each: rank 1 has ranks below it, which come to rank 0 when it is gone."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(None, path, ["--fanout", "2", "-D", "50ms"], every=["--fanout", "2"])
            ranks[0].wait_line("ranks are here")
            ranks[1].signal(signal.SIGKILL)
            codes = [rank.wait() for rank in ranks]
            document = self.check_document(path)
        self.assertEqual(codes[2:], [0] * (RANKS - 2), [rank.err for rank in ranks])
        self.assertEqual([each["rank"] for each in document["ranks"] if each["lost"]], [1])
        sent = {one[0] for one in document["measurements"]}
        self.assertEqual(sent - {1}, {0, 2, 3, 4, 5}, "all others were measured")
        # Their pairs that did not fall into the round in which rank 1 was lost.
        self.assertGreaterEqual(len(document["measurements"]), 10)

    def test_latency_and_small_messages_are_measured_besides(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            port = support.free_port()
            ranks = [support.Background(*options(port, "--ranks", 2, "--rank", rank, *(["--json", path, "--small", "64", "-D", "100ms"] if rank == 0 else [])),
                                        env={"SOFTNIC": devices(count=4)}) for rank in range(2)]
            codes = [rank.wait() for rank in ranks]
            document = self.check_document(path)
        self.assertIn(codes[0], (0, 1, 4), ranks[0].err)
        more = {each["series"]: each for each in document["more"]}
        self.assertEqual({name: (each["test"], each["size_bytes"]) for name, each in more.items()},
                         {"small_bandwidth": ("write_bw", 64), "latency": ("send_lat", 16384), "small_latency": ("send_lat", 64)})
        for each in more.values():
            self.assertEqual(len(each["measurements"]), 4, "two NICs of each of two ranks, on the same rail")
        # 16 KiB at 20 MB/s take 0.8 ms, and a byte more takes more.
        self.assertGreater(more["latency"]["typical"], 500)
        self.assertGreater(more["latency"]["typical"], more["small_latency"]["typical"])
        self.assertIn("latency of 64 B: typical ", ranks[0].out)

    def test_servers_are_ranks_without_a_launcher(self):
        servers = [support.Background("serve", "--softnic", "--cluster", "-p", "0", "--bind", "127.0.0.1", env={"SOFTNIC": devices(count=3)})
                   for _ in range(3)]
        try:
            ports = [int(server.wait_line(", port ").split(", port ")[1].split(";")[0]) for server in servers]
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "cluster.json")
                hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
                client = support.run(*options(None, "--hosts", hosts, "--json", path, "-D", "50ms"))
                self.assertIn(client.code, (0, 1, 4), client)
                document = self.check_document(path)
        finally:
            for server in servers:
                server.signal(signal.SIGINT)
            for server in servers:
                server.wait()
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
        self.assertGreater(steps["incast", "the victim alone"]["victim_gbytes"], 0)
        two = steps["incast", "2 to one"]
        self.assertGreater(two["victim_gbytes"], 0)
        self.assertEqual(two["failed"], 0, document["failed"])
        self.assertIn("incast, 2 to one: 2 flows, ", ranks[0].out)

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
            document = self.few(path, env={"SLURM_TOPOLOGY_ADDR": f"spine.leafA.{host}"})
            self.assertEqual({each["leaf"] for each in document["ranks"]}, {"leafA"}, "SLURM_TOPOLOGY_ADDR")

    def test_pairs_in_a_file_beside_are_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            document = self.few(path, "--compact", nics=4)
            self.assertEqual(document["measurements_file"], "cluster.json.pairs")
            self.assertEqual(document["measurements"], [])
            with open(path + ".pairs", "rb") as file:
                pairs = list(struct.iter_unpack("<IIf", file.read()))
            self.assertEqual(len({(one, other) for one, other, _ in pairs}), 4, "two NICs of each of two ranks, on the same rail")
            self.assertTrue(all(rate > 0 for _, _, rate in pairs))
            self.assertEqual(support.run("compare", path, path).code, 0)
            again = self.few(os.path.join(folder, "again.json"), "--resume", path, nics=4)
            self.assertEqual(len(again["measurements"]), 4, "read from the file beside")
            self.check_baseline(folder, path)

    def check_baseline(self, folder, path):
        """Against a result in which all was 30 % faster, all became slow."""
        faster = load(path)
        faster["typical_gbytes"] *= 1.3
        with open(path, "w", encoding="utf-8") as file:
            json.dump(faster, file)
        port = support.free_port()
        ranks = [support.Background(*options(port, "--ranks", 2, "--rank", rank, *(["--baseline", path] if rank == 0 else [])), env={"SOFTNIC": devices(count=4)})
                 for rank in range(2)]
        codes = [rank.wait() for rank in ranks]
        self.assertIn("SLOWER NIC", ranks[0].out)
        self.assertIn(codes[0], (1, 4) if "cannot tell" in ranks[0].out else (1,), ranks[0].out)

    def test_a_server_that_is_no_rank_says_so(self):
        with support.Server() as server:
            refused = support.run(*options(None, "--hosts", f"127.0.0.1:{server.port}", "--start-timeout", "1s"))
        self.assertIn("gdrperf serve --cluster", refused.err)
        self.assertEqual(refused.code, 4, refused)

    def test_buffers_of_gpus_need_gpus(self):
        """Software devices have no place on the PCI bus, and with that no relation to a GPU."""
        alone = support.run(*options(support.free_port(), "--rank", 0, "--ranks", 1, "--buffer", "gpu"), env={"SOFTNIC": devices()})
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
