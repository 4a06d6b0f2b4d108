#!/usr/bin/env python3
"""scripts/doctor-record: a machine recorded without gdrperf is judged like the machine itself."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import BINARY, CliTest, environment, main

SOURCE = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = SOURCE / "scripts/doctor-record"
STORIES = SOURCE / "tests/data/doctor/stories"
SHELLS = [["dash"], ["busybox", "sh"], ["sh"]]
TOOLS = ["awk", "cat", "grep", "ls", "readlink", "sh", "timeout", "tr"]


def plant(machine, root, bin_folder):
    """The files, links and programs of a text recording, as a tree and as scripts."""
    programs = {}
    entries = re.split(r"^== ", machine.read_text(encoding="utf-8"), flags=re.M)[1:]
    for entry in entries:
        head, _, text = entry.partition("\n")
        kind, _, name = head.partition(" ")
        path = root / name.split(" ")[0].lstrip("/")
        if kind in ("file", "folder"):
            (path if kind == "folder" else path.parent).mkdir(parents=True, exist_ok=True)
            if kind == "file":
                path.write_text(text, encoding="utf-8")
        elif kind == "link":
            to = root / name.split(" ")[1].lstrip("/")
            to.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(to)
        elif kind in ("program", "failed"):
            program, _, arguments = name.partition(" ")
            programs.setdefault(program, []).append((arguments, 0 if kind == "program" else 1, text))
    for program, calls in programs.items():
        script = "#!/bin/sh\n"
        for arguments, code, text in calls:
            script += f"case \"$*\" in \"{arguments}\"{'*' if not arguments else ''})\ncat <<'END'\n{text}END\nexit {code};; esac\n"
        (bin_folder / program).write_text(script + "exit 1\n", encoding="utf-8")
        (bin_folder / program).chmod(0o755)


def verdicts(root):
    done = subprocess.run([BINARY, "doctor", "--root", str(root), "--json"], env=environment(), capture_output=True,
                          text=True, timeout=60, check=False)
    return {(it["check"], it["subject"], it["verdict"]) for it in json.loads(done.stdout)["checks"]}


class Record(CliTest):
    def tools(self, folder):
        """A PATH with what the script needs, and no program of this machine."""
        folder.mkdir()
        for tool in TOOLS:
            (folder / tool).symlink_to(shutil.which(tool))
        return folder

    def record(self, shell, root, bin_folder, *options):
        return subprocess.run([*shell, str(SCRIPT), *options, "--root", str(root)], env={"PATH": str(bin_folder)},
                              capture_output=True,
                              text=True, timeout=60, check=False)

    def test_it_is_judged_as_the_machine_itself(self):
        shells = [shell for shell in SHELLS if shutil.which(shell[0])]
        for name in ("mtu-1500", "link-x1", "path-mtu-above-interface", "vm-mmio-too-high",
                     "amd-symbol-without-client"):
            machine = STORIES / f"{name}.machine"
            with tempfile.TemporaryDirectory() as folder:
                root, bin_folder = pathlib.Path(folder) / "root", self.tools(pathlib.Path(folder) / "bin")
                root.mkdir()
                plant(machine, root, bin_folder)
                texts = []
                for shell in shells:
                    path = [shutil.which(shell[0]), *shell[1:]]
                    done = self.record(path, root, bin_folder)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), f"{shell} {name}")
                    # A busybox has programs of its own, which no PATH hides.
                    texts.append(re.sub(r"^== (program|failed) (dmesg|modinfo \w+)\n(?:(?!== ).*\n)*", "", done.stdout,
                                        flags=re.M))
                for text in texts:
                    self.assertEqual(text.splitlines(), texts[0].splitlines(), f"{name}: the shells differ")
                recording = pathlib.Path(folder) / "there.machine"
                recording.write_text(texts[0], encoding="utf-8")
                self.assertEqual(verdicts(recording), verdicts(machine), name)

    def test_nothing_personal_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            root, bin_folder = pathlib.Path(folder) / "root", self.tools(pathlib.Path(folder) / "bin")
            texts = {"sys/class/infiniband/mlx5_0/node_guid": "e89e:4903:0035:6eaa\n",
                     "sys/class/infiniband/mlx5_0/ports/1/gids/0": "fe80:0000:0000:0000:ea9e:49ff:fe35:6eaa\n",
                     "sys/class/infiniband/mlx5_0/ports/1/gids/3": "0000:0000:0000:0000:0000:ffff:c0a8:2a11\n",
                     "sys/class/infiniband/mlx5_0/ports/1/gids/4": "2a02:0db9:0001:0002:0000:0000:0000:0007\n",
                     "proc/cmdline": "ip=192.168.42.17::192.168.42.1 console=ttyS0 "
                                     "root=UUID=6f1c2d3e-4a5b-6c7d-8e9f-001122334455\n",
                     "proc/version": "Linux version 5.15.0.91 127.0.0.1 02:0a:f7:cc:dd:ee fe80::ea9e:49ff:fe35:6eaa "
                                     "0000:3b:00.0 at 12:34:56\n",
                     "proc/driver/nvidia/gpus/0000:3b:00.0/information": "GPU UUID: GPU-12345678-9abc-def0-1234-56789abcdef0\nSerial Number: 1324021012345\n"}
            for name, text in texts.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            done = self.record([shutil.which("sh")], root, bin_folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in ("e89e", "6eaa", "c0a8", "192.168", "6f1c2d3e", "f7:cc", "12345678-9abc", "1324021012345",
                         "2a02"):
                self.assertNotIn(word, done.stdout)
            for word in ("127.0.0.1", "5.15.0.91", "0000:3b:00.0", "12:34:56", "fe80:0000", "0000:ffff:0a00:0101",
                         "2001:0db8"):
                self.assertIn(word, done.stdout)
            plain = self.record([shutil.which("sh")], root, bin_folder, "--unmasked")
            self.assertIn("e89e:4903:0035:6eaa", plain.stdout)

    def test_wrong_words_are_refused(self):
        for words, said in ((["--colour"], "--colour"), (["--root", "/nowhere"], "--root"), (["a", "b"], "one FILE")):
            done = subprocess.run(["sh", str(SCRIPT), *words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_it_writes_a_file_for_its_owner(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "here.machine"
            done = subprocess.run(["sh", str(SCRIPT), "--root", folder, str(path)], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"gdrperf doctor --root {path}", done.stderr)
            self.assertEqual(os.stat(path).st_mode & 0o077, 0)


if __name__ == "__main__":
    main()
