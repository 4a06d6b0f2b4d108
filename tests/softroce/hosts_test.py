#!/usr/bin/env python3
"""Client and server on two kernels: two virtual machines with a network between them.

Skipped, with the reason, where two such machines cannot be had, or are too slow for a case."""

import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

import guest

ONCE_PORT = 18600
# What is typed behind the program's name at the client, and at which of the servers it looks.
CASES = {
    "write_bw_cm": "write_bw -R -s 4K -n 100",
    "send_lat_cm": "send_lat -R -s 64 -n 50",
    "read_bw": "read_bw -s 4K -n 100",
    "once": f"write_bw -R -s 4K -n 50 -p {ONCE_PORT}",
}
# timeout(1)'s: the machine was too slow.
TIMED_OUT = {"124", "137"}


def commands(out):
    """Server's and client's: each waits for what the other has said, never for a time."""
    folder, gdrperf = shlex.quote(out), shlex.quote(str(guest.GDRPERF))
    boot = "cat /proc/sys/kernel/random/boot_id"
    server = [f"cd {folder}", f"{boot} >boot.1",
              f"({gdrperf} serve --once -p {ONCE_PORT} 2>once.err; echo $? >once.server) &",
              f"exec {gdrperf} serve 2>server.err"]
    client = [f"cd {folder}", f"{boot} >boot.2",
              "until grep -q serving server.err && grep -q 'waiting for one client' once.err; do sleep 0.2; done "
              "2>/dev/null"]
    for name, words in CASES.items():
        client += [f"timeout -k 5 {guest.CASE_TIMEOUT_S} {gdrperf} {words} {guest.RXE_ADDRESS} --json - >{name}.out "
                   f"2>{name}.err",
                   f"echo $? >{name}.status"]
    # A client that did not get through leaves the server waiting for one.
    client.append("[ \"$(cat once.status)\" != 0 ] || until [ -s once.server ]; do sleep 0.2; done")
    return "\n".join(server), "\n".join(client)


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="softroce-hosts.") as out:
            vm = subprocess.run([guest.SOURCE_ROOT / "scripts/softroce-vm", "--hosts", "2", "--memory", "1024",
                                 "--timeout", str(guest.VM_TIMEOUT_S), "--rw", out, "--", *commands(out)],
                                capture_output=True, text=True, check=False)
            cls.ended = f"softroce-vm ended with status {vm.returncode}\n{vm.stdout}{vm.stderr}"
            # There are no two machines here, or one of them did not come up or ran out of time.
            if vm.returncode in (guest.EXIT_SKIPPED, guest.EXIT_NO_MACHINE):
                print(" ".join(cls.ended.split()), file=sys.stderr)
                sys.exit(guest.EXIT_SKIPPED)
            cls.status = vm.returncode
            cls.files = {path.name: path.read_text(errors="replace") for path in pathlib.Path(out).iterdir()}

    def line(self, name):
        return self.files.get(name, "").strip()

    def test_both_machines_ended_well(self):
        self.assertEqual(self.status, 0, self.ended)

    def test_they_are_two_kernels(self):
        self.assertNotEqual(self.line("boot.1"), self.line("boot.2"))

    def test_each_case(self):
        for name, words in CASES.items():
            with self.subTest(words):
                if self.line(f"{name}.status") in TIMED_OUT:
                    self.skipTest(f"the emulated machines did not get through it in {guest.CASE_TIMEOUT_S} s")
                self.assertEqual(self.line(f"{name}.status"), "0", f"{self.files.get(f'{name}.err')}\n{self.ended}")
                document = guest.checked_document(self.files[f"{name}.out"])
                (record,) = document["relations"]["HOST"][words.split()[0]]
                self.assertEqual(record["device_kind"], "rxe")
                self.assertEqual(record["connection"], "rdma_cm" if "-R" in words else "exchange")

    def test_the_server_for_one_client_ends_with_it(self):
        if self.line("once.status") in TIMED_OUT:
            self.skipTest("its client did not get through")
        self.assertEqual(self.line("once.server"), "0", self.files.get("once.err"))


if __name__ == "__main__":
    sys.exit(unittest.main(argv=guest.UNITTEST_ARGV, verbosity=2))
