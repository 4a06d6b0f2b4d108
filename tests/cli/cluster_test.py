#!/usr/bin/env python3
"""`gdrperf cluster` over the software device: a planted slow NIC is named and nothing else, by plain
processes and by mpirun; a killed rank is named and the rest has its result; plans and refusals."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import support

# A sanitized build would end with what the process manager's library leaks.
WITHOUT_LEAKS = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

RANKS = 6
SLOW = 4


def devices(slow=None):
    """A link for each rank, slow enough for any machine, which may be late (`react`)."""
    return ";".join(f"nic{rank}:rate=20MB/s,react=200ms" + (",slow=1.25" if rank == slow else "") for rank in range(RANKS))


def options(port, *more):
    root = ["--root", f"127.0.0.1:{port}"] if port else []
    return ["cluster", "--softnic", "-e", "-s", "16K", "-D", "250ms", *root,
            "--deadline", "20s", "--start-timeout", "40s", *more]


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


class Cluster(unittest.TestCase):
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

    def check_slow(self, document):
        slow = [each for each in document["suspects"] if each["verdict"] == "slow"]
        self.assertEqual([(each["part"], each["rank"]) for each in slow], [("nic", SLOW)], document["suspects"])
        self.assertEqual(document["verdict"], "slow")
        self.assertLess(slow[0]["retest_shift_percent"], -15)
        self.assertGreater(slow[0]["retest_shift_percent"], -25)

    def test_a_slow_device_is_named_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(SLOW, path)
            codes = [rank.wait() for rank in ranks]
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
        heat = next(line for line in ranks[0].out.splitlines() if line.startswith("  rail 0 "))
        self.assertEqual(heat.split()[-1][SLOW], "#", heat)

    def check_other_forms(self, path):
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

    def test_environments_of_other_launchers(self):
        """What torchrun and an indexed Job set, replayed."""
        for name, rank_variable, more in (("torchrun", "RANK", {"WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1"}),
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
                ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(RANKS), support.BINARY,
                 *options(None, "--json", path)],
                env=support.environment({"SOFTNIC": devices(SLOW), "ASAN_OPTIONS": WITHOUT_LEAKS}),
                capture_output=True, text=True, timeout=120, check=False)
            if support.sanitized() and done.returncode in (0, 4):
                self.skipTest("a sanitized build is too slow for these links, if anything runs beside it")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            document = self.check_document(path)
        self.assertIn(document["launcher"], ("OpenMPI", "PMIx"))
        self.check_slow(document)

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
            ranks = start(None, path)
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
            ranks = start(None, path, ["--fanout", "2"], every=["--fanout", "2"])
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

    def test_a_plan_starts_nothing(self):
        result = support.run("cluster", "--plan", "--ranks", 8, "--rails", 2, "-D", "500ms", "--nic-rate", "10GB/s")
        self.assertEqual(result.code, 0, result)
        self.assertIn("7 rounds both ways, 56 links", result.out)
        self.assertIn("7.0 s", result.out)
        self.assertIn("560 GB", result.out)

    def test_half_an_environment_is_named(self):
        result = support.run("cluster", env={"WORLD_SIZE": "4"})
        self.assertEqual(result.code, 2, result)
        self.assertIn("WORLD_SIZE is set but RANK is not", result.err)


if __name__ == "__main__":
    support.main()
