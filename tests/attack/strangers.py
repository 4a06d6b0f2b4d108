"""Who is no client: junk, scans, slow and silent greetings, huge frames, crowds."""

import contextlib
import os
import socket
import struct
import time

from guests import Guest, vitals

JUNK = [b"", b"\0", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"SSH-2.0-x\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"\xff" * 4096, b"\0\0\0\x02{}", b"\0\0\0\x05\xff\xfe\xfd\xfc\xfb", b"\0\0\x0f\xff" + b"[" * 4095,
        b"\0\0\0\x0f{\"type\":\"bye\"}x", b"\0\0\0\0" * 1000]


def junk(row, server):
    for _ in row.times(3, 100):
        for data in [*JUNK, os.urandom(3000)]:
            with Guest(server.port) as guest, contextlib.suppress(OSError):
                guest.raw(data)
            row.note(True, "")


def scan(row, server):
    for _ in row.times(300, 20_000):
        socket.create_connection(("127.0.0.1", server.port)).close()
        row.note(True, "")


def slow_greeting(row, server):
    """A byte now and then: a deadline for the whole greeting, not for each byte."""
    guests = [Guest(server.port) for _ in row.times(8, 60)]
    start = time.monotonic()
    hello = struct.pack(">I", 200) + b" " * 200
    for at in range(200):
        for guest in guests:
            with contextlib.suppress(OSError):
                guest.raw(hello[at:at + 1])
        if at == 5:
            row.serves(server)
        if time.monotonic() - start > 6:
            break
        time.sleep(0.1)
    for guest in guests:
        guest.until_closed()
        row.note(time.monotonic() - start < 3 * row.limit_s, "a slow greeting was not cut short")
        guest.close()


def crowd(row, server, greet):
    """A full house that asks for nothing: a newcomer is served at once, the others are told and dropped."""
    guests = []
    for _ in range(64):
        guests.append(Guest(server.port))
        if greet:
            guests[-1].greet()
    row.serves(server)
    start = time.monotonic()
    for guest in guests:
        guest.until_closed()
        guest.close()
    row.took(time.monotonic() - start, "the end of the silent")


def silent_crowd(row, server):
    for _ in row.times(1, 5):
        crowd(row, server, greet=False)


def greeted_crowd(row, server):
    for _ in row.times(1, 5):
        crowd(row, server, greet=True)


def huge_frames(row, server):
    """Before and after the greeting: refused by the length alone."""
    before = vitals(server.process.pid)["peak_kib"]
    for greet in (False, True):
        for length in (4097, 1 << 20, 4 << 20, 0x7fffffff, 0xffffffff):
            guests = []
            for _ in row.times(6, 60):
                guest = Guest(server.port)
                if greet:
                    guest.greet()
                with contextlib.suppress(OSError):
                    guest.raw(struct.pack(">I", length) + b"[" * 65536)
                guests.append(guest)
            for guest in guests:
                _, seconds = guest.until_closed()
                row.took(seconds, "the refusal of a huge frame")
                guest.close()
    grown = vitals(server.process.pid)["peak_kib"] - before
    row.note(grown < 32 * 1024, f"the server grew by {grown} KiB")


def deep_greeting(row, server):
    for text in (b"[" * 4096, b'{"a":' * 800, b'{"type":' + b"[" * 2000 + b"]" * 2000 + b"}"):
        for _ in row.times(5, 500):
            with Guest(server.port) as guest, contextlib.suppress(OSError):
                guest.frame(text)
                _, seconds = guest.until_closed()
                row.took(seconds, "the refusal of deep JSON")


def half_closed(row, server):
    """The sending half shut down after each step of the greeting."""
    for steps in range(4):
        for _ in row.times(2, 50):
            with Guest(server.port) as guest:
                if steps > 0:
                    guest.greet()
                if steps > 1:
                    guest.send(type="enter")
                if steps > 2:
                    guest.turn()
                guest.connection.shutdown(socket.SHUT_WR)
                _, seconds = guest.until_closed()
                row.took(seconds, "the end of a half-closed connection")


def eavesdrop(row, server):
    """What a stranger learns: no name of the host, no kernel, no CPU."""
    host = socket.gethostname()
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        models = [line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")]
    secrets = [text for text in [host, os.uname().release, *models[:1]] if len(text) > 2]
    with Guest(server.port) as first, Guest(server.port) as second:
        heard = [str(first.hello()), first.turn(), str(second.hello()), str(second.receive())]
        for secret in secrets:
            row.note(secret not in " ".join(heard), f"a stranger learned '{secret}' from {heard}")


ATTACKS = [
    ("junk of other protocols", junk, True),
    ("port scan", scan, True),
    ("greeting byte by byte", slow_greeting, True),
    ("64 connections that say nothing", silent_crowd, True),
    ("64 connections that greet and ask for nothing", greeted_crowd, True),
    ("frames of 4 KiB to 4 GiB from strangers", huge_frames, True),
    ("deep JSON from strangers", deep_greeting, True),
    ("half-closed connections", half_closed, True),
    ("listening without being served", eavesdrop, True),
]
