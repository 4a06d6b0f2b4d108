#!/usr/bin/env python3
"""Incast (--incast) on modelled ports: sum, shares, fairness and a victim's latency beside what the port's queue gives
by arithmetic.

usage: bench/incast.py [--seconds N]

N clients on ports of their own write to one port of the same rate, which takes in what comes in order (ingress=on). A
client has d messages in flight, each occupies the port for W: the sum is the port's rate, each client's share 1/N, and
a victim's message waits for N d W, on one of the two ways that its latency halves. A client whose own port is slower
than its share has that rate, and the others share what is left. Figures are of the software device on this machine.
"""
import argparse

import peers

BYTES_PER_S = 50e6
LATENCY_US = 5.0
W_US = 65536 / BYTES_PER_S * 1e6
IN_FLIGHT = 8
LINK = f"rate={BYTES_PER_S / 1e6:g}MB/s,latency={LATENCY_US:g}us,copy=edges"


def incast(clients, seconds):
    devices = ";".join(f"soft{n}:{LINK}" + (",ingress=on" if n == 0 else "") for n in range(clients + 2))
    rails = ",".join(f"soft{n}" for n in range(1, clients + 1))
    words = ["write_bw", "--incast", str(clients), "--rails", rails, "--peer-dev", "soft0", "--victim",
             f"soft{clients + 1}", "-s", "64K",
             "-t", str(IN_FLIGHT), "-D", f"{seconds}s"]
    return peers.gdrperf_record(words, devices)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", default="3", help="of each run (default %(default)s)")
    options = parser.parse_args()
    print(f"software device, ports of {LINK}; write_bw of 64 KiB, {IN_FLIGHT} in flight each: W = {W_US:.1f} us; "
          f"{options.seconds} s each")
    print(f"{'clients':>8} {'sum GB/s':>9} {'by rate':>8} {'off %':>7} {'least %':>8} {'most %':>7} {'fair %':>7} "
          f"{'Jain':>7}"
          f" {'victim idle p99':>16} {'p50 us':>9} {'p99 us':>9} {'by queue':>9} {'off %':>7}")
    for clients in (2, 4, 8):
        one = incast(clients, options.seconds)
        rates = [part["mean_gbps"] for part in one["parts"]["each"]]
        total = sum(rates)
        victim = {name: value / 1e3 for name, value in one["victim_latency"].items()}
        waits = clients * IN_FLIGHT * W_US / 2 + LATENCY_US
        print(f"{clients:8} {total / 8:9.5f} {BYTES_PER_S / 1e9:8.4f} {(total * 1e9 / 8 / BYTES_PER_S - 1) * 100:7.2f}"
              f" {min(rates) / total * 100:8.2f} {max(rates) / total * 100:7.2f} {100 / clients:7.2f} "
              f"{one['fairness']:7.4f}"
              f" {victim['idle_p99_ns']:16.2f} {victim['p50_ns']:9.1f} {victim['p99_ns']:9.1f} {waits:9.1f} "
              f"{(victim['p50_ns'] / waits - 1) * 100:7.2f}", flush=True)


if __name__ == "__main__":
    main()
