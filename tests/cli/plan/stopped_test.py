#!/usr/bin/env python3
"""Ctrl-C keeps what is measured, --resume goes on with it, --dry-run says what would be done."""

import json
import os
import signal
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import Background, CliTest, main, run, softnic_works


@unittest.skipIf(softnic_works(), "no software device")
class Stopped(CliTest):
    def document(self, path):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        return document

    def stopped_sweep(self, number=signal.SIGINT):
        """A sweep that is stopped in its second run; its document, from which it goes on with a hundred messages a run
        instead of so many that 8 MiB take half a minute."""
        path = self.scratch() + "/r.json"
        with Background("sweep", "--local", "--softnic", "--devices", "soft0", "--ops", "write_bw,read_lat", "--sizes",
                        "64,8M", "-n", "30000", "--progress", "--json", path) as sweep:
            sweep.wait_line("[1/4]")
            sweep.signal(number)
            self.assertEqual(sweep.wait(), -number, sweep.err)
        document = self.document(path)
        document["tool"]["argv"] = ["100" if word == "30000" else word for word in document["tool"]["argv"]]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return path, document, sweep

    def test_a_sweep_is_kept_and_goes_on(self):
        path, first, sweep = self.stopped_sweep()
        self.assertIn(f"stopped after 1 of 4 runs; 'gdrperf sweep --resume {path}' goes on", sweep.err)
        self.assertIn("write_bw", sweep.out, "what is measured is printed")
        self.assertTrue(first["partial"])
        self.assertEqual(first["missing"], ["write_bw 8 MiB soft0 host to host", "read_lat 64 B soft0 host to host",
                                            "read_lat 8 MiB soft0 host to host"])
        self.assertEqual([one["size_bytes"] for one in self.runs_of(first)], [64])
        result = run("sweep", "--resume", path)
        self.expect_swept(result)
        self.assertIn("1 runs are there, 3 are missing", result.err)
        whole = self.document(path)
        self.assertNotIn("partial", whole)
        self.assertNotIn("missing", whole)
        self.assertEqual([(one["op"], one["size_bytes"]) for one in self.runs_of(whole)],
                         [("write_bw", 64), ("write_bw", 8 << 20), ("read_lat", 64), ("read_lat", 8 << 20)])
        self.assertEqual(self.runs_of(whole)[0], self.runs_of(first)[0], "kept as it was")
        self.assertEqual(whole["started"], first["started"])
        again = run("sweep", "--resume", path)
        self.expect_error(again, 2, path, "has all its runs")

    def test_what_is_known_of_n_messages_both_ways_is_said(self):
        # Both ends count to N for themselves: a signal ends such a run without a result.
        with Background("write_bw", "--local", "--softnic", "-b", "-e", "-s", "1M", "-n", "100000", "--progress",
                        env={"SOFTNIC": "soft0:rate=100MB/s;soft1:rate=100MB/s"}) as both:
            both.wait_line("GB/s")
            both.signal(signal.SIGINT)
            self.assertEqual(both.wait(), -signal.SIGINT, both.err)
        self.assertRegex(both.err, r"until then: [0-9.]+ GB/s.*, after [0-9.]+ s, of what the client sent$")

    def test_failed_runs_are_missing_and_made(self):
        path = self.scratch() + "/r.json"
        options = ["sweep", "--local", "--softnic", "--devices", "soft0", "--ops", "write_bw", "--sizes", "64,64K",
                   "-n", "50", "--max-memory", "200K", "--json", path]
        first = run(*options)
        self.assertEqual(first.code, 3, str(first))
        document = self.document(path)
        self.assertEqual(document["missing"], ["write_bw 64 KiB soft0 host to host"])
        # Without the limit, as if memory had been freed.
        words = document["tool"]["argv"]
        at = words.index("--max-memory")
        document["tool"]["argv"] = words[:at] + words[at + 2:]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        self.expect_swept(run("sweep", f"--resume={path}"))
        self.assertEqual([one["size_bytes"] for one in self.runs_of(self.document(path))], [64, 65536])

    def test_what_cannot_go_on_is_refused_in_words(self):
        path, document, _ = self.stopped_sweep()

        def refused(change, *texts):
            changed = json.loads(json.dumps(document))
            change(changed)
            other = path + ".other"
            with open(other, "w", encoding="utf-8") as file:
                json.dump(changed, file)
            self.expect_error(run("sweep", "--resume", other), 2, other, *texts)

        refused(lambda it: it["tool"].update(version="9.9.9"), "was made by gdrperf 9.9.9")
        refused(lambda it: it["hosts"]["client"].update(hostname="elsewhere"), "was measured on 'elsewhere'")
        refused(lambda it: it["tool"].update(argv=["gdrperf", "write_bw"]), "was not made by 'gdrperf sweep'")
        refused(lambda it: it.update(missing=["write_bw 64 soft7 host to host"]), "soft7", "not planned here any more")
        refused(lambda it: it.update(schema="gdrperf-results/9"), "no document of schema")
        refused(lambda it: it["relations"]["HOST"]["write_bw"][0].pop("client"), "client")
        refused(lambda it: it["relations"]["HOST"]["write_bw"][0].update(op="dance"), "dance")
        with open(path + ".cut", "w", encoding="utf-8") as file:
            file.write(json.dumps(document)[:-20])
        self.expect_error(run("sweep", "--resume", path + ".cut"), 2, "not JSON, or cut off")
        self.expect_error(run("sweep", "--resume", path + ".gone"), 2, path + ".gone")
        self.expect_error(run("sweep", "--resume", path, "-D", "1s"), 2, "leave out '-D'")
        self.expect_error(run("sweep", "--resume"), 2, "--resume")

    def test_a_killed_sweep_goes_on_as_well(self):
        path, first, _ = self.stopped_sweep(signal.SIGKILL)
        self.assertEqual(len(first["missing"]), 3)
        self.expect_swept(run("sweep", "--resume", path))
        self.assertEqual(len(self.runs_of(self.document(path))), 4)

    def test_a_single_run_says_what_it_has(self):
        for test, *options in (["write_bw", "-s", "64"], ["send_bw", "-b"], ["read_lat"], ["send_bw", "--verify"],
                               ["write_bw", "-n", "4000000000"]):
            path = self.scratch() + "/r.json"
            length = [] if "-n" in options else ["-D", "1h"]
            with Background(test, "--local", "--softnic", *length, "--progress", "--json", path, *options) as measuring:
                measuring.wait_measuring()
                measuring.signal(signal.SIGTERM)
                self.assertEqual(measuring.wait(), -signal.SIGTERM, measuring.err)
            document = self.document(path)
            [record] = self.runs_of(document)
            self.assertEqual(record["stop"], "signal")
            self.assertTrue(any("ended by a signal" in text for text in record["warnings"]), record["warnings"])
            self.assertIn(test, measuring.out)
            self.assertNotIn("partial", document, "all that was planned is in it")

    def test_the_sizes_that_did_not_run_are_missing(self):
        path = self.scratch() + "/r.json"
        with Background("write_bw", "--local", "--softnic", "-s", "64,128,256", "-D", "1h", "--progress", "--json",
                        path) as measuring:
            measuring.wait_measuring()
            measuring.signal(signal.SIGINT)
            self.assertEqual(measuring.wait(), -signal.SIGINT, measuring.err)
        self.assertEqual(self.document(path)["missing"], ["write_bw 128 B any device host to host",
                                                          "write_bw 256 B any device host to host"])


