#!/usr/bin/env python3
"""Eight "hosts" as UTS namespaces, each with a daemon of OpenMPI of its own, one rank on each. They share a network
namespace: the software device does not cross them.

usage: hosts_test.py GDRPERF     exit 0 passed, 1 failed, 77 skipped (says why)
"""

import json
import os
import shutil
import subprocess
import sys

HOSTS = 8
SLOW = 5
WORK = "/tmp/hosts"  # of the mount namespace
PATIENCE_S = 200

AGENT = """#!/bin/sh
h=$1; shift; exec unshare --uts sh -c "hostname $h; $*"
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command):
    subprocess.run(command, check=True)


def inside(binary):
    run("mount", "--make-rprivate", "/")
    os.makedirs(WORK, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", WORK)
    names = [f"h{i + 1}" for i in range(HOSTS)]
    with open(f"{WORK}/hosts", "w", encoding="ascii") as file:
        file.write("127.0.0.1 localhost head\n" + "".join(f"127.0.0.{i + 11} {name}\n" for i, name in enumerate(names)))
    run("mount", "--bind", f"{WORK}/hosts", "/etc/hosts")
    run("hostname", "head")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1")
    run("ip", "address", "add", "198.18.0.1/24", "dev", "up0")
    run("ip", "link", "set", "up0", "up")
    run("ip", "link", "set", "up1", "up")
    with open(f"{WORK}/agent", "w", encoding="ascii") as file:
        file.write(AGENT)
    os.chmod(f"{WORK}/agent", 0o755)
    document = f"{WORK}/cluster.json"
    devices = ";".join(f"nic{i}:rate=8MB/s,react=500ms" + (",slow=1.25" if i == SLOW else "") for i in range(HOSTS))
    commands = [f"--host {name} -np 1 {binary} cluster --softnic --devices nic{i} -e -s 16K --small 0 -D 250ms" + (f" --json {document}" if i == 0 else "")
                for i, name in enumerate(names)]
    command = ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", f"{WORK}/agent", "--mca", "oob_tcp_if_include", "up0",
               "--mca", "plm_rsh_no_tree_spawn", "1", "-x", "SOFTNIC", "-x", "LD_LIBRARY_PATH", *" : ".join(commands).split()]
    done = subprocess.run(command, env={**os.environ, "SOFTNIC": devices}, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    print(done.stdout + done.stderr)
    with open(document, encoding="utf-8") as file:
        result = json.load(file)
    assert [each["host"] for each in result["ranks"]] == names, result["ranks"]
    slow = [(each["part"], each["rank"]) for each in result["suspects"] if each["verdict"] == "slow"]
    assert slow == [("nic", SLOW)], result["suspects"]
    print("passed")


def main():
    if len(sys.argv) == 3 and sys.argv[2] == "--inside":
        inside(sys.argv[1])
        return
    if os.geteuid() != 0:
        skip("namespaces need root")
    for program in ("mpirun", "orted", "unshare", "ip"):
        if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            skip(f"{program} is not installed (openmpi-bin, util-linux, iproute2)")
    again = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*again, "true"], capture_output=True, check=False).returncode != 0:
        skip("no new namespaces here (a container without CAP_SYS_ADMIN?)")
    done = subprocess.run([*again, sys.executable, "-B", __file__, os.path.abspath(sys.argv[1]), "--inside"], check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
