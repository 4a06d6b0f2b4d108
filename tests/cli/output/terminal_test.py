#!/usr/bin/env python3
"""What a terminal of 80 columns shows: rows that fit, progress that is gone when done, colours, quiet and verbose."""

import contextlib
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import time
import unittest
from fcntl import ioctl

sys.path.insert(0, sys.path[0] + "/..")
from support import BINARY, PATIENCE_S, CliTest, Server, environment, main, run, sanitized, softnic_works

SHORT_RUNS = ["-s", "2,4K,64K,1M,8M", "-n", "100"]
UTF8 = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


def topo_matrix(gpus, nics):
    """nvidia-smi topo -m of a machine where GPU and NIC of one number are on one switch."""
    names = [f"GPU{i}" for i in range(gpus)] + [f"mlx5_{i}" for i in range(nics)]
    lines = ["\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity"]
    for row in range(gpus + nics):
        cells = []
        for column in range(gpus + nics):
            kind = ("g" if row < gpus else "n") + ("g" if column < gpus else "n")
            same = row % gpus == column % gpus
            cells.append(" X " if row == column else "NV4" if kind == "gg" else "PIX" if same and kind != "nn"
                         else "SYS")
        lines.append(names[row] + "\t" + "\t".join(cells) + ("\t0-7\t0" if row < gpus else "\t\t"))
    return "\n".join(lines) + "\n"


