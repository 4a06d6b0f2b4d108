#!/usr/bin/env python3
"""gdrperf report from outside: what it writes, and what it does with documents that are wrong."""

import json
import os
import re
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support  # noqa: E402
from made_documents import document, machine, run  # noqa: E402
from support import CliTest  # noqa: E402

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> | `x` \u202e \x01"
SIZES = [64, 4096, 65536, 1 << 20]


class Report(CliTest):
    def setUp(self):
        self.folder = self.scratch()

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def report(self, *arguments):
        output = os.path.join(self.folder, "out.html")
        self.expect_ok(support.run("report", *arguments, "-o", output))
        with open(output, encoding="utf-8") as page:
            return page.read()

    def data(self, page):
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))

    def test_one_file_that_asks_for_nothing(self):
        page = self.report(self.write("a.json", machine(2, 2, SIZES)))
        self.assertNotIn("@DATA@", page)
        self.assertIsNone(re.search(r'(src|href)\s*=\s*"(?!#)', page.split("<script", 1)[0]),
                          "it refers to another file")
        self.assertIn("default-src 'none'", page)
        data = self.data(page)
        self.assertEqual(data["documents"][0]["rows"], 2 * 2 * 2 * len(SIZES))
        self.assertEqual(data["verdict"]["level"], "good", data["verdict"])
        self.assertIn("All well: 4 pairs", page)

    def test_the_pair_that_falls_short_is_named_with_why_and_what_to_do(self):
        page = self.report(self.write("a.json", machine(3, 3, SIZES, poor="GPU1/mlx5_1")))
        found = [each for each in self.data(page)["verdict"]["findings"] if each["level"] == "bad"]
        self.assertEqual([each["subject"] for each in found], ["GPU1/mlx5_1"])
        self.assertIn("of the theoretical maximum of this PIX path (limited by link of the NIC)", found[0]["text"])
        self.assertIn("gdrperf topo --explain GPU1 mlx5_1", found[0]["todo"])

    def test_hostile_strings_are_shown_and_never_run(self):
        made = run("write_bw", 65536, "GPU0", HOSTILE, "PIX", unstable="scatter")
        made["warnings"] = [HOSTILE]
        path = self.write("a.json", document([("PIX", made)], host=HOSTILE, warnings=[HOSTILE]))
        page = self.report(path)
        self.assertEqual(len(re.findall(r"<script", page)), 2, "a third script")
        self.assertEqual(page.count("</script>"), 2)
        self.assertNotIn("<img", page)
        self.assertEqual(self.data(page)["documents"][0]["head"]["hosts"]["client"]["hostname"], HOSTILE)
        markdown = support.run("report", path, "--format", "markdown")
        self.expect_ok(markdown)
        self.assertNotIn("<script", re.sub(r"\\<", "", markdown.out))
        picture = support.run("report", path, "--format", "svg")
        self.expect_ok(picture)
        self.assertNotIn("alert", picture.out)

    def test_wrong_documents_are_refused_with_the_place(self):
        whole = json.dumps(machine(1, 1, SIZES))
        cases = {"cut": (whole[:3000], "ends in the middle, after 3000 bytes"),
                 "other": (json.dumps(document([], schema="gdrperf-results/9")), "gdrperf-results/9"),
                 "list": ("[1, 2]", "no result document"),
                 "nan": (whole.replace('"qps": 1', '"qps": NaN', 1), "not JSON at byte"),
                 "nothing": ("", "empty"), "deep": ("{\"a\":" * 100 + "1" + "}" * 100, "levels deep")}
        for name, (content, words) in cases.items():
            with self.subTest(name):
                result = support.run("report", self.write(name + ".json", content), "-o",
                                     os.path.join(self.folder, "never.html"))
                self.expect_error(result, 2, name + ".json", words)
                self.assertFalse(os.path.exists(os.path.join(self.folder, "never.html")))

    def test_200_megabytes_are_refused_by_their_size(self):
        path = os.path.join(self.folder, "big.json")
        with open(path, "wb") as out:
            out.truncate(200_000_000)
        self.expect_error(support.run("report", path), 2, "big.json", "larger than")

    def test_a_document_without_runs_makes_a_page(self):
        page = self.report(self.write("a.json", document([])))
        self.assertIn("a.json is empty: it has no runs.", page)
        self.assertIn("<title>left, 2025-01-31 12:00 - gdrperf</title>", page)

    def test_odd_types_make_a_page(self):
        odd = machine(1, 1, SIZES)
        odd["tool"], odd["hosts"], odd["topology"]["pairs"], odd["warnings"] = 7, [], "x", {"a": 1}
        for runs in odd["relations"]["PIX"].values():
            runs[0].update(warnings="text", unstable="maybe", efficiency="much", pair=5)
            (runs[0]["bw"] or runs[0]["latency"]).update(batches_gbps="x", batches_p50_ns={"a": 1}, ci95_gbps=[1],
                                                         ci95_p50_ns="y")
        self.assertEqual(self.data(self.report(self.write("a.json", odd)))["documents"][0]["rows"], 2 * len(SIZES))

    def test_wrong_use_names_what_is_wrong(self):
        path = self.write("a.json", machine(1, 1, SIZES))
        self.expect_error(support.run("report", path, "--format", "pdf"), 2, "--format 'pdf'", "html, markdown or svg")
        self.expect_error(support.run("report", self.folder + "/none.json"), 2, "none.json")
        self.expect_error(support.run("report", path, "-"), 2, "standard input")
        self.expect_error(support.run("report", *[path] * 9), 2, "up to 8")
        self.expect_error(support.run("report", path, "-o", self.folder + "/no/such/out.html"), 3, "no/such")

    def test_markdown_has_a_row_for_each_line_of_the_charts(self):
        result = support.run("report", self.write("a.json", machine(2, 2, SIZES, staged=True)), "--format", "markdown")
        self.expect_ok(result)
        self.assertIn("## All well: 4 pairs", result.out)
        rows = [line for line in result.out.splitlines() if line.startswith("| write")]
        self.assertEqual(len(rows), 2 * 2 * 2, result.out)  # tests, relations, paths
        self.assertRegex(result.out, r"\| write\\_bw \| PIX \| direct \| 11\.\d+ GB/s \| 1 MiB \|.* 9\d % \|")

    def test_svg_is_well_formed_and_has_a_line_for_each_relation_and_path(self):
        result = support.run("report", self.write("a.json", machine(2, 2, SIZES, staged=True)), "--format", "svg")
        self.expect_ok(result)
        lines = xml.etree.ElementTree.fromstring(result.out).findall(".//{http://www.w3.org/2000/svg}polyline")
        self.assertEqual([len(line.get("points").split()) for line in lines], [len(SIZES)] * 8)

    def test_results_of_a_cluster_are_a_page_and_markdown(self):
        path = os.path.join(os.path.dirname(support.SCHEMA), "cluster-64.json")
        data = self.data(self.report(path))
        self.assertEqual(data["verdict"]["level"], "bad")
        self.assertEqual(data["verdict"]["findings"][0]["subject"], "NIC vm nic41 (rank 41), rail 0")
        self.assertIn("confirmed by retests; its loopback reaches 80 % of another NIC's: suspect the NIC or its host",
                      data["verdict"]["findings"][0]["text"])
        self.assertEqual(len(data["clusters"][0]["nics"]), 64)
        markdown = support.run("report", path, "--format", "markdown")
        self.expect_ok(markdown)
        self.assertIn(
            "## NIC vm nic41 (rank 41), rail 0 is slow: -20.0 % compared with the others when it sends. "
            "The cluster has 64 NICs.",
            markdown.out)
        self.expect_error(support.run("report", path, "--format", "svg"), 2, "--format svg")

    def test_wrong_results_of_a_cluster_are_refused_with_the_place(self):
        with open(os.path.join(os.path.dirname(support.SCHEMA), "cluster-64.json"), encoding="utf-8") as file:
            whole = file.read()
        for name, content, words in (("cut", whole[:5000], "cut.json"),
                                     ("other", whole.replace("gdrperf-cluster/1", "gdrperf-cluster/9", 1),
                                      "gdrperf-cluster/9"),
                                     ("odd", whole.replace('"nics"', '"nicks"', 1), "nics")):
            with self.subTest(name):
                result = support.run("report", self.write(name + ".json", content), "-o",
                                     os.path.join(self.folder, "never.html"))
                self.expect_error(result, 2, name + ".json", words)
                self.assertFalse(os.path.exists(os.path.join(self.folder, "never.html")))

    def test_standard_input(self):
        with open(self.write("a.json", machine(1, 1, SIZES)), "rb") as source:
            result = support.run("report", "-", "--format", "markdown", stdin=source)
        self.expect_ok(result)
        self.assertIn("All well", result.out)

    def test_two_documents_are_compared_cell_by_cell(self):
        before = self.write("before.json", machine(2, 2, SIZES))
        after = self.write("after.json", machine(2, 2, SIZES, poor="GPU0/mlx5_0"))
        data = self.data(self.report(before, after))
        self.assertEqual(len(data["documents"]), 2)
        cells = data["comparisons"][0]["cells"]
        self.assertEqual(len(cells), 2 * 2 * 2 * len(SIZES))
        worse = {cell[0] for cell in cells if cell[6]}
        self.assertIn("write_bw/PIX/GPU0:mlx5_0>host:mlx5_9/1048576", worse)
        self.assertFalse([name for name in worse if "GPU1:mlx5_1" in name])

    def test_a_folder_is_a_baseline_with_a_history(self):
        base = os.path.join(self.folder, "base")
        os.mkdir(base)
        for day in range(12):
            made = machine(1, 1, SIZES, poor="GPU0/mlx5_0" if day >= 6 else None)
            made["started"] = f"2025-01-{day + 1:02}T12:00:00Z"
            # What repeats to the last digit has no ranks to tell.
            for runs in made["relations"]["PIX"].values():
                for each in runs:
                    for figures, name in ((each["bw"], "median_gbps"), (each["latency"], "p50_ns")):
                        if figures:
                            figures[name] *= 1 + day % 5 / 10000
            self.write(f"base/{day}.json", made)
        trend = self.data(self.report(base))["trends"][0]
        self.assertEqual(len(trend["sessions"]), 12)
        large = next(cell for cell in trend["cells"] if cell["name"].startswith("write_bw")
                     and cell["name"].endswith("/1048576"))
        self.assertEqual([each["at"] for each in large["changes"]], [6])
        recent = [self.write(f"new{i}.json", {**machine(1, 1, SIZES, poor="GPU0/mlx5_0"),
                                              "started": f"2025-02-0{i + 1}T12:00:00Z"}) for i in range(3)]
        data = self.data(self.report(base, *recent))
        self.assertEqual(data["comparisons"][0]["before"], base)


if __name__ == "__main__":
    support.main()
