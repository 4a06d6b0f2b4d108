#!/usr/bin/env python3
"""Which attributes QPs get on their way to RTS: those that options ask for, at both ends.

usage: qp_attributes_test.py GDRPERF SOFTNIC_LIBRARY ACCESS_LOG_LIBRARY
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

GDRPERF, SOFTNIC, LOG = sys.argv[1:4]
# Without options.
DEFAULTS = {"sl": 0, "traffic_class": 0, "flow_label": 0, "min_rnr_timer": 12, "timeout": 14, "retry_cnt": 7,
            "rnr_retry": 7, "max_rd_atomic": 16}
# Option -> the attribute that it sets, and a value.
OPTIONS = {
    "--sl": ("sl", 3),
    "--tos": ("traffic_class", 106),
    "--flow-label": ("flow_label", 7),
    "--qp-timeout": ("timeout", 17),
    "--retry-count": ("retry_cnt", 3),
    "--rnr-retry": ("rnr_retry", 5),
    "--rnr-timer": ("min_rnr_timer", 20),
    "--max-rd-atomic": ("max_rd_atomic", 4),
}
# Of these rdma_cm decides by itself, or the kernel does.
NOT_WITH_RDMA_CM = {"sl", "flow_label", "min_rnr_timer", "max_rd_atomic"}


class QpAttributes(unittest.TestCase):
    def attributes(self, *options, qps=1):
        """Each attribute with the values that any QP got."""
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            env = {**os.environ, "LD_PRELOAD": f"{LOG} {SOFTNIC}", "QP_LOG": str(log), "SOFTNIC": "soft0"}
            done = subprocess.run([GDRPERF, "send_bw", "--local", "-d", "soft0", "-n", "100", *options], env=env,
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = {}
            for word in log.read_text().split():
                name, value = word.split("=")
                found.setdefault(name, []).append(int(value))
            self.assertEqual({len(values) for values in found.values()}, {2 * qps}, "QPs of both ends")
            return {name: set(values) for name, values in found.items()}

    def test_without_options(self):
        self.assertEqual(self.attributes(), {name: {value} for name, value in DEFAULTS.items()})

    def test_as_asked(self):
        asked = [word for option, (_, value) in OPTIONS.items() for word in (option, str(value))]
        wanted = {**DEFAULTS, **dict(OPTIONS.values())}
        self.assertEqual(self.attributes(*asked), {name: {value} for name, value in wanted.items()})

    def test_labels_that_the_qps_take_in_turn(self):
        for words, labels in ((["--flow-label", "5,6,7", "-q", "4"], {5, 6, 7}),
                              (["--udp-sport", "49152,50000", "-q", "2"], {0x4001, 0x4000 | 849}),
                              (["--spread", "4"],
                               {(port & 0x3fff ^ 1) | 1 << 14 for port in (49152, 53248, 57344, 61440)})):
            self.assertEqual(self.attributes(*words, qps=4 if "--udp-sport" not in words else 2)["flow_label"], labels,
                             words)

    def test_as_asked_with_rdma_cm(self):
        options = {option: it for option, it in OPTIONS.items() if it[0] not in NOT_WITH_RDMA_CM}
        found = self.attributes("-R",
                                *(word for option, (_, value) in options.items() for word in (option, str(value))))
        for name, value in options.values():
            self.assertEqual(found[name], {value}, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
