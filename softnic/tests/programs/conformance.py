#!/usr/bin/env python3
"""Conformance of the software device: programs from outside this project run on it unmodified.

Usage: conformance.py [-v] [--short] [--only TEXT] [--python PYTHON] [--rdma-core-tests FOLDER] LIBRARY

Debian's perftest, the examples of libibverbs and librdmacm, libfabric, fio, qperf, UCX, Open MPI, mpi4py, iperf over
rsockets, ibstat, librpma, gloo, and rdma-core's own Python tests, between two processes of this host. Prints a table of
what passed, what was skipped and why, and what failed.
Exits with 1 when something failed, 77 when nothing could be run.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import program_lists
import programs
import rdma_core
from programs import Verdict

SOURCE = Path(__file__).resolve().parents[3]


def perftest_version() -> str:
    """Of the package, or where the one is that PATH has in front of it."""
    tool = Path(shutil.which("ib_write_bw") or "/usr/bin/ib_write_bw")
    return version_of("perftest") if tool.parent == Path("/usr/bin") else f" in {tool.parent}"


def version_of(package: str) -> str:
    """' 4.5' for a package of the distribution; nothing when that is not known."""
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True,
                              text=True, check=False)
    except OSError:
        return ""
    return f" {re.split(r'[+~-]', done.stdout)[0]}" if done.returncode == 0 else ""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-v", "--verbose", action="store_true", help="one line for each run, not only each group")
    parser.add_argument("--only", default="", metavar="TEXT", help="only what has TEXT in its name or command line")
    parser.add_argument("--short", action="store_true", help="each program once or twice, for slow builds")
    parser.add_argument("--python", default=rdma_core.PYTHON,
                        help="interpreter of rdma-core's tests (default: %(default)s)")
    parser.add_argument("--rdma-core-tests", type=Path, default=rdma_core.TESTS, metavar="FOLDER",
                        help="where rdma-core's tests are (default: %(default)s)")
    parser.add_argument("library", type=Path, help="libgdrperf_softnic.so")
    return parser.parse_args()


def environment(library: Path) -> dict[str, str]:
    folder = library.resolve().parent
    env = dict(os.environ, GDRPERF_BUILD=str(folder))
    # Of libraries that come without a program.
    env["PATH"] = os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{folder.parent / 'tests'}"
    env.pop("SOFTNIC", None)
    # The programs leave their memory to the kernel when they exit.
    env["ASAN_OPTIONS"] = ":".join(["detect_leaks=0"] + [it for it in [env.get("ASAN_OPTIONS")] if it])
    return env


def sum_up(title: str, verdicts: list[Verdict]) -> None:
    count = Counter(it.outcome for it in verdicts)
    print(f"{title:<40} {count['passed']:>7} {count['skipped']:>8} {count['FAILED']:>7}", flush=True)


def show(title: str, verdicts: list[Verdict], verbose: bool) -> None:
    if not verdicts:
        return
    sum_up(title, verdicts)
    for it in verdicts:
        if it.outcome == "FAILED" or verbose:
            print(f"  {it.outcome:<8} {it.name}{': ' if it.reason else ''}{it.reason}", flush=True)


def run_programs(runner: programs.Runner, title: str, chosen: list[programs.Program], args) -> list[Verdict]:
    if args.short:
        chosen = program_lists.short_list(chosen)
    chosen = [it for it in chosen if args.only in it.name]
    verdicts = [runner.run(it) for it in chosen]
    show(title, verdicts, args.verbose)
    # They are held against limits of their own making, on a machine that does other things: what failed runs once
    # more, and that counts. Not a sanitizer's finding.
    for at, verdict in enumerate(verdicts):
        if verdict.outcome == "FAILED" and "Sanitizer" not in verdict.reason and "runtime error" not in verdict.reason:
            verdicts[at] = runner.run(chosen[at])
            print(f"  {verdicts[at].outcome:<8} {verdict.name}, run again", flush=True)
    return verdicts


def run_rdma_core(words: list[str], env: dict[str, str], args) -> list[Verdict]:
    verdicts = rdma_core.run(words, env, "soft0", args.python, args.rdma_core_tests)
    verdicts = [it for it in verdicts if args.only in it.name]
    title = f"rdma-core{version_of('python3-pyverbs')}"
    modules = {}
    for it in verdicts:
        # tests.test_cq.CQTest.test_resize_cq
        found = re.search(r"\btest_(\w+)\.", it.name)
        group = found.group(1) if found else ""
        modules.setdefault("of one vendor" if re.match("mlx5|efa|mana|irdma", group) else group, []).append(it)
    for module, belonging in modules.items():
        show(f"{title} tests {module}", belonging, args.verbose)
    return verdicts


def main() -> int:
    args = parse()
    if not args.library.is_file():
        print(f"conformance.py: no library at {args.library}", file=sys.stderr)
        return 3
    begin = time.monotonic()
    env = environment(args.library)
    words = [str(SOURCE / "scripts" / "softnic")]
    runner = programs.Runner(words, env, 20000 + os.getpid() % 9000)
    print(f"{'':<40}  passed  skipped  failed")
    verdicts = run_programs(runner, f"examples of libibverbs{version_of('ibverbs-utils')}",
                            program_lists.example_programs(), args)
    verdicts += run_programs(runner, f"perftest{perftest_version()}", program_lists.perftest_programs(), args)
    verdicts += run_programs(runner, f"librdmacm{version_of('rdmacm-utils')} and perftest -R",
                             program_lists.rdma_cm_programs(), args)
    verdicts += run_programs(runner, "libfabric, fio, qperf, UCX, MPI, iperf, others", program_lists.library_programs(),
                             args)
    verdicts += run_programs(runner, "link layer InfiniBand", program_lists.infiniband_programs(), args)
    verdicts += run_programs(runner, "second ports", program_lists.two_port_programs(), args)
    verdicts += run_rdma_core(words, env, args)
    sum_up("in all", verdicts)
    reasons = Counter(it.reason for it in verdicts if it.outcome == "skipped")
    for reason, count in reasons.most_common():
        print(f"{count:>4} skipped '{reason}'")
    # As unittest ends: scripts/lib/summary.py counts by these lines.
    count = Counter(it.outcome for it in verdicts)
    print(f"\nRan {len(verdicts)} tests in {time.monotonic() - begin:.1f}s\n")
    print(f"{'FAILED' if count['FAILED'] else 'OK'} (failures={count['FAILED']}, skipped={count['skipped']})")
    if count["FAILED"]:
        return 1
    return 0 if count["passed"] else 77


if __name__ == "__main__":
    sys.exit(main())
