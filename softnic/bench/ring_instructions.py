#!/usr/bin/env python3
"""Instructions of the device for each WQE that it executes, counted by callgrind.

usage: softnic/bench/ring_instructions.py BUILD_FOLDER [LIST]

softnic_rings writes RDMA writes of 8 bytes by hand, in lists of LIST (32), the last of each
signalled; the device's thread executes them. Two counts of messages are differenced, so that
set-up cancels. What that thread executes only to look is shown apart: it depends on how long the
thread waits. memcpy and the like of libc are not counted.
"""
import os
import pathlib
import re
import subprocess
import sys

import counted

FEW, MANY = 6_400, 38_400
# _init stands for the calls into other libraries, which looking makes most of.
LOOKING = re.compile(r"Watcher::|::look\(|monotonic_ns|DoorbellPage::rung|^_init$")


def executed_by(program, library, size, messages):
    env = dict(os.environ, SOFTNIC="soft0:mlx5=on", GDRPERF_SOFTNIC="1", LD_PRELOAD=library)
    words = [program, "hand", "1", str(size), str(messages)]
    return counted.count(library, lambda prefix: subprocess.run([*prefix, *words], env=env, check=True,
                                                                capture_output=True, timeout=900))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 32
    library = str(build / "softnic/src/libgdrperf_softnic.so")
    program = str(build / "softnic/bench/softnic_rings")
    few, many = (executed_by(program, library, size, messages) for messages in (FEW, MANY))
    executed = looked = 0.0
    for name in sorted(many, key=lambda it: few[it] - many[it]):
        each = (many[name] - few[name]) / (MANY - FEW)
        if LOOKING.search(name):
            looked += each
            continue
        executed += each
        if each >= 1:
            print(f"{each:8.1f}  {name[:108]}")
    print(f"{executed:8.1f}  instructions for each WQE, in lists of {size}; and {looked:.1f} of looking")


if __name__ == "__main__":
    main()
