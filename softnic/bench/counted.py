"""Instructions inside the device, counted by callgrind, by function."""
import bisect
import collections
import pathlib
import re
import subprocess
import tempfile

OPTIONS = ["-q", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no"]


def symbols(library):
    """Functions of the library by their offset, in order."""
    shown = subprocess.run(["nm", "-C", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^([0-9a-f]{16}) [tTwWiu] (.*)$", shown, re.M)
    return sorted((int(offset, 16), name) for offset, name in found)


def read(text, library):
    """Instructions by function of `library`, in a profile that names it; else by address, and the addresses of
    functions, in what has no name."""
    named, nameless, functions = collections.Counter(), collections.Counter(), set()
    place, function, skip = "", "", False
    for line in text.splitlines():
        if line.startswith("ob="):
            place = line[3:]
        elif line.startswith("fn="):
            function = line[3:]
            if place == "???" and function.startswith("0x"):
                functions.add(int(function.split("'")[0], 16))  # 'N: how deep it calls itself
        elif line.startswith("calls="):
            skip = True
        elif skip:
            skip = False  # the call's cost, which is its function's
        elif line.startswith("0x"):
            address, _, instructions = line.split()
            if place == "???":
                nameless[int(address, 16)] += int(instructions)
            elif place.endswith(pathlib.Path(library).name):
                named[function] += int(instructions)
    return named, nameless, functions


def base_of(functions, known):
    """Where the library lay: where most functions that were called are functions of it."""
    starts = collections.defaultdict(list)
    for offset, _ in known:
        starts[offset & 0xfff].append(offset)
    votes = collections.Counter(function - offset for function in functions for offset in starts[function & 0xfff])
    return votes.most_common(1)[0][0]


def by_function(text, library):
    """Instructions of each function of `library` in a profile; valgrind does not read its names in every build."""
    named, nameless, functions = read(text, library)
    if named or not functions:
        return named
    known = symbols(library)
    base = base_of(functions, known)
    offsets = [offset for offset, _ in known]
    found = collections.Counter()
    for address, instructions in nameless.items():
        place = bisect.bisect_right(offsets, address - base) - 1
        if place >= 0 and address - base < offsets[-1] + 65536:
            found[known[place][1]] += instructions
    return found


def count(library, run):
    """by_function() of a run: run(PREFIX) starts it behind the words of PREFIX."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        run(["valgrind", *OPTIONS, f"--callgrind-out-file={out}"])
        # A process that forks has a profile of its own for each.
        found = collections.Counter()
        for each in sorted(pathlib.Path(folder).iterdir()):
            found += by_function(each.read_text(encoding="utf-8"), library)
    return found
