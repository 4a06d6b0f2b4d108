#!/usr/bin/env python3
"""Which tests a change concerns, and how they went when they last ran.

Usage: affected.py choose BUILD SECONDS PROCESSES SUITE...
       affected.py note BUILD TESTLOG_JSON

'choose' prints, by name, the tests of the suites to run: those that have not passed with the files they
read as these are now. Those that never ran come all, but for the suite 'longer'; of the others as many as their
last times allow for SECONDS, the failed first, then those that waited longest; at least one where SECONDS are many.
Those of 'longer' that never ran come when nothing else is left, PROCESSES of them. The number left for another time
is told on stderr. 'note' remembers how the tests of a log went. What is remembered is in BUILD/test-results.json.
"""

import hashlib
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Read by tests wherever they are: recorded machines, samples, schemas, what the documentation shows.
SHARED = ("tests/data", "tests/golden", "docs", "results", "README.md", "web")
# So much time is left where nothing had to be compiled.
UNHURRIED_S = 12
# Look at all sources, in a few seconds.
ALWAYS = {"house", "includes"}
# Tests that a first run leaves to later ones.
LATER = "longer"


class Digests:
    """Content of files and folders, each read once."""

    def __init__(self):
        self.known = {}

    def of(self, path):
        if path not in self.known:
            files = [path] if path.is_file() else sorted(it for it in path.rglob("*") if it.is_file())
            total = hashlib.sha256()
            for file in files:
                total.update(f"{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
            self.known[path] = total.hexdigest()
        return self.known[path]


def inputs(test, targets):
    """Files and folders a test reads: its program, its script, those beside it, a folder up and in tests/cli, which
    tests of other folders import, and what it depends on."""
    paths = {ROOT / it for it in SHARED}
    paths.update(pathlib.Path(file) for target in test["depends"] for file in targets.get(target, []))
    for word in test["cmd"]:
        if word.startswith("-"):
            continue
        path = pathlib.Path(word)
        if path.suffix == ".py" and path.is_file():
            folder = path.resolve().parent
            paths.update(it for where in (folder, folder.parent, ROOT / "tests/cli") for it in where.glob("*.py"))
        elif path.is_file() and ROOT in path.resolve().parents:
            paths.add(path)
    return sorted(path for path in paths if path.exists())


def tests_of(build, suites):
    """'suite/name' -> hash of all that the test reads; and which of them are of the suite LATER."""
    targets = {it["id"]: it["filename"] for it in json.loads((build / "meson-info/intro-targets.json").read_text())}
    digests = Digests()
    found, later = {}, set()
    for test in json.loads((build / "meson-info/intro-tests.json").read_text()):
        its_suites = [it.split(":")[-1] for it in test["suite"]]
        suite = next((it for it in its_suites if it in suites), None)
        if suite is None:
            continue
        words = [str(it) for it in test["cmd"]] + sorted(f"{k}={v}" for k, v in test["env"].items())
        key = hashlib.sha256("\0".join(words).encode())
        for path in inputs(test, targets):
            key.update(digests.of(path).encode())
        found[f"{suite}/{test['name']}"] = key.hexdigest()
        if LATER in its_suites:
            later.add(f"{suite}/{test['name']}")
    return found, later


def remembered(build):
    try:
        return json.loads((build / "test-results.json").read_text())
    except (OSError, ValueError):
        return {}


def choose(build, seconds, processes, suites):
    past = remembered(build)
    now, longer = tests_of(build, suites)
    never_ran = [it for it in now if it in longer and it not in past]
    fresh = [it for it in now if it not in never_ran and (it not in past or it.split("/")[1] in ALWAYS)]
    stale = [it for it in now if it in past and it not in fresh
             and (past[it]["key"] != now[it] or not past[it]["passed"])]
    stale.sort(key=lambda it: (past[it]["passed"], past[it]["at"]))
    chosen = []
    left = seconds * processes
    for it in stale:
        if not past[it]["passed"] or past[it]["seconds"] <= min(left, seconds):
            chosen.append(it)
            left -= past[it]["seconds"]
    # One that takes longer has its turn when nothing else is left, in a run that did not compile first.
    if stale and not chosen and seconds >= UNHURRIED_S:
        chosen = stale[:1]
    kept = len(now) - len(fresh) - len(stale) - len(never_ran)
    later = len(stale) + len(never_ran)
    if len(chosen) == len(stale) and seconds >= UNHURRIED_S:
        chosen += never_ran[:processes]
    later -= len(chosen)
    told = [f"{kept} of {len(now)} read nothing that changed since they passed"] if kept else []
    told += [f"{later} wait for later runs (--again: all now)"] if later else []
    if told:
        print("; ".join(told), file=sys.stderr)
    # Two suites may have a test of one name: meson 1.0 runs what is named twice twice.
    for name in dict.fromkeys(it.split("/")[1] for it in fresh + chosen):
        print(name)


def note(build, log):
    past = remembered(build)
    keys = {}
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        test = json.loads(line)
        # "gdrperf:cli / usage"
        suites, _, name = test["name"].rpartition(" / ")
        for suite in set(suites.split(":")[-1].split("+")) - {LATER}:
            if suite not in keys:
                keys[suite], _ = tests_of(build, {suite})
            label = f"{suite}/{name.strip()}"
            if label in keys[suite]:
                past[label] = {"key": keys[suite][label], "passed": test["result"] in ("OK", "SKIP", "EXPECTEDFAIL"),
                               "seconds": test["duration"], "at": time.time()}
    (build / "test-results.json").write_text(json.dumps(past, indent=1))


def main():
    build = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "choose":
        choose(build, float(sys.argv[3]), int(sys.argv[4]), set(sys.argv[5:]))
    else:
        note(build, pathlib.Path(sys.argv[3]))


if __name__ == "__main__":
    main()
