#!/usr/bin/env python3
"""gdrperf run: scenario files, their errors, and the document that tells them."""

import json
import os
import signal
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import Background, CliTest, main, run, softnic_works

TWO = """\
# two tests
[global]
local
softnic
iters = 100

[small writes]
test = write_lat   ; half round trips
size = 8

[large writes, both ways]
test = write_bw
size = 4K,64K
bidirectional
iters = 200   # its own
"""


class ScenarioTest(CliTest):
    def scenario(self, text, name="bring-up.conf"):
        path = os.path.join(self.scratch(), name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def document(self, path):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.check_document(document)
        return document


@unittest.skipIf(softnic_works() is not None, softnic_works())
class Runs(ScenarioTest):
    def test_tests_run_in_order_and_one_document_tells_all(self):
        path = self.scenario(TWO)
        out = os.path.join(self.scratch(), "out.json")
        result = run("run", path, "--json", out)
        self.expect_ok(result)
        self.assertLess(result.out.index("[1/2] small writes: gdrperf write_lat"),
                        result.out.index("[2/2] large writes, both ways"))
        self.assertIn("both ways (rates are the sum)", result.out)
        document = self.document(out)
        self.assertNotIn("partial", document)
        tests = document["relations"]["HOST"]
        self.assertEqual([(run["size_bytes"], run["iterations"]) for run in tests["write_lat"]], [(8, 100)])
        self.assertEqual([run["size_bytes"] for run in tests["write_bw"]], [4096, 65536])
        scenario = document["scenario"]
        self.assertEqual((scenario["file"], scenario["text"]), (path, TWO))
        self.assertEqual([(test["name"], test["line"], test["exit_code"]) for test in scenario["tests"]],
                         [("small writes", 7, 0), ("large writes, both ways", 11, 0)])
        self.assertEqual([test["runs"] for test in scenario["tests"]],
                         [{"HOST": {"write_lat": [0]}}, {"HOST": {"write_bw": [0, 1]}}])
        self.assertEqual(scenario["tests"][1]["argv"],
                         ["write_bw", "--local", "--softnic", "--size=4K,64K", "--bidirectional", "--iters=200"])
        self.assertEqual(document["tool"]["argv"][1:], ["run", path, "--json", out])

    def test_the_document_is_for_report_and_compare(self):
        path = self.scenario(TWO)
        folder = self.scratch()
        out = os.path.join(folder, "out.json")
        self.expect_ok(run("run", path, "--json", out, "--quiet"))
        self.expect_ok(run("report", out, "-o", os.path.join(folder, "out.html")))
        self.assertIn(run("compare", out, out).code, (0, 4))

    def test_only_some_of_them(self):
        path = self.scenario(TWO)
        result = run("run", path, "--only", "small writes", "--json", "-")
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        self.assertEqual(list(document["relations"]["HOST"]), ["write_lat"])
        self.assertIn("[1/1] small writes", result.err)
        self.expect_error(run("run", path, "--only", "smal"), 2, "--only 'smal'", "small writes")

    def test_one_that_fails_is_noted_and_the_next_begins(self):
        path = self.scenario("[global]\nlocal\nsoftnic\niters = 50\n[wrong device]\ntest = write_bw\nib-dev = "
                             "mlx9_9\n[fine]\ntest = write_bw\n")
        out = os.path.join(self.scratch(), "out.json")
        result = run("run", path, "--json", out)
        self.assertEqual(result.code, 2, str(result))
        self.assertIn(f"{path}:5: [wrong device] ended with exit code 2", result.err)
        document = self.document(out)
        self.assertTrue(document["partial"])
        self.assertEqual(document["missing"], ["wrong device"])
        self.assertEqual([test["exit_code"] for test in document["scenario"]["tests"]], [2, 0])

    def test_a_required_figure_that_is_missed_is_the_exit_code(self):
        path = self.scenario("[global]\nlocal\nsoftnic\niters = 50\n[a]\ntest = write_bw\nmin-gbps = 1e9\n[b]\ntest = "
                             "write_bw\n")
        result = run("run", path, "--quiet")
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("MISSED", result.out)

    def test_dry_run_measures_nothing(self):
        result = run("run", self.scenario(TWO), "--dry-run")
        self.expect_ok(result)
        self.assertEqual(result.out.count("memory here"), 2)

    def test_a_sweep_is_a_test_as_well(self):
        path = self.scenario("[all]\ntest = sweep\nlocal\nsoftnic\nops = write_bw\nsizes = 4K\nD = 50ms\n")
        result = run("run", path, "--json", "-")
        self.expect_swept(result)
        (test,) = json.loads(result.out)["scenario"]["tests"]
        self.assertEqual(test["runs"], {"HOST": {"write_bw": [0, 1]}})  # of both devices

    def test_ctrl_c_ends_it_and_says_what_is_missing(self):
        path = self.scenario("[global]\nlocal\nsoftnic\n[first]\ntest = write_bw\niters = 50\n[long]\ntest = "
                             "write_bw\nduration = 500s\n"
                             "[never]\ntest = write_bw\n")
        out = os.path.join(self.scratch(), "out.json")
        with Background("run", path, "--json", out, "--progress") as scenario:
            scenario.wait_line("min left")
            scenario.signal(signal.SIGTERM)
            code = scenario.wait()
        self.assertEqual(code, -signal.SIGTERM, scenario.err)
        document = self.document(out)
        self.assertIn("never", document["missing"])
        self.assertEqual(document["scenario"]["tests"][0]["runs"], {"HOST": {"write_bw": [0]}})


class Errors(ScenarioTest):
    def refuse(self, text, *says):
        path = self.scenario(text)
        result = run("run", path)
        self.expect_error(result, 2, *[each.replace("FILE", path) for each in says])
        self.assertEqual(result.out, "", "something was measured")

    def test_each_names_file_and_line(self):
        self.refuse("[a]\ntest = write_bw\nlocal\n\n# comment\nsise = 64\n", "FILE:6: ", "--sise", "--size")
        self.refuse("[a]\ntest = write_bw\nlocal\nsize = 64Q\n", "FILE:4: ", "64Q")
        self.refuse("[a]\ntest = write_bw\nlocal\nbidirectional = yes\n", "FILE:4: ", "a flag takes no value")
        self.refuse("[a]\ntest = write_bw\nlocal\n[b]\ntest = read_lat\nlocal\nq = 4x\n", "FILE:7: ", "4x")
        self.refuse("[a]\ntest = wirte_bw\n", "FILE:2: ", "wirte_bw", "write_bw")
        self.refuse("[a]\nlocal\n", "FILE:1: [a]", "test = write_bw")
        self.refuse("[a]\ntest = write_bw\n[a]\ntest = read_bw\n", "FILE:3: ", "there are two")
        self.refuse("[a]\ntest = write_bw\nsize = 1\nsize = 2\n", "FILE:4: ", "first in line 3")
        self.refuse("size = 1\n", "FILE:1: ", "[section]")
        self.refuse("[a\n", "FILE:1: ", "no ]")
        self.refuse("[a]\ntest = write_bw\n[global]\nlocal\n", "FILE:3: ", "[global] behind a test")
        self.refuse("[a]\ntest = write_bw\njson = x\n", "FILE:3: ", "gdrperf run")
        self.refuse("[a]\ntest = write_bw\nsize =\n", "FILE:3: ", "needs a value")
        self.refuse("[a]\ntest = write_bw\nsize 64\n", "FILE:3: ", "name = value")
        self.refuse("# nothing\n", "no test in it")

    def test_files_that_are_none(self):
        self.expect_error(run("run", "/nowhere.conf"), 2, "/nowhere.conf")
        self.expect_error(run("run", self.scratch()), 2)
        self.expect_error(run("run"), 2, "FILE")
        self.refuse("\0\x1b[2J" * 100, "FILE:1: ")
        self.refuse("[a]\ntest = write_bw\n" + "x" * (1 << 21), "larger")

    def test_nothing_of_it_reaches_the_terminal_raw(self):
        result = run("run", self.scenario("[a]\ntest = write_bw\n\x1b[2J = 1\n"))
        self.assertNotIn("\x1b", result.err)


if __name__ == "__main__":
    main()
