#!/usr/bin/env python3
"""The command line itself: help, spellings, order, and what is refused."""

import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, main, run, softnic_works

TESTS = ["write_bw", "write_lat", "send_bw", "send_lat", "read_bw", "read_lat"]
COMMANDS = TESTS + ["serve", "sweep", "devices", "topo"]
LOCAL = ["--local", "--softnic", "-n", "20", "-s", "64"]


class Help(CliTest):
    def test_a_file_that_is_not_there_names_its_option(self):
        missing = "/nonexistent/file"
        cases = [["topo", f"--{kind}", missing]
                 for kind in ("nvidia-smi", "hwloc", "lspci", "nccl-xml", "nccl-log", "sysfs")]
        cases += [["sweep", "--resume", missing], ["cluster", "--format", "slurm", "--from", missing],
                  ["doctor", "--read", missing], ["doctor", "--root", missing], ["serve", "--log", missing],
                  ["serve", "--token", missing], ["sweep", "--machine", missing],
                  ["write_bw", "--local", "--softnic", "-n", "5", "--nvidia-smi", missing]]
        for words in cases:
            with self.subTest(" ".join(words)):
                result = run(*words)
                self.assertIn(result.code, (2, 3), str(result))
                self.assertIn(words[-2] if words[-1] == missing else words[1], result.err.splitlines()[0])
                self.assertIn(missing, result.err)

    def test_top_level_lists_commands_exit_codes_and_where_to_start(self):
        result = run("--help")
        self.expect_ok(result)
        for text in COMMANDS + ["Exit codes", "gdrperf serve", "--softnic"]:
            self.assertIn(text, result.out)
        self.assertEqual(result.err, "")

    def test_every_command_shows_help(self):
        for command in COMMANDS:
            with self.subTest(command):
                result = run(command, "--help")
                self.expect_ok(result)
                self.assertIn("Usage: gdrperf " + command, result.out)

    def test_tests_show_defaults_units_and_examples(self):
        for command in TESTS:
            with self.subTest(command):
                text = run(command, "-h").out
                for part in ["default: 18515", "default: 5s; a run of sweep 1s", "K, M, G (powers of 1024)", "bytes",
                             "Examples:", f"gdrperf {command} --local --softnic", "--peer-dev",
                             "default: 64K" if command.endswith("bw") else "default: 2)"]:
                    self.assertIn(part, text)

    def test_version(self):
        result = run("--version")
        self.expect_ok(result)
        self.assertRegex(result.out,
                         r"^gdrperf \d+\.\d+\.\d+ \(.+\)\nlibibverbs: (\d+\.\d+\.\d+\.\d+ of rdma-core \d+\.\d+, "
                         r")?/\S+\n"
                                     r"CUDA runtime: (\d+\.\d+|not built in)\nNVIDIA driver: .+\nkernel: Linux \S+ "
                                     r"\S+\n$")

    def test_nothing_typed_is_a_usage_error_with_help(self):
        result = run()
        self.assertEqual(result.code, 2)
        self.assertIn("write_bw", result.err)
        self.assertEqual(result.out, "")


