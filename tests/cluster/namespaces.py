"""A machine of its own for real launchers: namespaces in which a test is root of mounts, hosts' names and network."""

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
