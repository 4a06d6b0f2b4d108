#!/usr/bin/env python3
"""Each command that the README and the documents show: its command line is accepted, its scripts and their options
exist, and it runs, unless a row of NOT_RUN says why not."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import option_page
import support
from support import BINARY, CliTest, Server, run

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md")),
         *sorted((ROOT / "softnic/docs").glob("*.md"))]
NOBODY = "--option-of-no-command"
# Pages, and options by their names.
same = unittest.skipIf(support.sanitized(), "text is the same under sanitizers")

# What is shown and not run here, by what is in it, and why.
NOT_RUN = [
    (r"cuda", "needs a GPU; the suite gpu runs such"),
    (r"-d mlx5_0 --peer-dev mlx5_1|-d rxe0", "needs two NICs, or the VM of the suite softroce"),
    (r"^gdrperf serve", "runs until it is stopped; the other commands here are its clients"),
    (r"^gdrperf ib_send_lat -s 64 -n 1000$", "waits for a client; the test perftest_handshake runs such"),
    (r"--forever", "runs until it is stopped; the test endless runs such"),
    (r"^gdrperf bringup", "runs four of the other commands; the test accept runs it"),
    (r"^gdrperf cluster", "needs a launcher or other hosts; the tests cluster and slurm start ranks"),
    (r"--pairs|--machine", "needs GPUs, or minutes; the test placement runs such on a recorded machine"),
    (r"--explain|--hwloc|--nvidia-smi", "needs such a machine; the suite golden reads recorded ones"),
    (r"doctor (--read|--root|--record|HOST)", "needs files, or hosts; the test doctor runs such"),
    (r"baseline (noise|trend)", "needs many sessions; the test compare has them"),
    (r" /var/lib/", "writes for node_exporter"),
    (r"--min-", "is held against a NIC's rate; the test required runs such"),
    (r"report results/|compare results/baselines|report before|report latest.json --format markdown",
     "needs a baseline of many sessions; the tests compare and report_command have them"),
]


def blocks(page):
    """Lines of code, with their numbers."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield number, line.strip()


def bare(line):
    """Without prompt, assignments, comment, loop and what follows an operator of the shell."""
    line = re.sub(r"^(\w*\$ )", "", line)
    line = re.sub(r"^(for .*; do |sudo )", "", line)
    line = re.split(r"\s+# |; done|\s\|\s|\s>>?\s|\s&&\s|\s{2,}", line)[0]
    return re.sub(r"^(\w+=(\"[^\"]*\"|\S*) )+", "", line)


def shown():
    """(where, command) of every command of gdrperf in a block."""
    for page in PAGES:
        for number, line in blocks(page):
            for part in [line] + re.split(r"\s\|\s", line)[1:]:
                text = bare(part)
                text = re.sub(r"^(srun|mpirun) .*?(?=gdrperf )", "", text)
                text = re.sub(r"^scripts/\S+ build/src/app/(?=gdrperf )", "", text)
                if re.match(r"gdrperf(-doctor)?($| [a-z-])", text) and ": " not in text:
                    yield f"{page.relative_to(ROOT)}:{number}", text


def inline():
    """(where, text) of every command in the running text."""
    for page in PAGES:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for text in re.findall(r"`((?:gdrperf |\./scripts/|scripts/|bench/|tests/)[^`]*)`", line):
                yield f"{page.relative_to(ROOT)}:{number}", text


