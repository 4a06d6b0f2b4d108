#!/usr/bin/env python3
"""What recordings, captures and documents call things never reaches a terminal, or a shell, as more than its name."""

import pathlib
import re
import tempfile
import unittest

from support import CliTest, main, run

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
STORIES = sorted([*(DATA / "doctor").glob("*.machine"), *(DATA / "doctor" / "stories").glob("*.machine")])
# A title for the terminal, a colour, a bell, and a letter that stands right to left.
ESCAPES = "m\x1b]0;owned\x07\x1b[31mx\u202e"
# What a shell would run; no blank, slash or end of line, which end a name.
SHELL = "m$(reboot)`reboot`;reboot"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f]")  # JSON carries all else as it is: it is data
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202e]")
COMMANDS = [["doctor"], ["doctor", "-v"], ["doctor", "--json"], ["doctor", "--fix-script"]]


def renamed(text, name):
    """The recording with its RDMA devices and interfaces called otherwise, each by a name of its own."""
    found = set(re.findall(r"/sys/class/(?:infiniband|net)/([\w.-]+)", text)) - {"lo"}
    for number, old in enumerate(sorted(found, key=len, reverse=True)):
        text = re.sub(rf"(?<![\w.-]){re.escape(old)}(?![\w.-])", lambda _: f"{name}{number}", text)
    return text


class Outside(CliTest):
    def renamed_stories(self, name):
        for story in STORIES:
            before = story.read_text()
            after = renamed(before, name)
            if before != after:
                path = pathlib.Path(self.folder.name, story.name)
                path.write_text(after)
                yield path

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_escapes_in_names_of_recorded_machines(self):
        leaks, shown, stories = [], 0, 0
        for path in self.renamed_stories(ESCAPES):
            stories += 1
            for words in COMMANDS:
                result = run(*words, "--root", path)
                shown += "\ufffd" in result.out or "\\u001b" in result.out
                forbidden = CONTROLS if "--json" in words else FORBIDDEN
                if forbidden.search(result.out) or FORBIDDEN.search(result.err):
                    leaks.append((path.name, words))
        self.assertEqual(leaks, [])
        self.assertGreater(stories, 10)
        self.assertGreater(shown, stories, "names are in what is printed")

    def test_a_name_is_no_command(self):
        scripts = 0
        for path in self.renamed_stories(SHELL):
            script = run("doctor", "--fix-script", "--root", path).out
            scripts += "reboot" in script
            for line in script.splitlines():
                if line.startswith("step '"):
                    command = line.split("' '", 1)[1]
                    self.assertNotIn("reboot)", command, line)
                    self.assertNotIn(";reboot", command, line)
        self.assertGreater(scripts, 3, "names are in what is printed")

    def test_escapes_in_captures(self):
        path = pathlib.Path(self.folder.name, "capture.txt")
        path.write_text(f"mlx5_core 0000:3b:00.0: {ESCAPES} firmware error\nmlx5_0 {ESCAPES} local_work_queue catastrophic error\n"
                        f"hca_id: {ESCAPES}\n  transport: InfiniBand (0)\n  state: PORT_DOWN (1)\n")
        for words in (["doctor"], ["doctor", "--fix-script"], ["doctor", "--json"]):
            result = run(*words, "--read", path)
            self.assertIsNone(FORBIDDEN.search(result.out + result.err), result.out)

    def test_escapes_in_names_of_files(self):
        folder = pathlib.Path(self.folder.name, ESCAPES)
        folder.mkdir()
        (folder / "r.json").write_text("{")
        path = folder / "r.json"
        for words in (["report", path], ["compare", path, path], ["import", path], ["doctor", "--root", path], ["doctor", "--read", path],
                      ["topo", "--nvidia-smi", path], ["topo", "--root", path], ["run", path], ["verify", "--only", ESCAPES],
                      ["cluster", "--from", path, "--format", "slurm"], ["write_bw", "--local", "--json", f"{path}/no"], [ESCAPES]):
            result = run(*words)
            self.assertIsNone(FORBIDDEN.search(result.out + result.err), f"{words}: {result!s}"[:2000].encode("unicode_escape").decode())


if __name__ == "__main__":
    main()
