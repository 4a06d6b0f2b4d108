#!/usr/bin/env python3
"""Message rate of gdrperf beside `ib_write_bw -N`, both on the software device.

usage: bench/message_rate.py [--rounds N] [--softnic CONFIGURATION] [--cpu]

Each is a server process and a client process. Both send RDMA writes with one QP,
depth 128, cq_mod 100 (perftest's default at this depth) and then each with its
own defaults, in turn. Figures are of the software device on this machine, never
of a NIC; read the ratios.
"""
import argparse
import resource
import shutil
import statistics
import sys

import peers


def cpu_ns(run, few, many):
    """CPU time of a message in ns: what other programs take away does not count."""
    def spent(number):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        run(number)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return (spent(many) - spent(few)) / (many - few) * 1e9


def cpu_times(options):
    """On a device that completes at once the client's CPU time is all there is."""
    print(f"software device '{options.softnic}', CPU ns per message of 8 B, medians of {options.rounds} rounds")
    print(f"{'cq_mod':>7} {'gdrperf':>9} {'ib_write_bw -N':>15} {'ratio':>7}")
    for label, flags in (("100", ["-Q", "100"]), ("default", [])):
        ours, theirs, ratios = peers.median_pairs(
            options.rounds,
            lambda: cpu_ns(lambda n: peers.gdrperf_record(["write_bw", "-s", "8", "-t", "128", "-n", str(n), *flags],
                                                          options.softnic), 2_000_000, 42_000_000),
            lambda: cpu_ns(lambda n: peers.perftest_rate("ib_write_bw", ["-N", "-s", "8", "-n", str(n), *flags],
                                                         options.softnic), 2_000_000, 22_000_000))
        print(f"{label:>7} {ours:9.2f} {theirs:15.2f} {1 / statistics.median(ratios):7.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--softnic", default="soft0", help="the device's configuration (default %(default)s)")
    parser.add_argument("--cpu", action="store_true", help="CPU time per message, on a busy machine; for mode=null")
    options = parser.parse_args()
    if not shutil.which("ib_write_bw"):
        sys.exit("ib_write_bw (Debian's package perftest) is not installed")
    if options.cpu:
        cpu_times(options)
        return
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
