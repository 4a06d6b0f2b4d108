#!/usr/bin/env python3
"""--rate and --burst of bandwidth tests: what was asked for, what leaves, what cannot be."""

import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, Server, main, rates, run, softnic_works

LOCAL = ("--local", "--softnic")


def record_of(result):
    ((one,),) = json.loads(result.out)["relations"]["HOST"].values()
    return one


class Measured(CliTest):
    def measured(self, *words, env=None):
        result = run(*words, "--json", "-", env=env)
        self.assertEqual(result.code, 0, str(result))
        return record_of(result)


@unittest.skipIf(softnic_works(), "no software device")
class Rate(Measured):
    def test_a_device_that_cannot(self):
        rate = ("-s", "4K", "--rate", "80Mb/s", "-n", "100")
        for words, code, text in ((("write_bw", *rate, "--rate-limiter", "hw"), 3,
                                   "--rate-limiter hw: soft0: it has no packet pacing"),
                                  (("write_bw", *rate, "--rate-limiter", "hw", "-d", "soft1", "--peer-dev", "soft0",
                                    "-b"), 3, "--rate-limiter hw: soft0: it has no"),
                                  (("read_bw", *rate, "--rate-limiter", "hw"), 2,
                                   "--rate-limiter hw: the data of read_bw comes in answers"),
                                  (("write_bw", "--rate-limiter", "hw"), 2, "--rate-limiter: there is no rate"),
                                  (("write_lat", "--rate-limiter", "hw"), 2,
                                   "--rate-limiter: write_lat has one message in flight")):
            self.expect_error(run(*words, *LOCAL, env={"SOFTNIC": "soft0;soft1:pacing=on"}), code, text)
        for words, text in ((("write_bw",), "soft0: it has no packet pacing"),
                            (("read_bw",), "soft0: the data of reads and atomics comes in answers")):
            one = self.measured(*words, *LOCAL, *rate, "--rate-limiter", "auto")
            self.assertIn("--rate-limiter auto: the sender keeps the rate, not the device: " + text,
                          " ".join(one["warnings"]))
            self.assertNotIn("rate_limit_gbps", one["client"])

    def test_a_number_of_messages_takes_its_time(self):
        one = self.measured("write_bw", *LOCAL, "-s", "64", "--rate", "1000", "-n", "300")
        self.assertEqual(one["iterations"], 300)
        self.assertGreater(one["duration_s"], 0.298)
        one = self.measured("send_bw", *LOCAL, "-s", "64", "--rate", "1000", "-n", "300", "--burst", "100")
        self.assertGreater(one["duration_s"], 0.199)

    def test_each_direction_is_told_apart(self):
        links = {"SOFTNIC": "soft0:rate=50MB/s;soft1:rate=25MB/s"}
        for words in (("-D", "600ms"), ("-n", "30")):
            one = self.measured("write_bw", *LOCAL, "-d", "soft0", "--peer-dev", "soft1", "-s", "64K", "-b", *words,
                                env=links)
            sent, back = one["client"]["sent_gbps"], one["server"]["sent_gbps"]
            self.assertGreater(sent, 0)
            self.assertLess(sent, 0.4 * 1.02)
            self.assertGreater(back, 0)
            self.assertLess(back, 0.2 * 1.02)
        result = run("write_bw", *LOCAL, "-s", "64K", "-b", "-n", "100")
        self.assertRegex(result.out, r"client sent [\d.]+, server sent [\d.]+ GB/s")
        self.assertNotIn("sent_gbps", self.measured("write_bw", *LOCAL, "-n", "100")["client"])

    def test_a_rate_beyond_the_link_is_told(self):
        one = self.measured("write_bw", *LOCAL, "-s", "64K", "--rate", "8Gb/s", "-D", "400ms",
                            env={"SOFTNIC": "soft0:rate=4Gb/s;soft1:rate=4Gb/s"})
        self.assertIn("messages per second were due", " ".join(one["warnings"]))
        self.assertLess(one["bw"]["median_gbps"], 4.04)

    def test_perftests_words(self):
        for words, name, value in ((("--rate_limit", "0.1"), "rate_bytes_per_s", 1e8 / 8),
                                   (("--rate_limit", "5000", "--rate_units", "p"), "rate_per_s", 5000),
                                   (("--rate_units=M", "--rate_limit=1"), "rate_bytes_per_s", 1 << 20)):
            one = self.measured("write_bw", *LOCAL, "-s", "64", *words, "--burst_size", "4", "-n", "500")
            self.assertEqual((one[name], one["burst"]), (value, 4))

    def test_what_cannot_be(self):
        for words, text in ((("--rate", "0"), "--rate 0: a rate is from 1 to 1000000000 messages per second"),
                            (("--rate", "10Gbit"), "--rate '10Gbit': no rate"),
                            (("--rate", "1Mb/s", "-s", "8M"),
                             "--rate: with messages of 8 MiB that is 0.0149 per second"),
                            (("--burst", "4"), "--burst 4: without a rate messages leave as they complete"),
                            (("--rate", "1000", "--burst", "2000"), "--burst 2000: one is due every 2 s"),
                            (("--rate", "100000", "--burst", "64", "-t", "16"),
                             "--burst 64: -t 16 has 16 messages in flight"),
                            (("--rate", "100000", "--burst", "6", "-l", "4"), "--burst 6: -l 4 posts as many together"),
                            (("--rate", "1000", "-e"), "--rate: a sender that sleeps (-e) misses what is due"),
                            (("--rate", "1000", "--verify"), "--rate: verified messages are sent in rounds")):
            result = run("send_bw", *LOCAL, *words)
            self.assertEqual(result.code, 2, str(result))
            self.assertIn(text, result.err)
        result = run("send_lat", *LOCAL, "--rate", "1000", "--burst", "4")
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("--burst 4: send_lat has one message in flight", result.err)


