#!/usr/bin/env python3
"""What recordings, captures, documents and peers call things reaches a terminal or a shell as a name, no more."""

import contextlib
import json
import pathlib
import re
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from proxy import Proxy
from support import CliTest, Server, main, run, sanitized, softnic_works

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
STORIES = sorted([*(DATA / "doctor").glob("*.machine"), *(DATA / "doctor" / "stories").glob("*.machine")])
# A title for the terminal, a colour, a bell, and a letter that stands right to left.
ESCAPES = "m\x1b]0;owned\x07\x1b[31mx\u202e"
# What a shell would run; no blank, slash or end of line, which end a name.
SHELL = "m$(reboot)`reboot`;reboot"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f]")  # JSON carries all else as it is: it is data
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202e]")
# What is printed of each is the same under sanitizers, and they find the same in a few.
EACH = 4 if sanitized() else 1
COMMANDS = [["doctor"], ["doctor", "-v"], ["doctor", "--json"], ["doctor", "--fix-script"]]


def renamed(text, name):
    """The recording with its RDMA devices and interfaces called otherwise, each by a name of its own."""
    found = set(re.findall(r"/sys/class/(?:infiniband|net)/([\w.-]+)", text)) - {"lo"}
    for number, old in enumerate(sorted(found, key=len, reverse=True)):
        text = re.sub(rf"(?<![\w.-]){re.escape(old)}(?![\w.-])", lambda _: f"{name}{number}", text)
    return text


