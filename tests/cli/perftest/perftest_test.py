#!/usr/bin/env python3
"""Options of perftest: each is the same, mapped, ignored or refused as perftest-options.md says; its columns.

usage: perftest_test.py GDRPERF SCHEMA. UPDATE_GOLDEN=1 writes the table of docs/reference/perftest-options.md anew.
PERFTEST_HELP: a folder of captured help (ib_write_bw.txt, ...) of another version to walk as well.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from support import BINARY, CliTest, run

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/reference/perftest-options.md"
PROGRAMS = [f"ib_{verb}_{metric}" for verb in ("write", "send", "read", "atomic") for metric in ("bw", "lat")]
HEAD = "| option | here | what to know |\n| :--- | :--- | :--- |\n"

FILES = tempfile.TemporaryDirectory(prefix="gdrperf-cli-")
PAYLOAD, MAPPED = (str(pathlib.Path(FILES.name) / name) for name in ("payload.txt", "mapped"))
pathlib.Path(PAYLOAD).write_text("0x01020304,0xdeadbeef\n", encoding="utf-8")
pathlib.Path(MAPPED).write_bytes(bytes(1 << 20))
# Values that options take, and the test that knows them; else 1 and write_bw.
VALUES = {"--tph_mem": "vm", "--rate_limit_type": "SW", "--rate_units": "p", "-A": "FETCH_AND_ADD",
          "--atomic_type": "CMP_AND_SWAP", "-c": "RC", "--connection": "RC", "-d": "soft0", "--ib-dev": "soft0",
          "-m": "1024", "--mtu": "1024", "--use_cuda_bus_id": "0000:17:00.0", "--out_json_file": "out.json",
          "--pin_cores": "0", "--payload_file_path": PAYLOAD, "--mmap": MAPPED, "-M": "239.1.2.3",
          "--MGID": "239.1.2.3",
          "--output": "perftest", "--source_ip": "127.0.0.1", "--bind_source_ip": "127.0.0.1"}
TESTS = {"--use-srq": "send_bw", "-A": "atomic_bw", "--atomic_type": "atomic_bw", "-e": "read_bw", "-r": "send_bw",
         "--send_with_imm": "send_bw",
         "-g": "send_bw", "--mcg": "send_bw", "-M": "send_bw", "--MGID": "send_bw", "--latency_gap": "write_lat"}
LOCAL = ["--local", "--softnic"]


def table():
    """(flags, value, fate, text) of each row of what `gdrperf ib_write_bw --help` lists."""
    text = run("ib_write_bw", "--help").out
    rows = []
    for head, body in re.findall(r"(?m)^  (-.*(?:\n  -.*)*)\n((?:      .*\n)+)", text):
        words = re.split(r",?\s+", head.strip())
        flags = [word for word in words if word.startswith("-")]
        said = " ".join(body.split())
        rows.append((flags, words[len(flags):], said.split(":")[0], said.partition(": ")[2]))
    return rows


def options_in(text):
    """The spellings that perftest's help names, without what is in its examples."""
    found = []
    for line in text.splitlines():
        if match := re.match(r"\s+(-\w), (--[\w-]+)", line):
            found += match.groups()
        elif match := re.match(r"\s+(--[\w-]+)", line):
            found.append(match.group(1))
        elif match := re.match(r"\s+(-\w)[ ,]", line):
            found.append(match.group(1))
    return found


def help_texts():
    """(program, help) of each perftest that is installed or captured."""
    for program in PROGRAMS:
        if shutil.which(program):
            # Its help ends with status 1.
            shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
            yield program, shown.stdout + shown.stderr
    for path in sorted(pathlib.Path(os.environ.get("PERFTEST_HELP", "/nonexistent")).glob("*.txt")):
        yield str(path), path.read_text(encoding="utf-8")