@unittest.skipIf(softnic_works(), "no software device")
@rates
class Asked(Measured):
    """Held against a clock: a sender that loses its CPU in the beginning catches up in what is measured."""

    def as_asked(self, one, per_second):
        """A machine that is too busy for the rate says so. One that was held up catches up in what remains."""
        reached = one["bw"]["mean_gbps"] * 1e9 / 8 / one["size_bytes"] / per_second
        self.assertLess(reached, 1.1, one["warnings"])
        if reached < 0.995:
            self.assertIn("messages per second were due", " ".join(one["warnings"]))

    def test_messages_per_second(self):
        for words in (("write_bw",), ("send_bw",), ("read_bw",), ("send_bw", "--transport", "ud"),
                      ("write_bw", "-q", "3"),
                      ("write_bw", "--burst", "16"), ("write_bw", "-l", "4", "--burst", "8"),
                      ("write_bw", "-q", "4", "--burst", "64")):
            one = self.measured(*words, *LOCAL, "-s", "64", "--rate", "20000", "-D", "300ms")
            self.assertEqual(one["rate_per_s"], 20000)
            self.as_asked(one, 20000)

    def test_payload_per_second(self):
        for text, rate in (("0.8Gb/s", 1e8), ("800Mb/s", 1e8), ("0.1GB/s", 1e8), ("100MB/s", 1e8)):
            one = self.measured("write_bw", *LOCAL, "-s", "4K", "--rate", text, "-D", "200ms")
            self.assertEqual(one["rate_bytes_per_s"], rate)
            self.as_asked(one, rate / 4096)
        self.assertEqual(self.measured("write_lat", *LOCAL, "-s", "8", "--rate", "800Mb/s", "-n",
                                       "100")["rate_bytes_per_s"], 1e8)

    def test_both_ends_keep_it(self):
        with Server() as server:
            one = self.measured("write_bw", "127.0.0.1", "-p", str(server.port), "--softnic", "-s", "64", "--rate",
                                "10000", "-D", "400ms", "-b")
        self.as_asked(one, 20000)


@unittest.skipIf(softnic_works(), "no software device")
@rates
class Paced(Measured):
    """Held against a clock."""

    def test_the_device_keeps_it(self):
        paced = {"SOFTNIC": "soft0:pacing=on;soft1"}
        for words, ends in ((("write_bw",), ("client",)), (("send_bw", "--transport", "uc"), ("client",)),
                            (("write_bw", "-q", "3", "-R"), ("client",)),
                            (("write_bw", "-b"), ("client", "server")), (("send_bw", "--reverse"), ("server",)),
                            (("write_bw", "--burst", "16"), ("client",)),
                            (("write_bw", "--threads", "2", "--rate-limiter", "auto"), ("client",))):
            one = self.measured(*words, *LOCAL, "-s", "4K", "--rate", "80Mb/s",
                                *(() if "auto" in words else ("--rate-limiter", "hw")), "-D", "300ms", env=paced)
            self.assertEqual(one["rate_limiter"], "auto" if "auto" in words else "hw")
            self.assertEqual([end for end in ("client", "server") if "rate_limit_gbps" in one[end]], list(ends), words)
            for end in ends:
                self.assertAlmostEqual(one[end]["rate_limit_gbps"], 0.08, delta=2e-6)
            # A burst more than the rate may leave in the time.
            self.assertLess(one["bw"]["mean_gbps"], 0.08 * len(ends) * 1.02 + (0.01 if "--burst" in words else 0),
                            words)
            # What a sender that gets no CPU misses, the device does not make up for.
            self.assertGreater(one["bw"]["mean_gbps"], 0.04, words)
        result = run("write_bw", *LOCAL, "-s", "4096", "--rate_limit", "0.08", "--rate_limit_type", "HW", "-n", "500",
                     "--json", "-", env=paced)
        self.assertLess(record_of(result)["bw"]["mean_gbps"], 0.08 * 1.05)


if __name__ == "__main__":
    main()
