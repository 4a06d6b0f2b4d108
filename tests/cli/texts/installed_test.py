#!/usr/bin/env python3
"""What `meson install` puts in place, and that it runs from there.

usage: installed_test.py GDRPERF SCHEMA
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from support import BINARY, CliTest, run

BUILD = pathlib.Path(BINARY).parents[2]
# Meson puts the folders of all libraries that a test depends on there, the stand-in of libibverbs among them.
os.environ.pop("LD_LIBRARY_PATH", None)


@unittest.skipUnless(shutil.which("meson"), "meson is not installed")
class Installed(CliTest):
    def test_all_of_it_runs_from_where_it_is_put(self):
        root = pathlib.Path(self.scratch())
        done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", root],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (program,) = root.rglob("bin/gdrperf")
        prefix = program.parent.parent
        commands = re.findall(r"^  (\w+)  ", run("--help").out.split("Subcommands:")[1].split("gdrperf COMMAND")[0],
                              re.M)
        files = ["bin/gdrperf-doctor", "bin/softnic", "lib/systemd/system/gdrperf.service", "share/gdrperf/schema.json",
                 "share/bash-completion/completions/gdrperf.bash", "share/zsh/site-functions/_gdrperf",
                 "share/fish/vendor_completions.d/gdrperf.fish",
                 "share/man/man1/gdrperf.1", "share/man/man1/softnic.1",
                 *(f"share/man/man1/gdrperf-{command}.1" for command in commands)]
        self.assertEqual([name for name in files if not (prefix / name).is_file()
                          or not (prefix / name).stat().st_size], [])
        (library,) = prefix.rglob("libgdrperf_softnic.so")
        self.check_programs(root, prefix, library)
        if support.softnic_works() is None:
            self.check_a_folder_that_no_preload_can_name(prefix)

    def check_a_folder_that_no_preload_can_name(self, prefix):
        moved = pathlib.Path(self.scratch()) / "with a space:and a colon"
        shutil.copytree(prefix, moved, symlinks=True)
        for words in ([moved / "bin/gdrperf", "devices", "--softnic"],
                      [moved / "bin/softnic", moved / "bin/gdrperf", "devices"]):
            done = subprocess.run(words, env=support.environment(), cwd="/", capture_output=True, text=True,
                                  timeout=support.PATIENCE_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("soft0", done.stdout)

    def check_programs(self, root, prefix, library):
        def installed(*words):
            return subprocess.run(words, env=support.environment(), cwd=prefix, capture_output=True, text=True,
                                  timeout=support.PATIENCE_S, check=False)
        if support.softnic_works() is None:
            done = installed(prefix / "bin/gdrperf", "write_bw", "--local", "--softnic", "-n", "100", "--json",
                             "run.json")
            self.assertEqual(done.returncode, 0, done.stderr)
            # The page's template travels in the program.
            done = installed(prefix / "bin/gdrperf", "report", "run.json", "-o", "page.html")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("</html>", (prefix / "page.html").read_text(encoding="utf-8"))
            done = installed(prefix / "bin/softnic", "env")
            self.assertRegex(done.stdout, rf"(?m)^LD_PRELOAD=.*{re.escape(str(library))}")
        self.assertIn(installed(prefix / "bin/gdrperf-doctor").returncode, (0, 1, 3))
        unit = (prefix / "lib/systemd/system/gdrperf.service").read_text(encoding="utf-8")
        started, options = re.search(r"(?m)^ExecStart=(\S+) (.*)$", unit).groups()
        self.assertEqual(started, "/" + str((prefix / "bin/gdrperf").relative_to(root)))
        words = options.replace("${CREDENTIALS_DIRECTORY}", "/nonexistent").split()
        self.expect_error(run(*words), 2, "--token")


if __name__ == "__main__":
    support.main()