def columns(text):
    """Headings and rows of figures, as scripts read them."""
    lines = text.splitlines()
    (at,) = [number for number, line in enumerate(lines) if "#bytes" in line]
    rows = []
    for line in lines[at + 1:]:
        if not re.match(r"\s*\d", line):
            break
        rows.append(line.split())
    return lines[at], rows


# What an option is typed with.
TOGETHER = {"--report-per-port": ["-O", "-D", "1"], "--tph_mem": ["--ph", "1", "--cpu_id", "0"],
            "--cpu_id": ["--ph", "1", "--tph_mem", "vm"]}


class Options(CliTest):
    def test_the_page_has_the_table(self):
        rows = "".join(f"| {', '.join(f'`{flag}`' for flag in flags)}{' ' if value else ''}{' '.join(value)} | {fate} "
                       f"| {text} |\n"
                       for flags, value, fate, text in table())
        page = PAGE.read_text(encoding="utf-8")
        before, found, after = page.partition(HEAD)
        self.assertTrue(found, "the table's head is not there")
        rest = re.sub(r"\A(\|.*\n)*", "", after)
        if os.environ.get("UPDATE_GOLDEN"):
            PAGE.write_text(before + HEAD + rows + rest, encoding="utf-8")
            return
        self.assertEqual(page, before + HEAD + rows + rest, "UPDATE_GOLDEN=1 writes the table anew")

    def test_perftests_own_help_is_walked(self):
        known = {flag for flags, *_ in table() for flag in flags}
        walked = 0
        for program, text in help_texts():
            options = options_in(text)
            self.assertGreater(len(options), 60, program)
            walked += 1
            for option in options:
                with self.subTest(program=program, option=option):
                    self.assertIn(option, known)
        if walked == 0:
            self.skipTest("perftest is not installed (scripts/install-deps test)")

    def test_each_option_does_as_the_table_says(self):
        rows = [row for row in table() if row[2] != "ignored"]
        self.assertGreater(len(rows), 80)
        for flags, value, fate, text in support.cases(rows[::3], rows):
            with self.subTest(flags[0]):
                self.try_option(flags[0], value, fate, text)

    def try_option(self, flag, value, fate, text):
        # Where both ends are is in the way of -h and -V. -o is perftest's own under its name, and else the file of
        # --format.
        ends = [] if flag in ("-h", "-V") else ["127.0.0.1" if "source_ip" in flag else "--local", "--dry-run"]
        test = "ib_read_bw" if flag == "-o" else TESTS.get(flag, "write_bw")
        result = run(test, *ends, flag, *([VALUES.get(flag, "1")] if value else []), *TOGETHER.get(flag, []))
        if fate == "refused":
            reason, _, instead = text.rpartition("; ")
            self.expect_error(result, 2, f"{flag if flag != '-o' else '--outs'}: {reason.split(';')[0]}", instead)
        else:
            self.assertEqual(result.code, 0, str(result))

    def test_what_is_accepted_says_why_it_changes_nothing(self):
        ignored = [row for row in table() if row[2] == "ignored"]
        self.assertGreater(len(ignored), 15)
        for which in (0, -1):  # the first spelling of each, and the last
            words = [word for flags, value, *_ in ignored for word in [flags[which], *(["1"] if value else [])]]
            result = run("write_bw", "--local", "--dry-run", *words)
            self.assertEqual(result.code, 0, str(result))
            for flags, _, _, text in ignored:
                self.assertIn(f"note: {flags[which]} changes nothing: {text}", result.err)

    def test_all_spellings_of_a_row_are_taken_alike(self):
        self.expect_error(run("write_bw", "--local", "--vlan_en"), 2, "--vlan_en: raw Ethernet is not measured")
        self.expect_error(run("write_bw", "--local", "--use_mlu=0"), 2, "--use_mlu: only GPUs of NVIDIA, AMD and Intel",
                          "--buffer cuda:N")

    def test_other_commands_say_what_to_type(self):
        self.expect_error(run("sweep", "--local", "-N"), 2, "unknown option '-N'",
                          "leave -N out: there is no peak search")
        self.expect_error(run("sweep", "--local", "--run_infinitely"), 2, "--forever: only the first")

    def test_values_that_are_not_taken(self):
        transport = run("write_bw", "--local", "-c", "TCP")
        self.expect_error(transport, 2, "--transport 'TCP': give rc, uc, ud, xrc, dc or srd")
        self.expect_error(run("write_bw", "--local", "-w", "-3"), 2, "-w")
        self.expect_error(run("write_bw", "--local", "--pin_cores", "-3"), 2, "--pin_cores")
        self.expect_error(run("write_bw", "--local", "-y", "1", "-a"), 2, "-y: a message rate is asked of one size",
                          "--min-gbps")
        self.expect_error(run("write_bw", "--local", "--output", "latency"), 2,
                          "--output latency: write_bw has no such result", "message_rate")
        self.expect_error(run("write_lat", "--local", "--output", "bandwidth"), 2,
                          "--output bandwidth: write_lat has no such result", "latency")
        self.expect_error(run("read_bw", "--local", "--write_with_imm"), 2, "--write_with_imm: writes alone",
                          "write_imm_bw")

    def test_prefixes_are_taken_as_getopt_takes_them(self):
        fine = run("ib_write_bw", "--local", "--dry-run", "--report_gbit", "--bidir", "--dura=1", "-F")
        self.assertEqual(fine.code, 0, str(fine))
        self.assertNotIn("note:", fine.err)
        self.expect_error(run("ib_write_bw", "--local", "--dry-run", "--use_c"), 2, "unknown option '--use_c'")
        self.expect_error(run("ib_write_bw", "--local", "--sig_o"), 2, "--sig_offload: signatures")
        self.expect_error(run("write_bw", "--local", "--dry-run", "--bidir"), 2, "unknown option '--bidir'")

    def test_several_cpus_are_those_that_may_be_used(self):
        cpus = sorted(os.sched_getaffinity(0))
        for text in (f"{cpus[0]},{cpus[-1]}", f"{cpus[0]}-{cpus[0]}", f"{cpus[0]}, {cpus[-1]}"):
            result = run("write_bw", "--local", "--dry-run", "--pin_cores", text)
            self.assertEqual(result.code, 0, str(result))
            self.assertEqual(result.err, "")
        self.expect_error(run("write_bw", "--local", "--dry-run", "--pin_cores", f"{cpus[0]},60000"), 2,
                          "this process may not use CPU 60000")
        for text in ("0-", "1-0", "0,,1", "0,x"):
            self.expect_error(run("write_bw", "--local", "--dry-run", "--pin_cores", text), 2, "--pin_cores")

    def test_messages_with_an_immediate_are_tests_of_their_own(self):
        for verb in ("write", "send"):
            for program in (f"ib_{verb}_lat", f"{verb}_lat"):
                result = run(program, "--local", "--dry-run", f"--{verb}_with_imm")
                self.assertEqual(result.code, 0, str(result))
                self.assertIn(f"{verb}_imm_lat", result.out)

    def test_numbers_as_perftest_reads_them(self):
        result = run("ib_write_bw", "--local", "--dry-run", "-w", "100M", "--burst_size=2147483647", "--rate_limit=10")
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("-w 100M: read as 100", result.err)
        self.assertIn("bursts of 128, as many messages as are in flight", result.err)
        latency = run("ib_read_lat", "--local", "--dry-run", "-y", "10G", "--rate_limit=10")
        self.assertEqual(latency.code, 0, str(latency))
        self.assertIn("-y changes nothing: read_lat measures no rate", latency.err)
        self.assertIn("--rate_limit changes nothing", latency.err)

    def test_the_help_has_the_kinds_of_connections_as_scripts_read_them(self):
        for program, kinds in (("ib_write_bw", "RC/XRC/UC"), ("ib_send_lat", "RC/XRC/UC/UD"), ("ib_read_bw", "RC/XRC")):
            self.assertIn(f"--connection=<{kinds}>", run(program, "--help").out)


