"""A proxy between a client and a server that loses frames."""

import contextlib
import json
import socket
import struct
import threading


class Proxy:
    """Between a client and a server; `lose(sender, message)` says which frames do not get through. With `mute`
    the end of a connection does not get through either, once something was lost. With `hide` heartbeats are
    changed so that the loss does not show: as if the receiver had taken the frame and done nothing."""

    def __init__(self, server_port, lose, mute=False, hide=False):
        self.lose = lose
        self.mute = mute
        self.hide = hide
        self.hidden = {"client": 0, "server": 0}
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
                message = json.loads(text)
                if self.lose(sender, message):
                    self.hidden[sender] += 1
                    self.lost.set()
                    continue
                if self.hide and message["type"] == "alive":
                    message["sent"] -= self.hidden[sender]
                    message["taken"] += self.hidden["client" if sender == "server" else "server"]
                    text = json.dumps(message).encode()
                    header = struct.pack(">I", len(text))
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
