"""Runs commands over the kernel's Soft-RoCE: one virtual machine for all cases of a test.

A test program calls run_cases() once and then judges, on the host, what each case left
behind. usage of such a program: NAME_test.py SOURCE_ROOT GDRPERF [unittest options]
run_together() boots once for several of them.
"""

import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass

SOURCE_ROOT = pathlib.Path(sys.argv[1]).resolve()
GDRPERF = pathlib.Path(sys.argv[2]).resolve()
# What unittest sees of the command line.
UNITTEST_ARGV = [sys.argv[0], *sys.argv[3:]]

# The address of rxe0's interface; rdma_cm needs it, everything else may use it.
RXE_ADDRESS = "192.168.77.1"
SERVER = '"$gdrperf" serve'
EXIT_SKIPPED = 77
# Of scripts/softroce-vm: the machine failed, or ran out of time.
EXIT_NO_MACHINE = 3
# Software emulation on a busy machine is slow; a case that hangs must still end.
CASE_TIMEOUT_S = 300
VM_TIMEOUT_S = 1500


try:
    import jsonschema
except ModuleNotFoundError:
    print("python3-jsonschema is not installed: scripts/install-deps build", file=sys.stderr)
    sys.exit(EXIT_SKIPPED)


@dataclass
class Result:
    status: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        return f"status {self.status}\nstdout:\n{self.stdout}\nstderr:\n{self.stderr}"


@dataclass
class Group:
    """Cases that share a server, which runs beside them if given and is ended by SIGTERM."""
    cases: dict[str, str]
    server: str | None = None
    results: dict[str, Result] | None = None


# What run_together() has run.
_groups: list[Group] = []


def guest_script(cases: dict[str, str], server: str | None, out: str) -> str:
    """The shell script that runs in the machine: each case leaves .out, .err and .status."""
    lines = [f"cd {shlex.quote(out)}", f"gdrperf={shlex.quote(str(GDRPERF))}", "export gdrperf"]
    if server:
        lines += [
            f"{server} >server.out 2>server.err &",
            "server=$!",
            # The listening line is the server's own word that it can be reached.
            "tries=0; until grep -q serving server.err || [ $tries -gt 600 ]; do",
            "  sleep 0.1; tries=$((tries + 1)); done",
        ]
    for name, command in cases.items():
        lines += [
            f"timeout -k 5 {CASE_TIMEOUT_S} sh -c {shlex.quote(command)} >{name}.out 2>{name}.err",
            f"echo $? >{name}.status",
            f"echo '{name}: ended' >&2",
        ]
    if server:
        lines += ["kill -TERM $server", "wait $server", "echo $? >server.status"]
    return "\n".join(lines) + "\n"


def run_together(*groups: Group) -> None:
    """Boots the machine and runs the cases of the groups in turn, which get their results; "$gdrperf" in them is the
    program. Where there can be no machine, the whole program ends with the skip status and the reason.
    """
    with tempfile.TemporaryDirectory(prefix="softroce-test.") as out:
        folder = pathlib.Path(out)
        for number, group in enumerate(groups):
            (folder / str(number)).mkdir()
            (folder / f"script{number}").write_text(guest_script(group.cases, group.server, f"{out}/{number}"))
        (folder / "script").write_text("".join(f"sh {shlex.quote(out)}/script{number}\n"
                                               for number in range(len(groups))))
        vm = subprocess.run(
            [SOURCE_ROOT / "scripts/softroce-vm", "--timeout", str(VM_TIMEOUT_S), "--rw", out,
             "--", "sh", str(folder / "script")],
            capture_output=True, text=True, check=False)
        if vm.returncode == EXIT_SKIPPED:
            # All of it: the last line alone would be the hint without the cause.
            print(" ".join(vm.stderr.split()), file=sys.stderr)
            sys.exit(EXIT_SKIPPED)
        if vm.returncode != 0:
            sys.exit(f"softroce-vm ended with status {vm.returncode}\n{vm.stdout}{vm.stderr}")
        for number, group in enumerate(groups):
            names = [*group.cases, *(["server"] if group.server else [])]
            group.results = {name: left_behind(folder / str(number), name) for name in names}
    _groups.extend(groups)


def left_behind(folder: pathlib.Path, name: str) -> Result:
    status = folder / f"{name}.status"
    return Result(int(status.read_text()) if status.exists() else -1,
                  (folder / f"{name}.out").read_text(errors="replace"),
                  (folder / f"{name}.err").read_text(errors="replace"))


def run_cases(cases: dict[str, str], server: str | None = None) -> dict[str, Result]:
    """Their results, by name, that of the server as "server": of run_together(), or of a machine of their own."""
    if not any(group.cases is cases for group in _groups):
        run_together(Group(cases, server))
    return next(group.results for group in _groups if group.cases is cases)


def checked_document(text: str) -> dict:
    """A results document from its JSON; raises when it does not follow the schema."""
    document = json.loads(text)
    schema = json.loads((SOURCE_ROOT / "results/schema.json").read_text())
    jsonschema.validate(document, schema)
    return document
