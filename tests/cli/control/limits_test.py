#!/usr/bin/env python3
"""Limits of the process and readers that go end in words, with the limit's name."""

import os
import resource
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import BINARY, CliTest, PATIENCE_S, environment, main, not_emulated, run, softnic_works

LOCAL = ["--local", "--softnic", "-n", "100", "-s", "64"]


def under(**limits):
    """For preexec_fn: the limits, by the names of resource.RLIMIT_*."""
    def limit():
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))
    return limit


class Process(CliTest):
    def test_a_stack_that_is_too_small(self):
        result = run("write_bw", "--local", preexec_fn=under(STACK=64 << 10))
        self.expect_error(result, 3, "the stack is limited to 64 KiB", "ulimit -s")

    def test_a_reader_that_has_gone_ends_it_as_any_filter(self):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            done = subprocess.run([BINARY, "--help"], stdout=pipe, stderr=subprocess.PIPE, env=environment(),
                                  timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))


def sanitized():
    with open(BINARY, "rb") as binary:
        content = binary.read()
    return b"__asan_init" in content or b"__tsan_init" in content


@unittest.skipIf(softnic_works(), "no software device")
@unittest.skipIf(sanitized(), "a sanitizer needs what is limited here")
class Limits(CliTest):
    def limited(self, *says, words=("write_bw", *LOCAL), **limits):
        result = run(*words, preexec_fn=under(**limits))
        self.expect_error(result, 3, *says)
        self.assertNotIn("/dev/infiniband", result.err)
        self.assertNotIn("group rdma", result.err)
        return result

    def test_open_files(self):
        for files in (8, 11):
            with self.subTest(files):
                self.limited(f"may have {files} open files", "ulimit -n", NOFILE=files)
        self.limited("may have 8 open files", words=("serve", "--softnic", "-p", "0"), NOFILE=8)

    @not_emulated("such a limit is the emulator's")
    def test_address_space(self):
        for mib in (200, 1000):
            with self.subTest(mib):
                self.limited("address space", f"{mib} MiB", "ulimit -v", AS=mib << 20)

    def test_size_of_files(self):
        self.limited("ulimit -f", FSIZE=1024)

    def test_a_document_beyond_the_size_of_files(self):
        path = self.scratch() + "/r.json"
        result = run("topo", "--nvidia-smi", "/dev/null", preexec_fn=under(FSIZE=0))
        self.assertEqual(result.code, 2, str(result))  # no signal
        self.limited("ulimit -f", words=("write_bw", *LOCAL, "--json", path), FSIZE=4096)
        self.assertEqual(os.listdir(os.path.dirname(path)), [])

    def test_a_sweep_ends_when_nobody_reads_its_table(self):
        folder = self.scratch()
        process = subprocess.Popen([BINARY, "sweep", "--local", "--softnic", "-n", "50", "--json", folder + "/s.json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        process.stdout.readline()
        process.stdout.close()
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, -signal.SIGPIPE, err)
        self.assertEqual(os.listdir(folder), ["s.json"], "what was measured is kept, and nothing beside it")

    def test_a_killed_sweep_leaves_no_files_of_other_names(self):
        folder = self.scratch()
        words = [BINARY, "sweep", "--local", "--softnic", "-n", "50", "--json", folder + "/s.json"]
        for lines in range(2, 8):
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env=environment()) as process:
                for _ in range(lines):
                    process.stdout.readline()
                process.kill()
            self.assertLessEqual(set(os.listdir(folder)), {"s.json", "s.json.part"})
        # What one left behind the next one takes away.
        self.expect_swept(run(*words[1:], "-s", "64"))
        self.assertEqual(os.listdir(folder), ["s.json"])


if __name__ == "__main__":
    main()
