"""Clients that are served and ask for too much, nonsense, or nothing at all."""

import contextlib
import json
import random
import re

from guests import Guest, request, serve, vitals

WEEK_NS = 7 * 24 * 3600 * 10**9
EXTREMES = [0, -1, 1, 2**31, 2**63 - 1, -2**63, 2**64 - 1, 1e308, "", "x" * 20000, "../../dev/zero", None, True, [], {},
            [[]], "host\u0000", "cuda:0", "\u001b[2J"]


def ask(server, message):
    """The type and reason of the answer, or how the connection ended."""
    with Guest(server.port) as guest:
        guest.take_turn()
        guest.send(**message)
        try:
            answer = guest.receive()
        except (EOFError, OSError):
            return "closed", ""
        return answer["type"], answer.get("reason", "")


def too_long(row, server):
    spec = request()["spec"]
    message = request(stop={**spec["stop"], "iterations": None, "duration_ns": WEEK_NS})
    if "duration_ns" not in json.dumps(spec):
        message["spec"]["stop"] = {key: value for key, value in spec["stop"].items() if key != "iterations"}
        message["spec"]["stop"]["duration_ns"] = WEEK_NS
    kind, reason = ask(server, message)
    row.note(kind == "reject", f"{kind}: {reason}")
    row.expect("this server allows runs of", reason)


# What they would take: 4 to 20 GiB, for messages, for many QPs, for deep queues.
GREEDY = [
    {"size_bytes": 1 << 30, "tx_depth": 4, "footprint_bytes": 4 << 30},
    {"size_bytes": 1 << 30, "tx_depth": 16, "footprint_bytes": 16 << 30},
    {"size_bytes": 1 << 20, "qps": 2048, "tx_depth": 4, "footprint_bytes": 4 << 20},
    {"size_bytes": 65536, "qps": 4000, "tx_depth": 64, "footprint_bytes": 4 << 20},
    {"test": "send_bw", "size_bytes": 4096, "qps": 2040, "tx_depth": 2048, "rx_depth": 2048,
     "footprint_bytes": 2 << 20},
]
BUDGET_GIB = 1


def too_much_memory(row):
    """A request of some 600 bytes for many GiB: refused with both figures, before any memory is taken."""
    with serve("--max-memory", f"{BUDGET_GIB}G") as server:
        row.serves(server)
        before = vitals(server.process.pid)
        for changes in GREEDY:
            for _ in row.times(1, 20):
                message = request(cq_mod=1, **changes)
                row.note(len(json.dumps(message)) < 2000, "not a small request")
                kind, reason = ask(server, message)
                row.note(kind == "reject", f"{kind}: {reason}")
                figures = re.search(r"would need ([\d.]+) GiB of memory .*more than the ([\d.]+) GiB it may take",
                                    reason)
                row.note(figures is not None, f"no figures: {reason}")
                if figures:
                    row.note(4 <= float(figures[1]) <= 20, f"asked: {reason}")
                    row.note(float(figures[2]) == BUDGET_GIB, f"budget: {reason}")
        kind, reason = ask(server, request(qps=4000, tx_depth=16000, cq_mod=1))
        row.note(kind == "reject" and "entries in a completion queue" in reason, f"{kind}: {reason}")
        after = vitals(server.process.pid)
        for figure in ("rss_kib", "peak_kib"):
            row.note(after[figure] <= before[figure] + 8 * 1024, f"{figure}: before {before}, after {after}")
        row.serves(server)


def nonsense(row, server):
    """Members of the request replaced by extremes: refused in words or by hanging up."""
    random.seed(1)
    base = request()
    for _ in row.times(25, 3000):
        message = request()
        for _ in range(random.randint(1, 3)):
            spec = message["spec"]
            places = [message] if not isinstance(spec, dict) else [message, spec, *(
                spec[name] for name in ("client", "server", "stop") if isinstance(spec.get(name), dict))]
            place = random.choice([each for each in places if each])
            place[random.choice(list(place))] = random.choice(EXTREMES)
        message["type"] = "run_request"
        if message["spec"] == base["spec"]:
            continue
        kind, reason = ask(server, message)
        row.note(kind in ("accept", "reject", "failure", "closed"), f"{message}: {kind}: {reason}")


def big_frames(row, server):
    """The one that is served may send 4 MiB; what that holds is bounded all the same."""
    texts = [b"[" * (4 << 20), b'{"type":"stop","messages":[' + b"[],".join([b""] * 1_200_000) + b"[]]}",
             b'{"type":"' + b"x" * ((4 << 20) - 20) + b'"}', b'{"a":' * 800_000]
    before = vitals(server.process.pid)["peak_kib"]
    for text in texts:
        for _ in row.times(2, 20):
            with Guest(server.port) as guest, contextlib.suppress(OSError):
                guest.take_turn()
                guest.frame(text[:4 << 20])
                _, seconds = guest.until_closed()
                row.took(seconds, "the refusal of a large frame")
    grown = vitals(server.process.pid)["peak_kib"] - before
    row.note(grown < 160 * 1024, f"the server grew by {grown} KiB")


def heartbeat_flood(row, server):
    for _ in row.times(1, 20):
        with Guest(server.port) as guest, contextlib.suppress(OSError):
            guest.take_turn()
            text = json.dumps({"type": "alive", "sent": guest.sent, "taken": guest.taken}).encode()
            guest.raw((len(text).to_bytes(4, "big") + text) * 50_000)
            row.note(True, "")


def leftovers(row, server):
    """Messages that belong to no run are no reason to keep the turn."""
    with Guest(server.port) as guest, contextlib.suppress(OSError):
        guest.take_turn()
        for _ in row.times(1000, 50_000):
            guest.send(type="start")
        row.note(True, "")


def vanish(row, server):
    """Gone after each step of a run."""
    for steps in range(3):
        for _ in row.times(2, 100):
            with Guest(server.port) as guest:
                guest.take_turn()
                if steps > 0:
                    guest.send(**request())
                if steps > 1:
                    guest.receive()
            row.note(True, "")


ATTACKS = [
    ("a run of 168 h", too_long, True),
    ("600 bytes that ask for 4 to 20 GiB", too_much_memory, False),
    ("requests with absurd members", nonsense, True),
    ("frames of 4 MiB from the one that is served", big_frames, True),
    ("50,000 heartbeats at once", heartbeat_flood, True),
    ("messages that belong to no run", leftovers, True),
    ("gone at each step of a run", vanish, True),
]
