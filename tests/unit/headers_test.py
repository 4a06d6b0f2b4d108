#!/usr/bin/env python3
"""Every header, public and private, compiles alone: it includes what it uses.

usage: headers_test.py SOURCE_ROOT COMPILER...

Most of the time goes into the standard library's headers, so that headers share a unit where that changes nothing: one
that includes the unit's headers so far, itself or through others, finds nothing there that it had not asked for.
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(sys.argv[1]).resolve()
COMPILER = sys.argv[2:]
# CUDA source.
NOT_ALONE = {"src/mem/cuda/kernels.h"}
# Where an include is looked for, after its own folder.
FOLDERS = ("include", "softnic/src", "src", "softnic/tests")
# A header of a toolkit that need not be installed: whoever includes it cannot be judged without.
OPTIONAL = re.compile(r"fatal error: '?(cuda\w*|nvml|pmix)\.h(: No such file|' file not found)")
INCLUDE = re.compile(r'^#include [<"]([^>"]+)[>"]', re.M)


def headers():
    for top in ("include", "src", "softnic", "tests"):
        for path in sorted((ROOT / top).rglob("*.h")):
            name = path.relative_to(ROOT).as_posix()
            if name not in NOT_ALONE:
                yield name


@functools.cache
def reached(name):
    """The project's headers that this one includes, itself or through others."""
    found = set()
    for each in INCLUDE.findall((ROOT / name).read_text(encoding="utf-8")):
        for folder in (pathlib.PurePosixPath(name).parent, *FOLDERS):
            path = os.path.normpath(f"{folder}/{each}")
            if path != name and (ROOT / path).is_file():
                found |= {path} | reached(path)
                break
    return frozenset(found)


def units(names):
    """As few lists as can be, each header in one, in each list every header reached by the one after it: a maximum
    matching of each header with the one that follows it."""
    after, before = {}, {}

    def place(name, tried):
        for each in reached(name) & names:
            if each in tried:
                continue
            tried.add(each)
            if each not in after or place(after[each], tried):
                after[each], before[name] = name, each
                return True
        return False

    for name in sorted(names):
        place(name, set())
    for name in sorted(names - before.keys()):
        unit = [name]
        while unit[-1] in after:
            unit.append(after[unit[-1]])
        yield unit


def compile_unit(names):
    text = "".join(f'#include "{ROOT / name}"\n' for name in names)
    command = COMPILER + ["-std=c++20", "-w", "-x", "c++", "-fsyntax-only", "-"]
    command += [word for folder in FOLDERS for word in ("-I", folder)]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False)


def errors(names):
    """Of each header that does not compile, what the compiler says. A unit that fails is told apart header by
    header."""
    done = compile_unit(names)
    if done.returncode == 0:
        return []
    if len(names) > 1:
        return [each for name in names for each in errors([name])]
    return [] if OPTIONAL.search(done.stderr) else [(names[0], done.stderr[-3000:])]


class Headers(unittest.TestCase):
    def test_each_compiles_alone(self):
        found = set(headers())
        self.assertGreater(len(found), 100)
        together = list(units(found))
        self.assertEqual(sorted(name for unit in together for name in unit), sorted(found))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, message in (each for unit in pool.map(errors, together) for each in unit):
                with self.subTest(header=name):
                    self.fail(message)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
