#!/usr/bin/env python3
"""`gdrperf cluster` under a real Slurm: slurmctld and 16 slurmd on this host, in namespaces of their own. Started by
environment and by PMIx, with the leaves of Slurm's topology; a node that dies is named and the rest has its result; at
a time limit nobody is drained, and the job that is requeued goes on; a prolog's quick check, whose drain lines Slurm
takes.

usage: slurm_test.py GDRPERF     exit 0 passed, 1 failed, 77 skipped (says why)
"""

import json
import os
import shutil
import subprocess
import time

from namespaces import main, make_head, measured, mount_empty, run, write

NODES = 16
SLOW = 5
LOST = 4  # rank; its node is n5
PATIENCE_S = 300
WORK = "/tmp/slurm"  # of the mount namespace

SLURM_CONF = """ClusterName=test
SlurmctldHost=head(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd.%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmctldLogFile=/tmp/slurm/slurmctld.log
SlurmdLogFile=/tmp/slurm/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
TmpFS=/tmp/slurm/tf.%n
TopologyPlugin=topology/tree
KillWait=5
SlurmdTimeout=10
MpiDefault=none
NodeName=n[1-16] NodeHostName=head NodeAddr=127.0.0.1 Port=[17001-17016] CPUs=4 RealMemory=100
PartitionName=all Nodes=n[1-16] Default=YES OverSubscribe=YES State=UP
"""

TOPOLOGY_CONF = """SwitchName=leaf1 Nodes=n[1-8]
SwitchName=leaf2 Nodes=n[9-16]
SwitchName=spine Switches=leaf[1-2]
"""


def wait_until(what, done):
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {PATIENCE_S} s")
        time.sleep(0.1)


def own_folders():
    """What Slurm and munge write and read lies in this mount namespace alone."""
    make_head(WORK, "127.0.0.1 localhost head " + " ".join(f"n{i + 1}" for i in range(NODES)) + "\n")
    # The program under test and its library may lie below /tmp.
    for folder in ("/etc/slurm", "/etc/munge", "/var/spool", "/var/lib/munge", "/var/log/munge", "/run"):
        mount_empty(folder)


def start_slurm():
    with open("/etc/munge/munge.key", "wb") as key:
        key.write(os.urandom(1024))
    os.makedirs("/run/munge")
    for path in ("/etc/munge", "/etc/munge/munge.key", "/var/lib/munge", "/var/log/munge", "/run/munge"):
        shutil.chown(path, "munge", "munge")
    os.chmod("/etc/munge/munge.key", 0o400)
    os.chmod("/etc/munge", 0o700)
    run("su", "munge", "-s", "/bin/sh", "-c", "/usr/sbin/munged")
    write("/etc/slurm/slurm.conf", SLURM_CONF)
    write("/etc/slurm/topology.conf", TOPOLOGY_CONF)
    os.makedirs("/var/spool/slurmctld")
    for i in range(NODES):
        os.makedirs(f"{WORK}/tf.n{i + 1}", exist_ok=True)
    run("/usr/sbin/slurmctld")
    for i in range(NODES):
        run("/usr/sbin/slurmd", "-N", f"n{i + 1}")
    wait_until("16 idle nodes", lambda: idle_nodes() == NODES)


def idle_nodes():
    done = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], capture_output=True, text=True, check=False)
    return done.stdout.split().count("idle")


def devices(slow):
    return ";".join(f"nic{rank}:rate=1MB/s,react=1s" + (",slow=1.25" if rank == slow else "") for rank in range(NODES))


def command(binary, document, *srun):
    return ["srun", "-N", str(NODES), "-n", str(NODES), *srun, binary, "cluster", "--softnic", "-e", "-s", "16K",
            "--small", "0", "-D", "250ms",
            "--deadline", "10s", "--json", document]


def check_named(document, launcher):
    assert document["launcher"] == launcher, document["launcher"]
    assert not document["partial"]
    slow = [(each["part"], each["rank"]) for each in document["suspects"] if each["verdict"] == "slow"]
    assert slow == [("nic", SLOW)], document["suspects"]
    leaves = {each["leaf"] for each in document["ranks"]}
    assert leaves == {"leaf1", "leaf2"}, leaves


