#!/usr/bin/env python3
"""template_test.py WEB BUILD_FOLDER: the committed template is what its sources make."""

import os
import subprocess
import sys
import tempfile
import unittest

from node_packages import install

WEB, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

MODULES, WHY_NOT = install(WEB, FOLDER)
if WHY_NOT:
    print("skipped:", WHY_NOT)
    sys.exit(77)


class Template(unittest.TestCase):
    def test_it_matches_its_sources(self):
        with tempfile.TemporaryDirectory() as scratch:
            made = os.path.join(scratch, "template.html")
            done = subprocess.run(["node", os.path.join(WEB, "build.mjs"), made, MODULES], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(made, "rb") as new, open(os.path.join(WEB, "template.html"), "rb") as old:
                self.assertTrue(new.read() == old.read(), "web/template.html is old: cd web && npm ci && npm run build")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
