#!/usr/bin/env python3
"""Instructions of the device for each WQE that it executes, counted by callgrind.

usage: softnic/bench/ring_instructions.py BUILD_FOLDER [LIST]

softnic_rings writes RDMA writes of 8 bytes by hand, in lists of LIST (32), the last of each
signalled; the device's thread executes them. Two counts of messages are differenced, so that
set-up cancels. What that thread executes only to look is shown apart: it depends on how long the
thread waits. memcpy and the like of libc are not counted.
"""
import bisect
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FEW, MANY = 6_400, 38_400
# _init stands for the calls into other libraries, which looking makes most of.
LOOKING = re.compile(r"Watcher::|::look\(|monotonic_ns|DoorbellPage::rung|^_init$")


def symbols(library):
    """Functions of the library by their offset, in order."""
    shown = subprocess.run(["nm", "-C", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^([0-9a-f]{16}) [tTwWiu] (.*)$", shown, re.M)
    return sorted((int(offset, 16), name) for offset, name in found)


def count(program, library, size, messages, folder):
    """Instructions by address, and the addresses of functions, in objects that valgrind reads no names of."""
    out = pathlib.Path(folder) / str(messages)
    env = dict(os.environ, SOFTNIC="soft0:mlx5=on", GDRPERF_SOFTNIC="1", LD_PRELOAD=library)
    subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-instr=yes",
                    "--compress-pos=no", "--compress-strings=no", program, "hand", "1", str(size), str(messages)],
                   env=env, check=True, capture_output=True, timeout=900)
    costs, functions = collections.Counter(), set()
    nameless = skip = False
    for line in out.read_text(encoding="utf-8").splitlines():
        if line.startswith("ob="):
            nameless = line == "ob=???"
        elif line.startswith("calls="):
            skip = True
        elif skip:
            skip = False  # the call's cost, which is its function's
        elif nameless and line.startswith("fn=0x"):
            functions.add(int(line[3:], 16))
        elif nameless and line.startswith("0x"):
            address, _, instructions = line.split()
            costs[int(address, 16)] += int(instructions)
    return costs, functions


def base_of(functions, known):
    """Where the library lay: where most functions that were called are functions of it."""
    starts = collections.defaultdict(list)
    for offset, _ in known:
        starts[offset & 0xfff].append(offset)
    votes = collections.Counter(function - offset for function in functions for offset in starts[function & 0xfff])
    return votes.most_common(1)[0][0]


def by_function(counted, known):
    costs, functions = counted
    base = base_of(functions, known)
    offsets = [offset for offset, _ in known]
    found = collections.Counter()
    for address, instructions in costs.items():
        place = bisect.bisect_right(offsets, address - base) - 1
        if place >= 0 and address - base < offsets[-1] + 65536:
            found[known[place][1]] += instructions
    return found


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 32
    library = str(build / "softnic/src/libgdrperf_softnic.so")
    known = symbols(library)
    with tempfile.TemporaryDirectory() as folder:
        program = str(build / "softnic/bench/softnic_rings")
        few, many = (by_function(count(program, library, size, messages, folder), known) for messages in (FEW, MANY))
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
