#!/usr/bin/env python3
"""Eight "hosts" as namespaces of network, host name and mounts, each with a daemon of OpenMPI of its own, one rank on
each and one software device, which the others reach over TCP.

usage: hosts_test.py GDRPERF     exit 0 passed, 1 failed, 77 skipped (says why)
"""

import os
import subprocess

from namespaces import MEASURE, check_hosts, host_address, main, make_head, make_hosts, measured, write, write_devices

HOSTS = 8
SLOW = 5
WORK = "/tmp/hosts"  # of the mount namespace
PATIENCE_S = 250

# What mpirun takes for ssh: a shell on that host, whose environment knows the host's device.
AGENT = f"""#!/bin/sh
h=$1; shift; exec ip netns exec $h unshare --uts sh -c "hostname $h; export SOFTNIC=@{WORK}/$h.softnic; $*"
"""


def inside(binary):
    names = [f"h{i + 1}" for i in range(HOSTS)]
    make_head(WORK, "127.0.0.1 localhost\n198.18.0.1 head\n" +
              "".join(f"{host_address(i)} {name}\n" for i, name in enumerate(names)))
    make_hosts(names)
    write_devices(WORK, names, SLOW)
    write(f"{WORK}/agent", AGENT)
    os.chmod(f"{WORK}/agent", 0o755)
    document = f"{WORK}/cluster.json"
    command = ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", f"{WORK}/agent", "--mca",
               "oob_tcp_if_include", "198.18.0.0/24",
               "--mca", "plm_rsh_no_tree_spawn", "1", "--host", ",".join(names), "--map-by", "ppr:1:node", "-np",
               str(HOSTS),
               "-x", "LD_LIBRARY_PATH", binary, "cluster", *MEASURE, "--json", document]
    print("$", *command, flush=True)

    def attempt():
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        print(done.stdout + done.stderr, flush=True)

    result = measured(document, attempt)
    assert result["launcher"] == "PMIx", result["launcher"]
    check_hosts(result, names, SLOW)
    print("passed")


if __name__ == "__main__":
    main(inside, __file__, ("mpirun", "orted"), "openmpi-bin, util-linux, iproute2")
