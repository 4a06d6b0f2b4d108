#!/usr/bin/env python3
"""Sums the test cases of meson's JSON test logs.

Usage: summary.py TESTLOG_JSON...

Prints the output of failed tests (of GoogleTest and unittest that of the failed cases), the reason of
each skip, the lines of measured figures that tests printed ('figure: ...'), and as the last line
'N passed, N failed, N skipped'. A program built on GoogleTest or Python's unittest counts
with each of its cases, any other test as one. Exits with 1 when a case failed or when there
was none at all.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from dataclasses import dataclass, field

LOG_LINES_SHOWN = 80
# Up to its end, or to the program's where that died in it.
FAILED_CASE = re.compile(r"^\[ RUN +\] (?:(?!^\[ +(?:OK|SKIPPED) ).)*?(?:^\[ +FAILED +\] [^\n]*|\Z)", re.M | re.S)
# unittest writes them one after the other at its end.
FAILED_UNITTEST = re.compile(r"^={70}\n(?:FAIL|ERROR): .*\Z", re.M | re.S)


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, other: "Counts") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def gtest_counts(stdout: str) -> Counts | None:
    """Counts GoogleTest's own lines; None when the program is none of its."""
    if not re.search(r"^\[=+\] Running \d+ tests?", stdout, re.M):
        return None
    counts = Counts(
        passed=len(re.findall(r"^\[ +OK \] ", stdout, re.M)),
        # With its time: the list at the end names them again without.
        failed=len(re.findall(r"^\[ +FAILED +\] .*\(\d+ ms\)$", stdout, re.M)),
    )
    for case in re.finditer(r"^\[ RUN +\] (\S+)\n(.*?)^\[ +SKIPPED +\] \1", stdout, re.M | re.S):
        counts.skipped += 1
        reason = re.sub(r"^\S+: Skipped\n", "", case.group(2))
        counts.reasons.append(f"{case.group(1)}: {last_line(reason)}")
    return counts


def unittest_counts(output: str) -> Counts | None:
    """Reads unittest's closing lines; None when the program printed none."""
    ran = re.search(r"^Ran (\d+) tests? in ", output, re.M)
    if not ran:
        return None

    def number(word: str) -> int:
        found = re.search(rf"^(?:OK|FAILED) \(.*?\b{word}=(\d+)", output, re.M)
        return int(found.group(1)) if found else 0

    failed = number("failures") + number("errors")
    skipped = number("skipped")
    counts = Counts(max(int(ran.group(1)) - failed - skipped, 0), failed, skipped)
    counts.reasons = re.findall(r"skipped ['\"](.*)['\"]$", output, re.M)
    return counts


def counts_of(test: dict) -> Counts:
    stdout = test.get("stdout") or ""
    stderr = test.get("stderr") or ""
    result = test["result"]
    if result == "SKIP":
        return Counts(skipped=1, reasons=[last_line(stderr or stdout)])
    counts = gtest_counts(stdout) or unittest_counts(stdout + "\n" + stderr)
    failed = result not in ("OK", "EXPECTEDFAIL")
    if counts is None or counts.passed + counts.failed + counts.skipped == 0:
        return Counts(failed=1) if failed else Counts(passed=1)
    # Crashed, timed out, or a sanitizer's finding at exit: no case owns that failure.
    if failed and counts.failed == 0:
        counts.failed = 1
    return counts


def show_failure(test: dict) -> None:
    print(f"FAILED {test['name']} ({test['result'].lower()}, status {test.get('returncode')})")
    print("  command: " + " ".join(test.get("command", [])))
    for stream in ("stdout", "stderr"):
        text = test.get(stream) or ""
        lines = ("\n".join(FAILED_CASE.findall(text) or FAILED_UNITTEST.findall(text)) or text).splitlines()
        if len(lines) > LOG_LINES_SHOWN:
            print(f"  {stream}: the last {LOG_LINES_SHOWN} of {len(lines)} lines")
        for line in lines[-LOG_LINES_SHOWN:]:
            print("  | " + line)


def tests_of(name: str) -> list[dict]:
    # One JSON object per line.
    return [json.loads(line) for line in
            pathlib.Path(name).read_text(encoding="utf-8", errors="replace").splitlines()]


def main() -> int:
    total = Counts()
    skips = []
    figures = []
    for name in sys.argv[1:]:
        build = pathlib.Path(name).parent.parent.name
        for test in tests_of(name):
            counts = counts_of(test)
            total.add(counts)
            if counts.failed:
                show_failure(test)
                print(f"  full log: {name}")
            figures += re.findall(r"^figure: .*$", test.get("stdout") or "", re.M)
            skips += [f"skipped in {build}, {test['name']}: {it}" for it in counts.reasons]
    for line in figures + skips:
        print(line)
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
