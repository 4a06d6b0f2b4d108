#!/usr/bin/env python3
"""Every header, public and private, compiles alone: it includes what it uses.

usage: headers_test.py SOURCE_ROOT COMPILER...

Most of the time goes into the standard library's headers. So what many headers include is compiled once, and a header
starts from it where it includes all of it: that changes nothing of what it finds.
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

from include_tree import FOLDERS, ROOT, headers, reached

COMPILER = sys.argv[2:]
# CUDA source.
NOT_ALONE = {"src/mem/cuda/kernels.h"}
# A header of a toolkit that need not be installed: whoever includes it cannot be judged without.
OPTIONAL = re.compile(r"fatal error: '?(cuda\w*|nvml|pmix)\.h(: No such file|' file not found)")
# What is compiled once, the dearest first, a line each: a unit starts from the first of which its first header
# includes all.
SHARED = [line.split() for line in re.sub(r"\n {8}", " ", """\
    nlohmann/json.hpp string string_view
    CLI/CLI.hpp
    array atomic bit chrono condition_variable cstddef cstdint infiniband/verbs.h memory mutex optional span
        string string_view time.h vector x86intrin.h
    gtest/gtest.h string
    algorithm array chrono compare concepts cstddef cstdint functional map memory optional ostream stdexcept
        string string_view utility variant vector
    chrono cstdint infiniband/verbs.h limits memory optional span stdexcept string string_view variant vector
    chrono compare concepts cstdint functional map optional ostream string string_view utility vector
    chrono condition_variable mutex
    cstdint span time.h x86intrin.h
    chrono cstdint optional string string_view vector
    compare concepts map ostream string string_view utility vector
    memory
    chrono
    functional
    atomic cstdint
    string string_view vector
    string string_view
    algorithm
    string
    vector
    string_view
    span
    infiniband/verbs.h
    utility
""").splitlines()]


def units(names):
    """As few lists as can be, each header in one, in each list every header reached by the one after it and starting
    from the same: a maximum matching of each header with the one that follows it."""
    after, before = {}, {}

    def place(name, tried):
        for each in reached(name) & names:
            if each in tried or shared_by(each) != shared_by(name):
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


@functools.cache
def shared_by(name):
    """The place in SHARED of what a unit that begins with this header starts from; None: of nothing."""
    return next((index for index, each in enumerate(SHARED) if reached(name) >= set(each)), None)


def compiled(text, *words):
    command = COMPILER + ["-std=c++20", "-w", *words]
    command += [word for folder in FOLDERS for word in ("-I", folder)]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False)


class Headers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile_shared(self, index):
        path = self.folder / f"{index}.h"
        path.write_text("".join(f"#include <{each}>\n" for each in SHARED[index]), encoding="utf-8")
        done = compiled("", "-x", "c++-header", str(path), "-o", f"{path}.gch")
        # Where a library has not been installed, every header that wants it fails, and says so.
        if done.returncode != 0:
            path.write_text("", encoding="utf-8")

    def errors(self, names):
        """Of each header that does not compile, what the compiler says. A unit that fails is told apart header by
        header."""
        shared = shared_by(names[0])
        start = [] if shared is None else ["-include", str(self.folder / f"{shared}.h")]
        text = "".join(f'#include "{ROOT / name}"\n' for name in names)
        done = compiled(text, *start, "-x", "c++", "-fsyntax-only", "-")
        if done.returncode == 0:
            return []
        if len(names) > 1:
            return [each for name in names for each in self.errors([name])]
        return [] if OPTIONAL.search(done.stderr) else [(names[0], done.stderr[-3000:])]

    def test_each_compiles_alone(self):
        found = set(headers()) - NOT_ALONE
        self.assertGreater(len(found), 100)
        together = list(units(found))
        self.assertEqual(sorted(name for unit in together for name in unit), sorted(found))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.compile_shared, {shared_by(unit[0]) for unit in together} - {None}))
            for name, message in (each for unit in pool.map(self.errors, together) for each in unit):
                with self.subTest(header=name):
                    self.fail(message)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
