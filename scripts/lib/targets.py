#!/usr/bin/env python3
"""Targets of a build folder by the tests that need them, a line each, as ninja takes them.

usage: targets.py BUILD --without SUITE...   all that are built by default, except what only tests of these suites
                                             need and is not installed
       targets.py BUILD --of SUITE...        what tests of these suites need, and all that is installed
"""
import json
import os
import subprocess
import sys


def asked(build, what):
    done = subprocess.run(["meson", "introspect", what, build], capture_output=True, check=True)
    return json.loads(done.stdout)


def needed_by(tests):
    return {each for test in tests for each in test["depends"]}


def main():
    if len(sys.argv) < 4 or sys.argv[2] not in ("--without", "--of"):
        sys.exit(__doc__)
    build, how, suites = sys.argv[1], sys.argv[2], set(sys.argv[3:])
    tests = asked(build, "--tests")
    inside = [test for test in tests if suites & {name.split(":")[-1] for name in test["suite"]}]
    outside = [test for test in tests if test not in inside]
    needed = needed_by(inside)
    left_out = needed - needed_by(outside)
    for target in asked(build, "--targets"):
        if how == "--of":
            taken = target["id"] in needed or target["installed"]
        else:
            taken = target["build_by_default"] and (target["installed"] or target["id"] not in left_out)
        if taken and target["type"] != "run":
            print(os.path.relpath(target["filename"][0], build))


if __name__ == "__main__":
    main()
