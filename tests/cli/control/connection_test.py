#!/usr/bin/env python3
"""Server and client finding each other, or not: ports, versions, strangers, queues."""

import json
import os
import pathlib
import select
import signal
import socket
import sys
import time
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import (PATIENCE_S, PROMISE_S, Background, CliTest, Peer, Server, cases, fake_server, free_port, main, run,
                     softnic_works)

RUN = ["--softnic", "-n", "100", "-s", "64"]
LONG_RUN = ["--softnic", "-D", "60s", "-s", "64", "--progress"]


def client(port, *options):
    return ["write_bw", "127.0.0.1", "-p", port, *options]


class Ports(CliTest):
    def test_a_port_in_use(self):
        with socket.create_server(("0.0.0.0", 0)) as taken:
            port = taken.getsockname()[1]
            for command in (["serve"], ["serve", "--bind", "127.0.0.1"], ["write_bw"]):
                with self.subTest(" ".join(command)):
                    result = run(*command, "-p", port)
                    self.expect_error(result, 3, f"port {port} is in use", "-p", within=PROMISE_S)

    def test_an_address_of_another_host(self):
        result = run("serve", "-p", "0", "--bind", "192.0.2.1")  # RFC 5737
        self.expect_error(result, 3, "192.0.2.1", "--bind", within=PROMISE_S)

    @unittest.skipIf(os.geteuid() == 0, "root may take any port")
    def test_a_port_that_belongs_to_root(self):
        self.expect_error(run("serve", "-p", "80"), 3, "80", "root", within=PROMISE_S)


class PidFile(CliTest):
    def refused(self, path, *text):
        self.expect_error(run("serve", "--softnic", "-p", "0", "--pidfile", path), 2, f"--pidfile {path}", *text)

    def test_what_is_no_pidfile_is_neither_overwritten_nor_removed(self):
        folder = pathlib.Path(self.scratch())
        notes = folder / "notes"
        for text in ("precious\n", "1234\nmore\n", "12345678901234567890\n"):
            notes.write_text(text, encoding="ascii")
            self.refused(notes, "holds something else")
            self.assertEqual(notes.read_text(encoding="ascii"), text)
        link = folder / "link"
        for target in (notes, folder / "nothing"):
            link.unlink(missing_ok=True)
            link.symlink_to(target)
            self.refused(link, "symbolic link")
        self.assertFalse((folder / "nothing").exists())
        os.mkfifo(folder / "pipe")
        self.refused(folder / "pipe", "no regular file")

    def test_one_that_a_killed_server_left_is_taken_and_another_file_of_the_name_stays(self):
        path = pathlib.Path(self.scratch(), "pid")
        path.write_text("4194304\n", encoding="ascii")
        with Server("--pidfile", path) as server:
            self.assertEqual(int(path.read_text(encoding="ascii")), server.process.pid)
            path.unlink()
            path.write_text("another's\n", encoding="ascii")
            server.signal(signal.SIGTERM)
            self.assertEqual(server.wait(), 0, server.err)
        self.assertEqual(path.read_text(encoding="ascii"), "another's\n")


