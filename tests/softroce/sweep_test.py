#!/usr/bin/env python3
"""A sweep in one process over the kernel's verbs, and Debian's perftest beside ours in the
same boot: the machine is slow, but for both alike."""

import json
import re
import sys
import unittest

import guest

OPS = ["write_bw", "write_lat", "read_bw", "read_lat", "send_bw", "send_lat"]
ADDRESS = guest.RXE_ADDRESS
ROUNDS = 3


def perftest(tool, arguments):
    """Server and client of one perftest tool; the client's output alone."""
    return (f"{tool} {arguments} >/dev/null 2>&1 & n=0; "
            f"until {tool} {arguments} 127.0.0.1 2>last_error; do "
            "n=$((n + 1)); [ $n -lt 20 ] || { cat last_error >&2; exit 1; }; sleep 0.5; done; wait")


BW = "-d rxe0 -x 1 -s 64K -n 400 -t 64"
LAT = "-d rxe0 -x 1 -s 8 -n 1000"
CASES = {
    "sweep": '"$gdrperf" sweep --local -d rxe0 --sizes 2,4K,64K -n 200 --json -',
    "perftest_there": "command -v ib_write_bw ib_write_lat",
    "doctor": '"$gdrperf" doctor --json',
}
for i in range(ROUNDS):
    # In turn, so that a busy moment of the host does not fall on one of them alone.
    CASES |= {
        f"their_bw{i}": perftest("ib_write_bw", f"-F {BW.replace('64K', '65536')} -Q 1"),
        f"our_bw{i}": f'"$gdrperf" write_bw --local {BW} -Q 1 --json -',
        f"their_lat{i}": perftest("ib_write_lat", f"-F {LAT} -I 0"),
        f"our_lat{i}": f'"$gdrperf" write_lat --local {LAT} -I 0 --json -',
    }


def median(values):
    return sorted(values)[len(values) // 2]


class Sweep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = guest.run_cases(CASES)

    def document(self, name):
        result = self.results[name]
        # 200 messages may be too short for a single stable run.
        self.assertIn(result.status, (0, 4) if name == "sweep" else (0,), f"{name}: {result}")
        return guest.checked_document(result.stdout)

    def test_sweep_holds_every_test_and_size(self):
        relations = self.document("sweep")["relations"]
        self.assertEqual(list(relations), ["HOST"])
        self.assertEqual(sorted(relations["HOST"]), sorted(OPS))
        for op, records in relations["HOST"].items():
            with self.subTest(op):
                self.assertEqual([record["size_bytes"] for record in records], [2, 4096, 65536])
                self.assertEqual({record["device_kind"] for record in records}, {"rxe"})

    def test_the_doctor_finds_nothing_in_the_way_of_rdma(self):
        result = self.results["doctor"]
        self.assertEqual(result.status, 0, result)
        checks = {check["check"]: check for check in json.loads(result.stdout)["checks"]}
        self.assertIn("rxe0 (rdma_rxe)", checks["rdma-device"]["found"])
        for name in ("rdma-device", "device-file", "provider", "port-state", "gid"):
            self.assertEqual(checks[name]["verdict"], "OK", checks[name])
        self.assertEqual(checks["nic-link"]["verdict"], "SKIP")

    def their_figures(self, kind, column):
        figures = []
        for i in range(ROUNDS):
            result = self.results[f"their_{kind}{i}"]
            self.assertEqual(result.status, 0, result)
            # The line of figures starts with the message size alone.
            line = re.search(r"^ *\d+ +\d+ +[\d.].*$", result.stdout, re.M)
            self.assertIsNotNone(line, result)
            figures.append(float(line.group(0).split()[column]))
        return figures

    def our_figures(self, kind, op, figure):
        return [figure(self.document(f"our_{kind}{i}")["relations"]["HOST"][op][0])
                for i in range(ROUNDS)]

    def beside_perftest(self, what, unit, theirs, ours):
        """Prints both; scripts/test shows such lines. Soft-RoCE in emulation is far too noisy for more than a sanity
        bound, and for none where the machine stood still in some of the rounds."""
        print()  # unittest's own line is not ended yet
        for name, figures in (("perftest", theirs), ("gdrperf", ours)):
            listed = ", ".join(f"{it:.4g}" for it in figures)
            print(f"figure: {what}: {name:9} {median(figures):8.4g} {unit}  ({listed})")
        ratio = median(ours) / median(theirs)
        print(f"figure: {what}: ratio     {ratio:8.3f} (gdrperf / perftest)")
        for name, figures in (("perftest", theirs), ("gdrperf", ours)):
            if max(figures) > 5 * min(figures):
                self.skipTest(f"the rounds of {name} are too far apart to judge {what}: the emulated machine was held "
                              f"up")
        self.assertTrue(0.2 < ratio < 5, f"{what}: {ratio}")

    def need_perftest(self):
        if self.results["perftest_there"].status != 0:
            self.skipTest("Debian's perftest is not installed: scripts/install-deps test")

    def test_write_bw_beside_ib_write_bw(self):
        self.need_perftest()
        # Column 3 is the average in MiB/s (perftest's MB is 2^20 bytes).
        theirs = [it * 2**20 / 1e6 for it in self.their_figures("bw", 3)]
        # Ours are Gb/s, 1e9 bits.
        ours = [it * 1e3 / 8 for it in self.our_figures(
            "bw", "write_bw", lambda record: record["bw"]["median_gbps"])]
        self.beside_perftest("64 KiB write bandwidth", "MB/s", theirs, ours)

    def test_write_lat_beside_ib_write_lat(self):
        self.need_perftest()
        # Column 4 is t_typical, the median, in us; both report half the round trip.
        theirs = self.their_figures("lat", 4)
        ours = [it / 1e3 for it in self.our_figures(
            "lat", "write_lat", lambda record: record["latency"]["p50_ns"])]
        # Half a time slice: both ends of perftest spin, and took turns at one CPU.
        if median(theirs) > 1000:
            self.skipTest(f"perftest says {median(theirs):.4g} us: it waited for a CPU, not for Soft-RoCE")
        self.beside_perftest("8 B write latency", "us", theirs, ours)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=guest.UNITTEST_ARGV, verbosity=2))
