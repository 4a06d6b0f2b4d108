#!/usr/bin/env python3
"""--rate of bandwidth tests on the software device: what was asked for beside what left.

usage: bench/offered_rate.py [--seconds N] [--limiter sw|hw] [--softnic CONFIGURATION]

The rate is counted by the sender, over all batches after the warm-up; figures are of the
software device on this machine.
"""
import argparse

import peers

CASES = [("write_bw", "64", "1000", "1"), ("write_bw", "64", "100000", "1"), ("write_bw", "64", "100000", "100"),
         ("write_bw", "64", "500000", "1"), ("send_bw", "4K", "1Gb/s", "1"), ("send_bw", "4K", "1Gb/s", "32"),
         ("write_bw", "64K", "8Gb/s", "1"), ("read_bw", "4K", "0.5GB/s", "1")]
PER_UNIT = {"Gb/s": 1e9 / 8, "GB/s": 1e9}
SIZES = {"64": 64, "4K": 4096, "64K": 65536}


def asked_of(rate, size):
    """Messages per second."""
    for unit, of_bytes in PER_UNIT.items():
        if rate.endswith(unit):
            return float(rate[:-len(unit)]) * of_bytes / SIZES[size]
    return float(rate)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", default="2", help="of each run (default %(default)s)")
    parser.add_argument("--limiter", default="sw", choices=("sw", "hw"),
                        help="who keeps the rate: the sender, or the device (default %(default)s)")
    parser.add_argument("--softnic", help="the device's configuration (default soft0, with pacing=on for hw)")
    options = parser.parse_args()
    by_device = options.limiter == "hw"
    options.softnic = options.softnic or ("soft0:pacing=on" if by_device else "soft0")
    print(f"software device '{options.softnic}', {options.seconds} s each, the rate kept by the "
          f"{'device' if by_device else 'sender'}")
    print(f"{'test':>9} {'size':>5} {'--rate':>8} {'--burst':>8} {'asked /s':>12} {'left /s':>12} {'off %':>8}")
    for test, size, rate, burst in CASES:
        if by_device and test == "read_bw":
            continue
        words = [test, "-s", size, "--rate", rate, "--burst", burst, "-D", f"{options.seconds}s", "--rate-limiter",
                 options.limiter]
        left = peers.gdrperf_record(words, options.softnic)["bw"]["mean_gbps"] * 1e9 / 8 / SIZES[size]
        asked = asked_of(rate, size)
        print(f"{test:>9} {size:>5} {rate:>8} {burst:>8} {asked:12.1f} {left:12.1f} {(left / asked - 1) * 100:8.3f}",
              flush=True)


if __name__ == "__main__":
    main()
