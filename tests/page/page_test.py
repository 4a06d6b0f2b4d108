#!/usr/bin/env python3
"""The report in a real browser: page_test.py BINARY SCHEMA WEB BUILD_FOLDER."""

import json
import os
import sys
import unittest

WEB, FOLDER = os.path.abspath(sys.argv[3]), os.path.abspath(sys.argv[4])
del sys.argv[3:]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support  # noqa: E402
from chromium import Chromium, find  # noqa: E402
from made_documents import document, machine, run  # noqa: E402
from node_packages import install  # noqa: E402

SIZES = [2 ** i for i in range(6, 24, 2)]
HOSTILE = "</script><script>window.ran=1</script><img src=x onerror='window.ran=1'>{a|b}"


@unittest.skipUnless(find(), "no Chromium here (apt-get install chromium)")
class Page(support.CliTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = Chromium(find())
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.folder = self.scratch()

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            json.dump(content, out)
        return path

    def open(self, *documents):
        output = os.path.join(self.folder, "out.html")
        paths = [each if isinstance(each, str) else self.write(f"d{i}.json", each) for i, each in enumerate(documents)]
        # 20 MB of JSON take an unoptimised build a minute where the machine is busy.
        self.expect_ok(support.run("report", *paths, "-o", output, timeout=300))
        seconds = self.browser.open(output)
        self.assert_quiet()
        self.assertTrue(self.browser.run("!!window.gdrperf"), "the script did not come to its end")
        return seconds, os.path.getsize(output)

    def assert_quiet(self):
        self.assertEqual(self.browser.messages, [])
        self.assertEqual([url for url in self.browser.requests if not url.startswith(("file:", "blob:"))], [])

    def series(self, figure):
        """Number of points by line, bands left out."""
        return self.browser.run(f"""Object.fromEntries(gdrperf.charts.get('{figure}').chart.getOption().series
            .filter((one) => one.type !== 'custom').map((one) => [one.name, one.data.length]))""")

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def test_every_chart_has_its_points(self):
        made = machine(2, 2, SIZES, staged=True)
        for runs in made["relations"].values():
            for some in runs.values():
                for each in some:
                    each["device_kind"] = "software"
        self.open(made)
        lines = ["PIX", "PIX staged", "PXB", "PXB staged"]
        for figure in ("bandwidth", "latency"):
            self.assertEqual(self.series(figure), dict.fromkeys(lines, len(SIZES)))
        self.assertEqual(self.series("percentiles"), dict.fromkeys(lines, 5))
        self.assertEqual(self.series("batches"), {f"GPU{gpu}/mlx5_{nic}{path}": 20 for gpu in (0, 1) for nic in (0, 1)
                                                  for path in ("", " staged")})
        for figure in ("bandwidth", "latency", "percentiles", "batches"):
            drawn = self.browser.run(f"document.querySelectorAll('#figure-{figure} svg path').length")
            self.assertGreater(drawn, len(lines) * 2, figure)
        marks = self.browser.run("""gdrperf.charts.get('bandwidth').chart.getOption().series.flatMap((one) => one.markLine?.data ?? [])
            .map((mark) => mark.label.formatter)""")
        self.assertIn("maximum of PIX, PXB", marks)
        self.assertTrue([mark for mark in marks if mark.startswith("crossover")], marks)

    def test_published_figures_stand_beside_hardware_alone(self):
        self.open(machine(2, 2, SIZES))
        self.assertGreater(self.series("bandwidth").get("published", 0), 0)
        self.open(machine(2, 2, SIZES, kind="simulated"))
        self.assertNotIn("published", self.series("bandwidth"))
        self.assertIn("Simulated links", self.text("#verdict"))

    def test_a_click_on_the_map_picks_the_pair(self):
        self.open(machine(3, 3, SIZES))
        self.assertEqual(self.browser.run("document.querySelectorAll('.heat .cell').length"), 9)
        self.assertEqual(set(self.series("bandwidth")) - {"published"}, {"PIX", "PXB", "PHB"})
        self.browser.click('[data-place="GPU2/mlx5_0"]')
        self.assertEqual(set(self.series("bandwidth")) - {"published"}, {"PHB"})
        self.assertEqual(self.browser.run("document.querySelectorAll('.runs tbody tr').length"), 2 * len(SIZES))
        self.assertIn("limited by link of the NIC", self.text("#picked"))
        self.browser.click("#unpick")
        self.assertEqual(set(self.series("bandwidth")) - {"published"}, {"PIX", "PXB", "PHB"})

    def test_the_keyboard_alone_does(self):
        self.open(machine(2, 2, SIZES))
        self.browser.press("Tab")
        self.assertEqual(self.browser.run("document.activeElement.className"), "skip")
        for _ in range(30):
            self.browser.press("Tab")
            if self.browser.run("document.activeElement.dataset.place || ''") == "GPU0/mlx5_0":
                break
        self.browser.press("ArrowRight")
        self.browser.press("ArrowDown")
        self.browser.press("Enter")
        self.assertEqual(self.browser.run("gdrperf.state.place"), "GPU1/mlx5_1")
        self.assertEqual(self.browser.run("document.activeElement.getAttribute('aria-pressed')"), "true",
                         "the focus was lost")
        self.browser.press(" ")
        self.assertEqual(self.browser.run("gdrperf.state.place"), "")

    def test_units_change_everywhere(self):
        self.open(machine(1, 1, SIZES))
        first = "gdrperf.charts.get('bandwidth').chart.getOption().series.find((one) => one.name === 'PIX').data.at(-1)[1]"
        gigabytes = self.browser.run(first)
        for unit, factor in (("Gb/s", 8), ("MiB/s", 1e9 / 1048576), ("GB/s", 1)):
            self.browser.choose("#unit", unit)
            self.assertAlmostEqual(self.browser.run(first) / gigabytes, factor, places=6)
            self.assertIn(f"in {unit},", self.text("#heat p"))
            self.assertIn(unit, self.browser.run("gdrperf.charts.get('bandwidth').chart.getOption().yAxis[0].name"))
        self.assert_quiet()

    def test_choices_of_test_size_and_axis(self):
        self.open(machine(2, 2, SIZES, ops=("write_bw", "read_bw", "write_lat"), both_ways=True))
        self.browser.choose("#rate-test", "read_bw bidirectional")
        self.assertEqual(self.series("bandwidth")["PIX"], len(SIZES))
        self.browser.choose("#scale", "linear")
        self.assertEqual(self.browser.run("gdrperf.charts.get('bandwidth').chart.getOption().yAxis[0].type"), "value")
        self.browser.choose("#size", str(SIZES[0]))
        self.assertIn("64 B", self.text("#figure-percentiles figcaption"))
        self.browser.choose("#heat-test", "write_lat")
        self.assertIn("in us,", self.text("#heat p"))
        self.assert_quiet()

    def test_the_table_sorts_filters_pages_and_saves(self):
        self.open(machine(3, 3, SIZES))
        total = 3 * 3 * 2 * len(SIZES)
        self.assertIn(f"{total} of {total}", self.text("#runs [role=status]"))
        self.browser.click("#next")
        self.assertIn("Page 2 of 2", self.text("#runs"))
        self.browser.run("document.querySelector('[data-column=median_gbps]').click()")
        self.browser.run("document.querySelector('[data-column=median_gbps]').click()")
        self.assertEqual(self.browser.run("document.querySelector('th[aria-sort=descending]').textContent.trim()"),
                         "median_gbps v")
        self.browser.choose("#filter", "write_lat PIX 16777216")
        self.assertIn(f"0 of {total}", self.text("#runs [role=status]"))
        self.browser.choose("#filter", "write_lat pix 65536")
        self.assertIn(f"3 of {total}", self.text("#runs [role=status]"))
        saved = self.browser.run("""new Promise((done) => { const kept = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then(done); return kept(blob); };
            HTMLAnchorElement.prototype.click = () => {}; document.getElementById('csv').click(); })""")
        self.assertEqual(len(saved.splitlines()), 4)
        self.assertEqual(saved.splitlines()[1].split(",")[:3], ["PIX", "write_lat", "65536"])
        copied = self.browser.run("""new Promise((done) => { document.execCommand = () => { done(document.activeElement.value); return true; };
            Object.defineProperty(navigator, 'clipboard', { value: { writeText: () => Promise.reject(new Error('refused')) } }); document.getElementById('copy').click(); })""")
        self.assertEqual(len(copied.splitlines()), 4)
        self.assertIn("\t65536\t", copied)

    def test_two_documents_stand_side_by_side(self):
        self.open(machine(2, 2, SIZES), machine(2, 2, SIZES, poor="GPU0/mlx5_0"))
        self.assertEqual(set(self.series("bandwidth")) - {"published"},
                         {f"{relation}, d{i}.json" for relation in ("PIX", "PXB") for i in (0, 1)})
        self.assertIn("worse, not proven", self.text("#comparison-0"))
        self.browser.choose("#changes-0", "all")
        self.assertEqual(self.browser.run("document.querySelectorAll('.compare tbody tr').length"),
                         2 * 2 * 2 * len(SIZES))

    def test_a_baseline_shows_its_history(self):
        self.open(os.path.join(os.path.dirname(WEB), "results", "baselines"))
        self.assertEqual(list(self.series("trend-0").values()), [12])

    def test_a_cluster_is_a_map_of_nodes_and_rails_with_its_suspects(self):
        path = os.path.join(os.path.dirname(WEB), "results", "cluster-64.json")
        with open(path, encoding="utf-8") as file:
            made = json.load(file)
        (suspect,) = [each for each in made["suspects"] if each["verdict"] == "slow"]
        self.assertEqual((suspect["nic"], suspect["way"]), (41, "sends"))
        self.open(path)
        self.assertEqual(self.browser.run("document.querySelectorAll('.cluster .effect').length"), 64)
        self.assertEqual(self.browser.run("[...document.querySelectorAll('.cluster .suspect')].map((one) => "
                                          "one.closest('tr').querySelector('th').textContent)"),
                         ["vm, rank 41"])
        self.assertEqual(self.series("cluster-0"), {"sends": 64, "receives": 64})
        self.assertIn("NIC vm nic41 (rank 41), rail 0 is slow", self.text("#verdict"))
        self.assertIn(f"{suspect['retest_shift_percent']:+.1f} % compared with the others when it sends",
                      self.text("#verdict"))
        self.assertRegex(self.text(".cluster .suspect"), r"^-(19|20|21)\.")
        self.browser.choose("#cluster-way-0", "receives")
        self.assertNotRegex(self.text(".cluster .suspect"), r"^-(19|20|21)\.")
        self.assertEqual(self.browser.run("document.querySelectorAll('#runs').length"), 0, "it has no runs")
        self.assert_quiet()

    def test_a_cluster_beside_results_and_with_hostile_names(self):
        with open(os.path.join(os.path.dirname(WEB), "results", "cluster-64.json"), encoding="utf-8") as file:
            made = json.load(file)
        for each in made["nics"] + made["ranks"]:
            each["host"] = HOSTILE + str(each["rank"])
        made["patterns"] = [{"pattern": HOSTILE, "step": "x", "flows": 2, "failed": 0, "sum_gbytes": 1.5,
                             "least_gbytes": 1,
                             "median_gbytes": 1, "most_gbytes": 1, "victim_gbytes": None}]
        made["collectives"] = [
            {"step": "all_reduce 8 MiB", "library": HOSTILE, "size_bytes": 8 << 20, "gpus": 2, "hosts": 2,
             "seconds": 2e-3, "bus_gbytes": 45.5, "share_of_pairs": 0.9, "failed": []},
            {"step": "all_reduce", "library": "", "size_bytes": 0, "gpus": 2, "hosts": 2, "seconds": None,
             "bus_gbytes": None, "share_of_pairs": None, "failed": [HOSTILE]}]
        self.open(made, machine(1, 1, SIZES))
        self.assertFalse(self.browser.run("'ran' in window"))
        self.assertEqual(self.browser.run("document.querySelectorAll('img').length"), 0)
        self.assertIn(HOSTILE, self.text("#cluster-section-0"))
        rows = self.browser.run("[...document.querySelectorAll('table')].find((each) => each.textContent.includes('bus "
                                "bandwidth')).tBodies[0].innerText.split('\\n').map((row) => row.split('\\t'))")
        self.assertEqual(rows[0], ["8 MiB", "2", "2", HOSTILE, "2 ms", "45.5 GB/s", "90 %", "-"])
        self.assertEqual(rows[1][4:], ["-", "-", "-", HOSTILE])
        self.assertGreater(self.browser.run("document.querySelectorAll('#runs tbody tr').length"), 0)
        self.assert_quiet()

    def test_counters_and_the_scenario_are_shown(self):
        made = machine(1, 1, SIZES)
        made["scenario"] = {"file": "nightly.ini", "text": "[a]\ntest = write_bw " + HOSTILE}
        for i, each in enumerate(made["relations"]["PIX"]["write_bw"]):
            each["client"]["counters"] = {"port_xmit_packets": 10, "out_of_sequence": i + 1}
        self.open(made)
        self.assertIn("2 rose, 1 of errors", self.text("#counters summary"))
        rows = self.browser.run("[...document.querySelectorAll('#counters tbody tr')].map((row) => "
                                "[...row.cells].map((cell) => cell.textContent))")
        last = len(SIZES)
        self.assertEqual(rows, [["client mlx5_0", "out_of_sequence (!)", f"+{last * (last + 1) // 2}", str(last)],
                                ["client mlx5_0", "port_xmit_packets", f"+{10 * last}", str(last)]])
        self.assertIn("nightly.ini", self.text("#environment"))
        self.assertIn(HOSTILE, self.text("#environment"))
        self.assert_quiet()

    def check_real(self, path):
        """Each line of the charts has a point for each size that the document has for it."""
        self.open(path)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        for figure, test in (("bandwidth", self.browser.run("gdrperf.state.rateTest")),
                             ("latency", self.browser.run("gdrperf.state.timeTest"))):
            wanted = {}
            for relation, tests in document["relations"].items():
                for each in tests.get(test, []):
                    if each["direction"] == "unidirectional" and (each["bw"] or each["latency"]):
                        name = relation + (" staged" if each.get("path") == "staged" else "")
                        wanted.setdefault(name, set()).add(each["size_bytes"])
            shown = self.series(figure)
            shown.pop("published", None)
            self.assertEqual(shown, {name: len(sizes) for name, sizes in wanted.items()}, figure)
        self.assertTrue(self.text("#verdict .headline"))
        self.browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
        self.assert_quiet()

    def test_the_committed_document_of_two_h200(self):
        self.check_real(os.path.join(os.path.dirname(WEB), "results", "h200-softnic.json"))

    @unittest.skipIf(support.softnic_works(), "no software device")
    def test_what_quickstart_makes_and_a_simulated_machine(self):
        latest = os.path.join(self.folder, "latest.json")
        self.expect_swept(support.run("sweep", "--local", "--softnic", "-n", "50", "--json", latest))
        self.check_real(latest)
        names = ["GPU0", "GPU1", "GPU2", "mlx5_0"]
        links = {"GPU0": "PIX", "GPU1": "PHB", "GPU2": "SYS"}
        relation = lambda one, other: " X " if one == other else links.get(one if other == "mlx5_0" else other,
                                                                           "SYS") if "mlx5_0" in (one, other) else "SYS"
        lines = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity"])]
        lines += ["\t".join([one, *(relation(one, other) for other in names), "0-7", "0"]) for one in names]
        topo = os.path.join(self.folder, "topo.txt")
        with open(topo, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        simulated = os.path.join(self.folder, "simulated.json")
        self.expect_swept(support.run("sweep", "--machine", topo, "--ops", "write_bw,write_lat", "--sizes", "64,4K,64K",
                                      "-n", "50", "--json", simulated))
        self.check_real(simulated)
        self.assertIn("Simulated links", self.text("#verdict"))
        self.assertEqual(set(self.series("bandwidth")), {"PIX", "PHB", "SYS"})

    def test_hostile_strings_do_nothing(self):
        made = run("write_bw", 65536, "GPU0", HOSTILE, "PIX", unstable="drift")
        made["warnings"] = [HOSTILE]
        self.open(document([("PIX", made), ("SYS", run("write_lat", 65536, "GPU0", HOSTILE, "SYS"))], host=HOSTILE,
                           warnings=[HOSTILE]))
        self.browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
        self.assertFalse(self.browser.run("'ran' in window"))
        self.assertEqual(self.browser.run("document.querySelectorAll('img').length"), 0)
        self.assertIn(HOSTILE, self.text("#environment"))
        self.browser.run("document.querySelector('.cell').click()")
        self.assertFalse(self.browser.run("'ran' in window"))
        self.assert_quiet()

    def test_odd_types_and_no_runs_break_nothing(self):
        odd = machine(1, 1, SIZES)
        odd |= {"tool": 7, "hosts": [None, "x"], "topology": {"pairs": {"GPU0/mlx5_0": 5}, "gpus": 3},
                "warnings": {"a": 1}}
        self.open(odd)
        self.browser.click(".cell")
        self.assert_quiet()
        self.open(document([]))
        self.assertIn("is empty: it has no runs", self.text("#verdict"))
        self.assertIn("no runs", self.text("#empty"))

    def test_a_large_sweep_stays_light(self):
        ops = ("write_bw", "read_bw", "send_bw", "write_lat", "read_lat", "send_lat")
        seconds, size = self.open(machine(8, 8, [2 ** i for i in range(24)], ops=ops, both_ways=True))
        self.assertEqual(self.browser.run("gdrperf.documents[0].rows"), 64 * 24 * 8)
        self.assertLess(size, 5_000_000)
        # How long it takes says as much of the machine as of the page: told, not judged.
        print(f"64 pairs x 24 sizes x 8 tests: {size / 1e6:.2f} MB, {seconds:.2f} s until loaded, "
              f"all drawn {self.browser.run('gdrperf.drawnAfterMs') / 1000:.2f} s after navigation")

    def test_dark_light_and_paper(self):
        self.open(machine(2, 2, SIZES))
        background = "getComputedStyle(document.body).backgroundColor"
        self.browser.media(prefers_color_scheme="dark")
        dark = self.browser.run(background)
        self.browser.click("#theme")
        light = self.browser.run(background)
        self.assertNotEqual(dark, light)
        self.assertIn("light", self.text("#theme"))
        self.browser.run("try { localStorage.clear() } catch {}")
        self.browser.media(prefers_color_scheme="light")
        pdf = os.path.join(self.folder, "paper.pdf")
        self.browser.pdf(pdf)
        self.assertGreater(os.path.getsize(pdf), 10_000)
        self.assert_quiet()

    def test_printing_loses_no_run_and_narrow_screens_need_no_sideways_scrolling(self):
        self.open(machine(3, 3, SIZES), machine(3, 3, SIZES, poor="GPU0/mlx5_0"))
        printed = """(() => { window.dispatchEvent(new Event('beforeprint'));
            const rows = document.querySelectorAll('.runs tbody tr').length; const closed = document.querySelectorAll('details:not(.points):not([open])').length;
            window.dispatchEvent(new Event('afterprint')); return [rows, closed]; })()"""
        self.assertEqual(self.browser.run(printed), [3 * 3 * 2 * len(SIZES), 0])
        self.assertEqual(self.browser.run("document.querySelectorAll('.runs tbody tr').length"), 100)
        self.browser.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1,
                          mobile=False)
        self.addCleanup(self.browser.call, "Emulation.clearDeviceMetricsOverride")
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 400)

    def test_bars_of_a_comparison_keep_their_proportions(self):
        before, after = machine(1, 1, SIZES, ops=("write_bw",)), machine(1, 1, SIZES, ops=("write_bw",))
        runs = after["relations"]["PIX"]["write_bw"]
        for each, factor in ((runs[0], 1.8), (runs[1], 8.51), (runs[2], 0.5)):
            each["bw"]["median_gbps"] *= factor
        self.open(before, after)
        self.browser.choose("#changes-0", "all")
        widths = self.browser.run("Object.fromEntries([...document.querySelectorAll('.compare tbody tr')].map((row) "
                                  "=> [row.cells[4].textContent, parseFloat(row.querySelector('i').style.width)]))")
        self.assertAlmostEqual(widths["+751.0 %"], 50, places=3)
        self.assertAlmostEqual(widths["+80.0 %"], 50 * 0.2745, places=1)
        self.assertAlmostEqual(widths["-50.0 %"], 50 * 0.3237, places=1)

    def test_axe_finds_nothing_serious(self):
        modules, why = install(WEB, FOLDER)
        if why:
            self.skipTest(why)
        with open(os.path.join(modules, "axe-core", "axe.min.js"), encoding="utf-8") as source:
            axe = source.read()
        for scheme in ("light", "dark"):
            self.browser.media(prefers_color_scheme=scheme)
            self.open(machine(2, 2, SIZES, staged=True), machine(2, 2, SIZES, poor="GPU0/mlx5_0"),
                      os.path.join(os.path.dirname(WEB), "results", "cluster-64.json"))
            self.browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
            self.browser.click('[data-place="GPU0/mlx5_0"]')
            self.browser.run(axe + "; true")
            found = self.browser.run("""axe.run().then((result) => result.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
                .map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html + ' ' + node.failureSummary).join(' | ')))""")
            self.assertEqual(found, [], scheme)
        self.browser.media(prefers_color_scheme="light")


if __name__ == "__main__":
    support.main()
