"""rdma-core's own Python tests (package python3-pyverbs) on the software device. A test may be
skipped only for what the device does not claim to have."""

import gzip
import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from programs import LIMIT_S, Verdict, tail

# Where the package puts them, some of them compressed.
TESTS = Path("/usr/share/doc/rdma-core/tests")
# The interpreter that the distribution's packages are for.
PYTHON = "/usr/bin/python3"


@dataclass(frozen=True)
class Missing:
    """What tests ask for and the device does not claim: `pattern` is sought in 'test: reason'."""

    pattern: str
    name: str


# The first that matches names the reason.
MISSING = (
    Missing(r"mlx5|Mlx5|MLX5|efa|EFA|irdma|mana", "interfaces of one vendor's devices"),
    Missing(r"[Mm]ulticast", "multicast (max_mcast_grp 0)"),
    Missing(r"Create QP type 8|[Rr]aw|RAW|\.test_flow\.|test_rss",
            "raw packets, flow steering, RSS (raw_packet_caps 0)"),
    Missing(r"[Tt]ag [Mm]atching|tag_matching", "tag matching (tm_caps 0)"),
    Missing(r"huge pages", "huge pages (none on this machine)"),
    Missing(r"[Dd]ma-?[Bb]uf|DMABUF|dmabuf|[Cc]uda", "dma-buf"),
    Missing(r"atomic_write|flush|FLUSH", "atomic write and flush (device_cap_flags_ex)"),
    Missing(r"Importing|imports", "import of objects (refused with EOPNOTSUPP)"),
    Missing(r"All gid indices populated", "an empty entry in the table of GIDs"),
    Missing(r"SRQ resize", "resizing an SRQ (no IBV_DEVICE_SRQ_RESIZE)"),
    Missing(r"PHC|timestamp", "hardware clocks of network interfaces"),
    Missing(r"CC_DMA_BOUNCE", "confidential machines' buffers (no IBV_DEVICE_CC_DMA_BOUNCE)"),
)


def missing_capability(test: str, reason: str) -> str:
    """Empty when nothing that is missing explains the skip."""
    for it in MISSING:
        if re.search(it.pattern, f"{test}: {reason}"):
            return it.name
    return ""


def unpack(source: Path, folder: Path) -> None:
    target = folder / "tests"
    shutil.copytree(source, target)
    for packed in target.rglob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()


def judge(line: dict) -> Verdict:
    name, outcome, detail = line["test"], line["outcome"], line["detail"]
    if outcome == "skipped":
        capability = missing_capability(name, detail)
        if capability:
            return Verdict(name, "skipped", capability)
        return Verdict(name, "FAILED", f"skipped, and nothing that the device lacks explains it: {detail}")
    if outcome == "failed":
        return Verdict(name, "FAILED", f"\n{tail('test', detail)}")
    return Verdict(name, "passed")


def absent(python: str, tests: Path) -> str:
    """Why the tests cannot run here; empty when they can."""
    found = subprocess.run([python, "-c", "import pyverbs.device"], capture_output=True, check=False)
    if found.returncode != 0:
        return "python3-pyverbs is not installed"
    if not (tests / "__init__.py").exists():
        return f"no tests in {tests} (systems without package documentation lack them)"
    return ""


def run(runner: list[str], env: dict[str, str], device: str, python: str, tests: Path) -> list[Verdict]:
    reason = absent(python, tests)
    if reason:
        return [Verdict("rdma-core's tests", "skipped", reason)]
    with tempfile.TemporaryDirectory(prefix="softnic-rdma-core-") as scratch:
        unpack(tests, Path(scratch))
        script = Path(__file__).with_name("rdma_core_runner.py")
        words = runner + [python, str(script), scratch, device]
        with (Path(scratch) / "out").open("w+", encoding="utf-8", errors="replace") as out, \
             (Path(scratch) / "err").open("w+", encoding="utf-8", errors="replace") as err:
            ended = ""
            try:
                status = subprocess.run(words, env=env, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                        cwd=scratch, timeout=5 * LIMIT_S, check=False).returncode
                if status != 0:
                    ended = f"the interpreter ended with status {status}"
            except subprocess.TimeoutExpired:
                ended = f"not done within {5 * LIMIT_S} s"
            out.seek(0)
            err.seek(0)
            # Some tests print as well.
            lines = [json.loads(it) for it in out.read().splitlines() if it.startswith('{"test"')]
            return verdicts(lines, ended, err.read())


def verdicts(lines: list[dict], ended: str, complaints: str) -> list[Verdict]:
    result = [judge(it) for it in lines if it["outcome"] != "started"]
    if lines and lines[-1]["outcome"] == "started":
        ended = ended or "it never ended"
        result.append(Verdict(lines[-1]["test"], "FAILED", f"{ended}\n{tail('test', complaints)}"))
    elif ended or not lines:
        result.append(Verdict("rdma-core's tests", "FAILED", f"{ended}\n{tail('test', complaints)}"))
    return result