def starts(binary, mpi, launcher):
    document = f"{WORK}/{mpi}.json"
    ends = []

    def attempt():
        done = subprocess.run(command(binary, document, f"--mpi={mpi}"), env={**os.environ, "SOFTNIC": devices(SLOW)},
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        print(f"srun --mpi={mpi}:\n{done.stdout}{done.stderr}", flush=True)
        ends.append(done.returncode)

    check_named(measured(document, attempt), launcher)
    # srun ends with the highest status of its tasks: 1, a part is slow.
    assert ends[-1] == 1, ends


def pids_of_node(node):
    """slurmd of a node, its step daemons, and their tasks."""
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"SLURMD_NODENAME={node}".encode() not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                parent = next(line.split()[1] for line in file if line.startswith("PPid:"))
        except (OSError, StopIteration):
            continue
        pids += [parent, pid]
    with open(f"/run/slurmd.{node}.pid", encoding="ascii") as file:
        pids.append(file.read().strip())
    return {int(pid) for pid in pids if int(pid) > 1}


def survives_a_lost_node(binary):
    document = f"{WORK}/lost.json"
    with open(f"{WORK}/lost.err", "w+", encoding="utf-8") as err:
        job = subprocess.Popen(command(binary, document, "--mpi=none", "--no-kill", "-K0", "-W0"),
                               env={**os.environ, "SOFTNIC": devices(None)}, stdout=subprocess.PIPE, stderr=err,
                               text=True)

        def all_here():
            err.seek(0)
            return "ranks are here" in err.read() or job.poll() is not None

        wait_until("all ranks", all_here)
        for pid in pids_of_node(f"n{LOST + 1}"):
            os.kill(pid, 9)
        # Rank 0's verdict; srun itself may wait for the node that is gone.
        wait_until("a whole document",
                   lambda: os.path.exists(document) and not json.load(open(document, encoding="utf-8"))["partial"])
        job.kill()
        print("a killed node:\n" + job.communicate()[0])
        err.seek(0)
        print(err.read())
    with open(document, encoding="utf-8") as file:
        result = json.load(file)
    assert [each["rank"] for each in result["ranks"] if each["lost"]] == [LOST], result["ranks"]
    assert result["verdict"] == "inconclusive", result["suspects"]
    met = {one[0] for one in result["measurements"]}
    assert met >= set(range(NODES)) - {LOST}, met


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def state_of(job):
    done = subprocess.run(["scontrol", "show", "job", job, "-o"], capture_output=True, text=True, check=True)
    return done.stdout.split("JobState=")[1].split()[0]


def survives_its_time_limit(binary):
    """scripts/cluster/gdrperf.sbatch with runs too long for its limit; then the same job requeued."""
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts",
                          "cluster", "gdrperf.sbatch")
    os.makedirs(f"{WORK}/bin", exist_ok=True)
    os.symlink(binary, f"{WORK}/bin/gdrperf")
    env = {**os.environ, "SOFTNIC": devices(None), "PATH": f"{WORK}/bin:" + os.environ["PATH"]}
    # Slurm ends a job up to a minute after its limit, and signals it up to a minute early.
    sent = subprocess.run(["sbatch", "--parsable", "-N", str(NODES), "--time=2", "--signal=TERM@60",
                           "--output=job.log", "--open-mode=append", script,
                           "--softnic", "-e", "-s", "16K", "--small", "0", "-D", "6s", "--deadline", "30s"],
                          cwd=WORK, env=env, capture_output=True, text=True, check=True)
    job = sent.stdout.strip()
    document = f"{WORK}/gdrperf-cluster-{job}.json"
    wait_until("the end of the job", lambda: state_of(job) not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"))
    begun = load(document)
    print(f"time limit: {state_of(job)}, {begun['test']['rounds_done']} of {begun['test']['rounds']} rounds")
    with open(f"{WORK}/job.log", encoding="utf-8") as log:
        print(log.read(), flush=True)
    assert begun["partial"] and 0 < begun["test"]["rounds_done"] < begun["test"]["rounds"], begun["test"]
    assert not [each for each in begun["ranks"] if each["lost"]], begun["ranks"]
    assert "slow" not in [each["verdict"] for each in begun["suspects"]], begun["suspects"]
    drains = subprocess.run([binary, "cluster", "--from", document, "--format", "slurm"], capture_output=True,
                            text=True, check=True)
    assert "DRAIN" not in drains.stdout, drains.stdout
    subprocess.run(["scontrol", "update", f"JobId={job}", "TimeLimit=10"], check=False)
    run("scontrol", "requeue", job)
    subprocess.run(["scontrol", "update", f"JobId={job}", "StartTime=now", "TimeLimit=10"], check=False)
    wait_until("the requeued job", lambda: load(document)["test"]["rounds_done"] > begun["test"]["rounds_done"])
    whole = load(document)
    assert whole["measurements"][:len(begun["measurements"])] == begun["measurements"], "it began anew"
    print(f"requeued: {whole['test']['rounds_done']} rounds so far, "
          f"the first {begun['test']['rounds_done']} of them from before", flush=True)
    run("scancel", job)
    wait_until("the end of the requeued job", lambda: state_of(job) in ("CANCELLED", "FAILED", "COMPLETED", "TIMEOUT"))


def drains_what_a_prolog_finds(binary):
    """`--quick`, and its drain lines as Slurm takes them: one node, and no other."""
    document = f"{WORK}/quick.json"

    def attempt():
        begin = time.monotonic()
        done = subprocess.run(command(binary, document, "--mpi=none") + ["--quick"],
                              env={**os.environ, "SOFTNIC": devices(SLOW)},
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        print(f"--quick, exit status {done.returncode} after {time.monotonic() - begin:.1f} s:\n"
              f"{done.stdout}{done.stderr}", flush=True)

    measured(document, attempt)
    lines = subprocess.run([binary, "cluster", "--from", document, "--format", "slurm"], capture_output=True,
                           text=True, check=True).stdout
    print(lines, flush=True)
    subprocess.run(["sh", "-e"], input=lines, text=True, check=True)
    drained = subprocess.run(["sinfo", "-h", "-N", "-t", "drain", "-o", "%N %E"], capture_output=True, text=True,
                             check=True).stdout
    print(drained, flush=True)
    assert [line.split()[0] for line in drained.splitlines()] == [f"n{SLOW + 1}"], drained
    assert "gdrperf: NIC nic5 -" in drained, drained
    run("scontrol", "update", f"NodeName=n{SLOW + 1}", "State=RESUME")


def inside(binary):
    own_folders()
    start_slurm()
    starts(binary, "none", "Slurm")
    kinds = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, check=False)
    if "pmix" in kinds.stdout + kinds.stderr and pmix(binary):
        starts(binary, "pmix", "PMIx")
    else:
        print("skipped: srun --mpi=pmix (this Slurm or this build has no PMIx)")
    drains_what_a_prolog_finds(binary)
    survives_its_time_limit(binary)
    survives_a_lost_node(binary)
    print("passed")


def pmix(binary):
    with open(binary, "rb") as file:
        return b"libpmix.so.2" in file.read()


if __name__ == "__main__":
    main(inside, __file__, ("slurmctld", "slurmd", "srun", "munged"), "slurm-wlm, munge, util-linux, iproute2")
