"""Each phase of a session, and what may happen to its message: true words at both ends, and within 5 s."""

import concurrent.futures
import signal
import threading
import time

import support
from guests import serve
from proxy import Proxy

# Message and who sends it, in the order of a session; the run is send_bw in both directions.
PHASES = [("hello", "client"), ("hello", "server"), ("enter", "client"), ("turn", "server"), ("run_request", "client"),
          ("accept", "server"), ("connect", "client"), ("ready", "server"), ("ping", "client"), ("pong", "server"),
          ("start", "client"), ("stop", "client"), ("done", "server")]
# Nothing gets through any more; the receiver is stopped; the frame is lost; the receiver takes it and does nothing.
WAYS = ["silent", "stopped", "lost", "swallowed"]
SHORT = [(("hello", "server"), "silent"), (("connect", "client"), "stopped"), (("turn", "server"), "swallowed"),
         (("accept", "server"), "swallowed"), (("connect", "client"), "silent"), (("start", "client"), "swallowed"),
         (("stop", "client"), "swallowed"),
         (("stop", "client"), "stopped"), (("done", "server"), "swallowed")]
# Enough to wait side by side without waiting for each other.
AT_ONCE = 4
RUN = ["send_bw", "-b", "--softnic", "-s", "64"]


class Cell:
    """One phase and way: seconds until words at the client's and at the server's end."""

    def __init__(self, phase, way):
        self.phase, self.way = phase, way
        self.problems = []
        self.client_s = self.server_s = 0.0
        self.happened = threading.Event()
        self.since = 0.0
        self.victim = None

    def meet(self, sender, message):
        """The proxy's question for each frame."""
        if self.happened.is_set():
            return self.way == "silent"
        if (message["type"], sender) != self.phase:
            return False
        if self.way == "stopped":
            self.victim.signal(signal.SIGSTOP)
        self.since = time.monotonic()
        self.happened.set()
        return self.way != "stopped"

    def play(self):
        try:
            with serve() as server, \
                    Proxy(server.port, self.meet, mute=self.way == "silent", hide=self.way == "swallowed") as proxy:
                self._play(server, proxy)
        except Exception as error:  # pylint: disable=broad-except
            self.problems.append(repr(error))
        return self

    def _play(self, server, proxy):
        ready = threading.Event()
        end = ["-D", "60s"] if self.phase[0] == "start" else ["-n", "1000"]
        meet, proxy.lose = proxy.lose, lambda *frame: ready.wait(support.PATIENCE_S) and meet(*frame)
        with support.Background(*RUN, *end, "127.0.0.1", "-p", proxy.port) as client:
            self.victim = server if self.phase[1] == "client" else client
            ready.set()
            if not self.happened.wait(support.PATIENCE_S):
                raise AssertionError(f"no {self.phase} came by: {client.err}")
            ends = [self._client, self._server]
            stopped = self.way == "stopped"
            # A stopped end speaks when it goes on: last.
            if stopped and self.victim is client:
                ends.reverse()
            ends[0](client, server)
            if stopped:
                self.victim.signal(signal.SIGCONT)
                self.since = time.monotonic()
            ends[1](client, server)

    def _client(self, client, _server):
        # A client that was stopped when its result came has it.
        has_result = (self.phase[0], self.way) == ("done", "stopped")
        if not has_result:
            client.wait_line("")  # before it ends: what it tells in the middle of work counts
            self.client_s = time.monotonic() - self.since
        code = client.wait()
        if has_result:
            self.client_s = time.monotonic() - self.since
        if code != 5 and not (code == 0 and has_result):
            self.problems.append(f"the client's exit code is {code}: {client.err}")

    def _server(self, _client, server):
        while "serving" in (line := server.wait_line("")):
            pass
        self.server_s = time.monotonic() - self.since
        # A server that goes on after a stop does what is left to do.
        if "done, 1 run" in line and self.phase[0] != "done" and self.way != "stopped":
            self.problems.append(f"the server says: {line}")


def table(row):
    cells = [Cell(phase, way) for phase in PHASES for way in WAYS] if row.long else [Cell(*cell) for cell in SHORT]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(Cell.play, cells))
    for cell in cells:
        name = f"{cell.phase[0]} of the {cell.phase[1]}, {cell.way}"
        for problem in cell.problems:
            row.note(False, f"{name}: {problem}")
        row.took(cell.client_s, f"{name}: the client's words")
        row.took(cell.server_s, f"{name}: the server's words")
    show(cells)


def show(cells):
    """Seconds until words came, at the client's and at the server's end."""
    found = {(cell.phase, cell.way): cell for cell in cells}
    print(f"    {'seconds, client / server':<24}" + "".join(f"{way:>14}" for way in WAYS))
    for phase in PHASES:
        texts = []
        for way in WAYS:
            cell = found.get((phase, way))
            texts.append(f"{cell.client_s:.1f} / {cell.server_s:.1f}" if cell else "-")
        if any(text != "-" for text in texts):
            print(f"    {phase[0] + ' of the ' + phase[1]:<24}" + "".join(f"{text:>14}" for text in texts), flush=True)


ATTACKS = [
    ("each phase: silent, stopped, lost, swallowed", table, False),
]
