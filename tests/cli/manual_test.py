#!/usr/bin/env python3
"""gdrperf man and gdrperf completion: all that --help has, in the words of man(1) and bash.

usage: manual_test.py GDRPERF SCHEMA
"""
import re
import shutil
import subprocess
import tempfile
import unittest

from support import CliTest, main, run


def options_of(command):
    """The spellings that --help lists."""
    text = run(command, "--help").out
    return {name for line in re.findall(r"^  (-[^\s].*?)(?:  |$)", text, re.M) for name in re.findall(r"--?[\w-]+", line)}


def completed(*words):
    """What bash offers for the last of `words`."""
    script = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gdrperf; echo "${COMPREPLY[@]}"'
    with tempfile.NamedTemporaryFile("w", suffix=".bash") as file:
        file.write(run("completion").out)
        file.flush()
        result = subprocess.run(["bash", "-c", script, file.name, *words], capture_output=True, text=True, check=True)
    return result.stdout.split()


class Manual(CliTest):
    def test_the_page_has_each_command_and_option(self):
        text = run("man").out.replace("\\-", "-")
        for command in ("serve", "write_bw", "sweep", "compare", "doctor", "baseline add"):
            self.assertIn(f".SS {command}\n", text)
        options = options_of("write_bw")
        self.assertLessEqual({"-s", "--size", "-q", "--qp", "--local", "--path"}, options)
        for name in options:
            self.assertRegex(text, rf"(?m)^\\fB(\S*,)?{re.escape(name)}[,\\]")
        self.assertIn("Options as for \\fBwrite_bw\\fR", text)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_troff_has_no_complaint(self):
        page = run("man").out
        result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, text=True)
        complaints = [line for line in result.stderr.splitlines() if "adjust" not in line and "break" not in line]
        self.assertEqual((result.returncode, complaints), (0, []))


@unittest.skipUnless(shutil.which("bash"), "bash is not installed")
class Completion(CliTest):
    def test_commands(self):
        self.assertEqual(completed("gdrperf", "write_b"), ["write_bw"])
        self.assertIn("doctor", completed("gdrperf", ""))

    def test_options_of_the_command(self):
        self.assertEqual(completed("gdrperf", "write_bw", "--tx"), ["--tx-depth"])
        self.assertLessEqual(options_of("read_lat") - {"-h"}, set(completed("gdrperf", "read_lat", "-")))
        self.assertEqual(completed("gdrperf", "devices", "--tx"), [])
        self.assertEqual(completed("gdrperf", "baseline", "ad"), ["add"])

    def test_words_that_an_option_takes(self):
        self.assertEqual(completed("gdrperf", "write_bw", "--path", ""), ["direct", "staged", "both"])
        self.assertEqual(completed("gdrperf", "sweep", "--format", "prom"), ["prometheus"])


if __name__ == "__main__":
    main()
