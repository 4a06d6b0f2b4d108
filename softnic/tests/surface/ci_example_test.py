#!/usr/bin/env python3
"""The examples for a CI of somebody else's project: the workflow's steps run as they stand (all but the build),
and what the Dockerfile copies is what this build makes.

Usage: ci_example_test.py BUILD_FOLDER
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "softnic/tests/programs"))
import programs  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
EXAMPLES = ROOT / "scripts" / "ci-example"


class CiExample(unittest.TestCase):
    @unittest.skipUnless(programs.takes_the_stand_in(), programs.OLD_PROGRAMS)
    def test_the_workflows_steps_run(self):
        workflow = yaml.safe_load((EXAMPLES / "softnic-workflow.yml").read_text(encoding="utf-8"))
        steps = [it for it in workflow["jobs"]["softnic"]["steps"] if "run" in it and "install-deps" not in it["run"]]
        self.assertEqual([it["name"] for it in steps], ["It is there", "Test", "Faults"])
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "gdrperf").symlink_to(ROOT)
            for step in steps:
                env = dict(os.environ, BUILD=str(BUILD), **step.get("env", {}))
                done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], cwd=folder, env=env,
                                      text=True,
                                      capture_output=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, f"{step['name']}\n{done.stdout}{done.stderr}")
                self.assertRegex(done.stdout, r"soft0|iters in", step["name"])

    def test_the_workflow_builds_what_there_is(self):
        text = (EXAMPLES / "softnic-workflow.yml").read_text(encoding="utf-8")
        for target in re.findall(r"ninja -C \"\$BUILD\" (\S+)", text):
            self.assertTrue((BUILD / target).is_file(), target)

    def test_the_image_copies_what_there_is(self):
        text = (EXAMPLES / "softnic.Dockerfile").read_text(encoding="utf-8")
        copied = re.findall(r"COPY --from=build /build/(\S+)", text)
        self.assertEqual(len(copied), 2)
        for file in copied:
            self.assertTrue((BUILD / file).is_file(), file)
            self.assertIn(file, re.search(r"ninja -C /build (.*)", text).group(1))

    def test_the_image_has_the_libraries(self):
        text = (EXAMPLES / "softnic.Dockerfile").read_text(encoding="utf-8")
        lines = pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
        release = dict(line.replace('"', "").split("=", 1) for line in lines if "=" in line)
        if f"FROM {release.get('ID')}:{release.get('VERSION_ID')}\n" not in text:
            self.skipTest("this is not the release of the image, whose packages have other versions")
        needed = subprocess.run(["ldd", BUILD / "softnic/src/libgdrperf_softnic.so"], capture_output=True, text=True,
                                check=True).stdout
        beyond = [it for it in re.findall(r"(\S+)\.so\.(\d+) =>", needed)
                  if it[0] not in ("libc", "libm", "libstdc++", "libgcc_s")]
        for name, version in beyond:
            self.assertIn(f" {name}{version}", text, "a package of the image")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