class Refusals(CliTest):
    def refuse(self, *args, says):
        result = run(*args)
        self.expect_error(result, 2, *says, within=5)
        self.assertEqual(result.out, "", str(result))

    def test_unknown_words_name_what_is_near(self):
        self.refuse("write_bq", says=["unknown command 'write_bq'", "did you mean write_bw"])
        self.refuse("write_bw", "--sise", "4", says=["unknown option '--sise'", "--size"])
        self.refuse("write_bw", "--tx_depth=4", "h", says=["'--tx_depth=4'", "--tx-depth"])
        self.refuse("sweep", "h", "--op", "read_bw", says=["unknown option '--op'", "--ops"])
        self.refuse("write_bw", "host1", "host2", says=["unexpected argument 'host2'"])
        self.refuse("devices", "--jsn", says=["unknown option '--jsn'", "--json"])

    def test_sizes(self):
        self.refuse("write_bw", "h", "-s", "0", says=["-s 0", "from 1 byte"])
        self.refuse("write_bw", "--local", "--size=0", says=["-s 0"])
        self.refuse("write_bw", "h", "-s", "many", says=["-s 'many'", "not a size", "64K"])
        self.refuse("write_bw", "h", "-s", "4kb", says=["-s '4kb'"])
        self.refuse("write_bw", "h", "-s", "-4", says=["-s"])
        self.refuse("write_bw", "h", "-s", "8:4:x2", says=["-s '8:4:x2'"])
        self.refuse("write_bw", "h", "-s", "4G", says=["-s 4G", "2 GiB"])
        self.refuse("write_bw", "h", "-a", "-s", "4", says=["-s and -a exclude each other", "leave one of them out"])

    def test_numbers(self):
        self.refuse("write_bw", "h", "-q", "two", says=["-q 'two'", "not a number", "1 to 16384"])
        self.refuse("write_bw", "h", "-q", "0", says=["-q 0", "from 1 to 16384"])
        self.refuse("write_bw", "h", "-q", "1.5", says=["-q '1.5'"])
        self.refuse("write_bw", "h", "-t", "99999999999999999999", says=["-t 99999999999999999999"])
        self.refuse("write_bw", "h", "-p", "99999", says=["-p 99999", "65535"])
        self.refuse("write_bw", "h", "-p", "0", says=["-p 0"])
        self.refuse("serve", "-p", "99999", says=["-p 99999", "65535"])
        self.refuse("write_bw", "h", "-m", "1500", says=["-m 1500", "256, 512, 1024, 2048 or 4096"])
        self.refuse("write_bw", "h", "-n", "0", says=["-n 0"])
        self.refuse("write_bw", "h", "-D", "soon", says=["-D 'soon'", "not a time"])
        self.refuse("write_bw", "h", "-D", "0", says=["-D"])
        self.refuse("write_bw", "h", "--precision", "0", says=["--precision '0'", "percent"])

    def test_what_the_parser_refuses_is_said_in_our_words(self):
        for words, says in (
                (["write_bw", "h", "-q"], ["-q: needs a value, N", "gdrperf write_bw --help"]),
                (["topo", "--hwloc"], ["--hwloc: needs a value, FILE"]),
                (["topo", "--explain", "GPU0"], ["--explain: needs 2 values, GPU NIC"]),
                (["write_bw", "h", "-s", "4", "-s", "8"], ["-s: given 2 times", "-s 64,4K"]),
                (["write_bw", "--local=3"], ["--local=3: a flag takes no value"]),
                (["write_bw", "h", "-b=7"], ["'=7'", "a flag takes no value"]),
                (["serve", "--once=x"], ["--once: a flag takes no value"]),
                (["compare"], ["BASELINE is missing"]),
                (["baseline"], ["baseline: one of add, noise, trend, list, show, rm has to follow"]),
                (["report"], ["RESULTS is missing", "gdrperf sweep --local --json results.json"]),
                (["accept", "--local", "--within", "0"], ["--within 0", "--within 90s"]),
                (["baseline", "add"], ["RESULTS is missing", "gdrperf baseline add --help"])):
            with self.subTest(words):
                self.refuse(*words, says=says)
                self.assertNotRegex(run(*words).err, "required|At Most|Could not convert|subcommand|COMMAND")

    @unittest.skipIf(softnic_works(), "no software device")
    def test_a_signal_beyond_the_default_depth_makes_the_queue_deeper(self):
        result = run("write_bw", "--local", "--softnic", "-s", "4M", "-Q", "50", "-n", "60", "--json", "-")
        self.expect_ok(result)
        (record,) = self.runs_of(json.loads(result.out))
        self.assertEqual((record["tx_depth"], record["cq_mod"]), (50, 50))

    def test_a_single_run_ends_after_five_seconds_at_the_latest(self):
        self.assertIn("default: 5s; a run of sweep 1s", " ".join(run("write_bw", "--help").out.split()))

    def test_an_empty_host_is_an_unset_variable(self):
        for command in ("write_bw", "read_lat", "sweep", "verify"):
            self.refuse(command, "", says=["HOST is empty", "unset"])
        self.refuse("write_bw", "h", "--bind", "", says=["--bind"])
        self.refuse("serve", "--bind", "", says=["--bind", "empty"])

    def test_an_unknown_option_is_named_before_what_it_leaves_behind(self):
        for option, value in (("--dev", "mlx5_0"), ("--si", "64")):
            for command in ("write_bw", "sweep", "verify"):
                with self.subTest(command, option=option):
                    result = run(command, option, value, "--local")
                    self.expect_error(result, 2, f"unknown option '{option}'")
                    self.assertNotIn("HOST", result.err)

    def test_a_deeper_queue_is_what_Q_needs(self):
        self.refuse("write_bw", "h", "-t", "64", "-Q", "100",
                    says=["-Q 100: more than the 64 messages in flight of -t 64", "-t 100"])
        self.refuse("write_bw", "h", "-t", "64", "-l", "128", says=["-l 128: more than the 64"])

    def test_what_cannot_go_together(self):
        self.refuse("write_bw", "h", "-n", "5", "-D", "2s", says=["-n and -D exclude"])
        self.refuse("write_lat", "h", "-b", says=["-b", "write_lat"])
        self.refuse("read_lat", "h", "-q", "2", "--verify", says=["-q 2", "verified messages"])
        self.refuse("write_bw", "h", "-t", "128", "-l", "3", says=["-l 3", "-t 128"])
        self.refuse("read_bw", "h", "-I", "8", says=["-I 8"])
        self.refuse("write_bw", "h", "--local", says=["HOST and --local exclude each other"])
        self.refuse("write_bw", "--local", "--bind", "127.0.0.1", says=["--bind"])
        self.refuse("write_bw", "127.0.0.1", "--bind", "nowhere", says=["--bind", "is no IP address"])
        self.refuse("sweep", "--local", "-q", "1,2", says=["-q", "one number"])
        self.refuse("write_bw", "--local", "--json", "-", "--csv", "-", says=["--json -", "--csv -"])
        self.refuse("sweep", says=["HOST", "--local"])
        self.refuse("sweep", "h", "-d", "a", "--devices", "b", says=["--devices and -d exclude each other"])
        self.refuse("sweep", "h", "--machine", "m.xml", says=["HOST", "--machine", "exclude each other"])
        self.refuse("sweep", "h", "--link-model", "m.txt", says=["--link-model means nothing without --machine"])
        self.refuse("sweep", "h", "--ops", "write_bw,flush_bw", says=["--ops 'flush_bw'", "read_lat"])
        self.refuse("sweep", "h", "--devices", "a,,b", says=["--devices 'a,,b'"])


    def test_memory_of_a_gpu_says_what_is_missing(self):
        result = run("write_bw", "--local", "--buffer", "cuda:0", "-n", "1")
        if result.code == 0 or "no RDMA device" in result.err:
            self.skipTest("this machine has a GPU, or no RDMA device")
        for part in ("PCI bus", "driver", "CUDA"):
            self.assertIn(part, result.err)


