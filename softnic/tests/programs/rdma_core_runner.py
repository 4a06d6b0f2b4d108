"""Runs rdma-core's own tests and prints one JSON line for each as it ends. Executed by the
interpreter that python3-pyverbs is made for, in a process of its own: a test that crashes it
leaves its name as the last line.

Usage: rdma_core_runner.py FOLDER DEVICE     (FOLDER holds the package `tests`)
"""

import json
import sys
import unittest


class JsonLines(unittest.TestResult):
    """Says what became of each test; subtests belong to their test."""

    def say(self, test, outcome, detail=""):
        print(json.dumps({"test": test.id(), "outcome": outcome, "detail": detail}), flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.ended = False
        self.say(test, "started")

    def end(self, test, outcome, detail=""):
        if not self.ended:
            self.say(test, outcome, detail)
        self.ended = True

    def addSuccess(self, test):
        self.end(test, "passed")

    def addSkip(self, test, reason):
        self.end(test, "skipped", reason)

    def addError(self, test, err):
        super().addError(test, err)
        # A class that cannot be set up has not started.
        self.ended = getattr(self, "ended", False)
        self.end(test, "failed", self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.end(test, "failed", self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.end(test, "failed", f"{subtest.id()}: {err[1]}")


def main():
    folder, device = sys.argv[1:3]
    sys.argv = [sys.argv[0], "--dev", device]
    # As the tests' own starter has it: `tests` and what lies in it are both found.
    sys.path[:0] = [folder, f"{folder}/tests"]
    # pylint: disable=import-outside-toplevel,import-error
    from args_parser import parser
    import tests

    parser.parse_args()
    unittest.defaultTestLoader.loadTestsFromModule(tests).run(JsonLines())


if __name__ == "__main__":
    main()
