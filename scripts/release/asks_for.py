#!/usr/bin/env python3
"""What a released tree needs from the machine it runs on: the highest version of glibc of each file, and its libraries.

usage: asks_for.py FOLDER [--most 2.28]

Exit status: 0 each needs that glibc or an older one, and libraries of glibc alone; 1 one needs more.
"""
import argparse
import pathlib
import re
import subprocess
import sys

OF_GLIBC = re.compile(r"^(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux.*)$")


def version(text):
    return tuple(int(part) for part in text.split("."))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--most", default="2.28")
    options = parser.parse_args()
    bad = 0
    for path in sorted(options.folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
            continue
        shown = subprocess.run(["objdump", "-p", str(path)], capture_output=True, text=True, check=True).stdout
        glibc = sorted({found for found in re.findall(r"GLIBC_(\d[\d.]*)", shown)}, key=version)
        others = [found for found in re.findall(r"^ +NEEDED +(\S+)", shown, re.M) if not OF_GLIBC.match(found)]
        libstdcxx = re.findall(r"GLIBCXX_\S+", shown)
        asks = glibc[-1] if glibc else "0"
        symbols = subprocess.run(["objdump", "-T", str(path)], capture_output=True, text=True, check=True).stdout
        # Weak ones may be missing.
        found = re.findall(r"^[0-9a-f]+\s+(w\s+)?D\w?\s+\*UND\*\s+[0-9a-f]+\s+Base\s+(\S+)$", symbols, re.M)
        nowhere = [name for weak, name in found if not weak]
        too_new = version(asks) > version(options.most) or others or libstdcxx or nowhere
        bad += bool(too_new)
        print(f"{path.relative_to(options.folder)}: GLIBC_{asks}"
              f"{', ' + ' '.join(others) if others else ''}{', GLIBCXX' if libstdcxx else ''}"
              f"{', without a version: ' + ' '.join(nowhere) if nowhere else ''}{' (too new)' if too_new else ''}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
