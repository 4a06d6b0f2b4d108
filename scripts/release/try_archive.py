#!/usr/bin/env python3
"""Runs a released archive in trees of other systems: what has to work with and without rdma-core there.

usage: try_archive.py ARCHIVE TREE [TREE ...] [--tests NAME ...]

Each tree is a folder with a system (scripts/check-release makes them), in which python3 is for --tests alone: those of
tests/cli that need nothing but the program. Runs as root (chroot). The last line of each tree: N passed, N failed.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("gdrperf", "gdrperf-doctor", "softnic")
# Words of gdrperf or, where the first is its name, of another program of the archive; the exit status, and what stdout
# and stderr together have to match.
ALWAYS = [
    (["--version"], 0, r"^gdrperf "),
    (["topo"], {0, 3}, "."),
    (["doctor"], {0, 1, 3}, "libibverbs"),
    (["completion", "bash"], 0, "gdrperf"),
    (["import", "{data}/perftest-4.5-write_bw-all.txt"], 0, '"schema"'),
    (["write_bw", "--local", "--softnic", "-s", "64K", "-D", "1s"], 0, "64 KiB"),
    (["write_lat", "--local", "--softnic", "-s", "64", "-D", "1s"], 0, "64 B"),
    (["devices", "--softnic"], 0, "soft0"),
    (["gdrperf-doctor"], {0, 1, 3}, "libibverbs"),
    (["gdrperf-doctor", "--json", "-"], {0, 1, 3}, '"counts"'),
]
WITHOUT = [(["write_bw", "--local"], 3, r"libibverbs\.so\.1 is not installed.*\n.*apt install libibverbs1")]
WITH = [(["write_bw", "--local"], 3, "no RDMA device found"),
        (["send_bw", "--local", "--softnic", "-R", "-s", "4K", "-D", "1s"], 0, "4 KiB"),
        (["softnic", "gdrperf", "devices"], 0, "soft0")]


def inside(tree, *command, timeout=300):
    return subprocess.run(["chroot", str(tree), "/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "HOME=/root", *command],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)


def versions(tree):
    """Of the C library and of rdma-core, by the name of libibverbs' file."""
    libc = re.search(r" (\d+\.\d+)$", inside(tree, "/usr/bin/ldd", "--version").stdout.splitlines()[0])
    verbs = [re.search(r"\.(\d+)\.\d+$", path.resolve().name) for path in tree.glob("usr/lib/*/libibverbs.so.1")]
    return (f"glibc {libc.group(1) if libc else '?'}, "
            f"{f'rdma-core {verbs[0].group(1)}' if verbs and verbs[0] else 'no rdma-core'}")


def commands(tree, program):
    with_verbs = any(tree.glob("usr/lib/*/libibverbs.so.1"))
    data = "/opt/source/tests/data/import"
    good = bad = 0
    for words, status, pattern in ALWAYS + (WITH if with_verbs else WITHOUT):
        command = [word.format(data=data) for word in words]
        if command[0] not in PROGRAMS:
            command.insert(0, "gdrperf")
        # By their paths: nothing of the archive is on the PATH.
        command = [f"{program.rpartition('/')[0]}/{word}" if word in PROGRAMS else word for word in command]
        done = inside(tree, *command)
        expected = status if isinstance(status, set) else {status}
        if done.returncode in expected and re.search(pattern, done.stdout):
            good += 1
            continue
        bad += 1
        print(f"FAILED {' '.join(command)}: {done.returncode}\n{done.stdout[:1500]}")
    return good, bad


def tests(tree, program, names):
    good = bad = 0
    for name in names:
        (script,) = (ROOT / "tests/cli").glob(f"*/{name}_test.py")
        done = inside(tree, "/usr/bin/python3", "-B", f"/opt/source/{script.relative_to(ROOT)}", program,
                      "/opt/source/results/schema.json", timeout=1200)
        ran = int(re.search(r"^Ran (\d+) test", done.stdout, re.M).group(1)) if "\nRan " in done.stdout else 1
        lost = sum(int(count) for count in re.findall(r"(?:failures|errors)=(\d+)", done.stdout))
        if done.returncode != 0:
            lost = max(lost, 1)
            print(f"FAILED {name}\n{done.stdout[-1500:]}")
        print(f"{name}: {ran - lost} of {ran}")
        good, bad = good + ran - lost, bad + lost
    return good, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("trees", type=pathlib.Path, nargs="+")
    parser.add_argument("--tests", nargs="*", default=[])
    options = parser.parse_args()
    # Mounts of our own, gone with this process.
    if "GDRPERF_OWN_MOUNTS" not in os.environ:
        os.execvpe("unshare", ["unshare", "-m", sys.executable, *sys.argv], os.environ | {"GDRPERF_OWN_MOUNTS": "1"})
    failed = 0
    for tree in options.trees:
        place = tree / "opt"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        with tarfile.open(options.archive) as archive:
            archive.extractall(place)
        program = next(place.glob("gdrperf-*/bin/gdrperf"))
        for folder in ("tests", "results", "docs"):
            shutil.copytree(ROOT / folder, place / "source" / folder)
        for name in ("README.md", "scripts"):
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, place / "source" / name)
        for name in ("proc", "sys", "dev"):
            subprocess.run(["mount", "--rbind", f"/{name}", str(tree / name)], check=True)
        print(f"== {tree.name}: {versions(tree)}")
        shown = "/" + str(program.relative_to(tree))
        one = commands(tree, shown)
        two = tests(tree, shown, options.tests)
        print(f"{tree.name}: {one[0] + two[0]} passed, {one[1] + two[1]} failed", flush=True)
        failed += one[1] + two[1]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
