#!/usr/bin/env python3
"""--samples: latencies as an HdrHistogram log, which a decoder of that format reads; batches as CSV."""

import base64
import csv
import json
import platform
import struct
import sys
import unittest
import zlib

sys.path.insert(0, sys.path[0] + "/..")
from support import EMULATED, CliTest, main, run, softnic_works

# What the clock goes on by at most: 10 ns on x86, 40 ns where an Arm counter has 25 MHz.
CLOCK_STEP_NS = 1000 if EMULATED else 40 if platform.machine() == "aarch64" else 10
LOCAL = ("--local", "--softnic")
HEADING = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


class Histogram:
    """Encoding V2 of HdrHistogram, as hdrhistogram.github.io and the sources of its libraries have it."""

    def __init__(self, text):
        packed = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack(">II", packed[:8])
        assert cookie & ~0xf0 == 0x1c849304 and length == len(packed) - 8, (hex(cookie), length)
        plain = zlib.decompress(packed[8:])
        cookie, length, offset, self.digits, self.lowest, self.highest, ratio = struct.unpack(">IIIIqqd", plain[:40])
        assert cookie & ~0xf0 == 0x1c849303 and length == len(plain) - 40 and (offset, ratio) == (0, 1.0)
        self.counts = []
        at = 40
        while at < len(plain):
            count, at = self.zigzag(plain, at)
            self.counts += [0] * -count if count < 0 else [count]

    @staticmethod
    def zigzag(data, at):
        value = shift = 0
        for place in range(9):
            byte = data[at]
            at += 1
            value |= (byte if place == 8 else byte & 0x7f) << shift
            shift += 7
            if place < 8 and byte < 0x80:
                break
        return (value >> 1) ^ -(value & 1), at

    def value_at(self, index):
        """The lowest and the highest value that are counted at `index`."""
        half = 1 << (self.sub_bits() - 1)
        bucket, within = (index // half - 1, index % half + half) if index >= 2 * half else (0, index)
        return within << bucket, (within << bucket) + (1 << bucket) - 1

    def sub_bits(self):
        return (2 * 10 ** self.digits - 1).bit_length()

    def counted(self):
        for index, count in enumerate(self.counts):
            if count:
                yield (*self.value_at(index), count)


def lines_of(text):
    """(tag, start, length, max in ms, histogram) of a log, its comments."""
    comments, rows = [], []
    for line in text.splitlines():
        if line.startswith("#"):
            comments.append(line)
        elif line != HEADING:
            tag, start, length, most, payload = line.split(",")
            rows.append((tag.removeprefix("Tag="), float(start), float(length), float(most), Histogram(payload)))
    return comments, rows


def percentile(rows, percent):
    """By nearest rank, over all rows: (lowest, highest) that it can be."""
    counted = sorted(bucket for row in rows for bucket in row[4].counted())
    total = sum(count for *_, count in counted)
    rank = max(1, -(-total * percent // 100))
    for low, high, count in counted:
        rank -= count
        if rank <= 0:
            return low, high
    raise AssertionError("empty")


@unittest.skipIf(softnic_works(), "no software device")
class Samples(CliTest):
    def measured(self, *words):
        """Records by message size, and the text of the samples."""
        folder = self.scratch()
        result = run(*words, *LOCAL, "--samples", folder + "/samples", "--json", folder + "/run.json")
        self.expect_ok(result)
        with open(folder + "/run.json", encoding="utf-8") as file:
            runs = {one["size_bytes"]: one for one in self.runs_of(json.load(file))}
        with open(folder + "/samples", encoding="utf-8") as file:
            return runs, file.read()

    def check_log(self, one, rows):
        latency = one["latency"]
        self.assertEqual(sum(count for row in rows for *_, count in row[4].counted()), latency["samples"])
        self.assertEqual({(row[4].digits, row[4].lowest) for row in rows}, {(3, 1)})
        for name, percent in (("p50_ns", 50), ("p90_ns", 90), ("p99_ns", 99), ("max_ns", 100), ("min_ns", 0)):
            low, high = percentile(rows, percent)
            # Half a nanosecond of rounding and the log's three digits; the record has the middles of its own buckets,
            # and percentiles within half a step of the clock.
            half_step = CLOCK_STEP_NS / 2 * (0.5 if latency["halved"] else 1)
            slack = 1 + 0.005 * latency[name] + (0 if percent in (0, 100) else half_step)
            self.assertGreaterEqual(latency[name], low - slack, (name, latency))
            self.assertLessEqual(latency[name], high + slack, (name, latency))
        for _, start, length, most, histogram in rows:
            low, high, _ = list(histogram.counted())[-1]
            self.assertAlmostEqual(most * 1e6, (low + high) / 2, delta=1 + (high - low))
            self.assertGreaterEqual(start, 0)
            self.assertGreater(length, 0)

    def test_latencies(self):
        for words in (("write_lat", "-s", "8", "-n", "1000"), ("send_lat", "-s", "64", "-D", "500ms"),
                      ("read_lat", "-s", "4K", "--rate", "5000", "-D", "300ms"),
                      ("send_lat", "-n", "3")):
            runs, text = self.measured(*words)
            comments, rows = lines_of(text)
            self.assertIn("#[Histogram log format version 1.3]", comments)
            self.assertTrue(any(line.startswith("#[StartTime: ") for line in comments))
            ((size, one),) = runs.items()
            self.assertEqual({row[0] for row in rows}, {f"{words[0]}_{size}"})
            self.check_log(one, rows)
            for before, after in zip(rows, rows[1:]):
                self.assertGreaterEqual(after[1], before[1])

    def test_sizes_have_tags(self):
        runs, text = self.measured("write_lat", "-s", "8,64", "-n", "500")
        _, rows = lines_of(text)
        for size, one in runs.items():
            self.check_log(one, [row for row in rows if row[0] == f"write_lat_{size}"])

    def test_batches(self):
        runs, text = self.measured("write_bw", "-s", "4K,64K", "-n", "5000")
        rows = list(csv.DictReader(text.splitlines()))
        for size, one in runs.items():
            own = [row for row in rows if int(row["size_bytes"]) == size]
            self.assertLessEqual(sum(int(row["messages"]) for row in own), one["iterations"])
            for row in own:
                self.assertEqual(row["op"], "write_bw")
                rate = int(row["messages"]) * size * 8e-9 / float(row["duration_s"])
                self.assertAlmostEqual(float(row["gbps"]), rate, delta=0.01 * rate)

    def test_on_standard_output(self):
        result = run("write_lat", *LOCAL, "-s", "8,64", "-n", "200", "--samples", "-")
        self.expect_ok(result)
        comments, rows = lines_of(result.out)
        self.assertEqual(sum(line.startswith("#[StartTime: ") for line in comments), 1)
        self.assertEqual({row[0] for row in rows}, {"write_lat_8", "write_lat_64"})

    def test_what_cannot_be(self):
        self.expect_error(run("write_lat", *LOCAL, "-n", "10", "--samples", "/nowhere/file"), 3,
                          "--samples /nowhere/file")
        self.expect_error(run("write_lat", *LOCAL, "-n", "10", "--samples", "-", "--json", "-"), 2,
                          "--json - and --samples -")


if __name__ == "__main__":
    main()
