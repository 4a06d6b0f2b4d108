#!/usr/bin/env python3
"""A thread or a descriptor that cannot be had ends a command in words, never by a signal."""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import (BINARY, Background, CliTest, PATIENCE_S, cases, environment, free_port, main, run, sanitized,
                     softnic_works)

NO_THREAD = os.environ.get("GDRPERF_NO_THREAD", "")
ENDS = {0, 1, 2, 3, 4, 5}

LOCAL = ["write_bw", "--local", "--softnic", "-n", "1000", "-s", "64"]
COMMANDS = {
    "parts": ([*LOCAL, "--threads", "3", "--progress", "--interval", "0.1"], range(1, 14)),
    "under load": (["write_lat", "--local", "--softnic", "--cap", "200ms", "-s", "64", "--load", "50%"], range(1, 10)),
    "doctor": (["doctor"], range(1, 6)),
}


def descriptors(most):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def refusing(number):
    return {"NO_THREAD": str(number), "LD_PRELOAD": NO_THREAD}


@unittest.skipIf(softnic_works(), "no software device")
@unittest.skipIf(sanitized() or not NO_THREAD, "a sanitizer stands where threads are refused")
class NoThread(CliTest):
    def expect_words(self, result):
        self.assertIn(result.code, ENDS, str(result))
        # The doctor of a machine without hardware ends so too, with a page of its own.
        if result.code == 3 and "Nothing to check: " not in result.out:
            self.assertIn("error: ", result.err)

    def test_each_thread_of_a_command(self):
        refused = 0
        for name, (words, numbers) in COMMANDS.items():
            for number in cases(list(numbers)[1::3], numbers):
                with self.subTest(name, number=number):
                    result = run(*words, env=refusing(number))
                    self.expect_words(result)
                    refused += "no thread for" in result.err
        self.assertGreater(refused, 3, "threads were refused")

    def test_each_thread_of_rank_0(self):
        for number in cases((2, 3, 8), range(1, 13)):
            with self.subTest(number=number):
                words = ["cluster", "--softnic", "--ranks", "2", "--root", f"127.0.0.1:{free_port()}", "-D", "20ms",
                         "--start-timeout", "3s"]
                with Background(*words, "--rank", "1"):
                    self.expect_words(run(*words, "--rank", "0", env=refusing(number)))

    def test_each_thread_of_a_server(self):
        for number in cases((2, 3), range(1, 9)):
            port = free_port()
            with self.subTest(number=number), Background("serve", "--softnic", "--once", "-p", str(port),
                                                         env=refusing(number)) as server:
                result = run("write_bw", "127.0.0.1", "-p", str(port), "--softnic", "-n", "100", "-s", "64")
                self.expect_words(result)
                if server.process.poll() is None:
                    server.signal(signal.SIGTERM)
                self.assertIn(server.wait(), {*ENDS, -signal.SIGTERM}, server.err)


@unittest.skipIf(softnic_works(), "no software device")
@unittest.skipIf(sanitized(), "a sanitizer needs what is limited here")
class NoDescriptor(CliTest):
    def knock(self, port, process):
        """Ten connections that say nothing, as soon as there is somebody, until the program ends."""
        with contextlib.ExitStack() as held:
            count = 0
            while process.poll() is None and count < 10:
                try:
                    held.enter_context(socket.create_connection(("127.0.0.1", port), 1))
                    count += 1
                except OSError:
                    time.sleep(0.02)
            return process.communicate(timeout=PATIENCE_S)

    def test_rank_0_that_is_called_by_many(self):
        for most in cases((7, 8), range(5, 10)):
            port = free_port()
            with self.subTest(most), subprocess.Popen(
                    [BINARY, "cluster", "--softnic", "--rank", "0", "--ranks", "8", "--root", f"127.0.0.1:{port}",
                     "--start-timeout", "20s"],
                    preexec_fn=descriptors(most), env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True) as process:
                _, err = self.knock(port, process)
                self.assertEqual(process.returncode, 3, err)
                self.assertIn("error: ", err)


if __name__ == "__main__":
    main()
