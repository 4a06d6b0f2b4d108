#!/usr/bin/env python3
"""Hostile bytes on the software device's TCP transport: before the proof, and from a peer that has the
token and sends frames of any kind to a QP of ibv_rc_pingpong, or datagrams to a multicast group of mckey.

Usage: hosts_hostile_test.py [--rounds N] [--seed S] LIBRARY
"""

import argparse
import hashlib
import hmac
import ipaddress
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import namespaces

# This program is in namespace 0, whose address is the lower one: so it is the end that connects.
OWN, VICTIM = namespaces.ADDRESSES
PORT, PINGPONG_PORT = 4791, 18515
MAGIC = b"softnic\n"
VERSION = 2
RC = 2
HELLO, ANSWER = struct.Struct("<8sIIII16s16s16sB7x"), struct.Struct("<8sII16s32s")
FRAME = struct.Struct("<BBBBIIIIIQQQQ")
KINDS = (1, 2, 3, 4, 5, 6, 7)
GROUP_HEAD, DATAGRAM, GROUP = struct.Struct("<8sII16s16s"), 16, "239.77.9.9"


def gid(address):
    return ipaddress.ip_address("::ffff:" + address).packed


class Victim:
    """ibv_rc_pingpong in the other namespace, which takes this program for its peer."""

    def __init__(self, hosts, library, token):
        env = namespaces.environment(library, f"soft0:tcp=on,token={token}")
        self.process = subprocess.Popen(hosts.command(1, ["ibv_rc_pingpong", "-d", "soft0", "-g", "2", "-n", "1000"]),
                                        env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        hosts.await_listener(1, PINGPONG_PORT, self.process)
        self.own_qpn = random.randrange(0x1000, 0xffffff)
        self.talk = socket.create_connection((VICTIM, PINGPONG_PORT), timeout=20)
        # LID:QPN:PSN:GID, each in hexadecimal.
        said = f"0000:{self.own_qpn:06x}:000001:" + gid(OWN).hex()
        self.talk.sendall(said.encode() + b"\0")
        answer = self.talk.recv(100).rstrip(b"\0").decode()
        self.talk.sendall(b"done\0")
        self.qpn = int(answer.split(":")[1], 16)

    def end(self):
        """Exit status; it is ended when it waits for more."""
        self.talk.close()
        try:
            said = self.process.communicate(timeout=0.3)[0]
        except subprocess.TimeoutExpired:
            self.process.terminate()
            said = self.process.communicate(timeout=60)[0]
        return self.process.returncode, said.decode(errors="replace")


def greet(victim, secret):
    """A connection that is past the proof."""
    connection = socket.create_connection((VICTIM, PORT), timeout=20)
    hello = HELLO.pack(MAGIC, VERSION, HELLO.size, victim.own_qpn, victim.qpn, gid(OWN), gid(VICTIM), os.urandom(16),
                       RC)
    connection.sendall(hello)
    _, _, refusal, nonce, _ = ANSWER.unpack(connection.recv(ANSWER.size, socket.MSG_WAITALL))
    assert refusal == 0, refusal
    proof = hmac.new(secret, b"softnic tcp connector\0" + hello + nonce, hashlib.sha256).digest()
    connection.sendall(proof)
    _, _, refusal, _, theirs = ANSWER.unpack(connection.recv(ANSWER.size, socket.MSG_WAITALL))
    assert refusal == 0, refusal
    assert theirs == hmac.new(secret, b"softnic tcp listener\0" + hello + nonce, hashlib.sha256).digest()
    return connection


def any_of(*values):
    return random.choice(values)


def frame(count):
    """Mostly one that goes far, with something wrong in it."""
    length = any_of(0, 1, 8, 64, 4096, 16384, 16385, 70000, random.randrange(200000))
    said = any_of(length, length, length, length + 1, 1 << 30, (1 << 32) - 1, (1 << 63) + 5)
    total = any_of(length, length, min(said, (1 << 32) - 1), 1 << 31)
    word = any_of(0, 1, (1 << 64) - 1, random.getrandbits(64))
    head = FRAME.pack(any_of(1, 1, 1, *KINDS, random.randrange(256)),
                      any_of(0, 1, 2, 3, 4, 5, 6, 9, random.randrange(256)),
                      random.randrange(2), random.randrange(256),
                      any_of(count, count, count, 0, random.getrandbits(32)),
                      any_of(0, 0, 1, random.getrandbits(32)), random.getrandbits(32),
                      any_of(0, 256, random.getrandbits(32)),
                      total, said, word, word, word)
    return head + os.urandom(length)


def attack(victim, secret):
    with greet(victim, secret) as connection:
        connection.settimeout(1)
        try:
            for count in range(1, random.randrange(2, 60)):
                connection.sendall(frame(count))
            if random.randrange(2):
                connection.sendall(os.urandom(random.randrange(500)))
            connection.settimeout(0.05)
            connection.recv(1 << 16)
        except OSError:
            pass


def knock(rounds):
    """Who has no token: half hellos, wrong ones, and silence; all at once."""
    connections = []
    for _ in range(rounds):
        connection = socket.create_connection((VICTIM, PORT), timeout=20)
        hello = bytearray(HELLO.pack(MAGIC, VERSION, HELLO.size, 5, random.randrange(1 << 24), gid(OWN), gid(VICTIM),
                                     os.urandom(16), RC))
        for _ in range(any_of(0, 1, 5, 80)):
            hello[random.randrange(len(hello))] = random.randrange(256)
        try:
            connection.sendall(bytes(hello[:random.randrange(len(hello) + 1)]) + os.urandom(any_of(0, 0, 32, 1000)))
        except OSError:
            pass
        connections.append(connection)
    for connection in connections:
        connection.close()


def datagram(secret):
    """To a multicast group; nearly all with a good proof, nearly none with a good frame behind it."""
    length = any_of(0, 1, 8, 4096, random.randrange(9000))
    said = any_of(length, length, length + 1, (1 << 64) - 1)
    total = any_of(length, length, 1 << 31)
    head = GROUP_HEAD.pack(MAGIC, any_of(*[VERSION] * 9, 99), 0, gid(OWN), gid(any_of(GROUP, GROUP, GROUP, VICTIM)))
    head += FRAME.pack(any_of(*[DATAGRAM] * 5, 1, 255), any_of(2, 2, 3, random.randrange(256)), random.randrange(2),
                       any_of(2, 2, random.randrange(256)), *(random.getrandbits(32) for _ in range(3)),
                       any_of(0x01234567, random.getrandbits(32)), total, said,
                       *(random.getrandbits(64) for _ in range(3)))
    data = os.urandom(length)
    proof = hmac.new(secret, b"softnic datagram\0" + head + bytes(32) + data, hashlib.sha256).digest()
    whole = head + any_of(*[proof] * 9, os.urandom(32)) + data
    return whole[:any_of(*[len(whole)] * 9, random.randrange(len(whole)))]


def attack_group(hosts, library, token):
    """What a member of a group says, and its exit status; it is ended unless it ends by itself."""
    env = namespaces.environment(library, f"soft0:tcp=on,token={token}")
    member = subprocess.Popen(hosts.command(1, ["mckey", "-m", GROUP, "-b", VICTIM, "-C", "100"]), env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    name = b"mcast"
    while member.poll() is None and name not in subprocess.run(hosts.command(1, ["cat", "/proc/net/unix"]),
                                                               capture_output=True, check=False).stdout:
        time.sleep(0.02)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(OWN))
        for _ in range(300):
            out.sendto(datagram(token.read_bytes()), (GROUP, PORT))
    try:
        said = member.communicate(timeout=0.5)[0]
    except subprocess.TimeoutExpired:
        member.terminate()
        said = member.communicate(timeout=60)[0]
    return member.returncode, said.decode(errors="replace")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("library")
    options = parser.parse_args()
    if not shutil.which("ibv_rc_pingpong"):
        print("ibv_rc_pingpong is not installed")
        return 77
    try:
        hosts = namespaces.Hosts()
    except namespaces.NotAllowed as error:
        print(error)
        return 77
    if hosts.user_namespace:
        print("this program has to enter a namespace itself: that takes root")
        hosts.close()
        return 77
    os.setns(os.open(f"/proc/{hosts.holders[0].pid}/ns/net", os.O_RDONLY), 0) if hasattr(os, "setns") else enter(hosts)
    random.seed(options.seed)
    print(f"seed {options.seed}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_bytes(b"a secret of 24 characters")
        for turn in range(options.rounds):
            victim = Victim(hosts, options.library, token)
            knock(20)
            attack(victim, token.read_bytes())
            ends = [victim.end()]
            if shutil.which("mckey"):
                ends.append(attack_group(hosts, options.library, token))
            # They may end with an error, or be ended by this program, but not die by themselves.
            for code, said in ends:
                if code not in (0, 1, 77, 143, 255, -15) or "Sanitizer" in said or "runtime error" in said:
                    failed += 1
                    print(f"round {turn}: exit {code}\n{said}")
    hosts.close()
    print(f"{options.rounds} rounds, {failed} failed")
    return 1 if failed else 0


def enter(hosts):
    """As os.setns of newer Pythons."""
    import ctypes
    if ctypes.CDLL(None, use_errno=True).setns(os.open(f"/proc/{hosts.holders[0].pid}/ns/net", os.O_RDONLY), 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


if __name__ == "__main__":
    sys.exit(main())
