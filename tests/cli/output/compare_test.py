"""baseline and compare: from documents to verdicts and exit codes."""

import copy
import json
import math
import os
import statistics
import sys
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support

OPS = {"write_bw": "bw", "read_lat": "latency"}


def end():
    return {"device": "mlx5_0", "kind": "hardware", "port": 1, "buffer": "host", "gid_type": "RoCE v2/IPv4"}


def document(number, scale=None, sizes=(64, 65536), host="left", kernel="Linux 6.1.0"):
    """One session: 100 Gb/s or 100 ns, a little up and down, times scale[(op, size)]."""
    relations = {}
    for op, kind in OPS.items():
        runs = []
        for size in sizes:
            wobble = 1 + 0.001 * ((number * 7 + size) % 11 - 5)
            value = 100 * wobble * (scale or {}).get((op, size), 1) + 1e-4 * number
            runs.append({"op": op, "size_bytes": size, "client": end(), "server": end(), "device_kind": "hardware",
                         "direction": "unidirectional", "wait": "poll", "qps": 1, "tx_depth": 128,
                         "bw": {"median_gbps": value, "batches_gbps": [value]} if kind == "bw" else None,
                         "latency": {"p50_ns": value} if kind == "latency" else None})
        relations[op] = runs
    return {"schema": "gdrperf-results/1", "tool": {"version": "0.1.0", "git": "x", "argv": []},
            "started": f"2025-01-31T12:{number:02}:00Z",
            "hosts": {"client": {"hostname": host, "kernel": kernel, "cpu_model": "CPU"}, "server": None},
            "topology": {"source": "none", "gpus": [], "nics": [], "pairs": {}},
            "relations": {"HOST": relations}, "warnings": []}


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = scratch.name
        self.store = self.path("baselines")

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return self.path(name)

    def baseline(self, sessions=20):
        files = [self.write(f"base{i}.json", document(i)) for i in range(sessions)]
        result = support.run("baseline", "add", *files, "--dir", self.store)
        self.assertEqual(result.code, 0, result)
        return result

    def fresh(self, count=9, first=30, **how):
        return [self.write(f"new{i}.json", document(i, **how)) for i in range(first, first + count)]

    def compare(self, *args):
        return support.run("compare", self.store, *args)


