#!/usr/bin/env python3
"""Command lines of perftest as people wrote them (tests/data/perftest-lines): each does what its author meant.

usage: perftest_lines_test.py GDRPERF SCHEMA. PERFTEST_LINES=report prints what became of each line.
"""

import collections
import concurrent.futures
import os
import pathlib
import re
import shlex
import sys
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support
from support import CliTest, run

LINES = pathlib.Path(__file__).resolve().parents[2] / "data/perftest-lines/lines.tsv"
# As short as a run can be; the rest of the line stays.
SHORT = {"-D": "0.05", "--duration": "0.05", "-f": "0.01"}
MOST_MESSAGES = 200


def read_lines():
    """(line, outcome, source) of each."""
    rows = [line.split("\t") for line in LINES.read_text(encoding="utf-8").splitlines() if line
            and not line.startswith("#")]
    assert all(len(row) == 3 for row in rows), "a line has three columns"
    return rows


def shortened(line):
    """(program, words) for this machine: its device, a short run, no port of its own."""
    program, *words = shlex.split(re.sub(r"(^|\s)-D(\d)", r"\1-D \2", line))
    result, words = [], iter(words)
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and name in ("-D", "--duration", "-n", "--iters", "-p", "--port", "-d", "--ib-dev", "-x",
                                   "--gid-index", "-f", "-t", "--source_ip", "--bind_source_ip"):
            value = next(words)
        if name in ("-p", "--port"):
            continue
        if name in SHORT:
            value = SHORT[name]
        elif name in ("-n", "--iters"):
            value = str(min(int(value), MOST_MESSAGES))
        elif name in ("-d", "--ib-dev"):
            value = "soft0"
        elif name in ("-x", "--gid-index"):
            value = "2"  # RoCE v2 over IPv4, as index 3 usually is
        elif name in ("--source_ip", "--bind_source_ip"):
            value = "127.0.0.1"
        result += [f"{name}={value}"] if equals and value else [name, value] if value else [word]
    timed = {word.partition("=")[0] for word in result} & {"-D", "--duration", "-n", "--iters"}
    # An endless run prints every five seconds; one of the lines, with -n, waits for that.
    stop = [] if timed else ["-D", SHORT["-D"]] if "--run_infinitely" in result else ["--cap", "10ms"]
    return program, result + stop


def of_server(words):
    """What the server is started with."""
    return [word for word in words if word != "HOST"]


def once_each(rows):
    """Without those that become the same command on this machine."""
    first = {}
    for row in rows:
        program, words = shortened(row[0])
        first.setdefault((program, *of_server(words)), row)
    return list(first.values())


class Lines(CliTest):
    def test_there_are_enough_of_them_with_their_sources(self):
        rows = read_lines()
        self.assertGreaterEqual(len(rows), 120)
        self.assertEqual(len({line for line, *_ in rows}), len(rows), "one stands there twice")
        counts = collections.Counter(outcome for _, outcome, _ in rows)
        self.assertEqual(set(counts) - {"runs", "hardware", "refused"}, set())
        possible = counts["runs"] + counts["refused"]
        self.assertGreaterEqual(counts["runs"] / possible, 0.97, counts)

    def test_each_is_understood_or_refused_with_a_reason(self):
        for line, outcome, _ in support.cases(read_lines()[::5], read_lines()):
            with self.subTest(line):
                program, words = shortened(line)
                local = [word for word in words if word not in ("HOST", "--source_ip", "--bind_source_ip", "127.0.0.1")]
                result = run(program, "--local", "--dry-run", "--softnic",
                             *[word.replace("FILE", "out.json") for word in local], cwd=self.scratch())
                if outcome == "refused":
                    self.assertEqual(result.code, 2, str(result))
                    self.assertIn("hint: ", result.err)
                elif outcome == "runs":
                    self.assertEqual(result.code, 0, str(result))
                else:
                    self.assertIn(result.code, (0, 2, 3), str(result))


@unittest.skipIf(support.softnic_works(), "no software device")
class Runs(CliTest):
    def test_each_runs_at_both_ends(self):
        possible = once_each(row for row in read_lines() if row[1] == "runs")
        chosen = support.cases(possible[::9], possible)
        # Most of the time of a run is waiting: for the server's first word, for the client's.
        with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
            problems = list(pool.map(lambda row: self.problem_of(row[0]), chosen))
        if os.environ.get("PERFTEST_LINES") == "report":
            print(f"{len(chosen)} lines, {sum(map(bool, problems))} with a problem")
        for (line, _, source), problem in zip(chosen, problems):
            with self.subTest(line=line, source=source):
                self.assertEqual(problem, "")

    def problem_of(self, line):
        """What went wrong with both ends of the line; "" where nothing did."""
        program, words = shortened(line)
        with tempfile.TemporaryDirectory(prefix="gdrperf-cli-") as folder:
            words = [word.replace("FILE", os.path.join(folder, "out.json")) for word in words]
            try:
                return self.problem_of_ends(program, words)
            except AssertionError as error:
                return str(error)

    @staticmethod
    def problem_of_ends(program, words):
        there = of_server(words)
        here = [*there, "127.0.0.1"]
        with support.Background(program, "-p", "0", "--softnic", *there) as server:
            port = server.wait_line(", port ").split(", port ")[1].split(";")[0]
            if "--run_infinitely" in words:
                with support.Background(program, *here, "-p", port, "--softnic") as client:
                    client.wait_line("    messages      GB/s")
                return ""
            client = run(program, *here, "-p", port, "--softnic")
            code = server.wait()
        # A limit that this machine does not reach is told by status 1.
        codes = [(0, 0), *([(1, 0)] if {"-w", "-y"} & set(words) else [])]
        both = f"{client}\nserver: {code} {server.out}{server.err}"
        if (client.code, code) not in codes:
            return both
        figures = [re.search(r"(?m)^ ?\d+(\.\d+)?\s", text) for text in (client.out, server.out)]
        return "" if all(figures) else f"no figure at an end: {both}"


if __name__ == "__main__":
    support.main()