class Outside(CliTest):
    def renamed_stories(self, name):
        for story in STORIES[::EACH]:
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
        self.assertGreater(stories, 10 // EACH)
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
        self.assertGreater(scripts, 3 // EACH, "names are in what is printed")

    def test_escapes_in_captures(self):
        path = pathlib.Path(self.folder.name, "capture.txt")
        path.write_text(f"mlx5_core 0000:3b:00.0: {ESCAPES} firmware error\nmlx5_0 {ESCAPES} local_work_queue "
                        f"catastrophic error\n"
                        f"hca_id: {ESCAPES}\n  transport: InfiniBand (0)\n  state: PORT_DOWN (1)\n")
        for words in (["doctor"], ["doctor", "--fix-script"], ["doctor", "--json"]):
            result = run(*words, "--read", path)
            self.assertIsNone(FORBIDDEN.search(result.out + result.err), result.out)

    def test_escapes_in_names_of_files(self):
        folder = pathlib.Path(self.folder.name, ESCAPES)
        folder.mkdir()
        (folder / "r.json").write_text("{")
        path = folder / "r.json"
        for words in (["report", path], ["compare", path, path], ["import", path], ["doctor", "--root", path],
                      ["doctor", "--read", path],
                      ["topo", "--nvidia-smi", path], ["topo", "--root", path], ["run", path],
                      ["verify", "--only", ESCAPES],
                      ["cluster", "--from", path, "--format", "slurm"], ["write_bw", "--local", "--json", f"{path}/no"],
                      [ESCAPES]):
            result = run(*words)
            self.assertIsNone(FORBIDDEN.search(result.out + result.err),
                              f"{words}: {result!s}"[:2000].encode("unicode_escape").decode())


ROOT = pathlib.Path(__file__).resolve().parents[3]
# Of result documents: what devices, hosts, GPUs and programs are called.
NAMES = {
    "hostname", "kernel", "cpu_model", "cpus_allowed", "governor", "clock_source", "gpu_driver", "name", "model",
    "uuid",
    "device", "firmware", "driver", "gid", "netdev", "guid", "pair", "limited_by", "version", "git"
}


def hostile(value, key=None):
    """The document with ESCAPES behind each name in it."""
    if isinstance(value, dict):
        return {f"{name}{ESCAPES}" if key == "pairs" else name: hostile(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [hostile(one, key) for one in value]
    return value + ESCAPES if isinstance(value, str) and key in NAMES else value


class Documents(CliTest):
    """Result documents and topologies of somebody else."""

    def clean(self, *words):
        result = run(*words)
        controls = CONTROLS if "--json" in words else FORBIDDEN
        bad = controls.search(result.out) or FORBIDDEN.search(result.err)
        self.assertIsNone(bad, f"{words}: {result!s}"[:2000].encode("unicode_escape").decode())
        return result

    def test_names_in_result_documents(self):
        folder = pathlib.Path(self.scratch())
        sessions = sorted((ROOT / "results" / "baselines").rglob("*.json"))
        sessions = [path for path in sessions if path.name != "noise.json"][:6]
        for number, path in enumerate(sessions):
            document = hostile(json.loads(path.read_text()))
            (folder / f"{number}{ESCAPES}.json").write_text(json.dumps(document))
        mine = sorted(folder.glob("*.json"))
        original = sorted(sessions)
        store = folder / "store"
        shown = 0
        for words in (["compare", mine[0], mine[1]], ["compare", original[0], mine[1]],
                      ["compare", mine[0], mine[1], "--all"],
                      ["compare", "--by", "relation", mine[0], mine[1]], ["compare", mine[0], mine[1], "--json"],
                      ["report", mine[0], "--format", "markdown"], ["report", *mine[:2], "--format", "markdown"],
                      ["baseline", "add", "--dir", store, *mine], ["baseline", "noise", "--dir", store, *mine],
                      ["baseline", "list", "--dir", store], ["baseline", "trend", *mine]):
            result = self.clean(*words)
            shown += "\ufffd" in result.out + result.err
        self.assertGreater(shown, 5, "names are in what is printed")

    def test_names_in_a_copy_of_sysfs(self):
        root = pathlib.Path(self.scratch())
        bus = root / "sys" / "bus" / "pci" / "devices"
        bus.mkdir(parents=True)
        name = f"mlx5_0{ESCAPES}"
        for address, files in (("0000:01:00.0", {"vendor": "0x10de", "class": "0x030200"}),
                               ("0000:02:00.0", {"vendor": "0x15b3", "class": "0x020700"})):
            function = root / "sys" / "devices" / f"pci0000:00{ESCAPES}" / address
            function.mkdir(parents=True)
            for file, text in files.items():
                (function / file).write_text(text + "\n")
            (function / "iommu_group").mkdir()
            (function / "iommu_group" / "type").write_text(f"DMA{ESCAPES}\n")
            (bus / address).symlink_to(function)
        (function / "infiniband" / name).mkdir(parents=True)
        (function / "net" / name).mkdir(parents=True)
        shown = 0
        for words in (["topo"], ["topo", "-v"], ["topo", "--explain", "GPU0", name], ["topo", "--json"],
                      ["sweep", "--dry-run", "--local", "--softnic", "--pairs", "all"],
                      ["sweep", "--dry-run", "--local", "--softnic", "--pairs", "nobody"]):
            result = self.clean(*words, "--sysfs", root)
            shown += "\ufffd" in result.out + result.err
        self.assertGreater(shown, 2, "names are in what is printed")


# Of any message, and of the environment and its facts: what is said to people.
SAID = {
    "host", "tool_version", "serving", "work", "warnings", "reason", "hint", "device", "firmware", "driver", "gid_why",
    "interrupt_cpus", "hostname", "kernel", "os", "cpu_model", "governor", "gpu_driver", "clock_source", "active MTU",
    "GID type", "rate", "OFED", "client_device", "server_device"
}


class Liar(Proxy):
    """Passes every message on, with ESCAPES behind each text that is said to people."""

    def __init__(self, server_port):
        super().__init__(server_port, lose=None)
        self.changed = 0

    def lie(self, value, key=None):
        if isinstance(value, dict):
            return {name: self.lie(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.lie(one, key) for one in value]
        if key == "environment" and value:
            return json.dumps(self.lie(json.loads(value)))
        if isinstance(value, str) and key in SAID:
            self.changed += 1
            return value + ESCAPES
        return value

    def _pass(self, sender, source, sink):
        with contextlib.suppress(OSError, EOFError, struct.error):
            while True:
                text = self._exactly(source, struct.unpack(">I", self._exactly(source, 4))[0])
                text = json.dumps(self.lie(json.loads(text))).encode()
                sink.sendall(struct.pack(">I", len(text)) + text)


@unittest.skipIf(softnic_works(), "no software device")
class Peers(CliTest):
    def clean(self, result):
        self.assertIsNone(FORBIDDEN.search(result.out + result.err), str(result).encode("unicode_escape").decode())

    def test_whatever_the_other_end_calls_itself(self):
        folder = pathlib.Path(self.scratch())
        with Server("--bind", "127.0.0.1", "--softnic") as server, Liar(server.port) as liar:
            remote = ["127.0.0.1", "-p", liar.port]
            client = [*remote, "--softnic", "-n", "200", "-s", "64"]
            shown = 0
            for words in (["write_bw", *client, "--json", folder / "a.json"], [
                    "send_lat", *client, "--json", folder / "b.json"
            ], ["write_bw", *client, "--reverse"], ["verify", *remote, "--softnic", "--sizes", "64"], [
                    "doctor", *remote, "--softnic"
            ], ["doctor", *remote, "--softnic", "-v"], ["write_bw", *client, "--peer-device",
                                                        "none"], ["ib_write_bw", *client]):
                result = run(*words)
                self.clean(result)
                shown += "\ufffd" in result.out + result.err
            self.assertGreater(shown, 3, "the other end's names are in what is printed")
            self.assertGreater(liar.changed, 50)
            for words in (["report", folder / "a.json"], ["report", folder / "a.json", "--format", "markdown"], [
                    "compare", folder / "a.json", folder / "b.json"
            ], ["report", folder / "a.json", "--format",
                    "perftest"], ["report", folder / "a.json", "--format",
                                  "prometheus"], ["report", folder / "a.json", "--format", "csv"]):
                self.clean(run(*words))
            server.signal(15)
            server.wait()
            self.assertIsNone(FORBIDDEN.search(server.err), server.err.encode("unicode_escape").decode())


if __name__ == "__main__":
    main()
