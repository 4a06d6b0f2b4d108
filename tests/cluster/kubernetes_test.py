#!/usr/bin/env python3
"""The variants of scripts/cluster/kubernetes under a container runtime: each pod of the indexed Job is a container of
crun or runc with the devices, capabilities, limits and network that kubelet, containerd and a device plugin give for
its manifest, on a "node" of its own (a network namespace). A character device that the runtime's default cgroup refuses
stands for the NIC's. In each pod the NIC's device opens and memory is locked; `gdrperf cluster` runs with the
manifest's arguments over software devices. The same pod with nothing but the node's folder cannot open the device.

usage: kubernetes_test.py GDRPERF     exit 0 passed, 1 failed, 77 skipped (says why)
"""

import json
import os
import shutil
import subprocess
import sys

from namespaces import (MEASURE, check_hosts, host_address, main, make_head, make_hosts, measured, run, skip, write,
                        write_devices)

try:
    import yaml
except ImportError:
    yaml = None

WORK = "/tmp/pods"  # of the mount namespace
PATIENCE_S = 240
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts",
                      "cluster", "kubernetes")
SLOW = 2
# What containerd gives every container.
CAPABILITIES = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
                "CAP_SETUID",
                "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE"]
ALL_CAPABILITIES = [*CAPABILITIES, "CAP_IPC_LOCK", "CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SYS_RAWIO", "CAP_SYS_PTRACE",
                    "CAP_SYS_NICE"]
# Of the kernel's log, for writing: /dev/infiniband/uverbs0 by another number.
MAJOR, MINOR = 1, 11
NIC = "/dev/infiniband/uverbs0"
# Opens the NIC's device, and locks 4 MiB where the limit is 64 KiB.
TRIAL = f"""
import ctypes, mmap, os
try:
    os.close(os.open("{NIC}", os.O_WRONLY))
    print("device: opens")
except OSError as error:
    print("device:", error.strerror)
libc = ctypes.CDLL(None, use_errno=True)
memory = mmap.mmap(-1, 4 << 20)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
print("memory:", "locks" if libc.mlock(ctypes.c_void_p(at), 4 << 20) == 0 else os.strerror(ctypes.get_errno()))
"""


def rendered(variant):
    text = subprocess.run(["kubectl", "kustomize", os.path.join(FOLDER, variant)], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    return {(each["kind"], each["metadata"]["labels"]["start"]): each for each in yaml.safe_load_all(text)}


def plugin_devices(limits):
    """What a device plugin answers kubelet for one pod."""
    offered = any(name.startswith(("rdma/", "openshift.io/")) for name in limits)
    return [{"path": NIC, "type": "c", "major": MAJOR, "minor": MINOR, "fileMode": 0o666}] if offered else []


# What stands for the image: this build.
IMAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[1])))) if len(sys.argv) > 1 else "/usr"


def bundle(pod, name, node, command, env):
    """Folder of an OCI container: what containerd's CRI makes of a pod's only container."""
    container = pod["containers"][0]
    security = container["securityContext"]
    privileged = security.get("privileged", False)
    capabilities = ALL_CAPABILITIES if privileged else CAPABILITIES + ["CAP_" + each
                                                                       for each in security["capabilities"]["add"]]
    devices = plugin_devices(container.get("resources", {}).get("limits", {}))
    allowed = [{"allow": privileged, "access": "rwm"}]
    allowed += [{"allow": True, "type": "c", "major": each["major"], "minor": each["minor"], "access": "rw"}
                for each in devices]
    volumes = {each["name"]: each["hostPath"]["path"] for each in pod.get("volumes", [])}
    bind = [{"destination": each, "source": each, "type": "bind", "options": ["rbind", "ro"]}
            for each in ("/usr", "/etc", IMAGE)]
    bind += [{"destination": WORK, "source": WORK, "type": "bind", "options": ["rbind"]}]
    # The node's devices are in WORK, and not in this machine's /dev.
    bind += [{"destination": each["mountPath"], "source": WORK + volumes[each["name"]], "type": "bind",
              "options": ["rbind"]}
             for each in container.get("volumeMounts", [])]
    config = {
        "ociVersion": "1.0.2",
        "hostname": name,
        "root": {"path": "rootfs"},
        "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "args": command,
                    "env": [f"{key}={value}" for key, value in env.items()],
                    "rlimits": [{"type": "RLIMIT_MEMLOCK", "soft": 65536, "hard": 65536}],
                    "capabilities": {each: capabilities for each in ("bounding", "effective", "permitted")}},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                   {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                   {"destination": "/dev/shm", "type": "tmpfs", "source": "shm"},
                   {"destination": "/tmp", "type": "tmpfs", "source": "tmp"},
                   {"destination": "/sys", "source": "/sys", "type": "bind", "options": ["rbind", "ro"]}, *bind],
        "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"},
                                 {"type": "network", "path": f"/run/netns/{node}"}],
                  "devices": devices, "cgroupsPath": f"/gdrperf-pods-{os.getpid()}/{name}",
                  "resources": {"devices": allowed}},
    }
    folder = f"{WORK}/bundles/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(f"{folder}/rootfs")
    for link in ("bin", "lib", "sbin", "lib64"):
        if os.path.islink("/" + link):
            os.symlink(os.readlink("/" + link), f"{folder}/rootfs/{link}")
    with open(f"{folder}/config.json", "w", encoding="ascii") as file:
        json.dump(config, file)
    return folder


