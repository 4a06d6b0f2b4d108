#!/usr/bin/env python3
"""Message rate of gdrperf beside `ib_write_bw -N`, both on the software device.

usage: bench/message_rate.py [--rounds N] [--softnic CONFIGURATION]

Each is a server process and a client process. Both send RDMA writes with one QP,
depth 128, cq_mod 100 (perftest's default at this depth) and then each with its
own defaults, in turn. Figures are of the software device on this machine, never
of a NIC; read the ratios.
"""
import argparse
import shutil
import statistics
import sys

import peers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--softnic", default="soft0", help="the device's configuration (default %(default)s)")
    options = parser.parse_args()
    if not shutil.which("ib_write_bw"):
        sys.exit("ib_write_bw (Debian's package perftest) is not installed")
    print(f"software device '{options.softnic}', medians of {options.rounds} rounds, M messages/s")
    print(f"{'size':>6} {'cq_mod':>7} {'gdrperf':>9} {'ib_write_bw -N':>15} {'ratio':>7} {'min':>6} {'max':>6}")
    with peers.gdrperf_server(options.softnic) as end:
        for size in (8, 64):
            for label, flags in (("100", ["-Q", "100"]), ("default", [])):
                ours, theirs, ratios = peers.median_pairs(
                    options.rounds,
                    lambda: peers.gdrperf_record(["write_bw", "-s", str(size), "-t", "128", "-D", "1", *flags],
                                                 options.softnic, end=end)["msg_rate_mpps"],
                    lambda: peers.perftest_rate("ib_write_bw", ["-N", "-s", str(size), "-n", "2000000", *flags],
                                                options.softnic))
                print(f"{size:>6} {label:>7} {ours:9.2f} {theirs:15.2f} {statistics.median(ratios):7.2f} "
                      f"{min(ratios):6.2f} {max(ratios):6.2f}", flush=True)


if __name__ == "__main__":
    main()
