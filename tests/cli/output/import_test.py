"""gdrperf import: other programs' results become documents that compare and report read."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import perftest_ends
import support
from support import run

DATA = perftest_ends.ROOT / "tests" / "data" / "import"
# Runs in GPU memory: the files do not say where GPU and NIC are.
ON_GPU = {"perftest-26-write_bw-cuda.txt", "perftest-26-write_bw-gbits.json"}

try:
    import jsonschema
except ImportError:
    jsonschema = None

TWO_PORTS = "perftest-26-ports.txt"


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def imported(self, *args):
        result = run("import", *args)
        self.assertEqual(result.code, 0, result)
        document = json.loads(result.out)
        if jsonschema:
            jsonschema.validate(document, json.loads(pathlib.Path(support.SCHEMA).read_text(encoding="utf-8")))
        return document, result


class Import(Folder):
    def test_each_file_is_a_document_of_the_schema(self):
        files = sorted(file for file in DATA.iterdir() if file.name != TWO_PORTS)
        self.assertGreater(len(files), 15)
        for file in files:
            with self.subTest(file.name):
                document, result = self.imported(file, *(["--relation", "PXB"] if file.name in ON_GPU else []))
                self.assertEqual(list(document["relations"]), ["PXB" if file.name in ON_GPU else "HOST"])
                self.assertIn(f"{file}: ", result.err)
                runs = [each for tests in document["relations"].values() for test in tests.values() for each in test]
                self.assertEqual({each["device_kind"] for each in runs}, {"imported"})
                self.assertEqual(document["imported"][0]["runs"], len(runs))

    def test_two_ports_at_once_are_refused(self):
        result = run("import", DATA / TWO_PORTS)
        self.assertEqual(result.code, 2, result)
        self.assertIn(f"{TWO_PORTS}:3: two ports together", result.err)

    def test_files_together_are_one_session(self):
        files = [DATA / "perftest-4.5-write_bw-all.txt", DATA / "perftest-4.5-write_lat.txt",
                 DATA / "perftest-23-write_bw.json"]
        document, _ = self.imported(*files, "--peer-dev", "soft1", "--peer-buffer", "host")
        self.assertEqual({test: len(runs) for test, runs in document["relations"]["HOST"].items()},
                         {"write_bw": 24, "write_lat": 1})
        self.assertEqual(document["relations"]["HOST"]["write_lat"][0]["server"], {"device": "soft1", "buffer": "host"})
        self.assertEqual(document["warnings"], [])

    @unittest.skipIf(support.softnic_works(), "no software device")
    def test_compare_and_report_read_it_next_to_a_document_of_our_own(self):
        own = self.folder / "own.json"
        made = run("write_bw", "--local", "--softnic", "-s", "64K", "-n", "2000", "--json", own, "--quiet")
        self.assertEqual(made.code, 0, made)
        old = self.folder / "old.json"
        self.assertEqual(run("import", DATA / "perftest-4.5-write_bw-all.txt", "-o", old).code, 0)
        compared = run("compare", "--all", old, own)
        self.assertEqual(compared.code, 4, compared)  # one session on each side decides nothing
        row = next(line for line in compared.out.splitlines() if line.startswith("write_bw/HOST/host:soft0/65536 "))
        self.assertIn("inconclusive", row)
        self.assertIn("old.json: imported, its conditions are not known", compared.out)
        page = self.folder / "page.html"
        reported = run("report", old, own, "-o", page)
        self.assertEqual(reported.code, 0, reported)
        self.assertIn("imported", page.read_text(encoding="utf-8"))
        alone = run("report", old, "--format", "markdown")
        self.assertEqual(alone.code, 0, alone)
        self.assertIn("Imported from another program", alone.out)
        resumed = run("sweep", "--resume", old)
        self.assertEqual(resumed.code, 2, resumed)
        self.assertIn("imported from another program", resumed.err)

    def test_what_is_wrong_is_said_with_file_and_line(self):
        whole = (DATA / "perftest-4.4-write_bw.txt").read_text(encoding="utf-8")
        for name, text, words in [("none.txt", "hello\n", "none.txt:1: no output that can be imported"),
                                  ("bad.txt", whole.replace("11742.06", "fast"), "bad.txt:19: 'fast' is not a number"),
                                  ("cut.txt", whole[:whole.index("11742.06") + 4], "cut.txt:19"),
                                  ("cut.json", (DATA / "perftest-26-write_lat.json").read_text()[:300],
                                   "cut.json:15: ends in the middle")]:
            with self.subTest(name):
                result = run("import", self.write(name, text))
                self.assertEqual(result.code, 2, result)
                self.assertIn(words, result.err)
                self.assertEqual(result.out, "")

    def test_relation_is_asked_for_where_it_means_something(self):
        gpu = DATA / "perftest-26-write_bw-cuda.txt"
        for args, words in [([gpu], "--relation"), ([gpu, "--relation", "HOST"], "not PIX"),
                            ([DATA / "perftest-4.4-write_bw.txt", "--relation", "PIX"],
                             "no run in it is in GPU memory")]:
            result = run("import", *args)
            self.assertEqual(result.code, 2, result)
            self.assertIn(words, result.err)


@perftest_ends.installed
@unittest.skipIf(support.softnic_works(), "no software device")
@unittest.skipIf(support.sanitized(), "perftest loads no sanitized software device here")
class InstalledPerftest(Folder):
    def test_what_it_prints_here_and_now(self):
        for program, args, test in [("ib_write_bw", ["-n", "200", "-a"], "write_bw"),
                                    ("ib_read_bw", ["-n", "200", "--report_gbits"], "read_bw"),
                                    ("ib_send_lat", ["-n", "200"], "send_lat")]:
            with self.subTest(program):
                text = perftest_ends.both(program, *args)
                document, _ = self.imported(self.write(test + ".txt", text))
                rows = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
                runs = document["relations"]["HOST"][test]
                self.assertEqual([each["size_bytes"] for each in runs], [int(row[0]) for row in rows])
                for row, each in zip(rows, runs):
                    if test == "send_lat":
                        self.assertAlmostEqual(each["latency"]["p50_ns"], float(row[4]) * 1e3, places=3)
                    else:
                        factor = 1 if test == "read_bw" else 8 * 2**20 / 1e9
                        wanted = float(row[3]) * factor
                        self.assertAlmostEqual(each["bw"]["median_gbps"], wanted, delta=1e-6 * wanted)


if __name__ == "__main__":
    support.main()
