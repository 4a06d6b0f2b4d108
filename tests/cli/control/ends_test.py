#!/usr/bin/env python3
"""SIGTERM ends every command, whatever it waits for. Prints a table: command, times it was sent, longest wait for the
end."""

import concurrent.futures
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import (BINARY, CliTest, PATIENCE_S, PROMISE_S, SHORT, environment, free_port, main, sanitized,
                     softnic_works)

LOCAL = ["--local", "--softnic", "-s", "64"]
MOMENTS = 3 if SHORT or sanitized() else 30
# A command of a moment has ended by itself before.
WINDOW_S = 1.0


@unittest.skipIf(softnic_works(), "no software device")
class Ends(CliTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        # A pipe that is full and that nobody reads.
        read, self.full = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, self.full)
        os.set_blocking(self.full, False)
        while True:
            try:
                os.write(self.full, b"x" * 4096)
            except BlockingIOError:
                break
        os.set_blocking(self.full, True)
        self.silent = socket.create_server(("127.0.0.1", 0), backlog=1000)
        self.addCleanup(self.silent.close)

    def pipe(self):
        """A new one, by its name."""
        name = str(pathlib.Path(self.folder.name, f"pipe{len(os.listdir(self.folder.name))}"))
        os.mkfifo(name)
        return name

    def commands(self):
        full = f"/proc/self/fd/{self.full}"
        port = str(self.silent.getsockname()[1])
        return {
            "test": ["write_bw", *LOCAL, "-D", "30s"],
            "test, latency": ["read_lat", *LOCAL, "-D", "30s", "-e"],
            "test, threads": ["send_bw", *LOCAL, "-D", "30s", "--threads", "3"],
            "test, under load": ["write_lat", *LOCAL, "-D", "30s", "--load", "50%"],
            "test, endless": ["write_bw", *LOCAL, "--forever", "--interval", "0.1"],
            "--json to a pipe without a reader": ["write_bw", *LOCAL, "-n", "100", "--json", self.pipe()],
            "--json to a full pipe": ["write_bw", *LOCAL, "-n", "100", "--json", full],
            "--interval-file, no reader": ["write_bw", *LOCAL, "--forever", "--interval", "0.1", "--interval-file",
                                           self.pipe()],
            "--interval-file, full pipe": ["write_bw", *LOCAL, "--forever", "--interval", "0.1", "--interval-file",
                                           full],
            "sweep": ["sweep", *LOCAL[:2], "--json", self.pipe()],
            "client of a silent server": ["write_bw", "127.0.0.1", "-p", port, "--softnic"],
            "doctor of a silent server": ["doctor", "127.0.0.1", "-p", port],
            "serve": ["serve", "--softnic", "-p", "0"],
            "cluster without the other rank": ["cluster", "--softnic", "--rank", "0", "--ranks", "2", "--root",
                                               f"127.0.0.1:{free_port()}"],
            "cluster without rank 0": ["cluster", "--softnic", "--rank", "1", "--ranks", "2", "--root",
                                       f"127.0.0.1:{free_port()}"],
            "report of a pipe": ["report", self.pipe()],
            "compare of pipes": ["compare", self.pipe(), self.pipe()],
            "import of a pipe": ["import", self.pipe()],
            "doctor of a pipe": ["doctor", "--read", self.pipe()],
            "topo of a pipe": ["topo", "--nvidia-smi", self.pipe()],
            "run of a pipe": ["run", self.pipe()],
            "accept": ["accept", "--local", "--softnic"],
            "verify": ["verify", "--local", "--softnic"],
        }

    def ends_after(self, words, moment):
        """Seconds from the signal to the end."""
        with subprocess.Popen([BINARY, *words], env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, pass_fds=[self.full]) as process:
            time.sleep(moment)
            start = time.monotonic()
            process.terminate()
            try:
                _, err = process.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return PATIENCE_S
            if process.returncode < 0:
                self.assertEqual(process.returncode, -signal.SIGTERM, err)
            return time.monotonic() - start

    def test_every_command(self):
        chance = random.Random(1)
        commands = self.commands()
        # Most while the command starts and sets up, half of them in its first 0.1 s: later it does the same all the
        # time, and many of these commands keep two CPUs busy with it.
        moments = {name: sorted(WINDOW_S * chance.random()**3 for _ in range(MOMENTS)) for name in commands}
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            ends = {name: [pool.submit(self.ends_after, words, moment) for moment in moments[name]]
                    for name, words in commands.items()}
        rows, late = [], []
        for name in commands:
            worst = max(end.result() for end in ends[name])
            rows.append(f"{name:<34} {MOMENTS:>4} {worst:8.3f} s")
            if worst > PROMISE_S:
                late.append(name)
        print("\n" + "\n".join(rows))
        self.assertEqual(late, [], "\n".join(rows))


if __name__ == "__main__":
    main()
