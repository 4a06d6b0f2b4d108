#!/usr/bin/env python3
"""gdrperf man and gdrperf completion: all that --help has, in the words of man(1) and of shells.

usage: manual_test.py GDRPERF SCHEMA
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import BINARY, CliTest, main, run


def spellings_of(command):
    """Those that --help lists, in its order."""
    text = run(command, "--help").out
    return [name for names in re.findall(r"^  (-\S+)", text, re.M) for name in re.findall(r"--?[\w-]+", names)]


def options_of(command):
    return set(spellings_of(command))


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

    def test_no_command_has_a_spelling_twice(self):
        for command in ("write_bw", "atomic_lat", "sweep", "accept", "verify"):
            names = spellings_of(command)
            self.assertGreater(len(names), 50)
            self.assertEqual(sorted(names), sorted(set(names)), command)

    def test_each_command_has_a_page_and_it_is_installed(self):
        commands = re.findall(r"^  (\w+)  ", run("--help").out.split("Subcommands:")[1].split("gdrperf COMMAND")[0],
                              re.M)
        self.assertIn("write_bw", commands)
        built = [page.stem.removeprefix("gdrperf-") for page in pathlib.Path(BINARY).parent.glob("gdrperf-*.1")]
        self.assertEqual(sorted(built), sorted(commands))
        for command in ("write_bw", "baseline", "doctor"):
            text = run("man", command).out.replace("\\-", "-")
            self.assertIn(f"\ngdrperf-{command} - ", text)
            for name in options_of(command):
                self.assertRegex(text, rf"(?m)^\\fB(\S*,)?{re.escape(name)}[,\\]")
        self.assertIn(".SS baseline add", run("man", "baseline").out)
        self.expect_error(run("man", "dance"), 2, "there is no command 'dance'", "write_bw")

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_troff_has_no_complaint(self):
        for words in ((), ("write_bw",), ("baseline",)):
            page = run("man", *words).out
            result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True,
                                    text=True)
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

    def test_no_such_shell(self):
        self.expect_error(run("completion", "csh"), 2, "there is none for 'csh'", "bash, fish or zsh")


class OtherShells(CliTest):
    def test_both_have_all_commands_and_options(self):
        zsh, fish = run("completion", "zsh").out, run("completion", "fish").out
        self.assertTrue(zsh.startswith("#compdef gdrperf\n"))
        self.assertRegex(zsh, r"(?m)^  --path\) choices=\(direct staged both\) ;;$")
        words = re.search(r"(?m)^      write_bw\) choices=\((.*)\) ;;$", zsh).group(1).split()
        self.assertLessEqual(options_of("write_bw") - {"-h"}, set(words))
        for name in options_of("write_bw") - {"-h"}:
            self.assertRegex(fish,
                             rf"(?m)^complete -c gdrperf -n '__fish_seen_subcommand_from write_bw'.* -[sl] "
                             rf"{name.lstrip('-')} ")
        self.assertRegex(fish, r"-l path -r -f -a 'direct staged both' -d ")
        self.assertIn("-a write_bw -d 'Bandwidth of RDMA write'\n", fish)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_parses_it(self):
        subprocess.run(["zsh", "-n"], input=run("completion", "zsh").out, text=True, check=True)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes(self):
        with tempfile.NamedTemporaryFile("w", suffix=".fish") as file:
            file.write(run("completion", "fish").out)
            file.flush()
            result = subprocess.run(["fish", "-c", f"source {file.name}; complete -C 'gdrperf write_bw --tx'"],
                                    capture_output=True, text=True, check=True)
        self.assertIn("--tx-depth", result.stdout)


if __name__ == "__main__":
    main()
