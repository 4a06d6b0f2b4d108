"""The project's headers, and which of them a file reaches. The first argument of a test is the root of the sources."""
import functools
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
# Where an include is looked for, after its own folder.
FOLDERS = ("include", "softnic/src", "src", "softnic/tests")
INCLUDE = re.compile(r'^#include [<"]([^>"]+)[>"]', re.M)


def headers():
    """All, public and private, by their paths."""
    for top in ("include", "src", "softnic", "tests"):
        for path in sorted((ROOT / top).rglob("*.h")):
            yield path.relative_to(ROOT).as_posix()


@functools.cache
def reached(name):
    """The headers that this file includes, itself or through others: the project's by their paths."""
    found = set()
    for each in INCLUDE.findall((ROOT / name).read_text(encoding="utf-8")):
        for folder in (pathlib.PurePosixPath(name).parent, *FOLDERS):
            path = os.path.normpath(f"{folder}/{each}")
            if path != name and (ROOT / path).is_file():
                found |= {path} | reached(path)
                break
        else:
            found.add(each)
    return frozenset(found)
