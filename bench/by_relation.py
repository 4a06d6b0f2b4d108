#!/usr/bin/env python3
"""compare --by relation on the software device: 9 pairs of sweeps of an unchanged link, and 9 of one that lost 5 %.

usage: by_relation.py GDRPERF. Exit status 1 when a pair, or all of an unchanged link together, claims a difference, or
when the planted loss is not found in every row.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SWEEP = ["sweep", "--local", "--softnic", "-d", "soft0", "--peer-dev", "soft1", "--ops", "write_bw,read_bw", "--sizes",
         "8K,16K",
         "-D", "300ms", "--quiet"]
CLAIMS = {"better", "worse"}


def sweep(program, megabytes, file):
    link = f"rate={megabytes}MB/s,latency=100us,react=5ms"
    environment = dict(os.environ, SOFTNIC=f"soft0:{link};soft1:{link}")
    done = subprocess.run([program, *SWEEP, "--json", file], env=environment, stdout=subprocess.DEVNULL, check=False)
    # 4: the machine was too busy for a stable run. The verdict is to hold there as well.
    if done.returncode not in (0, 4):
        sys.exit(f"gdrperf sweep: exit status {done.returncode}")


def verdicts(program, before, after):
    out = subprocess.run([program, "compare", "--by", "relation", before, after, "--json", "-"], check=True,
                         capture_output=True,
                         text=True).stdout
    return [row["verdict"] for rows in json.loads(out)["relations"].values() for row in rows]


def main(program):
    with tempfile.TemporaryDirectory() as scratch:
        sides = {name: pathlib.Path(scratch, name) for name in ("before", "after", "planted")}
        for folder in sides.values():
            folder.mkdir()
        for number in range(9):
            for name, folder in sides.items():
                sweep(program, 19 if name == "planted" else 20, folder / f"{number}.json")
        pairs = [verdicts(program, sides["before"] / f"{i}.json", sides["after"] / f"{i}.json") for i in range(9)]
        same = verdicts(program, sides["before"], sides["after"])
        planted = verdicts(program, sides["before"], sides["planted"])
    claims = sum(verdict in CLAIMS for rows in [*pairs, same] for verdict in rows)
    print(f"9 pairs, unchanged: {sum(map(len, pairs))} rows, claims {sum(v in CLAIMS for rows in pairs for v in rows)}")
    print(f"9 against 9, unchanged: {', '.join(same)}")
    print(f"9 against 9, 5 % planted: {', '.join(planted)}   (software device)")
    return 0 if claims == 0 and planted and set(planted) == {"worse"} else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
