"""What the command-line tests share: running the binary, a server, fake peers.

Each test file is one program in one of the folders here: `FILE BINARY [SCHEMA]`. It
finds this module a folder above its own. Its exit status is that of unittest, or 77
when every test was skipped.
"""

import contextlib
import functools
import json
import os
import pathlib
import queue
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BINARY = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "gdrperf"
SCHEMA = sys.argv[2] if len(sys.argv) > 2 else None


@functools.cache
def sanitized():
    """Built with AddressSanitizer: several times slower than the links that tests simulate."""
    try:
        with open(BINARY, "rb") as binary:
            return b"__asan_init" in binary.read()
    except OSError:
        return False


def start_up_s():
    """How long a program that does nothing takes here and now: sanitizers and other tests slow it down."""
    begin = time.monotonic()
    subprocess.run([BINARY, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.monotonic() - begin


SHORT = os.environ.get("GDRPERF_TESTS") == "short"
# For tests of many seconds, most of them waiting alone: the quick run goes without them.
long = unittest.skipIf(SHORT, "long: scripts/test --all runs it")


def cases(quick, all_of_them):
    """Of one kind: `quick` in the quick run, else all."""
    return quick if SHORT else all_of_them


# scripts/test --arch: the program runs under qemu-user, five to twenty times slower.
EMULATED = "GDRPERF_EMULATED" in os.environ


def not_emulated(reason):
    """A test, or a class of them, that shows nothing, or something else, under an emulator."""
    return unittest.skipIf(EMULATED, f"emulated: {reason}")


rates = not_emulated("a rate is the link's only where the program keeps up with it")


# What the tool promises: an answer within 5 s of the event, before which it has to start.
PROMISE_S = 5.0 + start_up_s()
# How long a test waits; a hang ends here. 45 rounds of a cluster's retests, sanitized, beside others, took above 180 s.
PATIENCE_S = 300.0 if sanitized() or EMULATED else 60.0


# In front of a program: it ends with the test that started it, however that ends.
WITH_THE_TEST = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


class Result:
    def __init__(self, process, out, err, seconds):
        self.code = process.returncode
        self.out = out
        self.err = err
        self.seconds = seconds

    def __str__(self):
        return f"exit code {self.code} after {self.seconds:.2f} s\nstdout: {self.out}\nstderr: {self.err}"


def environment(extra=None):
    env = dict(os.environ)
    for name in ("SOFTNIC", "LD_PRELOAD", "GDRPERF_SOFTNIC", "NO_COLOR"):
        env.pop(name, None)
    env.update(extra or {})
    return env


def run(*args, env=None, timeout=PATIENCE_S, stdin=None, command=None, **options):
    """Runs `gdrperf ARGS...` to its end."""
    start = time.monotonic()
    env = environment(env)
    device = pathlib.Path(BINARY).resolve().parents[2] / "softnic/src/libgdrperf_softnic.so"
    if "--softnic" in args and command is None and sanitized() and "LD_PRELOAD" not in env and device.exists():
        # The program would start again for it: an eighth of a short run, where a sanitizer starts as well.
        env["LD_PRELOAD"] = str(device)
        env["ASAN_OPTIONS"] = f"{env.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0".lstrip(":")
    process = subprocess.Popen([*(command or []), BINARY, *map(str, args)], env=env, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, stdin=stdin or subprocess.DEVNULL, **options)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"gdrperf {' '.join(map(str, args))}: still running after {timeout} s\nstdout: {out}\n"
                             f"stderr: {err}")
    return Result(process, out, err, time.monotonic() - start)


class Background:
    """A gdrperf that runs beside the test, its standard error read line by line."""

    def __init__(self, *args, env=None):
        self.args = args
        self.process = subprocess.Popen([*WITH_THE_TEST, BINARY, *map(str, args)], env=environment(env),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.out = ""
        self._arrived = queue.Queue()
        self._seen = 0
        self._readers = [threading.Thread(target=self._read_err, daemon=True),
                         threading.Thread(target=self._read_out, daemon=True)]
        for reader in self._readers:
            reader.start()

    def _read_err(self):
        with self.process.stderr as lines:
            for line in lines:
                self._arrived.put(line.rstrip("\n"))
        self._arrived.put(None)

    def _read_out(self):
        with self.process.stdout as out:
            self.out = out.read()

    def wait_line(self, text, timeout=PATIENCE_S):
        """The next line of standard error, after those waited for, that has `text`."""
        deadline = time.monotonic() + timeout
        while True:
            while self._seen < len(self.lines):
                self._seen += 1
                if text in self.lines[self._seen - 1]:
                    return self.lines[self._seen - 1]
            try:
                line = self._arrived.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"'{text}' did not appear in: " + "\n".join(self.lines))
            self.lines.append(line)

    def wait_measuring(self):
        """Until a client with --progress says that its run is on, set-up over."""
        assert "--progress" in self.args, "a client says what it does only with --progress"
        while True:
            line = self.wait_line(": ")
            if line.startswith("gdrperf: ") and ("measuring" in line or " left" in line):
                return

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=PATIENCE_S):
        """Exit code; standard error is whole in `err` then."""
        start = time.monotonic()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self._take_all()
            raise AssertionError(f"gdrperf {' '.join(map(str, self.args))}: still running after "
                                 f"{timeout} s: " + "\n".join(self.lines)) from None
        self.seconds = time.monotonic() - start
        self._take_all()
        return code

    def _take_all(self):
        for reader in self._readers:
            reader.join(PATIENCE_S)
        while True:
            line = self._arrived.get_nowait() if not self._arrived.empty() else None
            if line is None:
                return
            self.lines.append(line)

    @property
    def err(self):
        return "\n".join(self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join(PATIENCE_S)


class Server(Background):
    """`gdrperf serve` on a free port."""

    def __init__(self, *args, port=0, env=None):
        super().__init__("serve", "-p", str(port), "--softnic", *args, env=env)
        line = self.wait_line(", port ")
        self.port = int(line.split(", port ")[1].split(";")[0])

    def __enter__(self):
        return self


def free_port():
    """A TCP port below those that the kernel hands out: no other test gets it between this call and its use."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first_of_kernel = int(file.read().split()[0])
    while True:
        port = random.randrange(min(10000, first_of_kernel // 2), first_of_kernel)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("", port))
            return port


class Peer:
    """A peer of the protocol that says what it is told to, with heartbeats once it has greeted."""

    def __init__(self, connection, asks=False):
        self.connection = connection
        self.connection.settimeout(PATIENCE_S)
        self.asks = asks  # a client, which asks for its turn
        self.sent = self.taken = 0
        self.sending = threading.Lock()
        self.closed = threading.Event()

    @classmethod
    def connect(cls, port):
        return cls(socket.create_connection(("127.0.0.1", port), PATIENCE_S), asks=True)

    def send(self, **message):
        with self.sending:
            self.sent += 1
            text = json.dumps(message).encode()
            self.connection.sendall(struct.pack(">I", len(text)) + text)

    def receive(self, skip=("alive",)):
        """The next message that is none of `skip`."""
        while True:
            header = self._exactly(4)
            message = json.loads(self._exactly(struct.unpack(">I", header)[0]))
            if message["type"] != "alive":
                self.taken += 1
            if message["type"] not in skip:
                return message

    def turn(self):
        """What comes once nobody else is served."""
        return self.receive(skip=("alive", "busy"))["type"]

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.connection.recv(count - len(data))
            if not piece:
                raise EOFError("the peer hung up")
            data += piece
        return data

    def greet(self, major=2, version="0.1.0", nonce=None, token=0):
        """Hello alone, both ways."""
        self.send(type="hello", magic="gdrperf", major=major, minor=0, tool_version=version,
                  host="fake", nonce=nonce or os.urandom(32).hex(), token=token)
        return self.receive()

    def hello(self, major=2, version="0.1.0"):
        """Hello; a client asks for its turn as well and sends heartbeats from then on."""
        answer = self.greet(major, version)
        if self.asks:
            with contextlib.suppress(OSError):
                self.ask()
        return answer

    def ask(self):
        self.send(type="enter")
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self):
        with contextlib.suppress(OSError):
            while not self.closed.wait(1):
                with self.sending:
                    text = json.dumps({"type": "alive", "sent": self.sent, "taken": self.taken}).encode()
                    self.connection.sendall(struct.pack(">I", len(text)) + text)

    def close(self):
        self.closed.set()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@contextlib.contextmanager
def fake_server(converse):
    """Port of a server whose `converse(peer)` runs for the first client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)

        def serve():
            with contextlib.suppress(OSError, EOFError):
                connection, _ = listener.accept()
                with Peer(connection) as peer:
                    converse(peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(PATIENCE_S)


class CliTest(unittest.TestCase):
    maxDiff = None

    def expect_error(self, result, code, *texts, within=None):
        """The one form of an error: exit code, 'gdrperf: error: ...', each text."""
        self.assertEqual(result.code, code, str(result))
        self.assertIn("gdrperf: error: ", result.err, str(result))
        for text in texts:
            self.assertIn(text, result.err, str(result))
        if within is not None:
            self.assertLess(result.seconds, within, str(result))

    def expect_ok(self, result):
        self.assertEqual(result.code, 0, str(result))

    def expect_swept(self, result):
        """A sweep that is too short for a stable run, perhaps."""
        self.assertIn(result.code, (0, 4), str(result))
        self.assertEqual("runs is stable" in result.err, result.code == 4, str(result))

    def scratch(self):
        folder = tempfile.TemporaryDirectory(prefix="gdrperf-cli-")
        self.addCleanup(folder.cleanup)
        return folder.name

    def check_document(self, document):
        """Against the schema, where there is a validator."""
        self.assertEqual(document["schema"], "gdrperf-results/1")
        try:
            import jsonschema
        except ImportError:
            return
        with open(SCHEMA, encoding="utf-8") as schema:
            jsonschema.validate(document, json.load(schema))

    def runs_of(self, document):
        return [run for tests in document["relations"].values() for runs in tests.values()
                for run in runs]


def softnic_works():
    """Asks the program itself; the reason when it says no."""
    result = run("devices", "--softnic")
    return None if result.code == 0 else result.err.strip()


def chosen(words):
    """Names of tests or classes; behind --but, those of all other classes."""
    if words[:1] != ["--but"]:
        return words
    classes = {name: it for name, it in vars(sys.modules["__main__"]).items()
               if isinstance(it, type) and issubclass(it, unittest.TestCase)
               and unittest.defaultTestLoader.getTestCaseNames(it)}
    unknown = set(words[1:]) - set(classes)
    assert not unknown, unknown
    return [name for name in classes if name not in words[1:]]


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: FILE BINARY [SCHEMA [--but] [CLASS...]]")
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    program = unittest.main(argv=[sys.argv[0], *chosen(sys.argv[3:])], exit=False, verbosity=2)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun > 0 and len(result.skipped) == result.testsRun:
        sys.exit(77)
