#!/usr/bin/env python3
"""What is sent, and where it lies: blocks, places, distances, signals behind messages, pauses; latency of many QPs."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, Server, cases, main, rates, run, softnic_works

LOCAL = ("--local", "--softnic")


class Words(CliTest):
    def refused(self, *words, texts):
        self.expect_error(run(*words, *LOCAL, "--dry-run"), 2, *texts)

    def test_what_a_signal_does_not_go_with(self):
        for words, text in ((("write_bw",), "--signal: write_lat alone waits for one"),
                            (("send_lat",), "--signal: write_lat alone waits for one"),
                            (("write_lat", "-q", "2"), "--signal and -q 2"),
                            (("write_lat", "--verify"), "--signal and --seed"),
                            (("write_lat", "--null-mr"), "--signal and --null-mr")):
            self.refused(*words, "--signal", "write", texts=[text])
        self.refused("write_lat", "--transport", "uc", "--signal", "atomic",
                     texts=["--signal atomic: there are none over UC"])
        self.refused("write_lat", "--signal", "flag", texts=["--signal 'flag': give none, write, imm or atomic"])

    def test_what_a_pause_and_several_qps_do_not_go_with(self):
        self.refused("write_bw", "--latency-gap", "1us", texts=["write_bw is no latency test"])
        self.refused("write_lat", "--latency-gap", "1us", "--rate", "10", texts=["--latency-gap and --rate"])
        self.refused("write_lat", "--latency-gap", "1h", texts=["--latency-gap", "a pause lasts"])
        self.refused("write_lat", "-q", "2", "--verify", texts=["-q 2 and --seed"])

    def test_blocks_that_cannot_be(self):
        for text, why in (("4Kx0", "--blocks"), ("4Kx5000", "--blocks"), ("4Kx", "--blocks"), ("0x3", "--blocks"),
                          ("4Kx4096,1", "4097 blocks; a list has 4096 at most"),
                          ("2Gx1", "a block has from 1 byte to 1 GiB"), ("1xx1", "--blocks")):
            self.refused("write_bw", "--blocks", text, texts=[why])
        self.refused("write_bw", "--blocks", "4Kx3", "-s", "1K", texts=["--blocks"])
        self.refused("write_bw", "--blocks", "4Kx3", "-l", "3", texts=["--blocks"])
        self.refused("write_bw", "--blocks", "4Kx3,1Kx1", "-n", "6",
                     texts=["-n 6: each QP sends whole lists of 4 blocks", "multiple of 4"])
        for words in (("--verify",), ("--sge", "2"), ("--transport", "ud")):
            self.refused("send_bw", "--blocks", "64x3,128x1", *words, texts=["--blocks and "])
        self.refused("atomic_bw", "--blocks", "4x1,12x1", texts=["--blocks: an atomic has 8 bytes"])

    def test_a_file_of_blocks_is_read_with_its_lines(self):
        folder = pathlib.Path(self.scratch())
        for content, text in (("4K 3\nx 1\n", "blocks.txt:2"), ("4K 3 1\n", "blocks.txt:1: a line is SIZE COUNT"),
                              ("# none\n", "there are no blocks in it"),
                              ("4K -1\n", "blocks.txt:1"), ("\x00\n", "blocks.txt:1")):
            file = folder / "blocks.txt"
            file.write_text(content, encoding="utf-8")
            self.refused("write_bw", "--blocks", file, texts=[text])
        self.expect_error(run("write_bw", *LOCAL, "--dry-run", "--blocks", folder / "none"), 2, "none")
        self.expect_error(run("write_bw", *LOCAL, "--dry-run", "--blocks", "/dev/zero"), 2, "/dev/zero")

    def test_a_distance_holds_a_message(self):
        self.refused("write_bw", "-s", "4K", "--stride", "1K",
                     texts=["--stride 1 KiB: is a multiple of 64 bytes, and at least a message of 4 KiB"])
        self.refused("write_bw", "-s", "64", "--stride", "100", texts=["--stride 100"])
        self.refused("write_bw", "--random-places", "--verify", texts=["--random-places and --seed"])


@unittest.skipIf(softnic_works(), "no software device")
class Runs(CliTest):
    def record(self, *words, env=None):
        result = run(*words, *LOCAL, "--json", "-", env=env)
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        return self.runs_of(document)[0]

    def test_a_signal_comes_behind_its_message(self):
        every = [(how, transport, size) for how in ("write", "imm", "atomic") for transport in ("rc", "xrc", "uc")
                 for size in ("1", "8", "5000", "256K")
                 if (how, transport) != ("atomic", "uc")]
        for how, transport, size in cases(every[::5], every):
            record = self.record("write_lat", "--signal", how, "--transport", transport, "-s", size, "-n", "300")
            self.assertEqual((record["signal"], record["latency"]["samples"]), (how, 300))

    def test_a_signal_that_comes_first_is_found(self):
        # Every 50th write leaves the memory as it was; its signal, an atomic, comes through.
        result = run("write_lat", *LOCAL, "--signal", "atomic", "-s", "4K", "-n", "300",
                     env={"SOFTNIC": "soft0:fault=stale:op=write:every=50"})
        self.expect_error(result, 5, "before the message was there")

    def test_a_pause_is_kept_and_not_counted(self):
        with_pause = self.record("read_lat", "--latency-gap", "2ms", "-n", "50")
        self.assertEqual(with_pause["latency_gap"], 2_000_000)
        self.assertGreater(with_pause["duration_s"], 0.098)
        self.assertLess(with_pause["latency"]["p50_ns"], 2e6)

    def test_round_trips_take_qps_in_turn(self):
        for test in cases(["write_lat", "send_lat"],
                          ["write_lat", "send_lat", "read_lat", "write_imm_lat", "atomic_lat"]):
            for qps in ("2", "17", "256"):
                record = self.record(test, "-q", qps, "-n", "1000")
                self.assertEqual((record["qps"], record["latency"]["samples"]), (int(qps), 1000))
        # The bytes of 256 rounds are those of the round before, on one QP alone.
        self.assertEqual(self.record("write_lat", "-q", "3", "-n", "2000", "-s", "1")["latency"]["samples"], 2000)

    def test_a_list_of_qps_is_a_run_with_each(self):
        result = run("write_lat", *LOCAL, "-q", "1:16:x4", "-n", "200", "--json", "-")
        self.expect_ok(result)
        self.assertEqual([each["qps"] for each in self.runs_of(json.loads(result.out))], [1, 4, 16])

    def test_blocks_are_lists_of_messages(self):
        record = self.record("write_bw", "--blocks", "8Kx32", "--stride", "64K", "--random-places", "-n", "640")
        self.assertEqual((record["size_bytes"], record["post_list"], record["tx_depth"], record["iterations"]),
                         (8192, 32, 64, 640))
        self.assertEqual((record["stride"], record["random_places"]), (65536, True))

    def test_sizes_may_be_mixed(self):
        # 3 * 100 + 1 * 4000 are 4300 in 4 messages: 1075 each.
        for test in ("write_bw", "send_bw", "read_bw", "write_imm_bw"):
            record = self.record(test, "--blocks", "100x3,4000x1", "-n", "400", "-q", "2")
            self.assertEqual((record["size_bytes"], record["blocks"], record["iterations"]),
                             (1075, "100x3,4000x1", 400))
        # 301 bytes in 4 messages: the largest becomes 3 longer.
        self.assertEqual(self.record("write_bw", "--blocks", "67x3,100x1", "-n", "40", "-b")["blocks"], "67x3,103x1")
        folder = pathlib.Path(self.scratch())
        (folder / "sizes.txt").write_text("# what a trace had\n64 30\n4K\t15\n\n1M 1 # few\n", encoding="utf-8")
        record = self.record("write_bw", "--blocks", folder / "sizes.txt", "-n", "460")
        self.assertEqual(record["post_list"], 46)
        self.assertEqual(record["size_bytes"] * 46 % 46, 0)

    def test_a_mix_has_the_rate_of_its_link(self):
        record = self.record("write_bw", "--blocks", "1Kx50,64Kx10", "-D", "300ms",
                             env={"SOFTNIC": "soft0:rate=500MB/s,latency=2us"})
        self.assertLessEqual(record["bw"]["max_gbps"], 4.0 * 1.001)

    def test_memory_may_be_a_mapped_file(self):
        folder = pathlib.Path(self.scratch())
        file = folder / "memory"
        file.write_bytes(b"x" * (1 << 20))
        for words in (("write_bw", "-s", "4K"), ("send_lat", "-s", "64"), ("read_bw", "-s", "1K")):
            self.assertEqual(self.record(*words, "--buffer", f"file:{file}", "--verify", "-n",
                                         "64")["client"]["buffer"], f"file:{file}")
        result = run("ib_write_bw", *LOCAL, "--mmap", file, "--mmap-offset", "4096", "-s", "64", "-n", "10")
        self.expect_ok(result)
        self.assertEqual(file.read_bytes()[-4096:], b"x" * 4096, "memory beyond the run's")
        small = folder / "small"
        small.write_bytes(b"x" * 100)
        for kind, code, text in ((f"file:{small}", 2, "this run needs 4 KiB from byte 0 on"),
                                 (f"file:{file}@100", 3, "a multiple of the page size"),
                                 (f"file:{file}@1048576", 2, "from byte 1048576 on"), ("file:", 2, "names no file"),
                                 (f"file:{folder}", 2, "file:"),
                                 (f"file:{folder}/none", 3, "No such file"),
                                 (f"file:{file}@99999999999999999999", 2, "there is no such offset")):
            result = run("write_bw", *LOCAL, "--buffer", kind, "-s", "64", "-n", "10", "--footprint", "64")
            self.assertIn(result.code, (2, 3), str(result))
            self.assertIn(text, result.err)
        self.assertEqual(small.read_bytes(), b"x" * 100)

    def test_a_client_opens_no_file_at_its_server(self):
        file = pathlib.Path(self.scratch()) / "memory"
        file.write_bytes(b"x" * 65536)
        with Server() as server:
            result = run("write_bw", "127.0.0.1", "-p", server.port, "--softnic", "--peer-buffer", f"file:{file}",
                         "-s", "64", "-n", "10")
            self.expect_error(result, 2, "a server maps no file that its client names")
        self.assertEqual(file.read_bytes(), b"x" * 65536)

    def test_messages_carry_what_a_file_says(self):
        folder = pathlib.Path(self.scratch())
        memory, payload = folder / "memory", folder / "payload.txt"
        memory.write_bytes(bytes(1 << 20))
        payload.write_text("0x04030201, 0xddccbbaa\n", encoding="utf-8")
        self.expect_ok(run("write_bw", *LOCAL, "--buffer", f"file:{memory}", "--payload", payload, "-s", "64", "-n",
                           "10", "-t", "4"))
        once = bytes([1, 2, 3, 4, 0xaa, 0xbb, 0xcc, 0xdd])
        self.assertEqual(memory.read_bytes()[:256], once * 32)
        self.expect_ok(run("ib_send_lat", *LOCAL, "--payload_file_path", payload, "-s", "64", "-n", "10"))
        for content, text in (("", "there are no words in it"), ("0x1,2", "word 2, '2', is not 32 bits"),
                              ("0x123456789", "word 1"), ("0x", "word 1"), ("0x1\x00", "word 1")):
            payload.write_text(content, encoding="utf-8")
            self.expect_error(run("write_bw", *LOCAL, "--payload", payload, "-n", "10"), 2, "--payload", text)
        payload.write_text("0x1", encoding="utf-8")
        for words, text in ((("read_bw",), "the server's memory is what is sent"),
                            (("write_bw", "--verify"), "verified messages carry a pattern"),
                            (("write_bw", "--reverse"), "the server's memory is what is sent")):
            self.expect_error(run(*words, *LOCAL, "--payload", payload, "-n", "10"), 2, text)


@unittest.skipIf(softnic_works(), "no software device")
@rates
class Rates(CliTest):
    """Held against the model of a link, whatever the program is taken to need between a message and its answer."""

    def test_latency_over_several_qps_is_the_links(self):
        for react in ("500ns", "100us"):
            link = f"rate=20MB/s,latency=20us,react={react}"
            for words, one_way in ((("write_lat", "-q", "2"), 1), (("send_lat", "-q", "2"), 1),
                                   (("read_lat", "-q", "2"), 2), (("write_lat", "-q", "16"), 1),
                                   (("write_lat", "--signal", "write"), 1), (("write_lat", "--signal", "imm"), 1),
                                   (("write_lat", "--signal", "atomic"), 1)):
                result = run(*words, *LOCAL, "-d", "soft0", "--peer-dev", "soft1", "-s", "8", "-D", "300ms", "--json",
                             "-", env={"SOFTNIC": f"soft0:{link};soft1:{link}"})
                self.expect_ok(result)
                (record,) = self.runs_of(json.loads(result.out))
                latency = record["latency"]
                # An answer within `react` counts as one at the arrival: a round whose beginning was seen late is
                # measured short, the one before as much too long. A large `react` makes that usual; in the mean it
                # cancels.
                shortest = min(latency["batches_p50_ns"])
                bound = latency["mean_ns"] if react == "100us" else shortest
                self.assertGreater(bound, 20_000 * one_way, (words, react))
                # Other programs hold up some batches of milliseconds; the link's is every one of them, or none.
                self.assertLess(shortest, 24_000 * one_way, (words, react, latency))

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "both ends share the only CPU")
    def test_work_on_every_cpu_is_told_of(self):
        link = "rate=100MB/s,latency=20us,react=0us"
        cpus = sorted(os.sched_getaffinity(0))[:2]
        here = {"preexec_fn": lambda: os.sched_setaffinity(0, cpus)}
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"], **here) for _ in range(2 * len(cpus))]
        try:
            for words in (("write_lat", "-q", "1"), ("write_lat", "-q", "16"), ("send_lat", "-q", "2")):
                result = run(*words, *LOCAL, "-d", "soft0", "--peer-dev", "soft1", "-s", "8", "-D", "500ms", "--json",
                             "-", env={"SOFTNIC": f"soft0:{link};soft1:{link}"}, **here)
                self.expect_ok(result)
                (record,) = self.runs_of(json.loads(result.out))
                self.assertIn("another program was using this CPU", " ".join(record["warnings"]), words)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()


if __name__ == "__main__":
    main()