def environment(pod_name, node, index):
    """What kubelet gives a container, and nothing of ours but the software device."""
    return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOSTNAME": pod_name, "JOB_COMPLETION_INDEX": str(index),
            "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "NODE_NAME": node,
            "SOFTNIC": f"@{WORK}/{node}.softnic", "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}


def start(runtime, pod, name, node, command, env):
    folder = bundle(pod, name, node, command, env)
    return subprocess.Popen([runtime, "--root", f"{WORK}/{os.path.basename(runtime)}", "run", "--bundle", folder, name],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run_in(runtime, pod, name, command, env):
    return start(runtime, pod, name, "node0", command, env).communicate(timeout=PATIENCE_S)[0]


def measure(runtime, variant, spec, pod_name, binary):
    """`gdrperf cluster` in all pods, as the manifest starts it."""
    document = f"{WORK}/{variant}.json"
    pod = spec["template"]["spec"]
    pods = [pod_name.format(i) for i in range(spec["completions"])]

    def attempt():
        started = []
        for index, name in enumerate(pods):
            args = [*pod["containers"][0]["args"], *MEASURE]
            args[args.index("--json") + 1] = document if index == 0 else "/dev/null"
            started.append(start(runtime, pod, name, f"node{index}", [binary, *map(str, args)],
                                 environment(name, f"node{index}", index)))
        texts = [process.communicate(timeout=PATIENCE_S)[0] for process in started]
        print(f"{variant}:\n{texts[0]}", flush=True)

    result = measured(document, attempt)
    check_hosts(result, pods, SLOW)
    assert [each["node"] for each in result["ranks"]] == [f"node{i}" for i in range(len(pods))], result["ranks"]


def inside(binary):
    runtimes = [each for each in (shutil.which("crun"), shutil.which("runc", path="/usr/sbin:/usr/bin")) if each]
    if yaml is None or not shutil.which("kubectl") or not runtimes:
        skip("crun or runc, kubectl, python3-yaml: not all of them are there")
    job = rendered("sriov")["Job", "job"]
    service = rendered("sriov")["Service", "job"]["metadata"]["name"]
    pod_name = job["metadata"]["name"] + "-{}"
    nodes = [f"node{i}" for i in range(job["spec"]["completions"])]
    make_head(WORK, "127.0.0.1 localhost head\n" + "".join(
        f"{host_address(i)} {pod_name.format(i)}.{service} {pod_name.format(i)}\n" for i in range(len(nodes))))
    make_hosts(nodes)
    # crun knows version 1 or 2 of cgroups, not both at the same time; this mount namespace is the test's own.
    if os.path.ismount("/sys/fs/cgroup/unified"):
        run("umount", "/sys/fs/cgroup/unified")
    write_devices(WORK, nodes, SLOW)
    os.makedirs(f"{WORK}/dev/infiniband")
    os.mknod(f"{WORK}{NIC}", 0o20666, os.makedev(MAJOR, MINOR))
    write(f"{WORK}/trial.py", TRIAL)
    env = environment("pod", "node0", 0)
    for runtime in runtimes:
        name = os.path.basename(runtime)
        for variant in ("privileged", "device-plugin", "sriov"):
            pod = rendered(variant)["Job", "job"]["spec"]["template"]["spec"]
            tried = run_in(runtime, pod, f"{name}-{variant}", ["python3", f"{WORK}/trial.py"], env)
            print(f"{name}, {variant}: {tried.strip()}", flush=True)
            assert tried == "device: opens\nmemory: locks\n", tried
        # Neither a plugin nor privilege: the node's folder alone opens nothing.
        pod = rendered("privileged")["Job", "job"]["spec"]["template"]["spec"]
        del pod["containers"][0]["securityContext"]["privileged"]
        tried = run_in(runtime, pod, f"{name}-folder", ["python3", f"{WORK}/trial.py"], env)
        print(f"{name}, the folder alone: {tried.strip()}", flush=True)
        assert tried == "device: Operation not permitted\nmemory: locks\n", tried
    for variant in ("privileged", "device-plugin", "sriov"):
        measure(runtimes[0], variant, rendered(variant)["Job", "job"]["spec"], pod_name, binary)
    print("passed")


if __name__ == "__main__":
    main(inside, __file__, (), "util-linux, iproute2")
