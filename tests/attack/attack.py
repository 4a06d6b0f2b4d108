#!/usr/bin/env python3
"""Plays hostile and broken neighbours against `gdrperf serve` and its clients, on the loopback only.

    attack.py BINARY [--long] [--strict] [--only WORD]

Prints a table: what was done, how often, what failed, and the seconds until the slowest answer. After
each attack a normal client has to be served; at the end the server's memory, descriptors and threads
are compared with those before. --long repeats each attack more often and adds the slow ones. How long an
answer takes is printed, and judged with --strict only (5 s are promised): this may run beside other
tests, on a machine that is busy. Exit status: 0 no failure, 1 failures, 77 where there is no software device.
"""

import argparse
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support  # noqa: E402  (takes the binary from sys.argv[1])
from guests import Guest, RUN, serve, vitals  # noqa: E402
import admission  # noqa: E402
import companions  # noqa: E402
import neighbours  # noqa: E402
import phases  # noqa: E402
import requests_of_guests  # noqa: E402
import silence  # noqa: E402
import strangers  # noqa: E402
import surroundings  # noqa: E402

MODULES = (strangers, requests_of_guests, companions, silence, phases, admission, neighbours, surroundings)


class Row:
    """One attack: how often it was tried, what failed, and the slowest answer."""

    def __init__(self, name, options):
        self.name = name
        self.long = options.long
        self.limit_s = support.PROMISE_S if options.strict else support.PATIENCE_S
        self.tries = 0
        self.failures = []
        self.slowest_s = 0.0

    def times(self, short, long):
        return range(long if self.long else short)

    def of(self, cases, short):
        return cases if self.long else cases[:short]

    def note(self, ok, what):
        self.tries += 1
        if not ok:
            self.failures.append(what)

    def expect(self, wanted, text):
        self.note(wanted in text, f"'{wanted}' is not in: {text.strip()[-400:]}")

    def took(self, seconds, what):
        """An answer that is promised within 5 s."""
        self.slowest_s = max(self.slowest_s, seconds)
        if os.environ.get("ATTACK_TIMES"):
            print(f"    {what}: {seconds:.2f} s", flush=True)
        self.note(seconds <= self.limit_s, f"{what} took {seconds:.1f} s")

    def serves(self, server, *options):
        """A normal client, now."""
        start = time.monotonic()
        result = support.run("write_bw", "127.0.0.1", "-p", server.port, *RUN, *options)
        self.note(result.code == 0, f"a normal client: {result}")
        self.took(time.monotonic() - start, "a normal client")


def attacks():
    for module in MODULES:
        yield from module.ATTACKS


def play(options):
    rows = []
    # What it may take bounds what it grows by, whatever is asked of it.
    with serve("--max-memory", "128M") as server:
        warm = Row("", options)
        for _ in range(3):
            warm.serves(server)
        before = vitals(server.process.pid)
        for name, attack, needs_server in attacks():
            if options.only not in name or (name.startswith("[long]") and not options.long):
                continue
            row = Row(name, options)
            try:
                attack(row, server) if needs_server else attack(row)
                if needs_server:
                    row.serves(server)
                    row.note(server.process.poll() is None, "the server ended")
            except Exception:  # pylint: disable=broad-except
                row.note(False, traceback.format_exc())
            rows.append(row)
            print(f"{row.name:<62} {row.tries:>6} {len(row.failures):>9} {row.slowest_s:>9.1f}", flush=True)
        rows.append(flat(Row("memory, descriptors and threads of the server stay flat", options), server, before))
    return rows


def flat(row, server, before):
    # Connections that were given up are reaped when the next one comes, once their threads have ended.
    deadline = time.monotonic() + support.PATIENCE_S
    while True:
        with Guest(server.port):
            pass
        after = vitals(server.process.pid)
        settled = after["threads"] <= before["threads"] + 2 and after["descriptors"] <= before["descriptors"] + 4
        if settled or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    row.note(settled, f"before {before}, after {after}")
    row.note(after["rss_kib"] <= before["rss_kib"] + 32 * 1024, f"before {before}, after {after}")
    row.note(after["peak_kib"] <= before["peak_kib"] + 192 * 1024, f"before {before}, after {after}")
    print(f"{row.name:<62} {row.tries:>6} {len(row.failures):>9}         -")
    print(f"  before {before}\n  after  {after}")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--long", action="store_true", help="more of each, and the slow ones")
    parser.add_argument("--strict", action="store_true", help="5 s are 5 s")
    parser.add_argument("--only", default="", help="attacks with this in their name")
    options = parser.parse_args()
    reason = support.softnic_works()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    print(f"{'attack':<62} {'tries':>6} {'failures':>9} {'slowest s':>9}")
    rows = play(options)
    failed = [row for row in rows if row.failures]
    for row in failed:
        for failure in row.failures[:5]:
            print(f"\nFAILED {row.name}: {failure}")
    print(f"\n{len(rows)} attacks, {sum(row.tries for row in rows)} tries, "
          f"{sum(len(row.failures) for row in rows)} failures")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
