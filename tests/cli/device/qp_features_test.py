#!/usr/bin/env python3
"""Capabilities of QPs that both ends have to have: agreed on, gone without, or refused by name."""

import json
import sys

sys.path.insert(0, sys.path[0] + "/..")
from support import CliTest, main, run

OPTIONS = "soft0:ece=0x15b3:0x7;soft1:ece=0x15b3:0x1d;plain0;other0:ece=0x14e4:0x1"


class QpFeatures(CliTest):
    def asked(self, *words, peer="soft1", device="soft0", test="write_bw"):
        return run(test, "--local", "--softnic", "-d", device, "--peer-dev", peer, "-n", "200", *words, "--json", "-",
                   env={"SOFTNIC": OPTIONS})

    def record(self, *words, **ends):
        result = self.asked(*words, **ends)
        self.expect_ok(result)
        document = json.loads(result.out)
        self.check_document(document)
        return self.runs_of(document)[0]

    def without(self, record, *words):
        self.assertNotIn("ece_agreed", record)
        found = [each for each in record["warnings"] if each.startswith("--ece auto: connected without")]
        self.assertEqual(len(found), 1, record["warnings"])
        for word in words:
            self.assertIn(word, found[0])


class EnhancedConnection(QpFeatures):
    def test_both_ends_take_what_they_have_in_common(self):
        for words in (("--ece", "on"), ("--ece", "auto", "-q", "3"), ("--ece", "on", "-b"),
                      ("--ece", "on", "--reverse")):
            record = self.record(*words)
            self.assertEqual((record["ece"], record["ece_agreed"]), (words[1], "vendor 0x15b3, options 0x5"), words)
            self.assertEqual([each for each in record["warnings"] if "--ece" in each], [])
        self.assertEqual(self.record("--ece", "on", test="send_lat")["ece_agreed"], "vendor 0x15b3, options 0x5")

    def test_nothing_is_agreed_on_where_nobody_asks(self):
        record = self.record()
        self.assertNotIn("ece", record)
        self.assertNotIn("ece_agreed", record)

    def test_auto_goes_on_without_and_says_whose_device_has_none(self):
        self.without(self.record("--ece", "auto", device="plain0"), "plain0 has none for these QPs")
        self.without(self.record("--ece", "auto", peer="plain0"), "the peer's plain0 has none")
        self.without(self.record("--ece", "auto", peer="other0"), "soft0 and the peer's other0 have none in common")

    def test_on_is_refused_naming_the_device(self):
        self.expect_error(self.asked("--ece", "on", device="plain0"), 3,
                          "--ece on: plain0 has no enhanced connection establishment")
        self.expect_error(self.asked("--ece", "on", peer="plain0"), 3,
                          "--ece on: plain0 has no enhanced connection establishment")
        self.expect_error(self.asked("--ece", "on", peer="other0"), 3, "ibv_set_ece(vendor 0x14e4, options 0x1)",
                          "--ece")
        self.expect_error(self.asked("--ece", "on", "--transport", "ud", "-s", "64", test="send_bw"), 2,
                          "--ece on is agreed on in a connection")
        self.expect_error(self.asked("--ece", "perhaps"), 2, "--ece")

    def test_librdmacm_agrees_by_itself(self):
        self.assertEqual(self.record("-R", "--ece", "on")["ece_agreed"], "vendor 0x15b3, options 0x5")


if __name__ == "__main__":
    main()