@unittest.skipIf(softnic_works(), "no software device")
class DryRun(CliTest):
    def test_says_what_would_be_run_and_runs_nothing(self):
        path = self.scratch() + "/r.json"
        result = run("sweep", "--local", "--softnic", "--ops", "write_bw,read_lat", "--dry-run", "--json", path)
        self.expect_ok(result)
        self.assertFalse(os.path.exists(path))
        rows = {line.split("  ")[0]: line for line in result.out.splitlines()}
        self.assertRegex(rows["write_bw"], r"46 +2 +2 B to 8 MiB +\d+(\.\d+)? MiB +\d+(\.\d+)? MiB +46 s")
        self.assertRegex(rows["in all"], r"92 +2 +2 B to 8 MiB")
        self.assertTrue(all(len(line) <= 120 for line in result.out.splitlines()), result.out)

    def test_needs_no_server(self):
        result = run("write_bw", "nobody.invalid", "-s", "64K", "-n", "1000", "--dry-run")
        self.expect_ok(result)
        self.assertRegex(result.out, r"write_bw +1 +1 +64 KiB .* by count")

    def test_memory_is_what_a_run_takes(self):
        result = run("write_bw", "--local", "--softnic", "-s", "1M", "-q", "8", "--footprint", "64M", "--dry-run")
        self.assertRegex(result.out, r"51[2-9](\.\d)? MiB +51[2-9](\.\d)? MiB")


if __name__ == "__main__":
    main()