class InTheBackground(CliTest):
    def test_it_serves_when_the_command_is_back_and_leaves_nothing_when_it_ends(self):
        folder = self.scratch()
        log, pidfile, port = f"{folder}/log", f"{folder}/pid", free_port()
        started = run("serve", "--softnic", "--daemon", "-p", port, "--log", log, "--pidfile", pidfile)
        self.assertEqual((started.code, started.out, started.err), (0, "", ""), started)
        with open(pidfile, encoding="ascii") as file:
            server = int(file.read())
        try:
            self.expect_ok(run(*client(port, *RUN)))
            again = run("serve", "--softnic", "--daemon", "-p", "0", "--log", log, "--pidfile", pidfile)
            self.expect_error(again, 3, f"--pidfile {pidfile}: process {server} runs with it already")
            self.expect_error(run("serve", "--softnic", "--daemon", "-p", port, "--log", log), 3,
                              f"port {port} is in use")
        finally:
            ended = os.pidfd_open(server)
            os.kill(server, signal.SIGTERM)
            with select.epoll() as poll:
                poll.register(ended, select.EPOLLIN)
                self.assertTrue(poll.poll(PATIENCE_S), "it did not end")
            os.close(ended)
        self.assertFalse(os.path.exists(pidfile))
        with open(log, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(f"serving on all addresses, port {port}", text)
        self.assertTrue(text.endswith("gdrperf: stopped\n"), text)

    def test_without_a_log_it_would_be_silent(self):
        self.expect_error(run("serve", "--daemon"), 2, "--daemon: needs --log FILE")
        self.expect_error(run("serve", "--log", "/nosuch/log"), 3, "--log /nosuch/log: No such file or directory")


class RdmaCm(CliTest):
    def setUp(self):
        reason = softnic_works()
        if reason:
            self.skipTest(reason)

    def test_queue_pairs_are_connected_by_rdma_cm(self):
        for command in (["write_bw", "--local"], ["send_lat", "--local"], ["read_bw", "--local", "-q", "4"]):
            with self.subTest(" ".join(command)):
                result = run(*command, *RUN, "-R", "--json", "-")
                self.assertEqual(result.code, 0, result)
                (record,) = json.loads(result.out)["relations"]["HOST"][command[0]]
                self.assertEqual(record["connection"], "rdma_cm")

    def test_a_server_connects_by_rdma_cm(self):
        with Server() as server:
            result = run(*client(server.port, *RUN), "-R", "--json", "-")
            self.assertEqual(result.code, 0, result)
            self.assertIn('"connection": "rdma_cm"', result.out)


class PeerAbsent(CliTest):
    def test_nobody_listens(self):
        port = free_port()
        for command in cases(("write_bw",), ("write_bw", "read_lat", "sweep")):
            with self.subTest(command):
                result = run(command, "127.0.0.1", "-p", port, "--softnic")
                self.expect_error(result, 5, f"127.0.0.1:{port}", "Connection refused",
                                  f"gdrperf serve -p {port}", within=PROMISE_S)

    def test_a_host_that_does_not_answer(self):
        # A full backlog drops further connections: what a silent host looks like.
        with socket.create_server(("127.0.0.1", 0), backlog=0) as silent:
            port = silent.getsockname()[1]
            fillers = []
            for _ in range(3):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
                fillers.append(filler)
            result = run(*client(port))
            for filler in fillers:
                filler.close()
        self.expect_error(result, 5, f"127.0.0.1:{port}", "timed out", "firewall", within=PROMISE_S)

    def test_a_name_that_does_not_exist(self):
        result = run("write_bw", "no-such-host.invalid")  # RFC 6761
        self.expect_error(result, 5, "no-such-host.invalid", within=PROMISE_S + 1)

    def test_a_server_that_says_nothing(self):
        with fake_server(lambda peer: peer.connection.recv(65536) and time.sleep(6)) as port:
            self.expect_error(run(*client(port)), 5, f"server 127.0.0.1:{port}", "no answer",
                              within=PROMISE_S)

    def test_a_server_of_something_else(self):
        with fake_server(lambda peer: peer.connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")) as port:
            self.expect_error(run(*client(port)), 5, f"server 127.0.0.1:{port}",
                              "does not speak gdrperf's protocol: an SSH server answers on this port", within=PROMISE_S)

    def test_a_server_that_hangs_up(self):
        with fake_server(lambda peer: peer.connection.recv(65536)) as port:
            self.expect_error(run(*client(port)), 5, f"server 127.0.0.1:{port}",
                              "closed the connection", within=PROMISE_S)

    def test_a_server_that_starts_late_is_found(self):
        if softnic_works():
            self.skipTest("no software device")
        port = free_port()
        with Background(*client(port, *RUN)) as early:
            with Background("serve", "-p", port, "--softnic"):
                self.assertEqual(early.wait(), 0, early.err)


class OtherVersion(CliTest):
    def both_versions(self, text):
        self.assertIn("gdrperf 9.9.9 (protocol 7.0)", text)
        self.assertRegex(text, r"gdrperf \d+\.\d+\.\d+ \(protocol 2\.\d+\)")

    def test_a_newer_server(self):
        with fake_server(lambda peer: peer.hello(7, "9.9.9")) as port:
            result = run(*client(port))
        self.expect_error(result, 5, f"server 127.0.0.1:{port}", "same gdrperf on both hosts",
                          within=PROMISE_S)
        self.both_versions(result.err)

    def test_a_newer_client(self):
        with Server() as server:
            with Peer.connect(server.port) as peer:
                own = peer.hello(7, "9.9.9")
                self.assertEqual((own["type"], own["major"]), ("hello", 2))
                self.both_versions(server.wait_line("dropped"))
                with self.assertRaises((EOFError, ConnectionError)):
                    while True:
                        peer.receive()

    def test_an_older_client(self):
        with Server() as server:
            with Peer.connect(server.port) as peer:
                peer.send(type="hello", magic="gdrperf", major=1, minor=0, tool_version="0.0.9", host="fake")
                line = server.wait_line("dropped")
                self.assertIn("gdrperf 0.0.9 (protocol 1.0)", line)

    def test_a_newer_minor_version_is_welcome(self):
        with Server() as server:
            with Peer.connect(server.port) as peer:
                peer.send(type="hello", magic="gdrperf", major=2, minor=99, later=[1],
                          tool_version="2.99", host="fake", nonce="0" * 64, token=0)
                self.assertEqual(peer.receive()["type"], "hello")
                peer.ask()
                self.assertEqual(peer.turn(), "turn")


class Strangers(CliTest):
    """Whatever a port scan sends is dropped and counted; nobody notices."""

    GARBAGE = [b"", b"\0", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
               b"\xff" * 4096, b"\0\0\0\x02{}", b"\0\0\0\x05\xff\xfe\xfd\xfc\xfb",
               b"\0\0\x10\0" + b"[" * 4096, b"\0\0\0\x0f{\"type\":\"bye\"}x"]

    def scan(self, port):
        for data in self.GARBAGE:
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                try:
                    stranger.sendall(data)
                except OSError:
                    pass  # dropped already

    def test_an_idle_server(self):
        with Server() as server:
            self.scan(server.port)
            server.wait_line("dropped a connection")
            with Peer.connect(server.port) as peer:
                peer.hello()
                self.assertEqual(peer.turn(), "turn")
            self.assertIsNone(server.process.poll())
            server.signal(signal.SIGTERM)
            self.assertEqual(server.wait(), 0)
            # One line for the first, then a count at intervals and at the end.
            dropped = [line for line in server.lines if "dropped" in line]
            self.assertLess(len(dropped), len(self.GARBAGE), dropped)
            self.assertEqual(sum(int(word) if (word := line.split()[2]).isdigit() else 1 for line in dropped),
                             len(self.GARBAGE), dropped)

    @unittest.skipIf(softnic_works(), "no software device")
    def test_during_a_run(self):
        with Server() as server:
            with Background(*client(server.port, "--softnic", "-D", "3s", "-s", "64", "--progress")) as run_on:
                run_on.wait_measuring()
                self.scan(server.port)
                self.assertEqual(run_on.wait(), 0, run_on.err)

    def test_one_that_stays_silent_holds_up_nobody(self):
        with Server() as server:
            with socket.create_connection(("127.0.0.1", server.port)) as silent:
                with Peer.connect(server.port) as peer:
                    peer.hello()
                    self.assertEqual(peer.turn(), "turn")
                    # The other had its turn while this one was still waited for: its connection has not ended.
                    silent.setblocking(False)
                    with self.assertRaises(BlockingIOError):
                        while silent.recv(4096):
                            pass
                server.wait_line("no answer for 4.5 s")

    def test_a_known_client_that_talks_nonsense(self):
        with Server() as server:
            with Peer.connect(server.port) as peer:
                peer.hello()
                peer.turn()
                peer.send(type="run_request", spec={"test": "format_disk"})
                self.assertIn("run_request.spec", peer.receive()["reason"])
                with self.assertRaises(EOFError):
                    peer.receive()
            self.assertIn("run_request.spec", server.wait_line("not understood"))
            with Peer.connect(server.port) as peer:
                peer.hello()
                self.assertEqual(peer.turn(), "turn")


class Queue(CliTest):
    def test_a_second_client_is_told_and_waits(self):
        with Server() as server:
            with Peer.connect(server.port) as first:
                first.hello()
                self.assertEqual(first.turn(), "turn")
                with Peer.connect(server.port) as second:
                    second.hello()
                    busy = second.receive()
                    self.assertEqual(busy["type"], "busy")
                    self.assertIn("127.0.0.1", busy["serving"])
                    self.assertEqual(busy["ahead"], 1)
                    first.send(type="bye")
                    self.assertEqual(second.turn(), "turn")

    def test_turns_come_in_order_and_the_impatient_are_forgotten(self):
        with Server() as server:
            peers = []
            for _ in range(4):
                peers.append(Peer.connect(server.port))
                peers[-1].hello()
                peers[-1].kind = peers[-1].receive()["type"]
            self.assertEqual([peer.kind for peer in peers], ["turn", "busy", "busy", "busy"])
            peers[1].close()
            server.wait_line("left while it waited")
            peers[0].close()
            self.assertEqual(peers[2].turn(), "turn")
            self.assertEqual(peers[3].receive()["type"], "busy")
            for peer in peers:
                peer.close()

    @unittest.skipIf(softnic_works(), "no software device")
    def test_the_real_client_says_that_it_waits(self):
        with Server() as server:
            with Peer.connect(server.port) as first:
                first.hello()
                first.turn()
                with Background(*client(server.port, *RUN)) as second:
                    line = second.wait_line("waiting")
                    self.assertIn("is serving client 127.0.0.1", line)
                    first.send(type="bye")
                    self.assertEqual(second.wait(), 0, second.err)

    def test_too_many_are_told_so(self):
        with Server() as server:
            peers = [Peer.connect(server.port) for _ in range(64)]
            for peer in peers:
                peer.hello()
                peer.receive()
            result = run(*client(server.port))
            self.expect_error(result, 5, "64 clients are waiting", within=PROMISE_S)
            for peer in peers:
                peer.close()


class Stopping(CliTest):
    def test_idle(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with Server() as server:
                server.signal(number)
                self.assertEqual(server.wait(PROMISE_S), 0, server.err)

    def test_with_one_served_one_waiting_and_one_silent(self):
        with Server() as server:
            with Peer.connect(server.port) as served, Peer.connect(server.port) as waiting, \
                    socket.create_connection(("127.0.0.1", server.port)):
                served.hello()
                served.receive()
                waiting.hello()
                waiting.receive()
                server.signal(signal.SIGTERM)
                for peer in (served, waiting):
                    message = peer.receive()
                    self.assertEqual(message["type"], "failure")
                    self.assertIn("stopped", message["reason"])
                self.assertEqual(server.wait(PROMISE_S), 0, server.err)

    @unittest.skipIf(softnic_works(), "no software device")
    def test_in_the_middle_of_a_run_the_client_is_told(self):
        for test in ("write_bw", "send_bw", "read_lat"):
            with self.subTest(test), Server() as server:
                with Background(test, "127.0.0.1", "-p", server.port, *LONG_RUN) as run_on:
                    server.wait_line("serving client")
                    run_on.wait_measuring()
                    server.signal(signal.SIGINT)
                    self.assertEqual(server.wait(PROMISE_S), 0, server.err)
                    self.assertEqual(run_on.wait(PROMISE_S), 5, run_on.err)
                    self.assertIn(f"server 127.0.0.1:{server.port}", run_on.err)

    @unittest.skipIf(softnic_works(), "no software device")
    def test_once_ends_after_one_client_with_its_code(self):
        with Server("--once") as server:
            self.expect_ok(run(*client(server.port, *RUN)))
            self.assertEqual(server.wait(PROMISE_S), 0, server.err)
        with Server("--once") as server:
            self.assertEqual(run(*client(server.port, *RUN, "--peer-dev", "soft9")).code, 2)
            self.assertEqual(server.wait(PROMISE_S), 2, server.err)

    @unittest.skipIf(softnic_works(), "no software device")
    def test_a_test_without_host_serves_one_client(self):
        with Background("write_bw", "--softnic", "-p", "0", "-s", "4", "-q", "3") as server:
            self.assertIn("-s -q", server.wait_line("note:"))
            port = int(server.wait_line(", port ").split(", port ")[1].split(";")[0])
            self.expect_ok(run("read_lat", "127.0.0.1", "-p", port, *RUN))
            self.assertEqual(server.wait(PROMISE_S), 0, server.err)


if __name__ == "__main__":
    main()
