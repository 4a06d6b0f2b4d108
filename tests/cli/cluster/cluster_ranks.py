"""Ranks of `gdrperf cluster` as plain processes over software devices, and the servers that are ranks."""

import contextlib
import json
import os
import signal
import unittest

import support

# A sanitized build would end with what the process manager's library leaks.
WITHOUT_LEAKS = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

RANKS = 6

# Of a sanitized program beside others each message takes long enough to be late on a faster link: suspects all over,
# and retests of minutes.
LINK = "rate=2MB/s,react=500ms" if support.sanitized() else "rate=20MB/s,react=200ms"

# Shorter runs only scatter more where the program is sanitized.
BRIEF = ("-D", "250ms" if support.sanitized() else "50ms")


def devices(slow=None, count=RANKS):
    """Links, one for each rank, slow enough for any machine, which may be late (`react`)."""
    return ";".join(f"nic{rank}:{LINK}" + (",slow=1.25" if rank == slow else "") for rank in range(count))


def options(port, *more):
    root = ["--root", f"127.0.0.1:{port}"] if port else []
    defaults = {"-s": "16K", "--small": "0", "-D": "250ms", "--deadline": "20s", "--start-timeout": "40s"}
    given = [word for name, value in defaults.items() if name not in more for word in (name, value)]
    return ["cluster", "--softnic", "-e", *root, *given, *more]


def start(slow=None, document=None, more=(), every=()):
    port = support.free_port()
    env = {"SOFTNIC": devices(slow)}
    ranks = []
    for rank in range(RANKS):
        own = ["--json", document, *more] if rank == 0 and document else []
        ranks.append(support.Background(*options(port, "--rank", rank, "--ranks", RANKS, *(own or every)), env=env))
    return ranks


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class ClusterTest(unittest.TestCase):
    def check_document(self, path):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        schema = os.path.join(os.path.dirname(support.SCHEMA), "cluster-schema.json")
        try:
            import jsonschema
        except ImportError:
            return document
        with open(schema, encoding="utf-8") as file:
            jsonschema.validate(document, json.load(file))
        return document

    def few(self, path, *more, ranks=2, nics=2, env=None):
        """A short run of `ranks`; the document."""
        port = support.free_port()
        started = [support.Background(*options(port, "--ranks", ranks, "--rank", rank,
                                               *(["--json", path, *more] if rank == 0 else []), "-D", "50ms"),
                                      env={"SOFTNIC": devices(count=nics), **(env or {})}) for rank in range(ranks)]
        for rank in started:
            rank.wait()
        self.assertIn(started[0].process.returncode, (0, 1, 4), started[0].err)
        return self.check_document(path)


@contextlib.contextmanager
def rank_servers(count, slow=None):
    """Servers with `--cluster`, a device each; what `--hosts` takes for them."""
    servers = []
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            servers.append(stack.enter_context(
                support.Background("serve", "--softnic", "--cluster", "-p", "0", "--bind", "127.0.0.1",
                                   env={"SOFTNIC": devices(slow, count)})))
        ports = [int(server.wait_line(", port ").split(", port ")[1].split(";")[0]) for server in servers]
        yield ",".join(f"127.0.0.1:{port}" for port in ports)
        for server in servers:
            server.signal(signal.SIGINT)
        for server in servers:
            server.wait()
