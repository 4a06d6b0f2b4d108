"""Beyond one server: clients of hostile servers, ranks of a cluster, what others do to files and to metrics."""

import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import tarfile
import tempfile
import threading
import time
import urllib.request

import support
from guests import Guest, serve

LOCAL = ["--local", "--softnic", "-s", "64"]


def was_called(listener):
    with contextlib.suppress(TimeoutError):
        connection, _ = listener.accept()
        connection.close()
        return True
    return False


class Inviter(Guest):
    """A client that makes a server a rank of its cluster (src/cluster/wire/round_wire.cc)."""

    def order(self, text):
        self.frame(b"cluster\n" + text)

    def answer(self):
        """The next frame that is no heartbeat, as text."""
        while True:
            text = self._exactly(struct.unpack(">I", self._exactly(4))[0])
            if b'"alive"' not in text:
                self.taken += 1
                return text.decode("utf-8", "replace")

    def measure(self, host, port):
        names = [host.encode(), b"soft0", b"host"]
        text = b"O" + struct.pack("<IQQB", 1, 4096, 10**8, 0) + struct.pack("<I", len(names))
        text += b"".join(struct.pack("<I", len(name)) + name for name in names)
        self.order(text + struct.pack("<I", 1) + struct.pack("<IHIIII", 0, port, 1, 1, 2, 2))


def forged_requests(row):
    """A client that makes the server connect somewhere: refused without --cluster, and outside --allow with it."""
    for options, where in (((), "127.0.0.1"), (("--cluster", "--allow", "127.0.0.1"), "127.0.0.2"),
                           (("--cluster", "--allow", "127.0.0.1"), "localhost.invalid")):
        with serve(*options) as server, socket.create_server(("127.0.0.2", 0)) as listener:
            listener.settimeout(0.2)
            port = listener.getsockname()[1]
            for _ in row.times(1, 20):
                with Inviter(server.port) as guest:
                    guest.take_turn()
                    guest.order(json.dumps({"cluster": "invite", "rank": 1, "ranks": 2, "deadline_s": 10.0}).encode())
                    answer = guest.answer()
                    if not options:
                        row.expect("is no rank of clusters", answer)
                        continue
                    row.expect('"card"', answer)
                    guest.order(json.dumps({"cluster": "attach", "host": where, "port": port}).encode())
                    row.expect("is of no tree", guest.answer())
                with Inviter(server.port) as guest:
                    guest.take_turn()
                    guest.order(json.dumps({"cluster": "invite", "rank": 1, "ranks": 2, "deadline_s": 10.0}).encode())
                    guest.answer()
                    guest.measure(where, port)
                    answer = guest.answer()
                    row.note("not in the networks" in answer or "cannot find the address" in answer, answer)
                row.note(not was_called(listener), "the server connected to an address outside --allow")
            row.serves(server)


PERFTEST_GREETING = b"6.06".ljust(16, b"\0")
PERFTEST_ADDRESSES = b"0000:0000:000000:000000:00000000:0000000000000000:00000000000000000000000000000000:00000000:"


def perftest_noise(chance):
    """Noise, half a greeting of perftest, or a whole one with addresses and wrong bytes in it."""
    kind = chance.randrange(4)
    if kind == 0:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(1, 300)))
    if kind == 1:
        return PERFTEST_GREETING[:chance.randrange(len(PERFTEST_GREETING))]
    text = bytearray(PERFTEST_GREETING + PERFTEST_ADDRESSES * 3)
    for _ in range(chance.randrange(1, 8)):
        text[chance.randrange(len(text))] = chance.randrange(256)
    return bytes(text)


def perftest_client(row):
    """A client that sends noise to a server of perftest's kind: it ends with a message, or serves the next client."""
    chance = random.Random(8)

    def meet(index):
        data, port = perftest_noise(chance), support.free_port()
        words = ["-p", port, "--softnic", "-n", "100"]
        with support.Background("ib_write_bw", *words) as server:
            server.wait_line("waiting for one client")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.5) as connection:
                connection.sendall(data)
                if index % 2 == 0:
                    connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
            served = support.run("ib_write_bw", "127.0.0.1", *words).code == 0
            return data, served, server.wait(), server.err

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for data, served, code, err in pool.map(meet, row.times(8, 400)):
            right = code == 0 if served else code in (2, 3, 5) and "gdrperf: " in err
            row.note(right, f"{data!r}: {served}, {code}: {err}")


def perftest_bytes(row):
    """A server that answers perftest's client with noise, with half a greeting, with mutated greetings, or drips."""
    chance = random.Random(7)

    def meet(index):
        data = perftest_noise(chance)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def answer():
                with contextlib.suppress(OSError):
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(support.PATIENCE_S)
                        connection.recv(4096)  # perftest's server waits to be greeted
                        connection.sendall(data)
                        if index % 2 == 0:
                            connection.shutdown(socket.SHUT_WR)
                        while connection.recv(4096):
                            pass

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            test = chance.choice(["ib_write_bw", "ib_send_bw", "ib_read_bw", "ib_send_lat"])
            return data, support.run(test, "127.0.0.1", "-p", listener.getsockname()[1], "--softnic", "-n", "100")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for data, result in pool.map(meet, row.times(8, 400)):
            row.note(result.code in (2, 3, 5) and "gdrperf: error: " in result.err, f"{data!r}: {result}")


def get(url):
    start = time.monotonic()
    for _ in range(50):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(url, timeout=support.PROMISE_S) as answer:
                return answer.status, time.monotonic() - start
        time.sleep(0.1)
    return None, time.monotonic() - start


