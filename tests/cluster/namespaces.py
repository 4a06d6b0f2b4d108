"""A machine of its own for real launchers: namespaces in which a test is root of mounts, hosts' names and network."""

import json
import os
import shutil
import subprocess
import sys

SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def run(*command):
    subprocess.run(command, check=True)


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def mount_empty(folder):
    os.makedirs(folder, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)


def make_head(work, hosts):
    """This host is "head", and has the names of `hosts` (lines of /etc/hosts); `work` is an empty folder.

    An address besides loopback: Slurm resolves no name, not even a numeric one, and OpenMPI's daemons find no way,
    where nothing but loopback has one."""
    run("mount", "--make-rprivate", "/")
    mount_empty(work)
    write(f"{work}/hosts", hosts)
    run("mount", "--bind", f"{work}/hosts", "/etc/hosts")
    run("hostname", "head")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1")
    run("ip", "address", "add", "198.18.0.1/24", "dev", "up0")
    run("ip", "link", "set", "up0", "up")
    run("ip", "link", "set", "up1", "up")


def make_hosts(names):
    """A network namespace for each of `names` (198.18.0.11 and so on, by an `eth0`), all on one bridge with this host,
    after make_head(). Starts what `ip netns exec NAME` is put in front of."""
    mount_empty("/run/netns")
    run("ip", "link", "add", "bridge0", "type", "bridge")
    run("ip", "link", "set", "bridge0", "up")
    # What make_head() made is this host's own way into the bridge.
    run("ip", "link", "set", "up1", "master", "bridge0")
    for i, name in enumerate(names):
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", f"port{i}", "master", "bridge0", "up")
        run("ip", "-n", name, "address", "add", host_address(i) + "/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            run("ip", "-n", name, "link", "set", link, "up")


def host_address(i):
    """Of the i-th name of make_hosts()."""
    return f"198.18.0.{11 + i}"


def write_devices(work, names, slow):
    """The software device of each of make_hosts(), `work`/NAME.softnic for SOFTNIC=@FILE: it is reached over TCP, and
    what is in flight on its link takes longer (0.26 s) than a busy machine is late. That of host `slow` is 20 %
    slower."""
    write(f"{work}/token", os.urandom(32).hex())
    for i, name in enumerate(names):
        link = "rate=2MB/s,react=500ms" + (",slow=1.25" if i == slow else "")
        write(f"{work}/{name}.softnic", f"nic{i}:tcp=on,token={work}/token,netdev=eth0,{link}\n")


# What `gdrperf cluster` is told for these.
MEASURE = ["--softnic", "-e", "-s", "16K", "--small", "0", "-D", "250ms"]
# Other work may keep this machine so busy that the program says that it cannot tell.
TRIES = 3


def measured(document, attempt):
    """The document that `attempt()` writes, again where it cannot tell."""
    for _ in range(TRIES):
        attempt()
        with open(document, encoding="utf-8") as file:
            result = json.load(file)
        if result["verdict"] != "inconclusive":
            break
    return result


def check_hosts(result, hosts, slow):
    """Each rank was on a host of its own, with its own device, and the slow one is named and nothing else."""
    assert [each["host"] for each in result["ranks"]] == hosts, result["ranks"]
    assert [each["address"] for each in result["ranks"]][1:] == [host_address(i)
                                                                 for i in range(1, len(hosts))], result["ranks"]
    assert [each["device"] for each in result["nics"]] == [f"nic{i}" for i in range(len(hosts))], result["nics"]
    assert not result["failed"], result["failed"]
    named = [(each["part"], each["rank"]) for each in result["suspects"] if each["verdict"] == "slow"]
    assert named == [("nic", slow)], result["suspects"]


def main(test, script, programs, packages):
    """Runs `test(binary)` inside, or skips; `script` is started anew for that."""
    if len(sys.argv) == 3 and sys.argv[2] == "--inside":
        test(sys.argv[1])
        return
    if os.geteuid() != 0:
        skip("namespaces need root")
    for program in (*programs, "unshare", "ip"):
        if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            skip(f"{program} is not installed ({packages})")
    again = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*again, "true"], capture_output=True, check=False).returncode != 0:
        skip("no new namespaces here (a container without CAP_SYS_ADMIN?)")
    done = subprocess.run([*again, sys.executable, "-B", script, os.path.abspath(sys.argv[1]), "--inside"], check=False)
    sys.exit(done.returncode)