@unittest.skipIf(softnic_works(), "no software device")
class Notes(CliTest):
    """What was typed in vain is told, and the run goes on."""

    def test_an_option_that_changes_nothing_is_told(self):
        for test, typed, flag in (("write_bw", ["--chunk", "64K"], "--chunk"),
                                  ("write_bw", ["--register", "dmabuf"], "--register"),
                                  ("write_lat", ["-t", "16"], "-t"), ("write_lat", ["-Q", "4"], "-Q"),
                                  ("write_bw", ["-r", "64"], "-r"), ("write_bw", ["--cap", "5s"], "--cap")):
            with self.subTest(test, typed=typed):
                result = run(test, *LOCAL, *typed)
                self.expect_ok(result)
                self.assertIn(f"gdrperf: note: {flag} changes nothing: ", result.err)
        self.assertIn("gdrperf: note: --precision does not end the run, -n does; ",
                      run("read_bw", *LOCAL, "--precision", "2%").err)
        self.assertNotIn("note", run("send_bw", *LOCAL, "-r", "64", "-t", "16", "-Q", "4").err)

    def test_both_ways_of_host_memory_are_one(self):
        result = run("write_bw", *LOCAL, "--path", "both", "--csv", "-")
        self.expect_ok(result)
        self.assertIn("--path changes nothing", result.err)
        self.assertEqual(len(result.out.splitlines()), 2, result.out)

    def test_a_sweep_says_it_once(self):
        result = run("sweep", *LOCAL, "--ops", "write_lat,read_lat", "-t", "16")
        self.assertIn(result.code, (0, 4), str(result))  # 4: none of so few messages is stable
        self.assertEqual(result.err.count("-t changes nothing"), 1, result.err)

    def test_columns_never_touch(self):
        result = run("write_bw", "--local", "--softnic", "-s", "64", "-n", "16000", "-t", "1000", "-Q", "1000")
        self.expect_ok(result)
        self.assertRegex(result.out, r"\d 1000/1000 +\d")


