#!/usr/bin/env python3
"""What `gdrperf cluster` holds against the links' rates, with nothing beside it: a planted slow NIC is named and
nothing else, by plain processes, by mpirun and by servers; a plan is what a run then takes; other forms of its
result."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from cluster_ranks import RANKS, WITHOUT_LEAKS, ClusterTest, devices, load, options, rank_servers, start

# A machine that other work keeps busy is one of which the program says that it cannot tell.
TRIES = 3
SLOW = 4


@support.rates
class Rates(ClusterTest):
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
        self.assertIn(": loopback (no cable) ", ranks[0].out)
        heat = next(line for line in ranks[0].out.splitlines() if line.startswith("  rail 0 "))
        self.assertEqual(heat.split()[2][SLOW], "#", heat)
        self.assertIn(f"  # {document['ranks'][SLOW]['host']} nic{SLOW}", heat)

    def check_plan(self, path):
        """What is planned with a run's own time to start is what it took, rounds being alike."""
        took = load(path)["test"]
        plan = support.run("cluster", "--plan", "--ranks", RANKS, "-s", "16K", "-D", "250ms", "--small", "0",
                           "--from", path)
        self.assertEqual(plan.code, 0, plan)
        seconds = float(plan.out.split("time: ")[1].split(" s")[0])
        self.assertAlmostEqual(seconds, took["seconds_per_round"] * took["rounds"], delta=0.1 * seconds)
        self.assertGreater(took["start_s"], 0)
        self.check_planned_patterns()
        self.check_planned_data(load(path))

    def check_planned_data(self, document):
        """Rounds, links and gigabytes of a plan without an earlier result, at the rate that the NICs then had."""
        test = document["test"]
        plan = support.run("cluster", "--plan", "--ranks", RANKS, "-D", "250ms", "--small", "0", "--nic-rate",
                           f"{document['typical_gbytes']}GB/s")
        self.assertEqual(plan.code, 0, plan)
        self.assertIn(f"{test['rounds']} rounds of {test['runs_per_round']} runs each, "
                      f"{len(document['measurements']) // 2} links", plan.out)
        planned = float(plan.out.split("data: ")[1].split(" GB")[0])
        moved = sum(rate for _, _, rate in document["measurements"]) * test["duration_s"]
        self.assertAlmostEqual(planned, moved, delta=0.2 * moved)

    def check_planned_patterns(self):
        """8 nodes: ring, both halves, all, and an incast of 2 and 4 to one, before which the victim is alone."""
        plan = support.run("cluster", "--plan", "--ranks", 8, "-D", "1s", "-s", "16K", "--nic-rate", "10GB/s",
                           "--patterns", "bisection,ring,incast,all")
        self.assertEqual(plan.code, 0, plan)
        self.assertIn("patterns: 6 steps on top, 6.9 s, ", plan.out)
        # What is in flight takes its time at both ends of a run, at 1 MB/s some.
        slow = support.run("cluster", "--plan", "--ranks", 2, "--small", "0", "-s", "16K", "--nic-rate", "1MB/s")
        self.assertIn(f"time: {2 * (0.25 + 0.15) + 4 * 32 * 16384 / 1e6:.1f} s, ", slow.out)

    def check_other_forms(self, path):
        self.check_plan(path)
        host = load(path)["ranks"][SLOW]["host"]
        for form, wanted in (("slurm",
                              f"scontrol update NodeName={host} State=DRAIN Reason=\"gdrperf: NIC nic{SLOW} -"),
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
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            document = self.check_document(path)
        self.assertIn(document["launcher"], ("OpenMPI", "PMIx"))
        self.check_slow(document)

    @support.long
    def test_a_slow_device_of_servers_is_named(self):
        with rank_servers(RANKS, SLOW) as hosts, tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            for _ in range(TRIES):
                client = support.Background(*options(None, "--hosts", hosts, "--json", path))
                code = client.wait()
                if code != 4:
                    break
            document = self.check_document(path)
        self.assertEqual(document["launcher"], "--hosts")
        self.assertEqual([each["rank"] for each in document["ranks"] if each["devices"]], list(range(1, RANKS + 1)))
        self.assertEqual(len(document["measurements"]), RANKS * (RANKS - 1))
        self.assertEqual(code, 1, client.out + client.err)
        slow = [document["nics"][each["nic"]]["device"] for each in document["suspects"] if each["verdict"] == "slow"]
        self.assertEqual(slow, [f"nic{SLOW}"])


if __name__ == "__main__":
    support.main()
