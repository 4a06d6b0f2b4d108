#!/usr/bin/env python3
"""Every call that can wait has a row, with its limit, in docs/explanation/waits.md: waits_test.py ROOT"""

import collections
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
TABLE = ROOT / "docs/explanation/waits.md"

# A call, and what in the same statement makes it one that never waits.
WAITS = {
    "poll": (r"(?<!\w)::p?poll\(", r"&\w+, \w+, 0\)|\w+, 0\) [<>!=]"),
    "epoll_wait": (r"\bepoll_wait\(", None),
    "wait": (r"\b(?:lock|guard|quiet)\.wait\(|\bfuture\w*\.wait\(", None),
    "wait_for": (r"\.wait_for\(", None),
    "wait_until": (r"\.wait_until\(", None),
    "sleep": (r"\bsleep_(?:for|until)\(|\bnanosleep\(|\busleep\(|::sleep\(", None),
    "recv": (r"::recv(?:msg)?\(", r"MSG_DONTWAIT"),
    "read": (r"(?<!\w)::p?read\(", None),
    "write": (r"(?<!\w)::write\(", None),
    "waitpid": (r"::waitpid\(", r"WNOHANG"),
    "flock": (r"::flock\(", r"LOCK_NB"),
    "accept": (r"(?<!\w)::accept4?\(", None),
    "connect": (r"::connect\(\w+\.get", None),
    "getaddrinfo": (r"::getaddrinfo\(", None),
    "get_event": (r"\b(?:ibv_get_cq_event|ibv_get_async_event|rdma_get_cm_event)\((?!\))", None),
    "synchronize": (r"\bcuda(?:Stream|Event|Device)Synchronize\(", None),
    "get of a future": (r"\b(?:own|future\w*|result)->get\(\)|\bfuture\w*\.get\(\)", None),
    "kForever": (r"Channel::kForever", None),
    "kLongestRun": (r"\bkLongestRun, ", None),
    "getline": (r"getline\(std::cin", None),
}
ROW = re.compile(r"^\| `([^`]+)` \| ([\w ]+?)(?: x (\d+))? \| (.+?) \|$")


def statements(text):
    """Lines without comments, each joined with the next, as a call may go on there."""
    lines = [re.sub(r"//.*", "", line) for line in text.splitlines()]
    return [(line, line + " " + (lines[i + 1].strip() if i + 1 < len(lines) else "")) for i, line in enumerate(lines)]


def waits_of(text):
    found = collections.Counter()
    for line, statement in statements(text):
        for name, (call, never) in WAITS.items():
            for match in re.finditer(call, line):
                if never is None or not re.search(never, statement[match.start():].split(";")[0]):
                    found[name] += 1
    return found


def in_sources():
    found = {}
    for folder in ("src", "include"):
        for path in sorted((ROOT / folder).rglob("*")):
            # What forwards to libraries only has the names.
            if path.suffix in (".cc", ".h", ".cu") and path.name != "loaded.cc":
                for name, count in waits_of(path.read_text(encoding="utf-8")).items():
                    found[path.relative_to(ROOT).as_posix(), name] = count
    return found


def in_table():
    rows = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        match = ROW.match(line)
        if match:
            rows[match[1], match[2]] = int(match[3] or 1)
    return rows


class Waits(unittest.TestCase):
    def test_what_is_found(self):
        self.assertEqual(waits_of("while (::poll(&a, 1, -1) < 0) {}"), {"poll": 1})
        self.assertEqual(waits_of("if (::poll(&entry, 1, 0) <= 0) return;  // ::poll(x)"), {})
        self.assertEqual(waits_of("x = ::recv(fd, block, sizeof block, MSG_DONTWAIT);"), {})
        self.assertEqual(waits_of("x = ::recv(fd, block,\n  sizeof block, MSG_DONTWAIT);"), {})
        self.assertEqual(waits_of("x = ::recv(fd, block, 1, 0);"), {"recv": 1})
        self.assertEqual(waits_of("::waitpid(child, &status, 0)"), {"waitpid": 1})
        self.assertEqual(waits_of("::waitpid(child, &status, WNOHANG)"), {})

    def test_each_wait_has_its_limit_in_the_table(self):
        found, rows = in_sources(), in_table()
        wrong = [f"{path}: {name} x {count}: no such row in {TABLE.relative_to(ROOT)}"
                 f"{f', which has {rows[path, name]}' if (path, name) in rows else ''}: what limits it?"
                 for (path, name), count in found.items() if rows.get((path, name)) != count]
        wrong += [f"{path}: {name}: has a row and is not there" for path, name in rows if (path, name) not in found]
        self.assertGreater(len(found), 30, "the patterns by which waits are found")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))


if __name__ == "__main__":
    unittest.main()