@unittest.skipIf(support.softnic_works(), "no software device")
class Runs(CliTest):
    def test_a_datagram_is_cut_to_the_mtu(self):
        result = run("ib_send_bw", *LOCAL, "-c", "UD", "-s", "65536", "-n", "100")
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("note: -s 65536: a message over UD has an MTU at most: 4096 bytes", result.err)
        self.assertRegex(result.out, r"(?m)^ 4096 +100 ")
        self.expect_error(run("send_bw", *LOCAL, "-c", "UD", "-s", "65536"), 2,
                          "-s 64 KiB: a message over UD is one packet")

    def test_limits_end_with_status_1(self):
        fine = run("write_bw", *LOCAL, "-n", "200", "-s", "4K", "-w", "0.001", "-y", "0.000001")
        self.expect_ok(fine)
        self.assertIn("Required: met by 1 run", fine.out)
        for limit in (["-w", "1e9"], ["-y", "1e6"], ["--limit_bw=1e9", "--report_gbits"]):
            result = run("write_bw", *LOCAL, "-n", "200", "-s", "4K", *limit)
            self.assertEqual(result.code, 1, str(result))
            self.assertIn("MISSED", result.out)

    def test_a_limit_has_the_unit_of_the_report(self):
        def asked(*words):
            result = run("write_bw", *LOCAL, "-n", "200", "-s", "4K", *words, "--json", "-")
            return self.runs_of(json.loads(result.out))[0]["required"]["min_gbps"]
        self.assertAlmostEqual(asked("-w", "100"), 100 * 2**20 * 8 / 1e9)
        self.assertAlmostEqual(asked("-w", "100", "--report_gbits"), 100)
        self.assertAlmostEqual(asked("-y", "2"), 2 * 4096 * 8 / 1e3)

    def test_out_json_is_our_document(self):
        folder = pathlib.Path(self.scratch())
        result = run("write_bw", *LOCAL, "-n", "200", "--out_json", "--out_json_file", folder / "mine.json", cwd=folder)
        self.expect_ok(result)
        self.assertIn("is gdrperf's document", result.err)
        self.assertIn("relations", json.loads((folder / "mine.json").read_text(encoding="utf-8")))
        self.expect_ok(run("write_bw", *LOCAL, "-n", "200", "--out_json", cwd=folder))
        self.assertTrue((folder / "perftest_out.json").exists())

    def test_columns_of_a_bandwidth_test(self):
        result = run("ib_write_bw", *LOCAL, "-n", "400", "-s", "4096", "-F", "--report_gbits", "--json", "run.json",
                     cwd=self.folder())
        self.expect_ok(result)
        heading, (row,) = columns(result.out)
        self.assertEqual(heading, " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
        record = self.record("run.json")
        self.assertEqual(row[:2], ["4096", str(record["iterations"])])
        self.assertAlmostEqual(float(row[2]), record["bw"]["max_gbps"], delta=0.01)
        self.assertAlmostEqual(float(row[3]), record["bw"]["mean_gbps"], delta=0.01)
        self.assertAlmostEqual(float(row[4]), record["bw"]["mean_gbps"] / 8 / 4096 * 1e3, delta=1e-5)
        self.assertIn("RDMA_Write BW Test", result.out)
        self.assertNotIn("median", result.out + result.err)

    def test_columns_of_all_sizes_in_its_unit(self):
        result = run("read_bw", *LOCAL, "-n", "100", "-s", "64,4K", "--output", "perftest")
        heading, rows = columns(result.out)
        self.assertIn("BW average[MiB/sec]", heading)
        self.assertEqual([row[0] for row in rows], ["64", "4096"])
        self.assertTrue(all(len(row) == 5 for row in rows), rows)

    def test_small_rates_have_as_many_decimals_as_perftests(self):
        slow = {"SOFTNIC": "soft0:rate=1MB/s"}
        for words, rate in ((["--report_gbits"], r"^0\.00\d{4}$"), ([], r"^\d\.\d\d$")):
            text = run("ib_write_bw", *LOCAL, "-s", "64", "-n", "100", *words, env=slow).out
            self.assertRegex(next(line.split() for line in text.splitlines() if line.startswith(" 64 "))[3], rate)

    def test_columns_of_a_latency_test(self):
        result = run("ib_send_lat", *LOCAL, "-n", "2000", "-s", "64", "--json", "run.json", cwd=self.folder())
        heading, (row,) = columns(result.out)
        names = heading.split("]")
        self.assertEqual(len(names) - 1 + 2, len(row), result.out)
        latency = self.record("run.json")["latency"]
        for at, name in ((2, "min_ns"), (3, "max_ns"), (4, "p50_ns"), (5, "mean_ns"), (7, "p99_ns"), (8, "p999_ns")):
            microseconds = latency[name] / 1e3
            # Two decimals; the record has seven digits.
            self.assertAlmostEqual(float(row[at]), microseconds, delta=0.006 + 1e-6 * microseconds, msg=name)
        self.assertGreater(float(row[6]), 0)  # standard deviation
        timed = run("ib_send_lat", *LOCAL, "-D", "50ms", "-s", "64")
        heading, (row,) = columns(timed.out)
        self.assertIn("tps average", heading)
        self.assertEqual(len(row), 4)

    def test_one_figure_alone(self):
        for program, word, member in (("ib_write_bw", "bandwidth", "bw"), ("ib_write_bw", "message_rate", "bw"),
                                      ("ib_write_lat", "latency", "latency")):
            result = run(program, *LOCAL, "-n", "400", "-s", "4096", f"--output={word}", "--report_gbits", "--json",
                         "run.json", cwd=self.folder())
            self.expect_ok(result)
            figures = self.record("run.json")[member]
            unit = 1 if word == "bandwidth" else 8 * 4.096
            mean = figures["mean_ns"] / 1e3 if word == "latency" else figures["mean_gbps"] / unit
            self.assertRegex(result.out, r"\A[0-9.]+\n\Z")
            self.assertAlmostEqual(float(result.out), mean, delta=max(1e-5, mean * 1e-3), msg=word)

    def ends(self, program, there, here):
        """(client's result, server's standard output) of a run of both under one name."""
        with support.Background(program, "-p", "0", "--softnic", *there) as server:
            port = server.wait_line(", port ").split(", port ")[1].split(";")[0]
            client = run(program, "127.0.0.1", "-p", port, "--softnic", *here)
            self.expect_ok(client)
            self.assertEqual(server.wait(), 0, server.err)
            return client, server.out

    def test_the_server_prints_the_table_of_its_client(self):
        for program, words in (("ib_write_bw", ["-s", "4096", "-n", "400"]), ("ib_send_lat", ["-s", "64", "-n", "400"]),
                               ("ib_read_bw", ["-a", "-n", "50"])):
            client, there = self.ends(program, words, words)
            self.assertIn("* Waiting for client to connect... *", there)
            heading, rows = columns(there)
            self.assertEqual((heading, rows), columns(client.out), program)
            self.assertGreater(len(rows), 20 if "-a" in words else 0)

    def test_one_figure_at_both_ends(self):
        client, there = self.ends("ib_write_bw", ["--output=bandwidth", "--report_gbits"],
                                  ["--output=bandwidth", "--report_gbits", "-n", "400"])
        self.assertRegex(there, r"\A[0-9.]+\n\Z")
        self.assertEqual(there, client.out)

    def test_json_with_perftests_keys_at_both_ends(self):
        folder = self.folder()
        there = ["--out_json", f"--out_json_file={folder}/there.json", "--report_gbits"]
        client, table = self.ends("ib_write_bw", there, ["--out_json", f"--out_json_file={folder}/here.json",
                                                         "--report_gbits", "-n", "400", "-s", "4096"])
        here = json.loads((folder / "here.json").read_text(encoding="utf-8"))
        (row,) = columns(client.out)[1]
        self.assertEqual(here["test_info"]["test"], "RDMA_Write_BW_Test")
        self.assertEqual(here["results"]["MsgSize"], 4096)
        for key, at in (("BW_peak", 2), ("BW_average", 3)):
            self.assertAlmostEqual(here["results"][key], float(row[at]), delta=0.006, msg=key)
        self.assertEqual(here["results"], json.loads((folder / "there.json").read_text(encoding="utf-8"))["results"])
        # One key a line, as awk reads it.
        self.assertRegex((folder / "here.json").read_text(encoding="utf-8"), r'(?m)^"BW_average": [0-9.]+,$')
        self.assertEqual(self.record("here.gdrperf.json")["spec"]["size_bytes"]
                         if "spec" in self.record("here.gdrperf.json") else 4096, 4096)
        lat, _ = self.ends("ib_write_lat", [], ["-n", "300", "--out_json_file", f"{folder}/lat.json"])
        results = json.loads((folder / "lat.json").read_text(encoding="utf-8"))["results"]
        (row,) = columns(lat.out)[1]
        # Both are rounded to a hundredth: of what lies in the middle of two, one to each.
        self.assertAlmostEqual(results["t_avg"], float(row[5]), delta=0.011)
        self.assertIn("99.9% percentile", results)

    def test_the_footprint_is_perftests(self):
        result = run("ib_write_bw", *LOCAL, "-n", "100", "-s", "64K")
        self.assertIn(" Footprint       : one message per QP, as perftest's", result.out)
        other = run("ib_write_bw", *LOCAL, "-n", "100", "-s", "64K", "--footprint", "1M")
        self.assertIn(" Footprint       : 1 MiB per QP (perftest's: one message)", other.out)

    def test_both_ends_run_infinitely(self):
        with support.Background("ib_write_bw", "-p", "0", "--softnic", "--run_infinitely", "-D", "1") as server:
            port = server.wait_line(", port ").split(", port ")[1].split(";")[0]
            with support.Background("ib_write_bw", "127.0.0.1", "-p", port, "--softnic", "--run_infinitely", "-D",
                                    "0.2") as client:
                client.wait_line("messages ")
                for _ in range(2):
                    client.wait_line("gdrperf:  ")

    def test_a_link_of_the_name(self):
        folder = self.folder()
        (folder / "ib_atomic_bw_own").symlink_to(BINARY)
        result = subprocess.run([folder / "ib_atomic_bw_own", *LOCAL, "-n", "400", "-A", "CMP_AND_SWAP"],
                                env=support.environment(),
                                capture_output=True, text=True, timeout=support.PATIENCE_S, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Atomic_CMP_AND_SWAP BW Test", result.stdout)
        _, (row,) = columns(result.stdout)
        self.assertEqual(row[0], "8")

    def test_two_ends_of_the_name(self):
        with support.Background("ib_write_bw", "-p", "0", "--softnic") as server:
            port = server.wait_line(", port ").split(", port ")[1].split(";")[0]
            result = run("ib_write_bw", "127.0.0.1", "-p", port, "--softnic", "-n", "400", "-s", "4096")
            self.expect_ok(result)
            self.assertEqual(len(columns(result.out)[1]), 1)
            self.assertEqual(server.wait(), 0)
            self.assertNotIn("ignored here", server.err)

    def folder(self):
        self.at = pathlib.Path(self.scratch())
        return self.at

    def record(self, name):
        (record,) = self.runs_of(json.loads((self.at / name).read_text(encoding="utf-8")))
        return record


if __name__ == "__main__":
    support.main()
