#!/usr/bin/env python3
"""Makes docs/evidence/overhead.md: all benchmarks of the harness in one run.

usage: bench/overhead.py [FILE]
"""
import contextlib
import datetime
import io
import os
import pathlib
import platform
import subprocess
import sys

import instructions
import memory
import message_rate
import peers

HEAD = """# What gdrperf costs

Made by `GDRPERF_BUILD=BUILD bench/overhead.py docs/evidence/overhead.md` in one run on {date} ({cpus} CPUs, {machine}, Linux
{kernel}; a build with `--buildtype=release -Doptimization=2`). Other programs ran beside it: instructions of the loop
do not mind, of times read medians and ratios. Figures of the software device say nothing about a NIC.

## Instructions per message

By callgrind, outside the device (`bench/instructions.py`): what gdrperf itself executes for each message, in the
loop and with the work of each batch, and perftest with the same settings.

```
{instructions}```

## Messages per second

`bench/message_rate.py`: both programs in turn, medians and ratios. First on `mode=null`, the device that completes at
once, so that the programs' own cost is as large a share as it can be, by the clock and in CPU time (which other
programs on the machine do not touch); then on the device that moves the data. The target is twice perftest's rate on
`mode=null`.

```
{null}
{cpu}
{normal}```

## Memory

`bench/memory.py`: series are thinned and histograms have a fixed size, so a longer run needs no more.

```
{memory}```

## The rest

Google Benchmark programs of `bench/`: `stats_bench`, `harness_bench`, `compare_bench` (CPU time; medians of 3).

```
{google}```
"""


def printed(run, *arguments):
    """What run() prints, with `arguments` on its command line."""
    sys.argv = [run.__module__, *arguments]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run()
    sys.stderr.write(text.getvalue())
    return text.getvalue()


def google():
    rows = f"{'benchmark':<52} {'median CPU':>14}\n"
    for name in ("stats_bench", "harness_bench", "compare_bench"):
        done = subprocess.run([peers.build_dir() / "bench" / name, "--benchmark_repetitions=3",
                               "--benchmark_format=csv",
                               "--benchmark_report_aggregates_only=true"], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            columns = line.split(",")
            full = columns[0].strip('"')
            if full.endswith("_median"):
                rows += f"{full[:-len('_median')]:<52} {float(columns[3]):11.4g} {columns[4]}\n"
    sys.stderr.write(rows)
    return rows


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "docs/evidence/overhead.md"
    text = HEAD.format(date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), cpus=os.cpu_count(),
                       machine=platform.machine(), kernel=platform.release(),
                       instructions=printed(instructions.main),
                       null=printed(message_rate.main, "--rounds", "5", "--softnic", "soft0:mode=null"),
                       cpu=printed(message_rate.main, "--rounds", "3", "--cpu", "--softnic", "soft0:mode=null"),
                       normal=printed(message_rate.main, "--rounds", "3"),
                       memory=printed(memory.main), google=google())
    pathlib.Path(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
