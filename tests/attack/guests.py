"""What the attacks share: a server, a peer with raw access, a proxy that loses frames."""

import contextlib
import copy
import functools
import json
import os
import socket
import struct
import threading
import time

import support

RUN = ["--softnic", "-n", "100", "-s", "64"]
LONG_RUN = ["--softnic", "-D", "60s", "-s", "64", "--progress"]


class Guest(support.Peer):
    """A client of the protocol whose every byte can be chosen; it sends no heartbeats unless asked to."""

    def __init__(self, port):
        super().__init__(socket.create_connection(("127.0.0.1", port), support.PATIENCE_S), asks=True)

    def raw(self, data):
        self.connection.sendall(data)

    def frame(self, text):
        self.sent += 1
        self.raw(struct.pack(">I", len(text)) + text)

    def until_closed(self):
        """Everything that comes until the other end hangs up, as text; and the seconds it took."""
        start = time.monotonic()
        data = b""
        with contextlib.suppress(OSError):
            while piece := self.connection.recv(65536):
                data += piece
        return data.decode("utf-8", "replace"), time.monotonic() - start

    def take_turn(self):
        self.hello()
        return self.turn()


def serve(*options, env=None, weighed=False):
    """`weighed`: its memory is held against a limit, to which sanitizers' second stack of each thread would add."""
    env = dict(env or {})
    if support.sanitized():
        # Freed memory is kept back for 256 MiB by default, in a server whose memory is compared.
        mine = ["quarantine_size_mb=8"] + ["detect_stack_use_after_return=0"] * weighed
        env["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), *mine]))
    return support.Server("--bind", "127.0.0.1", *options, env=env)


def vitals(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    return {"rss_kib": int(fields["VmRSS"].split()[0]), "peak_kib": int(fields["VmHWM"].split()[0]),
            "threads": int(fields["Threads"]), "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


class Memory:
    """The most memory of a process while the block runs, in KiB. A page that is mapped twice, as the software device
    maps registered memory, counts once: VmHWM counts it twice."""

    def __init__(self, pid):
        self.path = f"/proc/{pid}/smaps_rollup"
        self.peak_kib = 0
        self.over = threading.Event()
        self.watch = threading.Thread(target=self._look, daemon=True)

    def _look(self):
        with contextlib.suppress(OSError):  # the process has ended
            while not self.over.wait(0.005):
                self.now()

    def now(self):
        with open(self.path, encoding="ascii") as file:
            kib = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        self.peak_kib = max(self.peak_kib, kib)
        return kib

    def __enter__(self):
        self.watch.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.watch.join()


@functools.lru_cache
def _recorded_request():
    seen = []

    def record(peer):
        peer.hello()
        peer.receive()  # enter
        peer.send(type="turn")
        seen.append(peer.receive())
        peer.send(type="failure", exit_code=5, reason="recorded", hint="")

    with support.fake_server(record) as port:
        support.run("write_bw", "127.0.0.1", "-p", port, *RUN)
    return seen[0]


def request(**changes):
    """What a real client asks for, with members of the spec changed."""
    message = copy.deepcopy(_recorded_request())
    message["spec"].update(changes)
    return message


