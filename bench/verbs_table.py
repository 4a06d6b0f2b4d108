#!/usr/bin/env python3
"""Every test over every transport on one device: what it reaches there, or in whose words it is refused. Prints
Markdown.

usage: bench/verbs_table.py [--device NAME] [--seconds N]

Both ends are in one process (--local). Bandwidth in GB/s, of 64 KiB, over UD of 1 KiB; latency in microseconds (p50),
of 8 bytes. Without --device it is the software device. On the kernel's Soft-RoCE: scripts/softroce-vm
bench/verbs_table.py --device rxe0
"""
import argparse
import json
import os
import subprocess

import peers

OPERATIONS = ("write", "read", "send", "write_imm", "atomic")
WAYS = {"rc": ["--transport", "rc"], "uc": ["--transport", "uc"], "ud": ["--transport", "ud"], "rc, srq": ["--srq"]}


def run(words, device, seconds):
    """(record, None), or (None, the error)."""
    env = dict(os.environ) if device else peers.environment("soft0")
    done = subprocess.run([peers.gdrperf(), *words, "--local", "-d", device or "soft0", "-D", f"{seconds}s", "--json",
                           "-"], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines()
                 if "error: " in line] or done.stderr.splitlines()[-1:] or [f"exit {done.returncode}"]
        return None, lines[0].split("error: ", 1)[-1]
    ((runs,),) = (tests.values() for tests in json.loads(done.stdout)["relations"].values())
    return runs[0], None


def cell(operation, metric, way, device, seconds):
    """Text of a cell, and the words of a refusal."""
    size = [] if operation == "atomic" else ["-s", "8" if metric == "lat" else "1K" if way == "ud" else "64K"]
    record, error = run([f"{operation}_{metric}", *WAYS[way], *size], device, seconds)
    if error:
        return "-", error
    if metric == "lat":
        return f"{record['latency']['p50_ns'] / 1e3:.3g}", None
    text = f"{record['bw']['median_gbps'] / 8:.3g}"
    lost = record.get("delivery", {}).get("lost_share", 0)
    return text + (f" ({lost * 100:.2g} % lost)" if lost else ""), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="", help="of this machine (default: the software device)")
    parser.add_argument("--seconds", default="1", help="of each run (default %(default)s)")
    options = parser.parse_args()
    print("| test | " + " | ".join(WAYS) + " |\n| --- |" + " --- |" * len(WAYS))
    refused = {}
    for metric in ("bw", "lat"):
        for operation in OPERATIONS:
            cells = []
            for way in WAYS:
                text, error = cell(operation, metric, way, options.device, options.seconds)
                cells.append(text)
                if error:
                    refused.setdefault(error.replace(f"{operation}_{metric}", "TEST"),
                                       []).append(f"{operation}_{metric}")
            print(f"| `{operation}_{metric}` | " + " | ".join(cells) + " |", flush=True)
    print()
    for error, tests in refused.items():
        print(f"- {', '.join(tests)}: {error}")


if __name__ == "__main__":
    main()
