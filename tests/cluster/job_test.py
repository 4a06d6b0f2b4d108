#!/usr/bin/env python3
"""The indexed Job and the JobSet of scripts/cluster, replayed: each pod is a process in a UTS namespace of its own, with the
environment that the Job controller sets, the pod's host name, the headless service's names in /etc/hosts, and the
arguments of the manifest. Pods share the network, as `hostNetwork` of one node does.

usage: job_test.py GDRPERF     exit 0 passed, 1 failed, 77 skipped (says why)
"""

import json
import os
import subprocess

from namespaces import main, make_head, skip

try:
    import yaml
except ImportError:
    yaml = None

WORK = "/tmp/job"  # of the mount namespace
PATIENCE_S = 200
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts", "cluster")
SLOW = 2


def load(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return {each["kind"]: each for each in yaml.safe_load_all(file)}


def jobs():
    """Name of the manifest, its Job's specification, and pod names below which service."""
    both = load("job.yaml")
    job = both["Job"]
    yield "job.yaml", job["spec"], job["metadata"]["name"] + "-{}", both["Service"]["metadata"]["name"]
    jobset = load("jobset.yaml")["JobSet"]
    ranks = jobset["spec"]["replicatedJobs"][0]
    name = jobset["metadata"]["name"]
    yield "jobset.yaml", ranks["template"]["spec"], f"{name}-{ranks['name']}-0-{{}}", name


def replay(binary, manifest, spec, pod, document):
    container = spec["template"]["spec"]["containers"][0]
    devices = ";".join(f"nic{i}:rate=8MB/s,react=500ms" + (",slow=1.25" if i == SLOW else "") for i in range(spec["completions"]))
    started = []
    for index in range(spec["completions"]):
        # Of the manifest's own; what a software device takes besides.
        args = [*container["args"], "--softnic", "--devices", f"nic{index}", "-e", "-s", "16K", "--small", "0", "-D", "250ms"]
        args[args.index("--json") + 1] = document if index == 0 else "/dev/null"
        # What a kubelet gives a container, and nothing of ours.
        env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOSTNAME": pod.format(index), "JOB_COMPLETION_INDEX": str(index),
               "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443",
               "SOFTNIC": devices, "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
        inside = ["unshare", "--uts", "sh", "-c", f'hostname {pod.format(index)}; exec "$@"', "sh", binary, *map(str, args)]
        started.append(subprocess.Popen(inside, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    texts = [process.communicate(timeout=PATIENCE_S)[0] for process in started]
    print(f"{manifest}:\n{texts[0]}")
    with open(document, encoding="utf-8") as file:
        result = json.load(file)
    assert result["launcher"] == "indexed Job", result["launcher"]
    assert [each["host"] for each in result["ranks"]] == [pod.format(i) for i in range(spec["completions"])], result["ranks"]
    slow = [(each["part"], each["rank"]) for each in result["suspects"] if each["verdict"] == "slow"]
    assert slow == [("nic", SLOW)], result["suspects"]


def inside(binary):
    if yaml is None:
        skip("python3-yaml is not installed")
    each = list(jobs())
    names = " ".join(f"{pod.format(i)}.{service}" for _, spec, pod, service in each for i in range(spec["completions"]))
    make_head(WORK, f"127.0.0.1 localhost head\n198.18.0.1 {names}\n")
    for manifest, spec, pod, _ in each:
        replay(binary, manifest, spec, pod, f"{WORK}/{manifest}.json")
    print("passed")


if __name__ == "__main__":
    main(inside, __file__, (), "util-linux, iproute2")
