#!/usr/bin/env python3
"""rdma_cm on the software device between two network namespaces.

Usage: hosts_cm_test.py LIBRARY GDRPERF
"""

import json
import signal
import sys
import tempfile
from pathlib import Path

import hosts_pair
import namespaces
from hosts_pair import GDRPERF, LIMIT_S, PORT, SERVE_PORT, SERVER

CLIENT_ADDRESS = "10.77.0.2"
CM_PORT = "7471"
FIGURES = r"(?m)^ *\d+ +\d+ +[0-9.]+ +[0-9.]+"


class RdmaCm(hosts_pair.Pair):
    def test_programs_of_librdmacm_unmodified(self):
        for server, client, shows in (
                (f"rping -s -a {SERVER} -p {CM_PORT} -C 20 -V", f"rping -c -a {SERVER} -p {CM_PORT} -C 20 -v -V",
                 "rdma-ping-19:"),
                (f"rping -s -a 0.0.0.0 -p {CM_PORT} -C 5 -S 60000",
                 f"rping -c -a {SERVER} -I {CLIENT_ADDRESS} -p {CM_PORT} -C 5 -v -S 60000", "rdma-ping-4:"),
                (f"ucmatose -p {CM_PORT} -c 10 -C 20", f"ucmatose -p {CM_PORT} -c 10 -C 20 -s {SERVER}",
                 "return status 0"),
                ("udaddy -c 4", f"udaddy -c 4 -s {SERVER}", "return status 0"),
                (f"rdma_server -p {CM_PORT}", f"rdma_client -s {SERVER} -p {CM_PORT}", "end 0"),
                (f"rstream -p {CM_PORT} -S 65536 -I 10 -C 10", f"rstream -p {CM_PORT} -S 65536 -I 10 -C 10 -s {SERVER}",
                 "custom +64k")):
            with self.subTest(client):
                self.passes(server.split(), shows, client.split(), rdma_port="7174" if "udaddy" in server else CM_PORT)

    def test_ipv6_addresses(self):
        if not self.hosts.ipv6:
            self.skipTest("no IPv6 here")
        address, = namespaces.IPV6_ADDRESSES[:1]
        for server, client, shows, softnic in (
                (f"rping -s -a {address} -p {CM_PORT} -C 10", f"rping -c -a {address} -p {CM_PORT} -C 10 -v",
                 "rdma-ping-9:", None),
                (f"rping -s -a :: -p {CM_PORT} -C 3", f"rping -c -a {namespaces.IPV6_ONLY[0]} -p {CM_PORT} -C 3 -v",
                 "rdma-ping-2:",
                 self.softnic(",netdev=cable6")),
                (f"ucmatose -p {CM_PORT} -f ipv6 -b {address}", f"ucmatose -p {CM_PORT} -f ipv6 -s {address}",
                 "return status 0", None)):
            with self.subTest(client):
                self.passes(server.split(), shows, client.split(), rdma_port=CM_PORT, softnic=softnic)

    def test_multicast_unmodified(self):
        for group, (receiver, sender) in hosts_pair.cases((("239.77.1.1", namespaces.ADDRESSES),
                                                           ("ff0e::77:1", namespaces.IPV6_ADDRESSES))):
            if ":" in group and not self.hosts.ipv6:
                continue
            with self.subTest(group):
                words = ["mckey", "-m", group, "-C", "50"]
                self.passes([*words, "-b", receiver], "return status 0", [*words, "-b", sender, "-s"], group=group)

    def test_multicast_of_others_is_lost(self):
        other = Path(self.folder.name) / "other"
        other.write_text("another secret of 32 characters.")
        group = "239.77.1.2"
        receiver = self.start(0, ["mckey", "-m", group, "-b", SERVER, "-C", "20"], self.softnic())
        send = ["mckey", "-m", group, "-b", CLIENT_ADDRESS, "-C", "20", "-s"]
        try:
            self.await_group(0, group, receiver)
            # No datagram of the device's, then one whose sender has another secret: neither is in the way of good ones.
            rubbish = (f"import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                       f"s.bind(('{CLIENT_ADDRESS}', 0))\n"
                       f"for n in (0, 1, 135, 136, 500, 9000): s.sendto(b'softnic\\n\\2\\0\\0\\0'[:n] + "
                       f"os.urandom(n), ('{group}', 4791))")
            for words, softnic in (([sys.executable, "-c", rubbish], self.softnic()),
                                   (send, f"soft0:tcp=on,token={other}"),
                                   (send, self.softnic())):
                sender = self.start(1, words, softnic)
                said = sender.communicate(timeout=LIMIT_S)
                self.assertEqual(sender.returncode, 0, said)
            heard = "".join(receiver.communicate(timeout=LIMIT_S))
        finally:
            receiver.kill()
        self.assertEqual(receiver.returncode, 0, heard)
        self.assertIn(f"datagrams to the group {group} are lost: their sender has another token= in SOFTNIC", heard)

    def test_where_the_network_gives_no_group_the_host_has_one(self):
        # As the kernel's Soft-RoCE does.
        taken = self.start(0, [sys.executable, "-c",
                               "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                                                     "s.bind(('', 4791)); print('ready', flush=True); "
                                                     "time.sleep(1000)"], self.softnic())
        group = "239.77.1.3"
        words = ["mckey", "-m", group, "-b", SERVER, "-C", "5"]
        try:
            self.assertEqual(taken.stdout.readline().strip(), "ready")
            receiver = self.start(0, words, self.softnic())
            try:
                self.await_group(0, group, receiver)
                sender = self.start(0, [*words, "-s"], self.softnic())
                said = sender.communicate(timeout=LIMIT_S)
                heard = "".join(receiver.communicate(timeout=LIMIT_S))
            finally:
                receiver.kill()
        finally:
            taken.kill()
            taken.communicate()
        self.assertEqual((sender.returncode, receiver.returncode), (0, 0), f"{said}\n{heard}")
        self.assertIn(f"the group {group} has the members of this host alone: UDP port 4791 on cable0: Address "
                      f"already in use", heard)

    def test_perftest_over_rdma_cm(self):
        for line in ("ib_write_bw -n 200", "ib_send_bw -s 4096 -n 200", "ib_send_lat -n 200",
                     "ib_read_bw -s 65536 -n 100"):
            with self.subTest(line):
                words = [*line.split(), "-R", "-p", str(PORT)]
                self.passes(words, FIGURES, [*words, SERVER], rdma_port=PORT)

    def test_gdrperf_over_rdma_cm(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "record.json"
            serve = [GDRPERF, "serve", "--once", "-p", SERVE_PORT, "--bind", SERVER]
            code, _, told, heard = self.pair(serve, [GDRPERF, "write_bw", "-R", "-n", "200", SERVER, "-p", SERVE_PORT,
                                                     "--json", out],
                                             SERVE_PORT)
            self.assertEqual(code, 0, told + heard)
            (record,) = json.loads(out.read_text())["relations"]["HOST"]["write_bw"]
            self.assertEqual(record["connection"], "rdma_cm")

    def client_alone(self, *words):
        client = self.start(1, words, self.softnic())
        try:
            return client, "".join(client.communicate(timeout=LIMIT_S))
        finally:
            client.kill()

    def test_a_port_that_nobody_has_is_refused(self):
        # Somebody with the device is there, but not at that port.
        server = self.start(0, ["rping", "-s", "-a", SERVER, "-p", CM_PORT], self.softnic())
        try:
            self.await_rdma_port(0, CM_PORT, server)
            client, said = self.client_alone("rping", "-c", "-a", SERVER, "-p", "7472", "-C", "1")
        finally:
            server.kill()
            server.communicate()
        self.assertNotEqual(client.returncode, 0, said)
        self.assertIn("RDMA_CM_EVENT_REJECTED, error 8", said)

    def test_a_host_without_the_device_is_unreachable(self):
        client, said = self.client_alone("rping", "-c", "-a", SERVER, "-p", CM_PORT, "-C", "1")
        self.assertNotEqual(client.returncode, 0, said)
        self.assertIn("RDMA_CM_EVENT_UNREACHABLE", said)
        self.assertIn(f"peer {SERVER} not reached: nobody answers on TCP port 4791", said)

    def test_another_process_that_has_the_tcp_port_passes_it_on(self):
        # It comes first, so it has the TCP port; it has nothing to do with rdma_cm.
        first = self.start(0, ["ibv_rc_pingpong", "-d", "soft0", "-g", "2", "-p", "18700"], self.softnic())
        try:
            self.hosts.await_listener(0, 4791, first)
            self.passes(f"rping -s -a {SERVER} -p {CM_PORT} -C 3".split(), "rdma-ping-2:",
                        f"rping -c -a {SERVER} -p {CM_PORT} -C 3 -v".split(), rdma_port=CM_PORT)
            self.assertIsNone(first.poll())
        finally:
            first.kill()
            first.communicate()

    def test_a_killed_server_disconnects_the_client(self):
        server = self.start(0, ["rping", "-s", "-a", SERVER, "-p", CM_PORT], self.softnic())
        try:
            self.await_rdma_port(0, CM_PORT, server)
            client = self.start(1, ["rping", "-c", "-a", SERVER, "-p", CM_PORT, "-v"], self.softnic())
            try:
                said = client.stdout.readline()
                self.assertRegex(said, "rdma-ping-0")
                server.send_signal(signal.SIGKILL)
                said = "".join(client.communicate(timeout=LIMIT_S))
            finally:
                client.kill()
        finally:
            server.kill()
            server.communicate()
        self.assertRegex(said, "DISCONNECT EVENT|cq completion failed status")

    def test_other_tokens_are_refused_in_words(self):
        other = Path(self.folder.name) / "other"
        other.write_text("another secret of 32 characters.")
        words = ["rping", "-s", "-a", SERVER, "-p", CM_PORT, "-C", "1"]
        server = self.start(0, words, self.softnic())
        try:
            self.await_rdma_port(0, CM_PORT, server)
            client = self.start(1, ["rping", "-c", "-a", SERVER, "-p", CM_PORT, "-C", "1"],
                                f"soft0:tcp=on,token={other}")
            said = "".join(client.communicate(timeout=LIMIT_S))
        finally:
            server.kill()
            server.communicate()
        self.assertIn("RDMA_CM_EVENT_REJECTED", said)
        self.assertIn("the two ends share no secret", said)


if __name__ == "__main__":
    hosts_pair.main()