def metrics(row):
    """40 connections that drip a request into the metrics endpoint: a scraper of the same address is answered."""
    if "was built without libmicrohttpd" in support.run("write_bw", *LOCAL, "-n", "5", "--listen-metrics", "0").err:
        return
    with support.Background("write_bw", *LOCAL, "--forever", "--interval", "200ms", "--listen-metrics", "0") as client:
        url = client.wait_line("metrics at ").split("metrics at ")[1]
        place = ("127.0.0.1", int(re.search(r":(\d+)/", url)[1]))
        stop = threading.Event()

        def drip():
            while not stop.is_set():
                with contextlib.suppress(OSError), socket.create_connection(place, 2) as connection:
                    for byte in b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 200:
                        connection.sendall(bytes([byte]))
                        if stop.wait(0.5):
                            break

        drips = [threading.Thread(target=drip, daemon=True) for _ in range(40)]
        for each in drips:
            each.start()
        for _ in row.times(3, 50):
            status, seconds = get(url)
            row.note(status == 200, f"a scrape: {status}")
            row.took(seconds, "a scrape")
        stop.set()
        client.signal(signal.SIGINT)
        client.wait()
        for each in drips:
            each.join()


def two_writers(row):
    """Two processes write one baseline, or one document, at the same time, and some are killed: each file is whole,
    always."""
    with tempfile.TemporaryDirectory() as folder:
        documents = []
        for index in range(6):
            documents.append(os.path.join(folder, f"run{index}.json"))
            result = support.run("write_bw", *LOCAL, "-n", "200", "--json", documents[-1])
            row.note(result.code == 0, str(result))
        store = os.path.join(folder, "store")
        chance = random.Random(3)

        def add(index):
            with support.Background("baseline", "add", "--dir", store, *documents) as writer:
                if index % 3 == 2:
                    time.sleep(chance.uniform(0, 0.05))
                    writer.signal(signal.SIGKILL)
                return writer.wait(), writer.err

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for index, (code, err) in enumerate(pool.map(add, row.times(9, 300))):
                row.note(code == 0 or index % 3 == 2, f"{code}: {err}")
        row.note(support.run("baseline", "add", "--dir", store, *documents).code == 0, "the last writer")
        kept = [path for path in pathlib.Path(store).rglob("*.json")]
        for path in kept:
            try:
                json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                row.note(False, f"{path}: {error}")
        contents = {path.read_text(encoding="utf-8") for path in kept}
        row.note(len(contents) >= len(documents), f"{len(contents)} of {len(documents)} documents are there")


def failing_disk(row):
    """Writes that fail with EIO, each in turn: an error in words, and the old document or the new one, whole."""
    # Reading fails in this way from memory that is not mapped.
    row.expect("Input/output error", support.run("report", "/proc/self/mem").err)
    library = os.environ.get("GDRPERF_FAILING_DISK")
    if not library or support.sanitized():
        return
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "kept.json")
        failed = 0
        for after in ({}, {"FAILING_DISK_AFTER": "1"}):
            for number in row.times(8, 40):
                path.write_text('{"old": true}', encoding="ascii")
                result = support.run("write_bw", *LOCAL, "-n", "50", "--json", path,
                                     env={"FAILING_DISK": str(number + 1), "LD_PRELOAD": library, **after})
                document = json.loads(path.read_text(encoding="utf-8"))
                row.note(result.code in (0, 3), str(result))
                row.note((result.code == 0) == ("schema" in document), f"code {result.code}, {list(document)[:3]}")
                if result.code != 0:
                    failed += 1
                    row.expect("Input/output error", result.err)
        row.note(failed > 2, f"{failed} writes failed: the disk never did")
        for left in os.listdir(folder):
            row.note(left in ("kept.json", "kept.json.part"), f"{left} was left behind")


def recording(path, devices):
    """A recorded machine with so many NICs, in a small file."""
    with tarfile.open(path, "w:gz") as tar:
        def add(name, text):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))

        for number in range(devices):
            function = f"sys/bus/pci/devices/{number >> 13:04x}:{number >> 5 & 0xff:02x}:{number & 31:02x}.0"
            add(f"{function}/vendor", b"0x15b3\n")
            add(f"{function}/class", b"0x020000\n")
            add(f"sys/class/infiniband/mlx5_{number}/node_guid", b"0000:0000:0000:0000\n")


def large_recordings(row):
    """Time grows as the number of devices does, and 30,000 are refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "machine.tar.gz")
        for devices in (500, 2000, 30000)[:3 if row.long else 2]:
            recording(path, devices)
            result = support.run("doctor", "--root", path)
            row.took(result.seconds, f"doctor of {devices} devices")
            row.note(result.code in (0, 1, 2, 3), str(result)[-300:])
        recording(path, 3000)
        result = support.run("doctor", "--root", path)
        row.note(result.code == 2, str(result)[-300:])
        row.expect("3000 RDMA devices, more than the 2048 that are looked at", result.err)


ATTACKS = [
    ("recordings with thousands of devices", large_recordings, False),
    ("a server as the client of others (--cluster)", forged_requests, False),
    ("a server that answers perftest's client with noise", perftest_bytes, False),
    ("a client of perftest that sends noise", perftest_client, False),
    ("dripping connections to the metrics endpoint", metrics, False),
    ("two writers of one baseline, some killed", two_writers, False),
    ("a disk that fails (EIO)", failing_disk, False),
]
