#!/usr/bin/env python3
"""The example gate for CIs, end to end: a baseline, the same link, a slower link."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import BINARY, CliTest, environment, long, main, run, softnic_works

ROOT = pathlib.Path(__file__).resolve().parents[3]
GATE = ROOT / "scripts/ci-example/gate.sh"
COMMITTED = ROOT / "results/baselines"
# So slow that a queue of messages is under way for 80 ms, and 16 reads for 10 ms: a
# machine that is busy with other tests takes the CPU away for less.
LINK = "rate=50MB/s,latency=2ms"
SWEEP = "--ops write_bw,read_bw,write_lat --sizes 32K -D 200ms"
DROPPED = {f"{op}_bw/HOST/host:soft0>host:soft1/32768/simulated" for op in ("write", "read")}
LATENCY = "write_lat/HOST/host:soft0>host:soft1/32768/simulated"
LINK_GBPS, SLOWER_GBPS = 0.4, 0.38
# 2 ms of latency and 0.66 ms, a twentieth more on the slower link, of sending.
LINK_NS, SLOWER_NS = 2.655e6, 2.690e6
# More than one session is further from what the link carries: the machine cannot keep the link's time.
TOO_NOISY_PERCENT, TOO_LATE_PERCENT = 0.7, 3


def softnic(extra=""):
    return ";".join(f"{device}:{LINK}{extra}" for device in ("soft0", "soft1"))


@unittest.skipIf(softnic_works(), "no software device")
class Gate(CliTest):
    def gate(self, folder, *arguments, **settings):
        env = environment({"GDRPERF": BINARY, "OUT": f"{folder}/out", "SUMMARY": f"{folder}/page.md",
                           "TARGET": "--local --softnic -d soft0 --peer-dev soft1", "SWEEP": SWEEP, **settings})
        return subprocess.run([GATE, *arguments], env=env, capture_output=True, text=True, timeout=240)

    def second_worst_percent(self, folder, figure):
        """By how much all sessions but one of each test are off at most; figure() gives of a run what
        was measured and what the link carries, or None."""
        off = {}
        for path in pathlib.Path(folder).glob("*.json"):
            for one in self.runs_of(json.loads(path.read_text())):
                if figures := figure(one):
                    off.setdefault(one["op"], []).append(abs(figures[0] / figures[1] - 1) * 100)
        self.assertTrue(off)
        return max(sorted(each)[-2] for each in off.values())

    def wants_calm(self, folder, truth_gbps):
        second = self.second_worst_percent(folder, lambda one: one["bw"] and (one["bw"]["median_gbps"], truth_gbps))
        if second > TOO_NOISY_PERCENT:
            self.skipTest(f"this machine is too busy: a link of {truth_gbps} Gb/s is off by {second:.1f} %")

    def doubted(self, folder):
        """Tests and sizes of which a session says itself that its result does not hold: busy machines make such
        sessions, and no verdict may rest on them."""
        return {(one["op"], one["size_bytes"]) for path in pathlib.Path(folder).glob("*.json")
                for one in self.runs_of(json.loads(path.read_text())) if one["unstable"]}

    def verdicts(self, folder):
        """{(test, size): verdict} of the last comparison."""
        cells = json.loads(pathlib.Path(f"{folder}/out/comparison.json").read_text())["cells"]
        return {(cell["cell"].split("/")[0], int(cell["cell"].split("/")[3])): cell["verdict"] for cell in cells}

    def keeps_latency(self, folder, truth_ns):
        """How soon a program wakes up is a busy machine's, not the link's."""
        return self.second_worst_percent(
            folder, lambda one: one["latency"] and (one["latency"]["p50_ns"], truth_ns)) <= TOO_LATE_PERCENT

    @long
    def test_same_link_passes_and_a_slower_one_fails(self):
        folder = self.scratch()
        baseline = f"{folder}/baseline"
        recorded = self.gate(folder, "record", baseline, SOFTNIC=softnic(), SESSIONS="8")
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        self.wants_calm(f"{folder}/out/baseline", LINK_GBPS)
        calm = self.keeps_latency(f"{folder}/out/baseline", LINK_NS)

        same = self.gate(folder, "check", baseline, SOFTNIC=softnic())
        self.wants_calm(f"{folder}/out/new", LINK_GBPS)
        self.assert_same_link(same, folder, calm and self.keeps_latency(f"{folder}/out/new", LINK_NS))

        slower = self.gate(folder, "check", baseline, SOFTNIC=softnic(",slow=1.0526"))
        self.wants_calm(f"{folder}/out/new", SLOWER_GBPS)
        with open(f"{folder}/out/comparison.json", encoding="utf-8") as file:
            cells = json.load(file)["cells"]
        worse = {cell["cell"]: cell["change_percent"] for cell in cells if cell["verdict"] == "regression"}
        doubted = self.doubted(f"{folder}/out/new")
        dropped = {name for name in DROPPED if (name.split("/")[0], 32768) not in doubted}
        self.assertLessEqual(dropped, set(worse))
        for name in dropped:
            self.assertAlmostEqual(worse[name], -5, delta=2, msg=name)
        # 0.66 ms of 2.66 ms are the link's rate: too little of a change to matter.
        if calm and self.keeps_latency(f"{folder}/out/new", SLOWER_NS):
            self.assertNotIn(LATENCY, worse)
        page = pathlib.Path(f"{folder}/page.md").read_text()
        for name in dropped:
            self.assertIn(f"`{name}` | regression", page)
        self.assertEqual(slower.returncode, 1 if worse else 4, slower.stdout + slower.stderr)

    def assert_same_link(self, done, folder, calm):
        """All cells are fine; a latency that is the busy machine's may be anything."""
        with open(f"{folder}/out/comparison.json", encoding="utf-8") as file:
            verdicts = {cell["cell"]: cell["verdict"] for cell in json.load(file)["cells"]}
        doubted = self.doubted(f"{folder}/out/new")
        sure = {name for name in DROPPED if (name.split("/")[0], 32768) not in doubted}
        self.assertEqual({verdicts[name] for name in sure} - {"ok"}, set(), verdicts)
        self.assertEqual({verdicts[name] for name in DROPPED - sure} - {"inconclusive"}, set(), verdicts)
        latency = verdicts[LATENCY]
        if calm:
            self.assertIn(latency, ("ok", "blind"), verdicts)
        wanted = {"regression": 1, "blind": 4, "inconclusive": 4}.get(latency, 0 if sure == DROPPED else 4)
        self.assertEqual(done.returncode, wanted, done.stdout + done.stderr)

    def noisy_baseline(self, folder):
        """The committed one, with a noise in which the gate sees nothing."""
        baseline = pathlib.Path(f"{folder}/baseline")
        shutil.copytree(COMMITTED, baseline)
        (noise,) = baseline.glob("*/noise.json")
        recorded = json.loads(noise.read_text())
        for cell in recorded["cells"]:
            cell["spread_percent"] = 60
        noise.write_text(json.dumps(recorded))
        return str(baseline)

    @long
    def test_half_the_bandwidth_measured_never_passes(self):
        folder = self.scratch()
        half = "rate=25MB/s,latency=2ms"
        settings = {"SOFTNIC": f"soft0:{half};soft1:{half}", "TARGET": "", "SWEEP": "", "SESSIONS": "4"}
        unseen = self.gate(folder, "check", self.noisy_baseline(folder), **settings)
        self.assertEqual(unseen.returncode, 4, unseen.stdout + unseen.stderr)
        doubted = self.doubted(f"{folder}/out/new")
        # A queue of 128 messages of 64 KiB takes 335 ms here, longer than the run.
        self.assertIn(("write_bw", 65536), doubted)
        for cell, verdict in self.verdicts(folder).items():
            self.assertEqual(verdict, "inconclusive" if cell in doubted else "blind", cell)
        if len(doubted) < 6:
            self.assertIn("a change of 10 % would be missed more than once in 20 times", unseen.stdout)

        seen = self.compare([f"{folder}/out/new"], "--json", f"{folder}/out/comparison.json")
        self.assertEqual(seen.code, 1 if len(doubted) < 6 else 4, str(seen))
        for cell, verdict in self.verdicts(folder).items():
            self.assertEqual(verdict, "inconclusive" if cell in doubted else "regression", cell)

    def test_half_the_bandwidth_never_passes(self):
        """Also against a baseline so noisy that the gate cannot see it."""
        def half(run):
            run["bw"]["median_gbps"] *= 0.5
            run["bw"]["ci95_gbps"] = [0.5 * bound for bound in run["bw"]["ci95_gbps"]]

        folder = self.scratch()
        files = self.candidates(folder, half)
        unseen = self.compare(files, "--sensitivity", "10%", baseline=self.noisy_baseline(folder))
        self.assertEqual(unseen.code, 4, str(unseen))
        self.assertIn("6 cells: 6 blind", unseen.out)
        seen = self.compare(files)
        self.assertEqual(seen.code, 1, str(seen))
        self.assertIn("6 cells: 6 regression", seen.out)

    def candidates(self, folder, change):
        """Sessions like those of the committed baseline, each run changed, as files."""
        (store,) = COMMITTED.iterdir()
        files = []
        for number, path in enumerate(sorted(store.glob("[0-9a-f]*.json"))[:4]):
            session = json.loads(path.read_text())
            session["started"] = f"2030-01-01T00:00:0{number}Z"
            session["hosts"]["client"].update(hostname="runner", kernel="Linux 9.0", cpu_model="another",
                                              cpus_allowed=3, governor="another",
                                             clock_source="another")
            session["hosts"]["server"] = None
            for run in self.runs_of(session):
                change(run)
            files.append(f"{folder}/{number}.json")
            pathlib.Path(files[-1]).write_text(json.dumps(session))
        return files

    def compare(self, files, *options, baseline=COMMITTED):
        return run("compare", baseline, *files, "--across", "host,cpu,cpus,governor,clock_source,kernel", *options)

    def test_the_committed_baseline_holds_on_another_machine(self):
        folder = self.scratch()
        self.expect_ok(self.compare(self.candidates(folder, lambda run: None)))

        def slower(run):
            if run["op"] == "write_bw":
                run["bw"]["median_gbps"] *= 0.9
                run["bw"]["ci95_gbps"] = [0.9 * bound for bound in run["bw"]["ci95_gbps"]]

        page = f"{folder}/page.md"
        worse = self.compare(self.candidates(folder, slower), "--markdown", page)
        self.assertEqual(worse.code, 1, str(worse))
        self.assertIn("3 ok", worse.out)
        for size in (16384, 32768, 65536):
            self.assertIn(f"`write_bw/HOST/host:soft0>host:soft1/{size}/simulated` | regression",
                          pathlib.Path(page).read_text())

    def test_what_the_gate_measures_is_in_the_committed_baseline(self):
        folder = self.scratch()
        checked = self.gate(folder, "check", str(COMMITTED), SESSIONS="1", TARGET="", SWEEP="")
        self.assertIn(checked.returncode, (0, 1, 4), checked.stdout + checked.stderr)
        with open(f"{folder}/out/comparison.json", encoding="utf-8") as file:
            cells = json.load(file)["cells"]
        self.assertEqual(len(cells), 6)
        self.assertEqual([cell["cell"] for cell in cells if cell["verdict"] in ("new", "gone")], [], checked.stdout)

    def test_its_own_words(self):
        folder = self.scratch()
        self.assertEqual(self.gate(folder, "measure").returncode, 2)
        self.assertIn("gate.sh check FOLDER", self.gate(folder, "--help").stdout)
        wrong = self.gate(folder, "record", f"{folder}/none", TARGET="--local --softnic -d soft7")
        self.assertEqual(wrong.returncode, 3, wrong.stderr)
        self.assertIn("soft7", wrong.stderr)

    def test_what_cannot_work_is_said_before_measuring(self):
        folder = self.scratch()
        missing = self.gate(folder, "check", f"{folder}/nosuch")
        self.assertEqual(missing.returncode, 2, missing.stderr)
        self.assertIn("no baseline in", missing.stderr)
        self.assertIn("gate.sh record", missing.stderr)
        missing = self.gate(folder, "check", str(COMMITTED), GDRPERF=f"{folder}/gdrperf")
        self.assertEqual(missing.returncode, 3, missing.stderr)
        self.assertFalse(os.path.exists(f"{folder}/out"), "nothing was measured")


if __name__ == "__main__":
    os.umask(0o022)
    main()
