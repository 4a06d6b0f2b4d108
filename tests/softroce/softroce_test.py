#!/usr/bin/env python3
"""All tests over the kernel's Soft-RoCE, in one boot of the machine."""

import sys
import unittest

import failures_test
import guest
import ops_test
import sweep_test
from failures_test import Failures
from ops_test import Ops
from sweep_test import Sweep

__all__ = ["Failures", "Ops", "Sweep"]


if __name__ == "__main__":
    # The last of the failures takes the link down for good.
    guest.run_together(guest.Group(ops_test.CASES, guest.SERVER), guest.Group(sweep_test.CASES),
                       guest.Group(failures_test.CASES, guest.SERVER))
    sys.exit(unittest.main(argv=guest.UNITTEST_ARGV, verbosity=2))
