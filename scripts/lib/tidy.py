#!/usr/bin/env python3
"""Runs clang-tidy over the units of the program and of the device, many together.

usage: tidy.py BUILD [TEXT]     those with TEXT in their names alone

Half of the time goes into the headers that a unit includes. So units of a unity build are put together once more, up
to TOGETHER_LINES of them; where they do not go together, as when two files of a namespace mean different things by a
name of their own, each is checked alone.

stdout: clang-tidy's words, and as the last line 'N units'. Exit status: clang-tidy's worst; 2 no unit.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Tests are made of GoogleTest's macros, which no check understands.
OURS = ("src/", "softnic/src/")
TOGETHER_LINES = 20000
# The flags of the build are g++'s.
TIDY = ["clang-tidy", "--quiet", f"--config-file={ROOT}/.clang-tidy", "--extra-arg=-Wno-unknown-warning-option",
        "--extra-arg=-Wno-error"]


def units_of(build, text):
    """(name, path, flags without warnings) of each unit."""
    for each in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(os.path.realpath(pathlib.Path(each["directory"], each["file"])))
        name = os.path.relpath(path, build if build in path.parents else ROOT)
        if not name.startswith(OURS) or text not in str(path):
            continue
        flags = [it for it in shlex.split(each["command"]) if re.match(r"-([IDUf]|std=|isystem)", it)]
        yield name, path, flags


def lines_of(path):
    """Of a unit: of the sources that a unity build includes in it."""
    text = path.read_text()
    included = re.findall(r"^#include[<\"](.+\.cc)[>\"]", text, re.M)
    return sum(pathlib.Path(it).read_text().count("\n") for it in included) or text.count("\n")


def groups_of(units):
    """Units that are checked together, in the order of the build; the longest groups first."""
    groups = []
    last = {}
    for name, path, flags in units:
        lines = lines_of(path)
        # Stand-ins define names that others define, too.
        kind = name.split("/")[0] if "-unity" in name and "standin" not in name else path
        group = last.get(kind)
        if group is None or group["lines"] + lines > TOGETHER_LINES:
            group = last[kind] = {"lines": 0, "units": [], "flags": []}
            groups.append(group)
        group["lines"] += lines
        group["units"].append(path)
        group["flags"] += [it for it in flags if it not in group["flags"]]
    return sorted(groups, key=lambda it: -it["lines"])


def tidy(database, path):
    return subprocess.run([*TIDY, "-p", database, path], capture_output=True, text=True, check=False)


def check(group, build, folder):
    """The results of a group."""
    if len(group["units"]) > 1:
        path = pathlib.Path(folder, f"{id(group)}.cpp")
        path.write_text("".join(f'#include "{it}"\n' for it in group["units"]))
        database = path.with_suffix("")
        database.mkdir()
        (database / "compile_commands.json").write_text(json.dumps([{
            "directory": str(build), "file": str(path), "arguments": ["c++", *group["flags"], "-c", str(path)]}]))
        together = tidy(database, path)
        if together.returncode >= 0 and "[clang-diagnostic-error]" not in together.stdout:
            return [together]
    return [tidy(build, it) for it in group["units"]]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    units = list(units_of(build, sys.argv[2] if len(sys.argv) > 2 else ""))
    if not units:
        sys.exit(2)
    worst = 0
    with tempfile.TemporaryDirectory(prefix="gdrperf-tidy.") as folder:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for results in pool.map(lambda it: check(it, build, folder), groups_of(units)):
                for done in results:
                    sys.stdout.write(done.stdout)
                    sys.stderr.write(done.stderr)
                    worst = max(worst, abs(done.returncode))
    print(f"{len(units)} units")
    sys.exit(worst)


if __name__ == "__main__":
    main()