class TerminalTest(CliTest):
    def machine(self, gpus, nics):
        path = os.path.join(self.scratch(), "machine.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(topo_matrix(gpus, nics))
        return path

    def on_terminal(self, *args, env=None, columns=80, until=None):
        """All that `gdrperf ARGS...` writes to a terminal, and its exit code; ends it after the text `until`."""
        master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([BINARY, *map(str, args)], stdin=slave, stdout=slave, stderr=slave,
                                   env=environment({**UTF8, **(env or {})}))
        os.close(slave)
        text, deadline = b"", time.monotonic() + PATIENCE_S
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline:
                if select.select([master], [], [], 1)[0]:
                    piece = os.read(master, 65536)
                    if not piece:
                        break
                    text += piece
                if until is not None and until.encode() in text:
                    process.kill()
        os.close(master)
        process.kill() if process.poll() is None and time.monotonic() >= deadline else None
        code = process.wait(PATIENCE_S)
        return text.decode(), code

    def at_rest(self, text):
        """What is left of it on the screen: lines that were taken away are gone."""
        return "\n".join(re.sub(r".*\x1b\[K", "", line.split("\r")[-1] if "\r" in line else line)
                         for line in text.replace("\r\n", "\n").split("\n"))


@unittest.skipIf(softnic_works() is not None, softnic_works())
@unittest.skipIf(sanitized(), "columns are the same under sanitizers")
class Rows(TerminalTest):
    @unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
    def test_no_row_wraps_in_eighty_columns(self):
        machine = self.machine(8, 8)
        commands = {
            "rate": ["write_bw", "--local", "--softnic", *SHORT_RUNS, "--report_gbits"],
            "verbose": ["write_lat", "--local", "--softnic", "-s", "2,64K", "-n", "100", "-v"],
            "sweep": ["sweep", "--local", "--softnic", "-s", "2,4K,64K,1M", "-n", "50"],
            "matrix": ["sweep", "--machine", machine, "--ops", "write_bw,read_lat", "-s", "64K", "-n", "20"],
            "verify": ["verify", "--local", "--softnic", "-s", "1,4097", "--buffers", "host"],
            "plan": ["sweep", "--local", "--softnic", "--dry-run"],
            "devices": ["devices", "--softnic"],
        }
        for name, words in commands.items():
            with self.subTest(name):
                self.check_unwrapped(words)

    def check_unwrapped(self, words):
        socket = os.path.join(self.scratch(), "tmux")
        tmux = ["tmux", "-S", socket, "-f", "/dev/null"]
        env = environment({"TERM": "xterm", "LC_ALL": "C.UTF-8"})
        command = " ".join(map(shlex.quote, [BINARY, *words]))
        script = f"{command}; echo status $?; {' '.join(map(shlex.quote, tmux))} wait-for -S over; sleep 600"
        start = [*tmux, "set-option", "-g", "history-limit", "20000", ";", "new-session", "-d", "-x", "80", "-y", "24",
                 "sh", "-c", script]
        try:
            subprocess.run(start, env=env, check=True)
            subprocess.run([*tmux, "wait-for", "over"], env=env, check=True, timeout=2 * PATIENCE_S)
            lines = {}
            for joined in ([], ["-J"]):
                shown = subprocess.run([*tmux, "capture-pane", "-p", *joined, "-S", "-"], env=env, check=True,
                                       capture_output=True)
                lines[bool(joined)] = [line.rstrip() for line in shown.stdout.decode().rstrip().split("\n")]
        finally:
            subprocess.run([*tmux, "kill-server"], env=env, check=False)
        self.assertRegex(lines[True][-1], "status [04]", lines[True])
        self.assertGreater(len(lines[True]), 3)
        # Joined again, a row that was wrapped is longer than the terminal.
        self.assertEqual([line for line in lines[True] if len(line) > 80], [])
        self.assertEqual(lines[False], lines[True])

    def test_wide_terminals_and_files_get_all_columns(self):
        command = ["write_bw", "--local", "--softnic", "-n", "50"]
        narrow, _ = self.on_terminal(*command)
        wide, _ = self.on_terminal(*command, columns=120)
        (names,) = [line for line in narrow.splitlines() if "median" in line]
        self.assertNotIn("iterations", names)
        self.assertIn("iterations and tx/cq are left out below 100 columns; -v shows them", self.at_rest(narrow))
        self.assertNotIn("left out", wide)
        self.assertIn("iterations", wide)
        self.assertIn("iterations", run(*command).out)
        self.assertIn("+-95 % CI", narrow)

    def test_sizes_end_in_a_sparkline(self):
        blocks, _ = self.on_terminal("write_bw", "--local", "--softnic", *SHORT_RUNS)
        self.assertRegex(self.at_rest(blocks), r"rate over size, 2 B to 8 MiB: [▁▂▃▄▅▆▇█]{5}, at most [\d.]+ GB/s at ")
        signs, _ = self.on_terminal("write_lat", "--local", "--softnic", *SHORT_RUNS, env={"LC_ALL": "C"})
        self.assertRegex(self.at_rest(signs), r"p50 over size, 2 B to 8 MiB: [_.:=+*#-]{5}, least [\d.]+ us at ")


@unittest.skipIf(softnic_works() is not None, softnic_works())
@unittest.skipIf(sanitized(), "columns are the same under sanitizers")
class Matrix(TerminalTest):
    def sweep(self, gpus, nics, *more):
        result = run("sweep", "--machine", self.machine(gpus, nics), "--ops", "write_bw", "-s", "4K,64K", "-n", "20",
                     *more)
        self.expect_swept(result)
        return result.out

    def test_many_pairs_end_as_one_matrix(self):
        out = self.sweep(3, 2)
        lines = out.split("\n")
        self.assertNotIn("+-95 %", out)
        head = next(at for at, line in enumerate(lines) if line == "write_bw/simulated, GB/s, best size of each") + 1
        self.assertEqual(lines[head].split(), ["mlx5_0", "mlx5_1"])
        self.assertEqual([line.split()[0] for line in lines[head + 1:head + 4]], ["GPU0", "GPU1", "GPU2"])
        self.assertIn("lowest", lines[head + 4])
        self.assertIn("simulated link, not of hardware", out)

    def test_verbose_has_the_tables_too(self):
        out = self.sweep(3, 2, "-v")
        self.assertEqual(out.count("+-95 %"), 6)
        self.assertIn("\nwrite_bw/simulated, GB/s, best size of each\n", out)

    def test_few_pairs_are_tables(self):
        out = self.sweep(2, 2)
        self.assertEqual(out.count("+-95 %"), 4)
        self.assertNotIn("best size of each", out)


@unittest.skipIf(softnic_works() is not None, softnic_works())
class Manners(TerminalTest):
    def test_progress_is_gone_when_done(self):
        text, code = self.on_terminal("sweep", "--local", "--softnic", "--devices", "soft0", "--ops", "write_bw", "-s",
                                      "4K,64K", "-D", "300ms")
        self.assertIn(code, (0, 4))
        self.assertRegex(text, r"\[1/2\] write_bw 64 KiB")
        self.assertNotIn("[1/2]", self.at_rest(text))

    def test_verify_says_how_far_it_is(self):
        text, code = self.on_terminal("verify", "--local", "--softnic", "--buffers", "host", "--ops",
                                      "write_bw,send_bw", "-s", "4K,64K", "-D", "300ms")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"\[\d/\d+\] host to host: send_bw")
        self.assertNotIn("] host to host", self.at_rest(text))

    def test_waiting_for_a_server_is_shown(self):
        with Server() as server:
            busy = subprocess.Popen([BINARY, "write_bw", "127.0.0.1", "-p", str(server.port), "--softnic", "-D",
                                     "100s"], env=environment(),
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                server.wait_line("127.0.0.1")
                text, _ = self.on_terminal("write_bw", "127.0.0.1", "-p", server.port, "--softnic", "-n", "50",
                                           until="; waiting")
            finally:
                busy.kill()
                busy.wait()
        self.assertRegex(text, r"\r\x1b\[Kserver \S+ is serving client \S+ since \d+ s; waiting")

    def test_quiet_says_nothing_and_writes_all(self):
        document = os.path.join(self.scratch(), "out.json")
        text, code = self.on_terminal("write_bw", "--local", "--softnic", "-D", "300ms", "--quiet", "--json", document)
        self.assertEqual((text, code), ("", 0))
        self.assertGreater(os.path.getsize(document), 1000)
        result = run("write_bw", "--local", "--softnic", "-n", "50", "--quiet", "--min-gbps", "1e9")
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("MISSED", result.out)
        self.assertNotIn("GB/s\n", result.out)

    def test_verbose_says_how_a_row_was_measured(self):
        result = run("write_bw", "--local", "--softnic", "-n", "500", "-v")
        self.assertRegex(result.out, r"500 messages in \S+ s after \S+ s of warm-up; ended by iterations")

    def test_colour(self):
        command = ["write_bw", "--local", "--softnic", "-n", "50"]
        for env, more, coloured in (({}, [], True), ({"NO_COLOR": "1"}, [], False),
                                    ({"NO_COLOR": "1"}, ["--color", "always"], True),
                                    ({}, ["--color", "never"], False)):
            with self.subTest(env=env, more=more):
                text, _ = self.on_terminal(*command, *more, env=env)
                self.assertEqual("\x1b[1m" in text, coloured, text)
        self.assertIn("\x1b[1m", run(*command, "--color", "always").out)
        self.assertNotIn("\x1b", run(*command).out)
        self.expect_error(run(*command, "--color", "blue"), 2, "--color 'blue'", "auto, always, never")
        self.assertIn("\x1b[32mPASSED", run("verify", "--local", "--softnic", "--buffers", "host", "--ops", "write_bw",
                                            "-s", "64", "--color", "always").out)


if __name__ == "__main__":
    main()
