#!/usr/bin/env python3
"""--transport: what goes over UC and UD, what does not, and messages that are lost there."""

import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, Server, cases, main, run, softnic_works

LOCAL = ("--local", "--softnic")
TESTS = [name + "_" + metric for name in ("write", "send", "read", "write_imm", "atomic") for metric in ("bw", "lat")]
GO = {"rc": set(TESTS), "xrc": set(TESTS),
      "uc": {"write_bw", "write_lat", "send_bw", "send_lat", "write_imm_bw", "write_imm_lat"},
      "ud": {"send_bw", "send_lat"}}


def record_of(result):
    ((one,),) = json.loads(result.out)["relations"]["HOST"].values()
    return one


@unittest.skipIf(softnic_works(), "no software device")
class Transport(CliTest):
    def measured(self, *words, env=None):
        """The record of a run of few messages, every one with a receive waiting for it."""
        result = run(*words, *LOCAL, "-n", "4000", "-r", "8192", "--json", "-", env=env)
        self.assertEqual(result.code, 0, str(result))
        return record_of(result)

    def test_what_verbs_have_runs_and_what_they_have_not_is_named(self):
        # RC is what every other test runs over.
        for transport in cases(("xrc", "uc", "ud"), GO):
            tests = GO[transport]
            for test in TESTS:
                words = () if test.startswith("atomic") else ("-s", "64")
                result = run(test, *LOCAL, "--transport", transport, "-n", "500", *words, "--json", "-")
                if test in tests:
                    self.assertEqual(result.code, 0, str(result))
                    self.assertEqual(record_of(result).get("transport", "rc"), transport)
                else:
                    self.assertEqual(result.code, 2, str(result))
                    self.assertIn(f"--transport {transport}: verbs have no ", result.err)
                    self.assertIn(f"{test} needs RC", result.err)

    def test_receives_may_be_shared(self):
        for words in (("send_bw", "-q", "4"), ("send_bw", "-q", "3", "-b"), ("write_imm_bw", "-q", "2", "-e"),
                      ("send_lat",), ("write_imm_lat",),
                      ("send_bw", "-q", "2", "--transport", "ud"), ("send_bw", "-q", "2", "-R")):
            result = run(*words, *LOCAL, "--srq", "-s", "64", "-n", "2000", "-r", "64", "--json", "-")
            self.assertEqual(result.code, 0, str(result))
            self.assertIs(record_of(result)["srq"], True)
        for words, text in ((("write_bw",), "--srq: write_bw posts no receives"),
                            (("send_bw", "--transport", "uc"), "--srq: verbs have shared receive queues for RC and UD"),
                            (("send_bw", "--verify"), "--srq: messages take receives as they come"),
                            (("send_bw", "-q", "64", "-r", "32768"), "--srq with -q 64 and -r 32768: soft0 has ")):
            result = run(*words, *LOCAL, "--srq", "-s", "64", "-n", "100")
            self.assertEqual(result.code, 2, str(result))
            self.assertIn(text, result.err)

    def test_no_message_is_lost_where_every_one_has_a_receive(self):
        for words in (("send_bw", "--transport", "ud"), ("send_bw", "--transport", "uc"),
                      ("write_imm_bw", "--transport", "uc"),
                      ("send_bw", "--transport", "ud", "-q", "3"), ("send_bw", "--transport", "ud", "-e")):
            one = self.measured(*words, "-s", "64")
            self.assertEqual((one["delivery"]["sent_messages"], one["delivery"]["lost_messages"]), (4000, 0), words)
            self.assertAlmostEqual(one["delivery"]["goodput_gbps"], one["bw"]["median_gbps"],
                                   delta=1e-6 * one["bw"]["median_gbps"])
        both = self.measured("send_bw", "--transport", "ud", "-s", "64", "-b")
        self.assertEqual((both["delivery"]["sent_messages"], both["delivery"]["lost_messages"]), (8000, 0))

    def test_lost_messages_are_counted(self):
        for words in (("send_bw", "--transport", "ud"), ("send_bw", "--transport", "uc"),
                      ("write_imm_bw", "--transport", "uc")):
            one = self.measured(*words, "-s", "64", env={"SOFTNIC": "soft0:fault=loss:every=10"})
            delivery = one["delivery"]
            self.assertEqual((delivery["sent_messages"], delivery["lost_messages"]), (4000, 400), words)
            self.assertAlmostEqual(delivery["lost_share"], 0.1)
            self.assertAlmostEqual(delivery["goodput_gbps"], 0.9 * one["bw"]["median_gbps"],
                                   delta=1e-4 * one["bw"]["median_gbps"])
            self.assertIn("400 of 4000 messages (10 %) were lost", " ".join(one["warnings"]))

    def test_a_gate_asks_for_what_arrived(self):
        lossy = {"SOFTNIC": "soft0:fault=loss:every=2"}
        one = self.measured("send_bw", "--transport", "ud", "-s", "4096", env=lossy)
        self.assertAlmostEqual(one["delivery"]["lost_share"], 0.5)
        result = run("send_bw", *LOCAL, "--transport", "ud", "-s", "4096", "-n", "4000", "-r", "8192", "--min-gbps",
                     "1e6", env=lossy)
        self.assertEqual(result.code, 1, str(result))

    def test_xrc_has_a_queue_for_each_qp_or_one_for_all(self):
        for words in (("send_bw", "-q", "3"), ("send_bw", "-q", "3", "--srq"), ("send_bw", "-q", "2", "-b"),
                      ("write_imm_bw", "-e"), ("read_bw", "-q", "5"),
                      ("write_bw", "--reverse"), ("write_bw", "--threads", "2", "-q", "2"), ("atomic_bw",)):
            record = self.measured(*words, "--transport", "xrc")
            self.assertEqual((record["transport"], record["iterations"]), ("xrc", 4000), words)
        for words in (("send_bw", "-q", "3"), ("read_bw",), ("write_imm_lat",), ("write_bw", "-q", "2", "-b"),
                      ("atomic_bw",)):
            result = run(*words, *LOCAL, "--transport", "xrc", "--verify", "-n", "400")
            self.assertEqual(result.code, 0, str(result))
        wrong = run("write_bw", *LOCAL, "--transport", "xrc", "--verify", "-n", "400",
                    env={"SOFTNIC": "soft0:fault=flip:every=100"})
        self.assertEqual(wrong.code, 5, str(wrong))

    def test_a_group_receives_what_is_sent_to_it(self):
        for words in (("send_bw",), ("send_bw", "-b"), ("send_imm_bw",), ("send_bw", "-e"), ("send_bw", "--reverse")):
            record = self.measured(*words, "--multicast", "-s", "64")
            both = 2 if "-b" in words else 1
            self.assertEqual((record["transport"], record["multicast_group"]), ("ud", "auto"))
            self.assertEqual((record["delivery"]["sent_messages"], record["delivery"]["lost_messages"]),
                             (4000 * both, 0), words)
        self.assertEqual(self.measured("send_lat", "--multicast-group", "ff0e::17", "-s", "64")["latency"]["samples"],
                         4000)
        self.assertEqual(self.measured("send_bw", "-M", "239.1.2.3", "-g", "-s", "64")["multicast_group"], "239.1.2.3")
        result = run("send_bw", *LOCAL, "--multicast", "--verify", "-n", "300")
        self.assertEqual(result.code, 0, str(result))

    def test_what_goes_to_no_group(self):
        for words, text in ((("write_bw", "--multicast"), "write_bw is not sent in datagrams"),
                            (("send_bw", "--multicast-group", "10.0.0.1"), "is no multicast group"),
                            (("send_bw", "--multicast-group", "x"), "is no multicast group"),
                            (("send_bw", "--multicast", "-q", "2"), "each QP of a group"),
                            (("send_bw", "--multicast", "--threads", "2"), "each thread"),
                            (("send_bw", "--multicast", "-c", "UC"), "datagrams alone go to a group"),
                            (("send_lat", "--multicast", "--load", "50%"), "the stream goes over RC")):
            result = run(*words, *LOCAL)
            self.assertEqual(result.code, 2, str(result))
            self.assertIn(text, result.err)

    def test_reliable_runs_count_none(self):
        self.assertNotIn("delivery", self.measured("send_bw", "-s", "64"))

    def test_nobody_counts_writes_over_uc(self):
        one = self.measured("write_bw", "--transport", "uc", "-s", "64")
        self.assertNotIn("delivery", one)
        self.assertIn("nobody counts what arrived", " ".join(one["warnings"]))

    def test_a_datagram_is_no_larger_than_the_mtu(self):
        result = run("send_bw", *LOCAL, "--transport", "ud", "-s", "8K")
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("-s 8 KiB: a message over UD is one packet, of 4096 bytes at most", result.err)
        result = run("send_bw", *LOCAL, "--transport", "ud", "-s", "2K",
                     env={"SOFTNIC": "soft0:mtu=1024;soft1:mtu=1024"})
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("-s 2 KiB: a message over UD is one packet, and the MTU of both ports is 1024 bytes", result.err)
        result = run("send_bw", *LOCAL, "--transport", "ud", "-m", "512", "-s", "513")
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("of 512 bytes at most", result.err)

    def test_sizes_that_nobody_typed_fit(self):
        result = run("send_bw", *LOCAL, "--transport", "ud", "-n", "100", "--json", "-")
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(record_of(result)["size_bytes"], 1024)
        result = run("sweep", *LOCAL, "--transport", "ud", "--dry-run", "-d", "soft0", "-n", "100")
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("2 B to 4 KiB", result.out)
        for absent in ("8 KiB", "8 MiB", "write_bw", "read_lat"):
            self.assertNotRegex(result.out, r"(?<![0-9.])" + absent)

    def test_a_lost_round_is_told(self):
        result = run("send_lat", *LOCAL, "--transport", "ud", "-n", "100000",
                     env={"SOFTNIC": "soft0:fault=loss:every=300"})
        self.assertEqual(result.code, 5, str(result))
        self.assertIn("a message over UD was lost", result.err)
        self.assertIn("--transport rc does so", result.err)

    def test_data_is_compared(self):
        for transport, test in (("uc", "send_bw"), ("uc", "write_imm_bw"), ("uc", "write_lat"), ("ud", "send_bw"),
                                ("ud", "send_lat")):
            words = (test, *LOCAL, "--transport", transport, "--verify", "-s", "1000", "-n", "500")
            self.assertEqual(run(*words).code, 0, words)
            wrong = run(*words, env={"SOFTNIC": "soft0:fault=flip:every=90"})
            self.assertEqual(wrong.code, 5, str(wrong))
            self.assertIn("data is wrong", wrong.err)
        result = run("write_bw", *LOCAL, "--transport", "uc", "--verify")
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("--transport uc: write_bw cannot be verified", result.err)
        result = run("verify", *LOCAL, "-d", "soft0", "--peer-dev", "soft0", "--buffers", "host", "--transport", "ud")
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("2 passed, 0 failed", result.out)

    def test_against_a_server_with_a_link(self):
        env = {"SOFTNIC": "soft0:rate=10GB/s"}
        with Server(env=env) as server:
            for qps in (1, 3):
                result = run("send_bw", "127.0.0.1", "-p", server.port, "--softnic", "--transport", "ud", "-s", "64",
                             "-n", "8192", "-r", "8192",
                             "-q", qps, "--json", "-", env=env)
                self.assertEqual(result.code, 0, str(result))
                self.assertEqual(record_of(result)["delivery"]["sent_messages"], 8192)

    def test_what_else_cannot_be(self):
        result = run("send_bw", *LOCAL, "--transport", "uc", "-R")
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("--transport uc: -R connects RC QPs", result.err)
        for words, text in ((("-R",), "--transport xrc: -R connects RC QPs"),
                            (("--ece", "on"), "--transport xrc: --ece on is not supported there"),
                            (("--ooo", "on"), "--ooo on: QPs of XRC are made in order"),
                            (("--path", "staged", "--buffer", "cuda-host"), "--transport xrc")):
            result = run("send_bw", *LOCAL, "--transport", "xrc", *words)
            self.assertIn(result.code, (2, 3), str(result))
            if "staged" not in words:
                self.assertIn(text, result.err)
        result = run("send_bw", *LOCAL, "-c", "UD", "-n", "100", "-u", "10")
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("note: -u changes nothing: over UC and UD nothing is acknowledged", result.err)


if __name__ == "__main__":
    main()
