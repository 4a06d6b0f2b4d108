"""Runs commands over the kernel's Soft-RoCE: one virtual machine for all cases of a test.

A test program calls run_cases() once and then judges, on the host, what each case left
behind. usage of such a program: NAME_test.py SOURCE_ROOT GDRPERF [unittest options]
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


def run_cases(cases: dict[str, str], server: str | None = None) -> dict[str, Result]:
    """Boots the machine and runs the cases in turn; "$gdrperf" in them is the program.

    server, if given, runs beside them and is ended by SIGTERM; its result is named "server".
    Where there can be no machine, the whole program ends with the skip status and the reason.
    """
    with tempfile.TemporaryDirectory(prefix="softroce-test.") as out:
        folder = pathlib.Path(out)
        (folder / "script").write_text(guest_script(cases, server, out))
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
        results = {}
        for name in [*cases, *(["server"] if server else [])]:
            status = folder / f"{name}.status"
            results[name] = Result(
                int(status.read_text()) if status.exists() else -1,
                (folder / f"{name}.out").read_text(errors="replace"),
                (folder / f"{name}.err").read_text(errors="replace"))
        return results


def checked_document(text: str) -> dict:
    """A results document from its JSON; raises when it does not follow the schema."""
    document = json.loads(text)
    schema = json.loads((SOURCE_ROOT / "results/schema.json").read_text())
    jsonschema.validate(document, schema)
    return document