@unittest.skipIf(softnic_works(), "no software device")
class Spellings(CliTest):
    def same(self, *variants):
        """Each is taken, and the document says the same of each."""
        import json
        wanted = None
        for words in variants:
            with self.subTest(" ".join(words)):
                result = run(*words, "--json", "-")
                self.expect_ok(result)
                (record,) = self.runs_of(json.loads(result.out))
                settings = {key: record[key] for key in ("op", "size_bytes", "qps", "tx_depth",
                                                         "rx_depth", "cq_mod", "post_list",
                                                         "mtu_bytes", "inline_bytes", "connection")}
                wanted = wanted or settings
                self.assertEqual(settings, wanted)

    def test_the_order_of_options_does_not_matter(self):
        self.same(["write_bw", *LOCAL, "-q", "2", "-t", "16", "-Q", "4", "-m", "1024"],
                  ["write_bw", "-m", "1024", "-Q", "4", "-t", "16", "-q", "2", *LOCAL],
                  ["write_bw", "-t", "16", *LOCAL, "-m", "1024", "-q", "2", "-Q", "4"])

    def test_perftest_long_names_are_aliases(self):
        self.same(["send_bw", "--local", "--softnic", "-n", "32", "-s", "4K", "-q", "2", "-t", "16",
                   "-r", "64", "-Q", "4", "-l", "4", "-I", "0", "-m", "2048", "-S", "1", "-T", "8",
                   "-u", "12", "-x", "2", "-d", "soft0"],
                  ["send_bw", "--local", "--softnic", "--iters", "32", "--size", "4k", "--qp", "2",
                   "--tx-depth", "16", "--rx-depth=64", "--cq-mod=4", "--post_list=4",
                   "--inline_size=0", "--mtu=2048", "--sl=1", "--tos=8", "--qp-timeout=12",
                   "--gid-index=2", "--ib-dev=soft0"],
                  ["send_bw", "--local", "--softnic", "-n32", "-s4096", "-q2", "-t16", "-r64", "-Q4",
                   "-l4", "-I0", "-m2048", "-S1", "-T8", "-u12", "-x2", "-dsoft0"])

    def test_flags_of_perftest_are_taken(self):
        self.expect_ok(run("write_bw", *LOCAL, "-b", "--report_gbits"))
        self.expect_ok(run("send_lat", *LOCAL, "-e"))
        self.expect_ok(run("read_bw", *LOCAL, "--bidirectional", "--report-gbits"))
        self.expect_ok(run("send_bw", *LOCAL, "--events"))
        self.expect_ok(run("write_bw", "--local", "--softnic", "-D", "100ms", "-s", "64"))

    def test_gigabits_are_labelled(self):
        self.assertIn("Gb/s", run("write_bw", *LOCAL, "--report_gbits").out)
        self.assertIn("GB/s", run("write_bw", *LOCAL).out)

    def test_lists_and_ranges_of_sizes(self):
        result = run("write_bw", "--local", "--softnic", "-n", "20", "-s", "64,1K:4K:x2")
        self.expect_ok(result)
        for size in ("64 B", "1 KiB", "2 KiB", "4 KiB"):
            self.assertIn(size, result.out)

    def test_all_sizes_are_2_bytes_to_8_mib(self):
        result = run("write_lat", "--local", "--softnic", "-n", "5", "-a", "--csv", "-")
        self.expect_ok(result)
        lines = result.out.splitlines()
        column = lines[0].split(",").index("size_bytes")
        self.assertEqual([int(line.split(",")[column]) for line in lines[1:]],
                         [2 ** n for n in range(1, 24)])


if __name__ == "__main__":
    main()