class Store(Folder):
    def test_what_it_has_is_listed_shown_and_removed(self):
        self.baseline(sessions=6)
        (machine,) = os.listdir(self.store)
        store = ("--dir", self.store)
        self.assertRegex(support.run("baseline", "list", *store).out, rf"{machine} +6 .* not recorded\n")
        shown = support.run("baseline", "show", *store)
        self.assertEqual(shown.out, support.run("baseline", "show", machine, *store).out)
        self.assertRegex(shown.out, r"write_bw/\S+ +6 ")
        documents = sorted(os.listdir(os.path.join(self.store, machine)))
        outside = self.write("mine.json", document(99))
        for wrong in ("nosuch", "..", "../..", ".", outside, os.path.join(machine, "..", "..", "mine.json")):
            refused = support.run("baseline", "rm", documents[0], wrong, *store)
            self.assertEqual(refused.code, 2, refused)
            refused = support.run("baseline", "rm", os.path.join(machine, documents[0]), wrong, *store)
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("nothing was removed", refused.err)
        self.assertEqual(sorted(os.listdir(os.path.join(self.store, machine))), documents)
        self.assertEqual(support.run("baseline", "rm", os.path.join(machine, documents[0]), *store).code, 0)
        self.assertEqual(sorted(os.listdir(os.path.join(self.store, machine))), documents[1:])
        # With its last document a machine's noise goes as well.
        with open(os.path.join(self.store, machine, "noise.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        rest = [os.path.join(machine, name) for name in documents[1:]]
        self.assertEqual(support.run("baseline", "rm", rest[0], *store).code, 0)
        self.assertIn("noise.json", os.listdir(os.path.join(self.store, machine)))
        self.assertEqual(support.run("baseline", "rm", *rest[1:], *store).code, 0)
        self.assertEqual(os.listdir(self.store), [])
        self.baseline(sessions=2)
        self.assertEqual(support.run("baseline", "rm", machine, *store).code, 0)
        self.assertEqual(os.listdir(self.store), [])
        self.assertTrue(os.path.exists(outside))
        none = support.run("baseline", "list", *store)
        self.assertEqual(none.code, 2, none)
        self.assertIn("no baseline in", none.err)


class Verdicts(Folder):
    def test_the_same_is_ok(self):
        self.assertIn("20 added, 0 there already, 20 sessions now", self.baseline().out)
        result = self.compare(*self.fresh())
        self.assertEqual(result.code, 0, result)
        self.assertIn("4 cells: 4 ok", result.out)

    def test_a_drop_names_its_cells(self):
        self.baseline()
        slow = {("write_bw", 65536): 0.95, ("read_lat", 64): 1.05}
        result = self.compare(*self.fresh(scale=slow), "--json", self.path("c.json"), "--markdown", self.path("c.md"))
        self.assertEqual(result.code, 1, result)
        self.assertIn("4 cells: 2 regression, 2 ok", result.out)
        with open(self.path("c.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["schema"], "gdrperf-compare/1")
        self.assertEqual(report["exit_code"], 1)
        bad = {cell["cell"]: cell["change_percent"] for cell in report["cells"] if cell["verdict"] == "regression"}
        self.assertEqual(set(bad), {"write_bw/HOST/host:mlx5_0/65536", "read_lat/HOST/host:mlx5_0/64"})
        self.assertAlmostEqual(bad["write_bw/HOST/host:mlx5_0/65536"], -5, delta=0.3)
        self.assertAlmostEqual(bad["read_lat/HOST/host:mlx5_0/64"], 5, delta=0.3)
        with open(self.path("c.md"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("### gdrperf compare: Regression", page)
        self.assertIn("| `read_lat/HOST/host:mlx5_0/64` | regression |", page)

    def test_a_gate_that_cannot_see_does_not_say_ok(self):
        """20 sessions that differ by so much that half the bandwidth is within their noise."""
        def noisy(number, scale):
            factor = math.exp(0.36 * statistics.NormalDist().inv_cdf((number * 7 % 20 + 0.5) / 20))
            return document(number, scale={("write_bw", size): factor * scale for size in (64, 65536)})
        base = [self.write(f"base{i}.json", noisy(i, 1)) for i in range(20)]
        half = [self.write(f"new{i}.json", noisy(i + 40, 0.5)) for i in range(9)]
        self.assertEqual(support.run("baseline", "add", *base, "--dir", self.store).code, 0)
        result = self.compare(*half, "--json", self.path("c.json"), "--markdown", self.path("c.md"))
        self.assertEqual(result.code, 4, result)
        self.assertIn("4 cells: 2 blind, 2 ok", result.out)
        self.assertIn("2 cells are blind: a change of 10 % would be missed more than once in 20 times: "
                      "write_bw/HOST/host:mlx5_0/64 (shows from ", result.out)
        with open(self.path("c.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["counts"]["blind"], 2)
        self.assertEqual(report["settings"]["sensitivity_percent"], 10)
        for cell in report["cells"]:
            if cell["verdict"] == "blind":
                self.assertGreater(cell["limit_percent"], 50)
                self.assertAlmostEqual(cell["change_percent"], -50, delta=20)
        with open(self.path("c.md"), encoding="utf-8") as file:
            self.assertIn("| blind |", file.read())
        # Who says that this is enough gets what the gate said before.
        self.assertEqual(self.compare(*half, "--sensitivity", "90%").code, 0)
        self.expect_usage(self.compare(*half, "--sensitivity", "1%"), "--sensitivity 1%", "--threshold")

    def expect_usage(self, result, *texts):
        self.assertEqual(result.code, 2, result)
        for text in texts:
            self.assertIn(text, result.err)

    def test_what_documents_say_reaches_no_terminal_and_no_page_raw(self):
        bad = "mlx5\x1b[2J\u009b|<img src=x>`@all\u202e\n# x"
        def spoiled(number, scale=None):
            made = document(number, scale, host=bad)
            for runs in made["relations"]["HOST"].values():
                for one in runs:
                    one["client"]["device"] = bad
            return made
        base = [self.write(f"base{i}.json", spoiled(i)) for i in range(20)]
        self.assertEqual(support.run("baseline", "add", *base, "--dir", self.store).code, 0)
        slow = [self.write(f"new{i}.json", spoiled(i + 30, {("write_bw", 64): 0.5})) for i in range(9)]
        result = self.compare(*slow, "--all", "--markdown", self.path("c.md"))
        self.assertEqual(result.code, 1, result)
        by_relation = support.run("compare", "--by", "relation", base[0], slow[0])
        noise = support.run("baseline", "noise", self.store, "--dir", self.store)
        with open(self.path("c.md"), encoding="utf-8") as file:
            page = file.read()
        for text in (result.out, result.err, by_relation.out, noise.out, page):
            for mark in ("\x1b", "\u009b", "\u202e"):
                self.assertNotIn(mark, text)
        # In the page a name is code, which no pipe and no backtick ends.
        self.assertIn("`write_bw/HOST/host:mlx5\ufffd[2J\ufffd\\|<img src=x>?@all\ufffd\ufffd# x>host:mlx5_0/64` | "
                      "regression |", page)

    def test_an_improvement_shows_its_own_p(self):
        self.baseline()
        better = {("write_bw", 65536): 1.2}
        result = self.compare(*self.fresh(scale=better))
        self.assertEqual(result.code, 0, result)
        (line,) = [line for line in result.out.splitlines() if " improvement " in line]
        self.assertTrue(line.split("%", 1)[1].strip().startswith("< 0.001"), line)

    def test_too_few_sessions(self):
        self.baseline()
        result = self.compare(*self.fresh(1))
        self.assertEqual(result.code, 4, result)
        self.assertIn("measure at least 1 more session of the candidate", result.out)

    def test_another_machine_is_not_compared(self):
        self.baseline()
        result = self.compare(*self.fresh(host="right", kernel="Linux 6.12.0"))
        self.assertEqual(result.code, 4, result)
        self.assertIn("host: left -> right", result.out)
        self.assertIn("kernel: Linux 6.1.0 -> Linux 6.12.0", result.out)
        self.assertIn("the baseline is of another machine: it has left, this is right", result.out)
        allowed = self.compare(*self.fresh(host="right", kernel="Linux 6.12.0"), "--across", "host,kernel")
        self.assertEqual(allowed.code, 0, allowed)

    def test_whatever_is_a_condition_may_differ(self):
        self.baseline()
        refused = self.compare(*self.fresh(), "--across", "weather")
        self.assertEqual(refused.code, 2, refused)
        names = refused.err.split("there are ")[1].splitlines()[0].replace(" ", "")
        self.assertIn(",registration,", names)
        self.assertIn(",qp_timeout,", names)
        self.assertEqual(self.compare(*self.fresh(), "--across", names).code, 0)

    def test_noise_is_recorded_and_used(self):
        self.baseline()
        result = support.run("baseline", "noise", self.store, "--dir", self.store)
        self.assertEqual(result.code, 0, result)
        self.assertIn("noise.json", result.out)
        folder = os.path.join(self.store, os.listdir(self.store)[0])
        with open(os.path.join(folder, "noise.json"), encoding="utf-8") as file:
            noise = json.load(file)
        self.assertEqual(len(noise["cells"]), 4)
        for cell in noise["cells"]:
            cell["spread_percent"] = 5.0
        with open(os.path.join(folder, "noise.json"), "w", encoding="utf-8") as file:
            json.dump(noise, file)
        slow = self.compare(*self.fresh(scale={("write_bw", 64): 0.95}), "--sensitivity", "20%")
        self.assertEqual(slow.code, 0, slow)
        self.assertIn("noise widens the limit of 4 cells", slow.out)

    def test_reports_go_to_standard_output(self):
        self.baseline()
        result = self.compare(*self.fresh(), "--json", "-")
        self.assertEqual(json.loads(result.out)["counts"]["ok"], 4)
        self.assertIn("4 cells: 4 ok", result.err)
        self.assertTrue(self.compare(*self.fresh(), "--markdown", "-").out.startswith("### gdrperf compare: No regr"))


class Rerun(Folder):
    def setUp(self):
        super().setUp()
        self.baseline()
        self.slow = self.fresh(scale={("write_bw", 64): 0.9})

    def again(self, command):
        return self.compare(*self.slow, "--rerun", command)

    def script(self, scale):
        """A command that writes other sessions of the same machine, one each time."""
        for i in range(3):
            self.write(f"again{i}.json", document(50 + i, scale=scale))
        return f"cd '{self.root}' && echo noise && f=$(ls again*.json | head -1) && mv \"$f\" {{}}"

    def test_what_comes_back_is_a_regression(self):
        result = self.again(self.script({("write_bw", 64): 0.9}))
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.out, r"    reproduced: -(9\.[5-9]|10\.[0-5]) %")
        self.assertNotIn("noise", result.out)

    def test_what_does_not_is_none(self):
        result = self.again(self.script(None))
        self.assertEqual(result.code, 0, result)
        self.assertIn("not reproduced", result.out)

    def test_a_command_that_fails(self):
        for command, words in (("exit 3; {}", "exit code 3"), ("true {}", "wrote no document"),
                               ("echo x > {}", "not JSON"), ("kill -9 $$ {}", "signal 9")):
            result = self.again(command)
            self.assertEqual(result.code, 4, result)
            self.assertIn(words, result.err)

    def test_a_command_without_a_file(self):
        result = self.again("true")
        self.assertEqual(result.code, 2, result)
        self.assertIn("{}", result.err)


class BadInput(Folder):
    def refused(self, *args, code=2):
        result = support.run(*args)
        self.assertEqual(result.code, code, result)
        self.assertIn("gdrperf: error: ", result.err)
        return result.err

    def test_documents(self):
        self.baseline()
        good = self.fresh()
        whole = json.dumps(document(60))
        other = copy.deepcopy(document(60))
        other["schema"] = "gdrperf-results/9"
        nan = document(60)
        nan["relations"]["HOST"]["write_bw"][0]["bw"]["median_gbps"] = float("nan")
        cases = {"cut.json": (whole[:len(whole) // 2], "ends in the middle"), "empty.json": ("", "empty"),
                 "text.json": ("hello", "not JSON"), "schema.json": (other, "gdrperf-results/9"),
                 "nan.json": (nan, "NaN"), "list.json": ("[]", "list")}
        for name, (content, words) in cases.items():
            with self.subTest(name):
                bad = self.write(name, content)
                for args in (("compare", self.store, *good, bad), ("compare", bad, *good),
                             ("baseline", "add", bad, "--dir", self.store)):
                    err = self.refused(*args)
                    self.assertIn(words, err)
                    self.assertIn(name, err)

    def test_null_figures_are_left_out(self):
        self.baseline()
        files = []
        for i in range(9):
            null = document(60 + i)
            null["relations"]["HOST"]["write_bw"][0]["bw"]["median_gbps"] = None
            files.append(self.write(f"null{i}.json", null))
        result = self.compare(*files)
        self.assertEqual(result.code, 4, "more than a tenth of the cells is gone")
        self.assertIn("has no result", result.out)
        self.assertIn("4 cells: 1 gone, 3 ok", result.out)

    def test_cells_with_one_sample_on_each_side(self):
        result = support.run("compare", self.write("a.json", document(1)), self.write("b.json", document(2)))
        self.assertEqual(result.code, 4, result)
        self.assertIn("4 cells: 4 inconclusive", result.out)
        self.assertIn("more sessions for the baseline", result.out)

    def test_a_document_of_500_MB(self):
        self.baseline()
        large = self.write("large.json", "")
        os.truncate(large, 500_000_000)
        err = self.refused("compare", self.store, large)
        self.assertIn("500 MB", err)
        self.assertIn("500 MB", self.refused("compare", "--by", "relation", large, large))

    def test_staged_and_direct_are_two_cells(self):
        def both_ways(number):
            session = document(number, sizes=(64,))
            (run,) = session["relations"]["HOST"]["write_bw"]
            session["relations"]["HOST"]["write_bw"] = [dict(run, path=path) for path in ("direct", "staged")]
            return session

        files = [self.write(f"ways{i}.json", both_ways(i)) for i in range(2)]
        result = support.run("compare", *files)
        self.assertEqual(result.code, 4, result)
        self.assertIn("write_bw/HOST/host:mlx5_0/64/staged", result.out)
        self.assertIn("3 cells: 3 inconclusive", result.out)

    def test_a_large_document_takes_memory_in_proportion(self):
        with open(support.BINARY, "rb") as binary:
            if b"__asan_init" in binary.read():
                self.skipTest("a sanitizer takes more address space than any limit")
        self.baseline()
        large = document(61)
        large["relations"]["HOST"]["write_bw"][0]["bw"]["batches_gbps"] = [1.5] * 4_000_000
        path = self.write("long.json", large)
        # 24 MB of text: without building it, that and little more.
        result = support.run("compare", self.store, path, command=["bash", "-c", "ulimit -v 400000; exec \"$@\"", "-"])
        self.assertEqual(result.code, 4, result)

    def test_paths_and_options(self):
        self.baseline()
        good = self.fresh(1)[0]
        os.mkdir(self.path("nothing"))
        for args, words in ((("compare", self.path("nothing"), good), "no result documents"),
                            (("compare", self.path("absent"), good), "no such file"),
                            (("compare", self.store, good, "--threshold", "-1"), "--threshold"),
                            (("compare", self.store, good, "--alpha", "2"), "--alpha"),
                            (("compare", self.store, good, "--across", "weather"), "there are host"),
                            (("compare", self.store, good, "--json", "-", "--markdown", "-"), "exclude"),
                            (("compare", self.store), "NEW"), (("baseline",), "one of add, noise, trend"),
                            (("baseline", "add", good, "--folder", "x"), "--folder")):
            with self.subTest(" ".join(args)):
                self.assertIn(words, self.refused(*args))
        self.refused("baseline", "noise", good, "--dir", self.store, code=4)
        self.refused("baseline", "add", good, "--dir", "/proc/none", code=3)


@unittest.skipIf(support.softnic_works(), "no software device")
class SoftwareDevice(Folder):
    def test_real_runs(self):
        """Only that the whole chain works: two noisy sessions prove nothing."""
        files = []
        for i in range(2):
            files.append(self.path(f"real{i}.json"))
            result = support.run("sweep", "--local", "--softnic", "--devices", "soft0", "--ops", "write_bw,read_lat",
                                 "--sizes", "64,64K", "-D", "20ms", "--json", files[-1])
            self.assertIn(result.code, (0, 4), result)
        self.assertEqual(support.run("baseline", "add", files[0], "--dir", self.store).code, 0)
        result = self.compare(files[1], "--all")
        self.assertEqual(result.code, 4, result)
        self.assertIn("write_bw/HOST/host:soft0/65536", result.out)
        self.assertIn("4 cells: 4 inconclusive", result.out)


if __name__ == "__main__":
    support.main()
