#!/usr/bin/env python3
"""Latency under load (--load) on a modelled link: what was measured beside what the link's queue gives by arithmetic.

usage: bench/loaded_latency.py [--seconds N]

A port is one queue. A message of the stream occupies it for W. Behind a stream of as many messages as it may have in
flight (d), each message of the test waits for all of them: a round takes d W. Of a stream at a share u of the link one
message is due every W / u; a message of the test that comes at any time (--rate) waits longer than x with probability
(W - x) u / W. Without load a read takes two latencies. Figures are of the software device on this machine.
"""
import argparse

import peers

BYTES_PER_S = 100e6
LATENCY_US = 5.0
W_US = 65536 / BYTES_PER_S * 1e6
LINK = f"rate={BYTES_PER_S / 1e6:g}MB/s,latency={LATENCY_US:g}us,copy=edges"
DEVICES = f"soft0:{LINK};soft1:{LINK}"
READS_IN_FLIGHT = 16
WRITES_IN_FLIGHT = 128


def waited_us(share, percent):
    """Quantile of the wait behind a stream with one message every W / share."""
    return max(0.0, W_US - (1 - percent / 100) * W_US / share)


def cases():
    """(words, p50, p99) in microseconds."""
    idle = 2 * LATENCY_US
    yield ["read_lat", "--load", "100%"], READS_IN_FLIGHT * W_US, READS_IN_FLIGHT * W_US
    for share in (0.3, 0.5, 0.8, 0.95):
        load = f"{share * BYTES_PER_S / 1e6:g}MB/s"
        yield ["read_lat", "--load", load, "--rate", "1237"], idle + waited_us(share, 50), idle + waited_us(share, 99)
    for test in ("write_lat", "send_lat"):
        yield [test, "--load", "100%"], WRITES_IN_FLIGHT * W_US / 2, WRITES_IN_FLIGHT * W_US / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", default="3", help="of each run (default %(default)s)")
    options = parser.parse_args()
    print(f"software device, link {LINK}; stream of 64 KiB: W = {W_US:.1f} us; {options.seconds} s each; us")
    print(f"{'test':>9} {'--load':>10} {'idle p50':>9} {'p50':>10} {'by queue':>10} {'off %':>7} {'p99':>10} "
          f"{'by queue':>10} {'off %':>7} {'p50 x':>7} {'p99 x':>7}")
    for words, p50, p99 in cases():
        one = peers.gdrperf_record([*words, "-s", "2", "-d", "soft0", "--peer-dev", "soft1", "-D",
                                    f"{options.seconds}s"], DEVICES)
        under = one["under_load"]
        got50, got99 = (one["latency"][name] / 1e3 for name in ("p50_ns", "p99_ns"))
        print(f"{words[0]:>9} {words[2]:>10} {under['idle_p50_ns'] / 1e3:9.2f} {got50:10.2f} {p50:10.2f} "
              f"{(got50 / p50 - 1) * 100:7.2f} "
              f"{got99:10.2f} {p99:10.2f} {(got99 / p99 - 1) * 100:7.2f} {under['p50_ratio']:7.2f} "
              f"{under['p99_ratio']:7.2f}", flush=True)


if __name__ == "__main__":
    main()
