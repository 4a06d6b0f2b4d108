#!/usr/bin/env python3
"""Which tests a change concerns (scripts/lib/affected.py), on a build folder made up for it.

usage: affected_test.py SOURCE_ROOT
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()


class Affected(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        self.program = self.build / "program"
        self.program.write_text("one")
        (self.build / "meson-info").mkdir()
        # Longer than a file's name can be.
        words = [str(self.program), "--gtest_filter=" + ":".join(f"Suite{i}.*" for i in range(100))]
        (self.build / "meson-info/intro-tests.json").write_text(json.dumps(
            [{"name": name, "suite": [f"gdrperf:{suite}"], "cmd": words, "env": {}, "depends": ["p"]}
             for suite, name in (("unit", "first"), ("unit", "second"), ("cli", "first"))]))
        (self.build / "meson-info/intro-targets.json").write_text(json.dumps([{"id": "p",
                                                                               "filename": [str(self.program)]}]))

    def add_longer(self):
        file = self.build / "meson-info/intro-tests.json"
        tests = json.loads(file.read_text())
        third = {**tests[0], "name": "third", "suite": ["gdrperf:unit", "gdrperf:longer"]}
        file.write_text(json.dumps(tests + [third]))

    def choose(self, *suites, seconds=60):
        done = subprocess.run([sys.executable, str(ROOT / "scripts/lib/affected.py"), "choose", str(self.build),
                               str(seconds), "2",
                               *(suites or ("unit",))],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def note(self, **results):
        log = self.build / "log.json"
        log.write_text("".join(json.dumps({"name": f"gdrperf:unit / {name}", "result": result, "duration": 1}) + "\n"
                               for name, result in results.items()))
        subprocess.run([sys.executable, str(ROOT / "scripts/lib/affected.py"), "note", str(self.build), str(log)],
                       check=True)

    def test_all_that_never_passed_come(self):
        self.assertEqual(self.choose(), ["first", "second"])

    def test_a_name_of_two_suites_comes_once(self):
        self.assertEqual(self.choose("unit", "cli"), ["first", "second"])

    def test_a_longer_one_waits_for_time_and_then_comes_once(self):
        self.add_longer()
        self.assertEqual(self.choose(seconds=2), ["first", "second"])
        self.note(first="OK", second="OK")
        self.assertEqual(self.choose(seconds=2), [])
        self.assertEqual(self.choose(), ["third"])
        self.note(third="OK")
        self.assertEqual(self.choose(), [])
        self.program.write_text("two")
        self.assertEqual(self.choose(), ["first", "second", "third"])

    def test_a_longer_one_that_never_ran_gives_way_to_what_changed(self):
        self.note(first="OK", second="OK")
        self.add_longer()
        self.program.write_text("two")
        self.assertEqual(self.choose(seconds=1), ["first", "second"])
        self.note(first="FAIL", second="OK")
        self.assertEqual(self.choose(seconds=2), ["first"])

    def test_only_the_failed_come_again(self):
        self.note(first="OK", second="FAIL")
        self.assertEqual(self.choose(), ["second"])

    def test_a_changed_program_brings_its_tests_back(self):
        self.note(first="OK", second="OK")
        self.assertEqual(self.choose(), [])
        self.program.write_text("two")
        self.assertEqual(self.choose(), ["first", "second"])

    def test_a_changed_script_brings_the_tests_back_that_may_import_it(self):
        scripts = [self.build / name for name in ("shared.py", "room/made.py", "room/first_test.py", "other/made.py")]
        for path in scripts:
            path.parent.mkdir(exist_ok=True)
            path.write_text("one")
        file = self.build / "meson-info/intro-tests.json"
        tests = json.loads(file.read_text())
        tests[0]["cmd"] = ["python3", str(self.build / "room/first_test.py")]
        file.write_text(json.dumps(tests))
        expected = [["first"], ["first"], ["first"], []]
        for path, names in zip(scripts, expected):
            self.note(first="OK", second="OK")
            path.write_text("two")
            self.assertEqual(self.choose(), names, path)


if __name__ == "__main__":
    unittest.main()
