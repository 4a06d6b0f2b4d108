"""What one client takes with many connections: memory, QPs, time, places in the queue."""

import concurrent.futures
import contextlib
import os
import socket
import threading
import time

import support
from guests import Guest, Memory, RUN, request, serve, vitals

MIB = 1 << 20
# Threads, contexts of the device and JSON of a run, besides what it reserves.
OVERHEAD_KIB = 3 * 1024
# Of memory that is being registered, the software device has one piece twice (softnic/src/memory/move.cc): one in a
# process, whatever is registered at the same time.
PIECE_KIB = 4 * 1024


class Companion(Guest):
    """A further connection of the client whose slot it is."""

    def join(self, ticket):
        self.greet()
        self.send(type="enter", beside=ticket)
        threading.Thread(target=self._beat, daemon=True).start()
        return self.turn()


@contextlib.contextmanager
def client_with(server, count):
    """A client that is served, and `count` further connections of it."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Guest(server.port))
        first.hello()
        ticket = first.receive(skip=("alive", "busy"))["ticket"]
        others = [stack.enter_context(Companion(server.port)) for _ in range(count)]
        with concurrent.futures.ThreadPoolExecutor(max(count, 1)) as pool:
            turns = list(pool.map(lambda other: other.join(ticket), others))
        assert turns == ["turn"] * count, turns
        yield [first, *others]


def ask_at_once(peers, message):
    """Each peer asks for the same run; types and reasons of the answers."""
    def ask(peer):
        peer.send(**message)
        try:
            answer = peer.receive()
        except (EOFError, OSError):
            return "closed", ""
        return answer["type"], answer.get("reason", "")

    with concurrent.futures.ThreadPoolExecutor(len(peers)) as pool:
        return list(pool.map(ask, peers))


def memory(row):
    """--max-memory 128M, and 16 or 64 runs of 120 MiB at the same time: one is served, the others are refused in
    words."""
    count = 63 if row.long else 15
    with serve("--max-memory", "128M", weighed=True) as server:
        row.serves(server)
        for _ in row.times(1, 3):
            watched = Memory(server.process.pid)
            before = watched.now()
            with client_with(server, count) as peers, watched:
                answers = ask_at_once(peers, request(footprint_bytes=120 * MIB, size_bytes=MIB, cq_mod=1))
                kinds = [kind for kind, _ in answers]
                row.note(kinds.count("accept") <= 1, f"{kinds.count('accept')} runs of 120 MiB were accepted: {kinds}")
                row.note(kinds.count("reject") >= count, f"{kinds}")
                for kind, reason in answers:
                    if kind == "reject":
                        row.expect("more than the 128 MiB it may take", reason)
                watched.now()
            grown = watched.peak_kib - before
            row.note(grown < 128 * 1024 + PIECE_KIB + (count + 1) * OVERHEAD_KIB, f"the server grew by {grown} KiB")
            row.serves(server)


def queue_pairs(row):
    """QPs of all runs at the same time are limited, whatever memory is permitted."""
    with serve("--max-memory", "64G") as server:
        with client_with(server, 3) as peers:
            answers = ask_at_once(peers, request(qps=6000, footprint_bytes=4096, tx_depth=1, cq_mod=1))
            kinds = [kind for kind, _ in answers]
            row.note(kinds.count("accept") <= 2, str(kinds))
            for kind, reason in answers:
                if kind == "reject":
                    row.note("QPs for all runs" in reason or "QPs at most" in reason or "memory" in reason, reason)
        row.serves(server)


def frames(row):
    """Each connection of a client sends the longest frame that it may, of the most values: decoded one at a time."""
    count = 63 if row.long else 15
    text = b'{"type":"stop","messages":[' + b"[]," * 260_000 + b"[]]}"
    with serve("--max-memory", "128M") as server:
        row.serves(server)
        before = vitals(server.process.pid)["rss_kib"]
        for _ in row.times(1, 3):
            with client_with(server, count) as peers, concurrent.futures.ThreadPoolExecutor(count + 1) as pool:
                def throw(peer):
                    with contextlib.suppress(OSError):
                        peer.frame(text)
                        peer.until_closed()

                list(pool.map(throw, peers))
            grown = vitals(server.process.pid)["peak_kib"] - before
            row.note(grown < (count + 1) * 1024 * 4 + 64 * 1024, f"the server grew by {grown} KiB")
            row.serves(server)


def heartbeat(row):
    """A set-up of 600 MiB: the longest time that the client hears nothing."""
    with serve("--max-memory", "2G") as server:
        for _ in row.times(1, 5):
            with Guest(server.port) as guest:
                guest.take_turn()
                guest.send(**request(footprint_bytes=600 * MIB, size_bytes=MIB, cq_mod=1))
                last, longest, kind = time.monotonic(), 0.0, ""
                while kind not in ("accept", "reject", "failure"):
                    kind = guest.receive(skip=())["type"]
                    longest, last = max(longest, time.monotonic() - last), time.monotonic()
                row.note(kind == "accept", kind)
                row.took(longest, "the next heartbeat")
            row.serves(server)


def no_progress(row):
    """A run is started, and then only heartbeats come: 10 s after others wait, or earlier, the next is served."""
    with serve() as server:
        for _ in row.times(1, 3):
            with Guest(server.port) as guest:
                guest.take_turn()
                guest.send(**request(stop={**request()["spec"]["stop"], "iterations": 10**9}))
                answer = guest.receive()
                row.note(answer["type"] == "accept", str(answer))
                # The server's QP is connected with itself: it waits for messages that never come.
                guest.send(type="connect", endpoint=answer["endpoint"])
                row.note(guest.receive()["type"] == "ready", "no ready")
                guest.send(type="start")
                start = time.monotonic()
                with support.Background("write_bw", "127.0.0.1", "-p", server.port, *RUN) as other:
                    row.note(other.wait() == 0, other.err)
                seconds = time.monotonic() - start
                row.note(seconds >= 9, f"the slot was lost after {seconds:.1f} s")
                row.note(seconds < 10 + support.PATIENCE_S / 2, f"{seconds:.1f} s")
                row.took(seconds - 10, "the slot of the next, after 10 s")
                text, _ = guest.until_closed()
                row.expect("made no progress for 10 s while others wait", text)


def flood(row):
    """Connections of one address by the hundred, silent or in the queue: another address finds a place."""
    with serve() as server:
        for greets in (False, True):
            crowd = []
            try:
                with Guest(server.port) as served:
                    served.take_turn()
                    for _ in range(200 if row.long else 80):
                        with contextlib.suppress(OSError):
                            # 127.0.0.2 is another address of this host.
                            peer = support.Peer(socket.create_connection(("127.0.0.1", server.port), support.PATIENCE_S,
                                                                         source_address=("127.0.0.2", 0)), asks=True)
                            crowd.append(peer)
                            if greets:
                                peer.hello()
                    with support.Background("write_bw", "127.0.0.1", "-p", server.port, *RUN) as client:
                        line = client.wait_line("waiting")
                        row.expect("is serving", line)
                        served.send(type="bye")
                        if greets:
                            for peer in crowd:
                                peer.close()
                        row.note(client.wait() == 0, client.err)
            finally:
                for peer in crowd:
                    peer.close()
        row.serves(server)


def in_group(limit_bytes, server):
    """A control group of its own for the server, or None where this process may make none."""
    with open("/proc/self/cgroup", encoding="ascii") as groups:
        has_v1 = any(line.split(":")[1] == "memory" for line in groups)
    folder = f"/sys/fs/cgroup/{'memory/' if has_v1 else ''}gdrperf-attack-{os.getpid()}"
    try:
        os.mkdir(folder)
        with open(f"{folder}/memory.{'limit_in_bytes' if has_v1 else 'max'}", "w", encoding="ascii") as file:
            file.write(str(limit_bytes))
        with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(server.process.pid))
    except OSError:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        return None
    return folder


def control_group(row):
    """The default limit in a control group of 2 GiB, and 64 runs of 400 MiB at the same time: the server lives."""
    for _ in row.times(1, 6):
        with serve() as server:
            folder = in_group(2 << 30, server)
            if folder is None:
                return
            try:
                with client_with(server, 63) as peers:
                    answers = ask_at_once(peers, request(footprint_bytes=400 * MIB, size_bytes=MIB, cq_mod=1))
                    row.note(any(kind == "accept" for kind, _ in answers), str(answers[:3]))
                row.note(server.process.poll() is None, "the server was killed")
                row.serves(server)
                if os.environ.get("ATTACK_TIMES"):
                    print(f"    control group: {vitals(server.process.pid)}", flush=True)
            finally:
                server.process.kill()
                server.process.wait()
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


ATTACKS = [
    ("memory of one client's runs at the same time", memory, False),
    ("QPs of one client's runs at the same time", queue_pairs, False),
    ("long frames on all connections of a client", frames, False),
    ("heartbeat through a set-up of 600 MiB", heartbeat, False),
    ("a run that is started and makes no progress", no_progress, False),
    ("floods from one address, silent and in the queue", flood, False),
    ("64 runs of 400 MiB in a control group of 2 GiB", control_group, False),
]
