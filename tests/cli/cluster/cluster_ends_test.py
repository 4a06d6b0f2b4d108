#!/usr/bin/env python3
"""`gdrperf cluster`: what it says of ranks and NICs that cannot measure, or lack what is expected, and of a run that a
time limit ends."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from cluster_ranks import BRIEF, RANKS, ClusterTest, devices, load, options, start


class Refusals(ClusterTest):
    def test_a_time_limit_judges_the_rounds_that_are_done(self):
        """Slurm signals all tasks: nobody is lost, and nobody is called slow without retests."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(1, path)
            ranks[0].wait_line("ranks are here")
            for rank in ranks:
                rank.signal(signal.SIGTERM)
            codes = [rank.wait() for rank in ranks]
            document = self.check_document(path)
        self.assertEqual(codes, [4] + [0] * (RANKS - 1), [rank.err for rank in ranks])
        self.assertEqual([each["lost"] for each in document["ranks"]], [None] * RANKS)
        self.assertTrue(document["partial"])
        self.assertLess(document["test"]["rounds_done"], RANKS - 1)
        self.assertNotIn("slow", [each["verdict"] for each in document["suspects"]])
        self.assertIn("stopped by a signal after", ranks[0].out)

    def test_a_time_limit_in_the_retests_ends_them(self):
        """All rounds are done and saved: what the retests have not decided by then is undecided."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            ranks = start(1, path)
            deadline = time.monotonic() + support.PATIENCE_S
            while time.monotonic() < deadline:
                if os.path.exists(path) and load(path)["test"]["rounds_done"] == RANKS - 1:
                    break
                time.sleep(0.01)
            for rank in ranks:
                rank.signal(signal.SIGTERM)
            codes = [rank.wait() for rank in ranks]
            document = self.check_document(path)
        self.assertEqual(codes, [4] + [0] * (RANKS - 1), [rank.err for rank in ranks])
        self.assertIn(f"stopped by a signal after {RANKS - 1} of {RANKS - 1} rounds: results of these, without all",
                      ranks[0].out)
        self.assertTrue(document["partial"], "--resume retests")
        self.assertEqual([each["lost"] for each in document["ranks"]], [None] * RANKS)
        self.assertIn("undecided", [each["verdict"] for each in document["suspects"]])

    def test_a_server_that_is_no_rank_says_so(self):
        with support.Server() as server:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "cluster.json")
                began = time.monotonic()
                refused = support.run(*options(None, "--hosts", f"127.0.0.1:{server.port}", "--start-timeout", "100s",
                                               "--json", path))
                waited = time.monotonic() - began
                document = self.check_document(path)
                drains = support.run("cluster", "--from", path, "--format", "slurm")
        self.assertIn("gdrperf serve --cluster", refused.err)
        self.assertEqual(refused.code, 4, refused)
        self.assertLess(waited, 50, "not --start-timeout")
        # The reason is kept, and a host without a server is not drained.
        self.assertIn("127.0.0.1", document["ranks"][1]["lost"])
        self.assertNotIn("did not come within", document["ranks"][1]["lost"])
        self.assertNotIn("DRAIN", drains.out)
        self.assertIn("# rank 1 never came: 127.0.0.1", drains.out)

    def test_a_rank_that_cannot_measure_is_not_waited_for(self):
        """Rank 0 knows what that rank knew, and the start is not held up."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            port = support.free_port()
            ranks = [support.Background(*options(port, "--ranks", 3, "--rank", rank,
                                                 *(["--json", path, *BRIEF] if rank == 0 else []),
                                                 *(["--devices", "mlx5_9"] if rank == 2 else [])),
                                        env={"SOFTNIC": devices(count=3)})
                     for rank in range(3)]
            codes = [rank.wait() for rank in ranks]
            document = self.check_document(path)
            metrics = support.run("cluster", "--from", path, "--format", "prometheus")
        self.assertEqual(codes, [4, 0, 2], [rank.err for rank in ranks])
        self.assertRegex(ranks[0].out, r"lost: rank 2 on .* \(--devices: rank 2 on .* has no device 'mlx5_9'\)")
        self.assertIn("has no device 'mlx5_9'", document["ranks"][2]["lost"])
        self.assertIn("has no device 'mlx5_9'",
                      next(line for line in metrics.out.splitlines() if line.startswith("gdrperf_cluster_rank_lost{")))
        waited = float(re.search(r"2 of 3 ranks are here, after ([0-9.]+) s", ranks[0].err).group(1))
        self.assertLess(waited, 20, "not --start-timeout")

    def test_a_nic_none_of_whose_runs_works_is_named_with_its_reason(self):
        links = devices().replace("nic2:", "nic2:fail=create_qp:ENOMEM,")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            port = support.free_port()
            ranks = [support.Background(*options(port, "--ranks", RANKS, "--rank", rank, *BRIEF,
                                                 *(["--json", path] if rank == 0 else [])), env={"SOFTNIC": links})
                     for rank in range(RANKS)]
            for rank in ranks:
                rank.wait()
            self.check_document(path)
            forms = {form: support.run("cluster", "--from", path, "--format", form).out
                     for form in ("prometheus", "slurm")}
        said = " ".join(ranks[0].out.split())
        self.assertRegex(said,
                         r"FAILED NIC nic2 of rank 2 \(\S+\): none of its runs worked: .*[Cc]annot allocate memory")
        self.assertRegex(forms["prometheus"], r'nic_sick\{host="[^"]*",device="nic2",why="failed",reason="[^"]*memory')
        self.assertRegex(forms["slurm"], r'State=DRAIN Reason="gdrperf: [^"]*NIC nic2 none of its runs worked: ')

    def test_ranks_that_are_waited_for_are_named(self):
        began = time.monotonic()
        rank = support.Background(*options(support.free_port(), "--ranks", 3, "--rank", 0, "--start-timeout", "7s"),
                                  env={"SOFTNIC": devices(count=3)})
        self.assertIn("waiting for rank 1, 2, 7 s in all", rank.wait_line("waiting for"))
        if not support.sanitized():
            self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(rank.wait(), 4, rank.err)
        other = support.Background(*options(support.free_port(), "--ranks", 3, "--rank", 1, "--start-timeout", "6s"),
                                   env={"SOFTNIC": devices(count=3)})
        self.assertIn("still no rank 0 at 127.0.0.1:", other.wait_line("still no rank 0"))
        self.assertEqual(other.wait(), 5, other.err)

    def test_a_process_manager_that_waits_is_said_within_five_seconds(self):
        """A barrier of PMI-1 that never ends, as where one rank has not started."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            rank = subprocess.Popen([support.BINARY, "cluster", "--softnic"], pass_fds=[theirs.fileno()],
                                    env=support.environment({"SOFTNIC": devices(count=2), "PMI_RANK": "0",
                                                             "PMI_SIZE": "2", "PMI_FD": str(theirs.fileno())}),
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            began = time.monotonic()
            lines = ours.makefile("rw", encoding="ascii")
            for answer in ("cmd=response_to_init rc=0", "cmd=my_kvsname kvsname=x", "cmd=put_result rc=0"):
                lines.readline()
                lines.write(answer + "\n")
                lines.flush()
            said = rank.stderr.readline()
            waited = time.monotonic() - began
            rank.kill()
            rank.communicate()
        self.assertIn("still waiting in the process manager's exchange", said)
        if not support.sanitized():
            self.assertLess(waited, 5)

    def test_what_is_expected_and_is_not_there_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.json")
            port = support.free_port()
            ranks = [support.Background(*options(port, "--ranks", 2, "--rank", rank,
                                                 *(["--json", path, *BRIEF, "--expect", "nics=8"] if rank == 0
                                                   else [])),
                                        env={"SOFTNIC": devices(count=4)}) for rank in range(2)]
            codes = [rank.wait() for rank in ranks]
            document = self.check_document(path)
            drains = support.run("cluster", "--from", path, "--format", "slurm")
        self.assertEqual(codes[0], 1, ranks[0].out)
        self.assertIn("(rank 0): 4 NICs with an active port, 8 expected", " ".join(ranks[0].out.split()))
        self.assertEqual(document["unexpected"], [{"rank": 0, "what": "4 NICs with an active port, 8 expected"}])
        self.assertIn('State=DRAIN Reason="gdrperf: 4 NICs with an active port, 8 expected"', drains.out)
        refused = support.run("cluster", "--expect", "cpus=2")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("there are gpus, nics and rate", refused.err)


if __name__ == "__main__":
    support.main()
