"""Who stops, falls silent or loses messages: true words at both ends, and within 5 s."""

import signal
import time

import support
from guests import Guest, LONG_RUN, RUN, request, serve
from proxy import Proxy

TESTS = [["write_bw"], ["send_bw", "-b"], ["read_lat"]]


def words(row, process, *texts, since):
    """The process ends with code 5 and one of these texts."""
    code = process.wait()
    row.took(time.monotonic() - since, f"the words of {process.args[0]}")
    row.note(code == 5, f"exit code {code}: {process.err}")
    row.note(any(text in process.err for text in texts), f"none of {texts} in: {process.err}")


def silent_turn(row, server):
    """Greets, gets its turn, and says nothing more, not even a heartbeat."""
    for asks in row.times(1, 10):
        with Guest(server.port) as guest:
            guest.greet()
            guest.send(type="enter")
            guest.turn()
            if asks % 2:
                guest.send(**request())
            start = time.monotonic()
            text, _ = guest.until_closed()
            row.took(time.monotonic() - start, "the end of a silent client")
            row.expect("nothing heard from it", text)


def idle_turn(row, server):
    """Alive, but asks for no run while others wait."""
    with Guest(server.port) as guest:
        guest.take_turn()
        start = time.monotonic()
        with support.Background("write_bw", "127.0.0.1", "-p", server.port, *RUN) as client:
            line = client.wait_line("is serving client 127.0.0.1")
            row.expect(" s; waiting", line)
            row.note(client.wait() == 0, client.err)
        waited = time.monotonic() - start
        row.note(8 < waited < 10 + row.limit_s, f"the idle turn ended after {waited:.1f} s")
        row.expect("asked for no run for 10 s while others wait", guest.until_closed()[0])


def silent_server(row):
    def greets(peer):
        peer.greet()
        while True:  # until the client hangs up
            peer.receive()

    for _ in row.times(1, 5):
        with support.fake_server(greets) as port:
            with support.Background("write_bw", "127.0.0.1", "-p", port, *RUN) as client:
                words(row, client, "nothing heard from it", "no answer for 4.5 s", since=time.monotonic())


def stopped_server(row):
    for test in row.of(TESTS, 1):
        with support.Server("--bind", "127.0.0.1") as server:
            with support.Background(*test, "127.0.0.1", "-p", server.port, *LONG_RUN) as client:
                server.wait_line("serving client")
                client.wait_measuring()
                server.signal(signal.SIGSTOP)
                words(row, client, "nothing heard from it", since=time.monotonic())
                server.signal(signal.SIGCONT)
                start = time.monotonic()
                row.expect("failed", server.wait_line("failed"))
                row.took(time.monotonic() - start, "the words of the resumed server")
            row.serves(server)


def stopped_client(row):
    with serve() as server:
        for test in row.of(TESTS, 1):
            with support.Background(*test, "127.0.0.1", "-p", server.port, *LONG_RUN) as client:
                server.wait_line("serving client")
                client.wait_measuring()
                client.signal(signal.SIGSTOP)
                start = time.monotonic()
                row.expect("nothing heard from it", server.wait_line(test[0]))
                row.took(time.monotonic() - start, "the words of the server")
                client.signal(signal.SIGCONT)
                words(row, client, "nothing heard from it", "closed the connection", since=time.monotonic())


def lost(row, kind, sender):
    with serve() as server:
        for test in TESTS:
            with Proxy(server.port, lambda who, message: who == sender and message["type"] == kind) as proxy:
                with support.Background(*test, "127.0.0.1", "-p", proxy.port, *RUN) as client:
                    row.note(proxy.lost.wait(support.PATIENCE_S), f"no {kind} came by")
                    start = time.monotonic()
                    words(row, client, "was lost on the way", since=start)
                    row.expect("was lost on the way", server.wait_line(test[0]))
                    row.took(time.monotonic() - start, "the words of the server")


def lost_stop(row):
    lost(row, "stop", "client")


def lost_others(row):
    for kind, sender in (("connect", "client"), ("start", "client"), ("accept", "server"), ("done", "server")):
        lost(row, kind, sender)


def cut_off(row):
    """From some time on nothing gets through, and no connection is closed: a firewall's way."""
    with serve() as server:
        for test in row.of(TESTS, 1):
            cut = []
            with Proxy(server.port, lambda who, message: bool(cut), mute=True) as proxy:
                with support.Background(*test, "127.0.0.1", "-p", proxy.port, *LONG_RUN) as client:
                    server.wait_line("serving client")
                    client.wait_measuring()
                    cut.append(True)
                    start = time.monotonic()
                    words(row, client, "nothing heard from it", since=start)
                    row.expect("nothing heard from it", server.wait_line(test[0]))
                    row.took(time.monotonic() - start, "the words of the server")


def stopped_while_waiting(row, server):
    """A client that is stopped in the queue loses its place; those behind it are served."""
    with Guest(server.port) as first:
        first.take_turn()
        with support.Background("write_bw", "127.0.0.1", "-p", server.port, *RUN) as second:
            second.wait_line("waiting")
            second.signal(signal.SIGSTOP)
            first.send(type="bye")
            row.serves(server)
            second.signal(signal.SIGKILL)


ATTACKS = [
    ("silence after the greeting, in turn", silent_turn, True),
    ("a turn kept idle while another waits", idle_turn, True),
    ("a server that greets and stays silent", silent_server, False),
    ("a stopped server", stopped_server, False),
    ("a stopped client", stopped_client, False),
    ("a client stopped in the queue", stopped_while_waiting, True),
    ("a swallowed Stop", lost_stop, False),
    ("[long] other lost messages", lost_others, False),
    ("a connection cut without a word", cut_off, False),
]
