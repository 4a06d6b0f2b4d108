"""gdrperf at one end and the installed perftest, unmodified, at the other: both roles of six tests, and what goes
wrong."""

import concurrent.futures
import json
import os
import re
import socket
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import perftest_ends
import support
from support import Background, run

PROGRAMS = ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat", "ib_read_lat", "ib_send_lat"]
# What both ends are started with. Odd sizes fill their memory in another way than powers of two.
# perftest stops receiving by its own clock: of 4 s it leaves out half a second at each end, of 1 s nothing.
VARIANTS = {"ib_write_bw": [["-s", "64", "-q", "3", "-n", "700"], ["-s", "5000", "-q", "2", "--report_gbits"]],
            "ib_read_bw": [["-s", "4096", "-q", "2", "-n", "700"]],
            "ib_send_bw": [["-n", "600", "-q", "3", "-s", "512"], ["-D", "4", "-s", "1000"]],
            "ib_write_lat": [["-s", "300", "-n", "700"], ["-D", "1"]],
            "ib_read_lat": [["-s", "8", "-n", "700"]],
            "ib_send_lat": [["-s", "4096", "-n", "500"], ["-D", "1"]]}
RUNS = [(program, args) for program in PROGRAMS
        for args in support.cases([["-n", "1000"]], [[], *VARIANTS[program]])]
SHORT_RUNS = [("ib_write_bw", ["-s", "64", "-q", "3"]), ("ib_send_bw", ["-n", "600", "-q", "3", "-s", "512"])]
if support.SHORT:
    RUNS += SHORT_RUNS


def row(text):
    """Size, iterations and figures of the only row of perftest's columns."""
    rows = re.findall(r"(?m)^ (\d+)[ \t]+(\d+)[ \t]+([-\d. \tna]+)$", text)
    assert len(rows) == 1, text
    size, iterations, figures = rows[0]
    return int(size), int(iterations), [float(each) for each in figures.split()]


