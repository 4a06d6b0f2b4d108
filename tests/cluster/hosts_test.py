#!/usr/bin/env python3
"""Eight "hosts" as UTS namespaces, each with a daemon of OpenMPI of its own, one rank on each. They share a network
namespace: the software device does not cross them.

usage: hosts_test.py GDRPERF     exit 0 passed, 1 failed, 77 skipped (says why)
"""

import json
import os
import subprocess

from namespaces import main, make_head, write

HOSTS = 8
SLOW = 5
WORK = "/tmp/hosts"  # of the mount namespace
PATIENCE_S = 200

AGENT = """#!/bin/sh
h=$1; shift; exec unshare --uts sh -c "hostname $h; $*"
"""


def inside(binary):
    names = [f"h{i + 1}" for i in range(HOSTS)]
    make_head(WORK, "127.0.0.1 localhost head\n" + "".join(f"127.0.0.{i + 11} {name}\n" for i, name in enumerate(names)))
    write(f"{WORK}/agent", AGENT)
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


if __name__ == "__main__":
    main(inside, __file__, ("mpirun", "orted"), "openmpi-bin, util-linux, iproute2")
