#!/usr/bin/env python3
"""Every function of libibverbs that programs import is exported by the software device's library:
the real one would follow pointers in objects of ours that are not there.

Usage: exports_test.py NM LIBRARY GDRPERF
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

NM, LIBRARY, GDRPERF = sys.argv[1:4]

# Left to the real library, because nothing of a device, or of an object made on one, is looked at.
PURE = {
    "ibv_wr_opcode_str": "a number's name",
    "ibv_register_driver": "called by drivers of real devices",
    # Objects that cannot be made on our devices (EOPNOTSUPP), so that none of ours comes here.
    "ibv_destroy_comp_cntr": "takes a completion counter",
    "ibv_set_comp_cntr": "takes a completion counter",
    "ibv_set_err_comp_cntr": "takes a completion counter",
    "ibv_inc_comp_cntr": "takes a completion counter",
    "ibv_inc_err_comp_cntr": "takes a completion counter",
    "ibv_read_comp_cntr": "takes a completion counter",
    "ibv_read_err_comp_cntr": "takes a completion counter",
}
# What a driver of a real device uses; programs cannot link to it.
PRIVATE = re.compile(r"^ibv_cmd_|^ibv_read_ibdev_sysfs_file$")


def names(path, *options):
    """(name, version) of the symbols that nm shows."""
    done = subprocess.run([NM, "-D", *options, str(path)], capture_output=True, text=True, check=False)
    found = re.findall(r" [A-Za-z] (_?ibv_\w+)(?:@+(\S+))?$", done.stdout, re.M)
    return dict(found)


def programs():
    folder = Path("/usr/bin")
    yield from sorted(folder.glob("ib_*_bw")) + sorted(folder.glob("ib_*_lat")) + sorted(folder.glob("ibv_*"))
    yield from sorted(Path("/usr/lib/python3/dist-packages/pyverbs").rglob("*.so"))
    yield Path(GDRPERF)


class Versions(unittest.TestCase):
    """dlsym(RTLD_NEXT) finds the oldest version of a function before glibc 2.36."""

    def test_functions_of_several_versions_are_listed(self):
        libc = re.search(r"/\S*/libc(\.so\.6|-[\d.]+\.so)", Path("/proc/self/maps").read_text(encoding="utf-8")).group()
        shown = subprocess.run([NM, "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        ours = set(re.findall(r" [TW] ([a-z_]\w*)$", shown, re.M))
        shown = subprocess.run([NM, "-D", "--defined-only", libc], capture_output=True, text=True, check=True).stdout
        versions = re.findall(r" [TWi] (\w+)@", shown, re.M)
        several = {name for name in ours if versions.count(name) > 1}
        self.assertIn("realpath", several)
        source = Path(__file__).parents[2] / "src/abi/libc/libc_functions.h"
        self.assertLessEqual(several, set(re.findall(r'\{"(\w+)", "GLIBC_', source.read_text(encoding="utf-8"))))


class Exports(unittest.TestCase):
    def setUp(self):
        self.ours = set(names(LIBRARY, "--defined-only"))

    def missing(self, imported):
        return sorted(it for it in imported
                      if it not in self.ours and it not in PURE and not PRIVATE.match(it))

    def test_every_function_that_programs_import_is_exported(self):
        seen = set()
        for program in programs():
            imported = names(program, "--undefined-only")
            with self.subTest(program=program):
                self.assertEqual(self.missing(imported), [])
            seen |= set(imported)
        self.assertIn("ibv_get_device_list", seen)
        print(f"{len(seen)} functions are imported, {len(seen & self.ours)} of them exported, "
              f"{len(seen - self.ours)} need nothing of a device")

    def test_every_public_function_of_the_real_library_is_exported(self):
        # The library that programs would load.
        loaded = subprocess.run(["ldd", GDRPERF], capture_output=True, text=True, check=False).stdout
        found = re.search(r"libibverbs\.so\.1 => (\S+)", loaded)
        self.assertTrue(found, loaded)
        public = {name for name, version in names(found.group(1), "--defined-only").items()
                  if not version.startswith("IBVERBS_PRIVATE")}
        self.assertEqual(self.missing(public), [])

    def test_nothing_is_exported_that_is_called_pure(self):
        self.assertEqual(sorted(self.ours & set(PURE)), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
