"""What is around the server: a log that nobody reads, closed descriptors, signals in the middle of a run."""

import os
import re
import signal
import subprocess
import time

import support
from guests import Guest, LONG_RUN, RUN, serve


class Bare:
    """A server whose standard descriptors the caller chooses."""

    def __init__(self, **descriptors):
        self.port = support.free_port()
        words = ["serve", "--softnic", "--bind", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen([*support.WITH_THE_TEST, support.BINARY, *words], env=support.environment(),
                                        **descriptors)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def full_log(row):
    """64 KiB of log and more into a pipe that nobody reads."""
    reader, writer = os.pipe()
    with Bare(stdin=subprocess.DEVNULL, stdout=writer, stderr=writer) as server:
        os.close(writer)
        row.serves(server)
        os.set_blocking(reader, False)
        # What the server finds is a full pipe.
        filler = os.open(f"/proc/{server.process.pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
        try:
            while os.write(filler, b"x" * 4096):
                pass
        except BlockingIOError:
            pass
        os.close(filler)
        for _ in row.times(3, 300):
            row.serves(server)
        row.note(server.process.poll() is None, "the server ended")
    os.close(reader)


def closed_log(row):
    """The reader of the log is gone: SIGPIPE."""
    reader, writer = os.pipe()
    with Bare(stdin=subprocess.DEVNULL, stdout=writer, stderr=writer) as server:
        os.close(writer)
        row.serves(server)
        os.close(reader)
        for _ in row.times(3, 300):
            row.serves(server)
        row.note(server.process.poll() is None, "the server ended")


def closed_descriptors(row):
    """Started with 0, 1 and 2 closed: the first client's socket must not become the log."""
    port = support.free_port()
    command = f'exec "{support.BINARY}" serve --softnic --bind 127.0.0.1 -p {port} <&- >&- 2>&-'
    process = subprocess.Popen([*support.WITH_THE_TEST, "sh", "-c", command], env=support.environment())
    try:
        for _ in row.times(2, 100):
            result = support.run("write_bw", "127.0.0.1", "-p", port, *RUN)
            row.note(result.code == 0, str(result))
        for fd in range(3):
            row.expect("/dev/null", os.readlink(f"/proc/{process.pid}/fd/{fd}"))
    finally:
        process.kill()
        process.wait()


def quiet_log(row):
    """Strangers by the hundred, and a handful of lines about them."""
    with serve() as server:
        count = len(row.times(300, 5000))
        for _ in range(count):
            with Guest(server.port) as guest:
                guest.raw(b"\xff\xff\xff\xff")
                guest.until_closed()
        row.serves(server)
        server.signal(signal.SIGTERM)
        server.wait()
        lines = [line for line in server.lines if "dropped" in line]
        told = sum(int(number) if number else 1 for number in
                   (re.match(r"gdrperf: dropped (?:a|(\d+)) connection", line).group(1) for line in lines))
        row.note(told == count, f"{told} of {count} counted: {lines}")
        row.note(len(lines) < 20 + count // 100, f"{len(lines)} lines")


def terminated(row):
    for test in (["write_bw", "-q", "64"], ["send_lat"]):
        with serve() as server:
            with support.Background(*test, "127.0.0.1", "-p", server.port, *LONG_RUN) as client, \
                    Guest(server.port) as waiting:
                server.wait_line("serving client")
                waiting.hello()
                waiting.receive()
                start = time.monotonic()
                server.signal(signal.SIGTERM)
                row.note(server.wait() == 0, server.err)
                row.took(time.monotonic() - start, "the end of the server")
                row.note(client.wait() == 5, client.err)
                row.took(time.monotonic() - start, "the words of the client")
                row.expect("the server was stopped", waiting.until_closed()[0])


def killed_client(row, server):
    for _ in row.times(2, 50):
        with support.Background("send_bw", "127.0.0.1", "-p", server.port, *LONG_RUN) as client:
            server.wait_line("serving client")
            client.wait_measuring()
            client.signal(signal.SIGKILL)
            client.wait()
        row.serves(server)


def deep_queues(row):
    """Thousands of QPs with deep queues have to go: others are served meanwhile or told, and SIGTERM ends it."""
    qps = "4000" if row.long else "1000"
    deep = ["send_bw", "127.0.0.1", *LONG_RUN, "-q", qps, "-t", "16", "-r", "128", "-p"]
    with serve("--max-memory", "4G") as server:
        for _ in row.times(1, 3):
            with support.Background(*deep, server.port) as client, Guest(server.port) as waiting:
                client.wait_measuring()
                waiting.hello()
                row.expect("busy", waiting.receive()["type"])
                client.signal(signal.SIGKILL)
                start = time.monotonic()
                row.note(waiting.turn() == "turn", "the next in the queue is not served")
                row.took(time.monotonic() - start, "the turn of the next")
            row.serves(server)
        with support.Background(*deep, server.port) as client:
            client.wait_measuring()
            server.signal(signal.SIGTERM)
            start = time.monotonic()
            row.note(client.wait() == 5, client.err)
            row.took(time.monotonic() - start, "the words of the client")
            row.note(server.wait() == 0, server.err)
            row.took(time.monotonic() - start, "the end of the server")


ATTACKS = [
    ("a log that nobody reads", full_log, False),
    ("a log whose reader is gone", closed_log, False),
    ("descriptors 0 to 2 closed", closed_descriptors, False),
    ("strangers are counted, not listed", quiet_log, False),
    ("SIGTERM in the middle of a run", terminated, False),
    ("clients killed in the middle of a run", killed_client, True),
    ("thousands of deep queues torn down", deep_queues, False),
]
