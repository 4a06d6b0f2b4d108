#!/usr/bin/env python3
"""The indexed Job and the JobSet of scripts/cluster/kubernetes, replayed: each pod is a process in namespaces of its
own (network, host name), as on a node of its own with `hostNetwork`, with the environment that the Job controller
sets, the headless service's names in /etc/hosts, and the arguments of the manifest. Its software device is reached
over TCP.

usage: job_test.py GDRPERF     exit 0 passed, 1 failed, 77 skipped (says why)
"""

import os
import subprocess

from namespaces import MEASURE, check_hosts, host_address, main, make_head, make_hosts, measured, skip, write_devices

try:
    import yaml
except ImportError:
    yaml = None

WORK = "/tmp/job"  # of the mount namespace
PATIENCE_S = 200
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts",
                      "cluster",
                      "kubernetes", "base")
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


def replay(binary, manifest, spec, pod, nodes):
    document = f"{WORK}/{manifest}.json"
    container = spec["template"]["spec"]["containers"][0]

    def attempt():
        started = []
        for index, node in enumerate(nodes):
            # Of the manifest's own; what a software device takes besides.
            args = [*container["args"], *MEASURE]
            args[args.index("--json") + 1] = document if index == 0 else "/dev/null"
            # What a kubelet gives a container, and nothing of ours.
            env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOSTNAME": pod.format(index),
                   "JOB_COMPLETION_INDEX": str(index),
                   "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443",
                   "SOFTNIC": f"@{WORK}/{node}.softnic", "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
            inside = ["ip", "netns", "exec", node, "unshare", "--uts", "sh", "-c",
                      f'hostname {pod.format(index)}; exec "$@"', "sh", binary, *map(str, args)]
            started.append(subprocess.Popen(inside, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                            text=True))
        texts = [process.communicate(timeout=PATIENCE_S)[0] for process in started]
        print(f"{manifest}:\n{texts[0]}", flush=True)

    result = measured(document, attempt)
    assert result["launcher"] == "indexed Job", result["launcher"]
    check_hosts(result, [pod.format(i) for i in range(len(nodes))], SLOW)


def inside(binary):
    if yaml is None:
        skip("python3-yaml is not installed")
    each = list(jobs())
    most = max(spec["completions"] for _, spec, _, _ in each)
    names = [[f"{pod.format(i)}.{service}" for _, spec, pod, service in each if i < spec["completions"]]
             for i in range(most)]
    make_head(WORK, "127.0.0.1 localhost head\n" +
              "".join(f"{host_address(i)} {' '.join(of_pods)}\n" for i, of_pods in enumerate(names)))
    nodes = [f"node{i}" for i in range(most)]
    make_hosts(nodes)
    write_devices(WORK, nodes, SLOW)
    for manifest, spec, pod, _ in each:
        replay(binary, manifest, spec, pod, nodes[:spec["completions"]])
    print("passed")


if __name__ == "__main__":
    main(inside, __file__, (), "util-linux, iproute2")
