#!/usr/bin/env python3
"""QPs over several UDP source ports: each one's share of the rate, and the path that is worse than the others."""

import json
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, main, rates, run

# One egress for all QPs; a large `react` hides what else this machine does.
LINK = "rate=200MB/s,latency=2us,react=100ms,copy=edges"
PORTS = [49152, 53248, 57344, 61440]


class Measured(CliTest):
    def measured(self, *words, softnic=f"soft0:{LINK};soft1:{LINK}"):
        result = run("write_bw", "--local", "--softnic", "--peer-dev", "soft1", "-s", "16K", "-D", "300ms", *words,
                     "--json", "-",
                     env={"SOFTNIC": softnic})
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        return self.runs_of(document)[0], result


class Spread(Measured):
    def test_each_qp_has_its_share(self):
        record, result = self.measured("--spread", "4")
        self.assertEqual((record["qps"], record["spread"], record["shares"]["ports"]), (4, 4, 4))
        qps = record["shares"]["qps"]
        self.assertEqual([each["udp_sport"] for each in qps], PORTS)
        self.assertAlmostEqual(sum(each["share"] for each in qps), 1, places=6)
        self.assertIn("spread over 4 source ports", result.err)

    def test_more_qps_than_ports_take_them_in_turn(self):
        record, _ = self.measured("--spread", "2", "-q", "4")
        self.assertEqual([each["udp_sport"] for each in record["shares"]["qps"]], [49152, 57344] * 2)
        self.assertEqual(record["shares"]["ports"], 2)

    def test_a_list_of_labels(self):
        record, _ = self.measured("--flow-label", "1,2", "-q", "2")
        self.assertEqual([each["udp_sport"] for each in record["shares"]["qps"]], [49153, 49154])
        one, _ = self.measured("--flow-label", "7")
        self.assertNotIn("shares", one)

    def test_what_cannot_be(self):
        base = ["write_bw", "--local", "--softnic"]
        self.expect_error(run(*base, "--spread", "4", "--flow-label", "7"), 2, "--spread and --flow-label")
        self.expect_error(run(*base, "--spread", "4", "-R"), 2, "--spread 4: rdma_cm chooses the path")
        self.expect_error(run(*base, "--spread", "1"), 2, "--spread 1")
        self.expect_error(run("send_bw", "--local", "--softnic", "--transport", "ud", "-s", "64", "--spread", "4"), 2,
                          "--spread with --transport ud")
        self.expect_error(run(*base, "--udp-sport", "80"), 2, "--udp-sport")
        self.expect_error(run(*base, "--flow-label", "1,x"), 2, "--flow-label")
        self.expect_error(run(*base, "--flow-label", f"1,{1 << 20}"), 2, "--flow-label")
        self.expect_error(run("write_lat", "--local", "--softnic", "--spread", "4"), 2, "--spread")
        self.expect_error(run(*base, "--pkey-index", "1"), 3, "partition key at index 1")
        self.expect_error(run(*base, "--pkey-index", "1", "-R"), 2, "--pkey-index: rdma_cm")
        self.expect_error(run(*base, "--max-rd-atomic", "0"), 2, "--max-rd-atomic 0")

    def test_what_a_device_does_not_have_is_refused_by_name(self):
        env = {"SOFTNIC": "soft0"}
        words = ("write_bw", "--local", "--softnic", "-n", "100")
        self.expect_error(run(*words, "--lag-port", "1,2", env=env), 3, "--lag-port 1: soft0", "mlx5 devices alone")
        self.expect_error(run(*words, "--lag-port", "0", env=env), 2, "--lag-port")
        self.expect_error(run(*words, "--lag-port", "1", "-R", env=env), 2, "--lag-port", "-R")
        self.expect_error(run(*words, "--comp-vector", "1000", env=env), 3, "--comp-vector 1000: soft0 has")

    def test_another_completion_vector_is_in_the_record(self):
        result = run("send_bw", "--local", "--softnic", "-e", "-n", "500", "--comp-vector", "1", "--json", "-",
                     env={"SOFTNIC": "soft0"})
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        self.assertEqual(self.runs_of(document)[0]["comp_vector"], 1)


@rates
class Rates(Measured):
    """Held against the model of a link: while an end gets no CPU, the slow path alone goes on."""

    def test_a_path_that_is_slower_is_named(self):
        slow = f"slow_sport={PORTS[2]}:5MB/s"
        record, result = self.measured("--spread", "4", softnic=f"soft0:{LINK},{slow};soft1:{LINK},{slow}")
        self.assertIn(PORTS[2], record["shares"]["uneven"], str(result))
        self.assertLess(len(record["shares"]["uneven"]), 4)
        share = {each["udp_sport"]: each["share"] for each in record["shares"]["qps"]}[PORTS[2]]
        self.assertLess(share, 0.1, str(result))
        self.assertTrue(any("uneven paths: UDP source port" in each and str(PORTS[2]) in each
                            for each in record["warnings"]))


if __name__ == "__main__":
    main()
