#!/usr/bin/env python3
"""Several threads and rails on the software device: their sum beside the truth, how far apart they begin, and how
message rate grows.

usage: bench/rails.py [--seconds N] [--runs N] [--most-threads N]

Rails: eight modelled ports, whose rate is known. Threads: writes of 8 bytes on the device that completes at once, at 1
to N threads of the client; the server's threads rest. Growth is the rate over that of one thread and their number.
Beside it as many processes of one thread, on the same CPUs at the same time: what they do not reach either, the
machine does not give. Figures are of the software device on this machine.
"""
import argparse
import concurrent.futures
import os
import statistics

import peers

RAILS = 8


def rails(seconds, runs):
    print(f"{RAILS} rails, 64 KiB, 16 in flight, {seconds} s; GB/s")
    print(f"{'rate of one':>12} {'truth':>9} {'sum':>9} {'off %':>7} {'began within us':>16}  slowest")
    for rate in (20, 50, 100):
        devices = ";".join(f"soft{n}:rate={rate}MB/s,copy=edges" for n in range(RAILS))
        for _ in range(runs):
            one = peers.gdrperf_record(["write_bw", "--rails", "all", "-s", "64K", "-t", "16", "-D", f"{seconds}s"],
                                       devices)
            total, truth = one["bw"]["mean_gbps"] / 8, RAILS * rate / 1e3
            print(f"{rate / 1e3:12.3f} {truth:9.4f} {total:9.4f} {(total / truth - 1) * 100:7.3f} "
                  f"{one['parts']['start_spread_us']:16.1f}  {one['parts']['slowest']}", flush=True)


def million_per_second(one):
    return one["bw"]["mean_gbps"] / 8 * 1e3 / 8


def apart(words, places):
    """Million messages per second of a process at each pair of CPUs, together."""
    def run(cpus):
        return peers.gdrperf_record([*words, "--cpu", str(cpus[0]), "--peer-cpu", str(cpus[1])], "soft0:mode=null")

    with concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
        return sum(map(million_per_second, pool.map(run, places)))


def threads(seconds, runs, most):
    print(f"\nthreads, null device, write_bw of 8 bytes, {seconds} s, median of {runs}; million messages per second")
    print(f"{'threads':>8} {'Mpps':>9} {'growth':>7} {'began within us':>16} {'processes':>10} {'growth':>7} "
          f"{'threads/processes':>18}")
    alone = None
    for count in range(1, most + 1):
        words = ["write_bw", "-s", "8", "-D", f"{seconds}s"]
        rates, others, spread = [], [], 0
        for _ in range(runs):
            one = peers.gdrperf_record([*words, "--threads", str(count)], "soft0:mode=null")
            parts = one.get("parts", {"start_spread_us": 0, "each": [{"cpu": 0, "server_cpu": 0}]})
            rates.append(million_per_second(one))
            spread = max(spread, parts["start_spread_us"])
            others.append(apart(words, [(each["cpu"], each["server_cpu"]) for each in parts["each"]]))
        rate, other = statistics.median(rates), statistics.median(others)
        alone = alone or (rate, other)
        print(f"{count:8} {rate:9.2f} {rate / alone[0] / count:7.3f} {spread:16.1f} {other:10.2f} "
              f"{other / alone[1] / count:7.3f} "
              f"{rate / other:18.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", default="2", help="of each run (default %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="of each case (default %(default)s)")
    parser.add_argument("--most-threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="default: the CPUs there are")
    options = parser.parse_args()
    rails(options.seconds, options.runs)
    threads(options.seconds, options.runs, options.most_threads)


if __name__ == "__main__":
    main()
