#!/usr/bin/env python3
"""What the compiler and the linker were told to do is in the binaries: hardening_test.py PROGRAM LIBRARY."""

import platform
import shutil
import subprocess
import sys
import unittest

PROGRAM, LIBRARY = FILES = sys.argv[1:3]


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True, text=True).stdout


@unittest.skipIf(shutil.which("readelf") is None, "no readelf (binutils)")
class Hardening(unittest.TestCase):
    def test_position_independent(self):
        for file in FILES:
            self.assertRegex(readelf("-h", file), r"Type: +DYN", file)
        self.assertRegex(readelf("-d", PROGRAM), r"FLAGS_1.*\bPIE\b")

    def test_full_relro(self):
        for file in FILES:
            self.assertIn("GNU_RELRO", readelf("-l", file), file)
            self.assertRegex(readelf("-d", file), r"BIND_NOW|FLAGS_1.*\bNOW\b", file)

    def test_no_executable_stack(self):
        for file in FILES:
            (stack,) = [line for line in readelf("-l", file).splitlines() if "GNU_STACK" in line]
            self.assertNotIn("RWE", stack, file)

    def test_stack_protector(self):
        for file in FILES:
            self.assertIn("__stack_chk_fail", readelf("--dyn-syms", file), file)

    def test_fortified_calls(self):
        self.assertRegex(readelf("--dyn-syms", PROGRAM), r"__\w+_chk@")

    @unittest.skipIf(platform.machine() != "x86_64", "CET is x86-64's")
    def test_cet(self):
        # The linker marks a file only if all of its objects are; where the system's start files are not,
        # the functions of ours begin with endbr64 all the same.
        if "IBT" in readelf("-n", PROGRAM):
            self.assertIn("SHSTK", readelf("-n", PROGRAM))
            return
        (main,) = [line.split() for line in readelf("-s", PROGRAM).splitlines() if line.endswith(" main")] or [None]
        if main is None:
            self.skipTest("stripped, and the start files carry no CET note")
        code = self.bytes_at(int(main[1], 16), 4)
        self.assertEqual(code, b"\xf3\x0f\x1e\xfa", "main() does not begin with endbr64")

    @staticmethod
    def bytes_at(address, count):
        for line in readelf("-l", PROGRAM).splitlines():
            fields = line.split()
            if fields[:1] != ["LOAD"]:
                continue
            offset, start, size = (int(fields[i], 16) for i in (1, 2, 4))
            if start <= address < start + size:
                with open(PROGRAM, "rb") as file:
                    file.seek(offset + address - start)
                    return file.read(count)
        raise AssertionError("no segment holds main()")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