def at_once(function, runs):
    """Most of the time perftest rests."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for each in [pool.submit(function, *run) for run in runs]:
            each.result()


@perftest_ends.installed
@unittest.skipIf(support.softnic_works(), "no software device")
@unittest.skipIf(support.sanitized(), "perftest loads no sanitized software device here")
class OneEndIsPerftest(support.CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    @perftest_ends.patient
    def serve_by_perftest(self, program, args):
        port = support.free_port()
        server = perftest_ends.start(program, "-p", port, *args)
        try:
            perftest_ends.wait_listening(server, port)
            file = os.path.join(self.folder, f"{port}.json")
            client = run(program, "127.0.0.1", "-p", port, "--softnic", "--json", file, *args)
            said = perftest_ends.look(server.communicate(timeout=support.PATIENCE_S)[0])
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
        if (client.code, server.returncode) != (0, 0):
            causes = f"{client.err.strip()[-300:]} | {said.strip()[-300:]}"
            self.fail(f"{program} {args}: client {client.code}, server {server.returncode}: {causes}\n{client}\n{said}")
        size, _, figures = row(client.out)
        self.assertGreater(figures[1], 0, client)
        with open(file, encoding="utf-8") as document:
            whole = json.load(document)
        self.check_document(whole)
        runs = whole["relations"]["HOST"][program[3:]]
        self.assertRegex(runs[0]["server"]["program"], r"^perftest \d\.\d+$")
        self.assertEqual(runs[0]["size_bytes"], size)
        if program in ("ib_write_bw", "ib_read_bw"):
            # It prints what it was told.
            self.assertAlmostEqual(row(said)[2][1], figures[1], delta=0.01 * figures[1] + 0.02, msg=f"{client}\n{said}")
        elif program != "ib_read_lat":
            self.assertGreater(row(said)[2][1], 0, said)

    @perftest_ends.patient
    def serve_perftest(self, program, args):
        with Background(program, "-p", "0", "--softnic", *args) as server:
            port = re.search(r"port (\d+)", server.wait_line("waiting for one client")).group(1)
            client = perftest_ends.start(program, "-p", port, *args, "127.0.0.1")
            try:
                said = perftest_ends.look(client.communicate(timeout=support.PATIENCE_S)[0])
            finally:
                client.kill()
                client.wait()
                client.stdout.close()
            self.assertEqual(client.returncode, 0, f"{program} {args}\n{said}\n" + "\n".join(server.lines))
            server.wait_line(": done")
            self.assertEqual(server.wait(), 0, "\n".join(server.lines))
        self.assertGreater(row(said)[2][1], 0, said)
        if program not in ("ib_read_lat", "ib_send_lat"):
            size, _, figures = row(server.out)
            self.assertEqual(size, row(said)[0])
            self.assertGreater(figures[1], 0)

    def test_its_server_is_spoken_with(self):
        at_once(self.serve_by_perftest, RUNS)

    def test_its_client_is_served(self):
        at_once(self.serve_perftest, RUNS)

    def test_one_that_is_killed_in_the_middle(self):
        server, port = perftest_ends.serve(self, "ib_write_bw")
        with Background("ib_write_bw", "127.0.0.1", "-p", port, "--softnic", "-D", "60", "--progress") as client:
            client.wait_measuring()
            server.kill()
            self.assertEqual(client.wait(), 5, client.err)
            self.assertRegex(client.err, r"perftest \d\.\d+ hung up before the end of the run")

    def test_a_client_of_gdrperf_is_served_there_as_well(self):
        with Background("ib_write_bw", "-p", "0", "--softnic") as server:
            port = re.search(r"port (\d+)", server.wait_line("waiting for one client")).group(1)
            result = run("write_bw", "127.0.0.1", "-p", port, "--softnic", "-n", "300", "--quiet")
            self.assertEqual(result.code, 0, result)
            self.assertEqual(server.wait(), 0)


class FakePerftest:
    """A server that says the given pieces, each after it has heard as much as it is to hear first, and hangs up."""

    def __init__(self, *pieces):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, args=(pieces,), daemon=True)
        self.thread.start()

    def _serve(self, pieces):
        connection, _ = self.listener.accept()
        with connection:
            for hear, say in pieces:
                while hear > 0:
                    came = connection.recv(hear)
                    if not came:
                        return
                    hear -= len(came)
                connection.sendall(say)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thread.join(support.PATIENCE_S)
        self.listener.close()


def version(text):
    return 16, text.encode().ljust(16, b"\0")


INTRODUCED = [version("6.29"), (4, b"\0\0\x10\0"), (4, b"\0\0\0\x40"), (2, b"5\0")]


@unittest.skipIf(support.softnic_works(), "no software device")
class PerftestThatFails(unittest.TestCase):
    def fails(self, pieces, *args, code=5):
        with FakePerftest(*pieces) as server:
            result = run("ib_write_bw", "127.0.0.1", "-p", server.port, "--softnic", "-n", "100", *args)
        self.assertEqual(result.code, code, result)
        return result.err

    def test_a_version_of_another_handshake(self):
        self.assertIn("perftest 5.33 has a handshake that gdrperf does not speak", self.fails([version("5.33")]))

    def test_what_is_no_version(self):
        self.assertIn("no version of perftest", self.fails([version("hello")]))
        self.assertIn("an SSH server answers on this port", self.fails([version("SSH-2.0-hello")]))

    def test_one_that_hangs_up(self):
        self.assertIn("closed the connection", self.fails([(16, b"")]))
        self.assertRegex(self.fails(INTRODUCED), r"perftest 6\.29 hung up before the addresses")

    def test_addresses_that_are_none(self):
        self.assertIn("what should be the address of a QP is none", self.fails([*INTRODUCED, (108, b"x" * 108)]))

    def test_what_its_handshake_does_not_carry_is_named(self):
        for args, option in [(["-R"], "-R"), (["-c", "UC"], "--transport"), (["-b"], "-b"),
                             (["--reversed"], "--reverse"), (["--peer-dev", "soft1"], "--peer-dev")]:
            with self.subTest(option):
                said = self.fails([version("6.06"), (1 << 20, b"")], *args, code=2)
                self.assertIn("the peer is perftest", said)
                self.assertIn(option, said)


if __name__ == "__main__":
    support.main()
