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
LONG_RUN = ["--softnic", "-D", "60s", "-s", "64"]


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


def serve(*options, env=None):
    return support.Server("--bind", "127.0.0.1", *options, env=env)


def vitals(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    return {"rss_kib": int(fields["VmRSS"].split()[0]), "peak_kib": int(fields["VmHWM"].split()[0]),
            "threads": int(fields["Threads"]), "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


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


class Proxy:
    """Between a client and a server; `lose(sender, message)` says which frames do not get through. With `mute`
    the end of a connection does not get through either, once something was lost."""

    def __init__(self, server_port, lose, mute=False):
        self.lose = lose
        self.mute = mute
        self.lost = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.server_port = server_port
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server_port))
                self.sockets += [client, server]
                for sender, source, sink in (("client", client, server), ("server", server, client)):
                    threading.Thread(target=self._pass, args=(sender, source, sink), daemon=True).start()

    def _pass(self, sender, source, sink):
        with contextlib.suppress(OSError, EOFError, struct.error):
            while True:
                header = self._exactly(source, 4)
                text = self._exactly(source, struct.unpack(">I", header)[0])
                if self.lose(sender, json.loads(text)):
                    self.lost.set()
                else:
                    sink.sendall(header + text)
        if self.mute and self.lost.is_set():
            return
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    @staticmethod
    def _exactly(source, count):
        data = b""
        while len(data) < count:
            piece = source.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for each in self.sockets:
            each.close()