def anchors_of(page):
    """Those that headings of a page have on the web."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@same
class Links(CliTest):
    def test_each_goes_to_a_file_and_a_heading(self):
        for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
            text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if target.startswith(("http:", "https:")):
                    continue
                with self.subTest(page=page.name, target=target):
                    path, _, anchor = target.partition("#")
                    goal = (page.parent / path).resolve() if path else page
                    self.assertTrue(goal.exists(), "no such file")
                    if anchor:
                        self.assertIn(anchor, anchors_of(goal))

    def test_the_index_names_each_page(self):
        index = ROOT / "docs/README.md"
        linked = {(each.parent / target.split("#")[0]).resolve()
                  for each in (index, ROOT / "docs/evidence/field/README.md")
                  for target in re.findall(r"\]\(([^)\s]+)\)", each.read_text(encoding="utf-8"))}
        self.assertEqual([str(page.relative_to(ROOT)) for page in PAGES if page not in (ROOT / "README.md", index)
                          and page not in linked], [])


@same
class Text(CliTest):
    def test_drawings_follow_from_their_text(self):
        self.checked(ROOT / "scripts/draw", "--check")

    def test_no_line_is_too_wide(self):
        self.checked(ROOT / "scripts/check-text", BINARY)

    def test_the_readme_and_the_changelog_are_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()), 120)
        self.assertLessEqual(len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()), 70)

    def checked(self, *command):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


# What no page may say of the program any more, and what is true.
OUTDATED = [
    (r"completion vectors are not chosen", "--comp-vector chooses them"),
    (r"outstanding reads and atomics are what both devices can;", "--max-rd-atomic sets them"),
    (r"a run has one thread", "--threads"),
    (r"completion for bash(?!,)", "also for zsh and fish"),
    (r"cap (of a single test )?is 30 s", "5 s"),
    (r"\bsix tests\b(?! \|)", "ten tests"),
    (r"the slowest part first", "the order is by kind of part"),
    (r"stood still for a second", "0.2 s"),
]


class Program(CliTest):
    """What pages say of the program is what the program does."""

    def test_nothing_that_is_outdated_is_said(self):
        # Evidence says what was true at its date; the options of perftest are made from the table.
        for page in (page for page in PAGES if "evidence" not in page.parts and page.name != "perftest-options.md"):
            text = " ".join(page.read_text(encoding="utf-8").split())
            for pattern, now in OUTDATED:
                with self.subTest(page=page.name, pattern=pattern):
                    self.assertIsNone(re.search(pattern, text), now)

    def test_defaults_on_pages_are_those_of_the_help(self):
        """`--option` (default VALUE) in a page is the default that the help prints."""
        said = " ".join(run("write_bw", "--help").out.split()) + " ".join(run("serve", "--help").out.split())
        for where, flag, value in (("statistics", "--precision", "1%"), ("statistics", "--cap", "5s"),
                                   ("security", "--max-time", "1h"),
                                   ("security", "--idle-timeout", "5m"), ("first run", "-p,--port", "18515")):
            with self.subTest(where=where, flag=flag):
                self.assertRegex(said, re.escape(flag) + rf"[^(]*\([^)]*{re.escape(value)}|" + re.escape(flag) +
                                 rf".{{0,160}}default: {re.escape(value)}")

    @unittest.skipIf(support.softnic_works(), "no software device")
    def test_tables_on_pages_have_the_columns_that_the_program_prints(self):
        """Each block that shows a table has the head that the program prints today."""
        local = ("--local", "--softnic", "-n", "50", "-s", "64")
        bandwidth, latency = run("write_bw", *local).out, run("write_lat", *local).out
        heads = {line.strip() for line in (bandwidth + latency).splitlines()}
        intervals = run("write_bw", *local[:2], "-s", "64", "-D", "300ms", "--interval", "100ms", "--quiet").err
        heads |= {line.strip() for line in intervals.splitlines()}
        shown = [(page, line) for page in PAGES if "evidence" not in page.parts for _, line in blocks(page)
                 if re.match(r"(gdrperf: +)?(size +(iterations|samples|median)|from s) ", line)]
        self.assertGreater(len(shown), 1)
        self.assertEqual([f"{page.name}: {line}" for page, line in shown if line not in heads], [])
        page = (ROOT / "docs/start/first-run.md").read_text(encoding="utf-8")
        columns = [
            name for cell in re.findall(r"(?m)^\| (`size`.*?|`.*?) \|",
                                        page.partition("| column |")[2].partition("\n\n")[0])
            for name in re.findall(r"`([^`]+)`", cell)
        ]
        self.assertGreater(len(columns), 7)
        self.assertEqual([name for name in columns if name not in bandwidth + latency], [])

    def test_the_option_reference_is_made_from_the_program(self):
        path = ROOT / "docs/reference/options.md"
        made = option_page.page()
        self.assertGreater(made.count("\n| `"), 150)
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(made, encoding="utf-8")
        self.assertEqual(path.read_text(encoding="utf-8"), made, "UPDATE_GOLDEN=1 and this test write it anew")

    def test_exit_codes_on_the_page_are_those_of_the_program(self):
        """Codes of ExitCode but the one of tests that are skipped."""
        header = (ROOT / "include/gdrperf/base/error.h").read_text(encoding="utf-8")
        codes = {code for code in re.findall(r"(?m)^  k\w+ = (\d+),", header) if code != "77"}
        rows = re.findall(r"(?m)^\| (\d) \|", (ROOT / "docs/reference/exit-codes.md").read_text(encoding="utf-8"))
        self.assertEqual(sorted(rows), sorted(codes))

    def test_no_word_to_avoid_is_left(self):
        done = subprocess.run([ROOT / "scripts/check-text", "--words", BINARY],
                              capture_output=True,
                              text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_commands_of_the_help_are_on_a_page(self):
        listed = re.findall(r"(?m)^  ([a-z_]+) ", run("--help").out.partition("Subcommands:")[2])
        text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
        self.assertGreater(len(listed), 20)
        self.assertEqual([name for name in listed if not re.search(rf"gdrperf {name}\b|`{name}`", text)], [])

    @unittest.skipIf(support.softnic_works(), "no software device")
    def test_error_messages_are_those_of_the_program(self):
        page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
        rows = re.findall(r"(?m)^\| `([^|]*)` \| [^|]* \| `gdrperf ([^`]*)` \|$", page)
        self.assertGreater(len(rows), 20)
        codes = {match.start(): int(match.group(1)) for match in re.finditer(r"(?m)^## Exit code (\d)", page)}
        for message, command in rows:
            code = codes[max(at for at in codes if at < page.index(f"`gdrperf {command}`"))]
            with self.subTest(command=command):
                result = run(*shlex.split(command))
                self.assertEqual(result.code, code, str(result))
                self.assertIn(message, result.err)


def soon(words):
    """A page measures for seconds; here a run lasts as long as it takes to print something."""
    enough = "600ms" if "--interval" in words else "100ms"
    return [enough if before == "-D" and re.fullmatch(r"\d+s", word) else word
            for before, word in zip(["", *words], words)]


def help_of(words):
    return run(*[word for word in words if re.fullmatch("[a-z_]+", word)][:2], "--help").out


@same
@unittest.skipIf(support.softnic_works(), "no software device")
class Docs(CliTest):
    def test_each_command_line_is_accepted(self):
        """With an option at the end that no command has: that alone is found fault with."""
        commands = list(shown())
        self.assertGreater(len(commands), 50)
        for where, command in commands:
            program, *words = shlex.split(command)
            if program != "gdrperf":
                continue
            with self.subTest(where=where, command=command):
                result = run(*words, NOBODY)
                self.expect_error(result, 2, NOBODY)
                self.assertRegex(result.err.splitlines()[0], "unknown option|not expected")

    def test_options_in_the_text_exist(self):
        for where, text in inline():
            flags = re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", text)
            first = text.removeprefix("./").split()[0]
            with self.subTest(where=where, text=text):
                if first == "gdrperf":
                    said = help_of(text.split()[1:2]) if flags else ""
                else:
                    matches = [ROOT / first] if (ROOT / first).exists() else list(ROOT.glob(first + ".*"))
                    self.assertTrue(matches, "no such file")
                    said = "".join(it.read_text(encoding="utf-8") for it in matches if flags and it.is_file())
                for flag in flags:
                    self.assertIn(flag, said)

    def test_scripts_in_blocks_exist_with_their_options(self):
        for page in PAGES:
            for number, line in blocks(page):
                words = bare(line).split()
                if not words or not re.match(r"(\./)?(scripts|bench|tests)/", words[0]):
                    continue
                with self.subTest(where=f"{page.name}:{number}", line=line):
                    path = ROOT / words[0]
                    self.assertTrue(os.access(path, os.X_OK), f"{path} cannot be run")
                    # What follows a program's name is the program's.
                    own = words[1:] if words[0].endswith((".py", "test", "quickstart")) else []
                    for flag in (it.split("=")[0] for it in own if it.startswith("--")):
                        self.assertIn(flag, path.read_text(encoding="utf-8"))

    def test_each_command_runs_or_says_why_not(self):
        folder = pathlib.Path(self.scratch())
        seen, used = set(), set()
        with Server() as server:
            self.make_documents(folder, server)
            for where, command in shown():
                if command in seen:
                    continue
                seen.add(command)
                reason = next((it for it in NOT_RUN if re.search(it[0], command)), None)
                if reason:
                    used.add(reason)
                    continue
                with self.subTest(where=where, command=command):
                    self.run_shown(command, server, folder)
        self.assertEqual([why for why in NOT_RUN if why not in used], [], "nothing shown is of that kind any more")

    def make_documents(self, folder, server):
        done = run("sweep", "127.0.0.1", "-p", server.port, "--softnic", "--sizes", "64", "-D", "20ms", "--json",
                   folder / "run.json")
        self.expect_swept(done)
        (folder / "bring-up.conf").write_text(re.search(r"```ini\n(.*?)```",
                                                        (ROOT / "docs/how-to/scenarios.md").read_text(encoding="utf-8"),
                                                        re.S).group(1))
        for name in ("before", "after", "latest", "new", "base1", "base2", "new1"):
            shutil.copy(folder / "run.json", folder / f"{name}.json")
        for name in ("before", "after"):
            (folder / name).mkdir()
            shutil.copy(folder / "run.json", folder / name)
        for name, of in (("ib_write_bw.txt", "4.5-write_bw-all.txt"), ("ib_write_lat.txt", "4.5-write_lat.txt"),
                         ("perftest_out.json", "26-write_lat.json"), ("on-gpu.txt", "26-write_bw-cuda.txt")):
            shutil.copy(ROOT / "tests/data/import" / f"perftest-{of}", folder / name)

    def run_shown(self, command, server, folder):
        program, *words = shlex.split(command)
        test = words and re.fullmatch("(ib_)?(write|send|read)_(bw|lat)|sweep|accept|verify", words[0])
        words = [match for word in words for match in (sorted(map(str, folder.glob(word))) if "*" in word else [word])]
        if test:
            words = [word for each in words for word in (["127.0.0.1", "-p", str(server.port)]
                                                         if each in ("server", "node2", "HOST", "NODE") else [each])]
            short = ["--sizes", "64", "-D", "20ms"] if words[0] in ("sweep", "accept") else ["-D", "50ms"]
            words = soon(words) if "-n" in words or "-D" in words else words + short
        if test or words[:1] in (["devices"], ["topo"], ["reg_lat"], ["connect_rate"]):
            words += [] if "--softnic" in words else ["--softnic"]
        binary = BINARY if program == "gdrperf" else BINARY + "-doctor"
        done = subprocess.run([binary, *words], cwd=folder, env=support.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=support.PATIENCE_S, check=False)
        # Of doctor's, that it looked; of a short run's, that it ran.
        fine = (0, 1,
                3) if "doctor" in command or words[0] == "topo" else (0, 4) if test or words[0] == "compare" else (0,)
        self.assertIn(done.returncode, fine, f"{words}\n{done.stdout}{done.stderr}")


# The distribution's Python, which has its packages.
SYSTEM_PYTHON = "/usr/bin/python3"


@unittest.skipIf(support.softnic_works(), "no software device")
class Pandas(CliTest):
    def test_the_example_reads_both_files(self):
        if subprocess.run([SYSTEM_PYTHON, "-c", "import pandas"], capture_output=True, check=False).returncode != 0:
            self.skipTest("python3-pandas is not installed (scripts/install-deps test-all)")
        page = (ROOT / "docs/reference/formats.md").read_text(encoding="utf-8")
        (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
        self.assertEqual(len(example.splitlines()), 3)
        folder = pathlib.Path(self.scratch())
        self.expect_swept(run("sweep", "--local", "--softnic", "--devices", "soft0", "--sizes", "64,4K", "--ops",
                              "write_bw,read_lat", "-D", "20ms",
                              "--csv", folder / "run.csv", "--json", folder / "run.json", "--format", "jsonl", "-o",
                              folder / "run.jsonl"))
        lines = re.search(r"`(pandas\.read_json\(.*?\))`", page).group(1)
        shown = subprocess.run([SYSTEM_PYTHON, "-c", example + f"lines = {lines}\n" +
                                "print(list(runs['size_bytes']), list(runs['median_gbps'] > 0))\n"
                                "print(list(writes['size_bytes']), list(writes['bw.median_gbps'] > 0), "
                                "list(writes['client.device']))\n"
                                "print(list(lines['op']))"], cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(shown.stdout.splitlines(), ["[64, 4096, 64, 4096] [True, True, False, False]",
                                                     "[64, 4096] [True, True] ['soft0', 'soft0']",
                                                     "['write_bw', 'write_bw', 'read_lat', 'read_lat']"])


if __name__ == "__main__":
    support.main()
