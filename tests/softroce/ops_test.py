#!/usr/bin/env python3
"""Client and server over the kernel's verbs: every test, both ways to connect QPs. One server
process serves all of it."""

import sys
import unittest

import guest

OPS = ["write_bw", "write_lat", "read_bw", "read_lat", "send_bw", "send_lat"]
ADDRESS = guest.RXE_ADDRESS
SHORT = "-n 300 --json -"

CASES = {}
for op in OPS:
    CASES[op] = f'"$gdrperf" {op} {ADDRESS} -s 4K {SHORT}'
    CASES[f"{op}_cm"] = f'"$gdrperf" {op} {ADDRESS} -R -s 4K {SHORT}'
CASES |= {
    "sizes": f'"$gdrperf" write_bw {ADDRESS} -s 2,1000,64K -n 100 --json -',
    "bidirectional": f'"$gdrperf" send_bw {ADDRESS} -b -s 4K {SHORT}',
    "queue_pairs": f'"$gdrperf" write_bw {ADDRESS} -q 4 -s 4K {SHORT}',
    "over_ud": f'"$gdrperf" send_bw {ADDRESS} --transport ud -s 1000 {SHORT}',
    "over_ud_lat": f'"$gdrperf" send_lat {ADDRESS} --transport ud -s 64 {SHORT}',
    "over_uc": f'"$gdrperf" send_bw {ADDRESS} --transport uc -s 4K {SHORT}',
    "write_over_uc": f'"$gdrperf" write_lat {ADDRESS} --transport uc -s 64 {SHORT}',
    "events": f'"$gdrperf" send_lat {ADDRESS} -e -s 64 {SHORT}',
    "loopback_address": f'"$gdrperf" write_bw 127.0.0.1 -s 4K {SHORT}',
    # The words ib_write_bw's users know: no server running, both ends typed.
    "one_client": '"$gdrperf" write_lat -p 18600 & server=$!; n=0; '
                  f'until "$gdrperf" write_lat {ADDRESS} -p 18600 -s 8 {SHORT}; do '
                  'n=$((n + 1)); [ $n -lt 20 ] || break; sleep 0.5; done; wait $server',
    "verify": f'"$gdrperf" verify {ADDRESS} --ops write_imm_bw,write_imm_lat,atomic_bw,atomic_lat --sizes 8,4K -n 300 '
              f'&& "$gdrperf" verify {ADDRESS} --ops atomic_bw -A cmp_swap -n 300',
    "devices": '"$gdrperf" devices',
}


class Ops(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = guest.run_cases(CASES, guest.SERVER)

    def document(self, name):
        result = self.results[name]
        self.assertEqual(result.status, 0, f"{name}: {result}")
        return guest.checked_document(result.stdout)

    def records(self, name, op):
        records = self.document(name)["relations"]["HOST"][op]
        for record in records:
            self.assertEqual(record["device_kind"], "rxe")
            self.assertEqual(record["client"]["device"], "rxe0")
            self.assertEqual(record["client"]["gid_index"], 1)
            figure = record["bw"]["median_gbps"] if record["bw"] else record["latency"]["p50_ns"]
            self.assertGreater(figure, 0)
        return records

    def test_other_transports(self):
        for name, op, transport in (("over_ud", "send_bw", "ud"), ("over_ud_lat", "send_lat", "ud"),
                                    ("over_uc", "send_bw", "uc"),
                                    ("write_over_uc", "write_lat", "uc")):
            with self.subTest(name):
                (record,) = self.records(name, op)
                self.assertEqual(record["transport"], transport)
                if record["bw"]:
                    # Of 512 receives each message has one.
                    self.assertEqual(record["delivery"]["lost_messages"], 0)

    def test_every_op(self):
        for op in OPS:
            with self.subTest(op):
                (record,) = self.records(op, op)
                self.assertEqual(record["connection"], "exchange")
                self.assertEqual(record["size_bytes"], 4096)

    def test_every_op_over_rdma_cm(self):
        for op in OPS:
            with self.subTest(op):
                (record,) = self.records(f"{op}_cm", op)
                self.assertEqual(record["connection"], "rdma_cm")

    def test_several_sizes_in_one_run(self):
        records = self.records("sizes", "write_bw")
        self.assertEqual([record["size_bytes"] for record in records], [2, 1000, 65536])

    def test_both_directions_at_once(self):
        (record,) = self.records("bidirectional", "send_bw")
        self.assertEqual(record["direction"], "bidirectional")

    def test_several_queue_pairs(self):
        (record,) = self.records("queue_pairs", "write_bw")
        self.assertEqual(record["qps"], 4)

    def test_completion_events(self):
        self.records("events", "send_lat")

    def test_control_channel_on_another_address(self):
        self.records("loopback_address", "write_bw")

    def test_server_for_one_client_without_serve(self):
        result = self.results["one_client"]
        self.assertEqual(result.status, 0, result)

    def test_immediates_and_atomics_verified(self):
        result = self.results["verify"]
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.stdout.count("PASSED"), 5, result)

    def test_device_row(self):
        result = self.results["devices"]
        self.assertEqual(result.status, 0, result)
        for word in ("rxe0", "ACTIVE", ADDRESS, "RoCE v2"):
            self.assertIn(word, result.stdout)

    def test_server_ends_cleanly_on_sigterm(self):
        result = self.results["server"]
        self.assertEqual(result.status, 0, result)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=guest.UNITTEST_ARGV, verbosity=2))
