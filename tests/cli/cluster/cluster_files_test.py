#!/usr/bin/env python3
"""What scripts/cluster ships: manifests of the structure that the API's objects have, whose names, counts and options
fit together; scripts that a shell takes. Nothing is run on a cluster."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, sys.path[0] + "/..")
import support

try:
    import yaml
except ImportError:
    yaml = None
try:
    import jsonschema
except ImportError:
    jsonschema = None

FOLDER = os.path.join(os.path.dirname(os.path.dirname(support.SCHEMA or "")), "scripts", "cluster")


def path(name):
    return os.path.join(FOLDER, name)


def text(name):
    with open(path(name), encoding="utf-8") as file:
        return file.read()



VARIANTS = ["privileged", "device-plugin", "sriov", "gpu"]


def manifest(name):
    return path(os.path.join("kubernetes", name))


def load_all(name):
    with open(manifest(name), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def add(document, pointer, value):
    """`op: add` of a JSON patch."""
    *parents, last = [part.replace("~1", "/") for part in pointer.split("/")[1:]]
    for part in parents:
        document = document[int(part) if isinstance(document, list) else part]
    if isinstance(document, list):
        document.insert(len(document) if last == "-" else int(last), value)
    else:
        document[last] = value


def variant(folder):
    """Its objects, as `kubectl kustomize` makes them."""
    kustomization = load_all(f"{folder}/kustomization.yaml")[0]
    objects = []
    for resource in kustomization["resources"]:
        objects += variant(resource[3:]) if resource.startswith("../") else load_all(f"{folder}/{resource}")
    for patch in kustomization.get("patches", []):
        target = patch["target"]
        found = [each for each in objects
                 if (each["kind"], each["metadata"]["name"]) == (target["kind"], target["name"])]
        group = f"{target['group']}/{target['version']}"
        assert [each["apiVersion"] for each in found] == [group], patch
        for change in load_all(f"{folder}/{patch['path']}")[0]:
            assert change["op"] == "add", change
            add(found[0], change["path"], change["value"])
    return objects


def documents(start, folder="sriov"):
    """Objects of one way to start, by kind."""
    return {each["kind"]: each for each in variant(folder) if each["metadata"]["labels"]["start"] == start}


def pods(objects):
    """Pod templates that measure."""
    for each in objects:
        spec = each["spec"]
        if each["kind"] == "JobSet":
            spec = spec["replicatedJobs"][0]["template"]["spec"]
        if each["kind"] == "MPIJob":
            spec = spec["mpiReplicaSpecs"]["Worker"]
        if "template" in spec:
            yield each["kind"], spec["template"]


@unittest.skipUnless(yaml, "python3-yaml is not installed")
class Manifests(unittest.TestCase):
    def check_pod(self, pod):
        for container in pod["containers"]:
            self.assertTrue(container["image"])
            self.assertEqual(container["securityContext"]["capabilities"]["add"], ["IPC_LOCK"])
            named = {each["name"]: each["valueFrom"] for each in container["env"]}
            self.assertEqual(named["NODE_NAME"]["fieldRef"]["fieldPath"], "spec.nodeName")
        self.assertTrue(pod["tolerations"])

    def test_pods_of_each_variant_can_open_their_nics(self):
        """Privileged with the node's devices, or with what a device plugin hands out; the network that goes with it."""
        wanted = {"privileged": (True, True, []), "device-plugin": (True, False, ["rdma/hca_shared_devices_a"]),
                  "sriov": (False, False, ["openshift.io/rdma_vf"]),
                  "gpu": (False, False, ["nvidia.com/gpu", "openshift.io/rdma_vf"])}
        self.assertEqual(sorted(wanted), sorted(VARIANTS))
        for folder, (of_host, privileged, resources) in wanted.items():
            objects = variant(folder)
            for kind, template in pods(objects):
                pod = template["spec"]
                container = pod["containers"][0]
                where = f"{folder}: {kind}"
                self.assertEqual(pod.get("hostNetwork", False), of_host, where)
                self.assertEqual(pod.get("dnsPolicy") == "ClusterFirstWithHostNet", of_host, where)
                self.assertEqual(container["securityContext"].get("privileged", False), privileged, where)
                self.assertEqual("volumes" in pod, privileged, where)
                mounts = {each["name"]: each["mountPath"] for each in container.get("volumeMounts", [])}
                self.assertEqual(mounts, {"infiniband": "/dev/infiniband"} if privileged else {}, where)
                self.assertEqual({each["name"]: each["hostPath"]["path"] for each in pod.get("volumes", [])}, mounts,
                                 where)
                if folder == "gpu" and kind == "DaemonSet":
                    continue  # servers do not hold the GPUs of a node for good
                limits = container.get("resources", {}).get("limits", {})
                self.assertEqual(sorted(limits), resources, where)
                networks = template["metadata"].get("annotations", {}).get("k8s.v1.cni.cncf.io/networks", "")
                # One interface for each virtual function.
                self.assertEqual(len([each for each in networks.split(",") if each]),
                                 limits.get("openshift.io/rdma_vf", 0), where)

    @unittest.skipUnless(shutil.which("kubectl"), "no kubectl here")
    def test_kubectl_makes_the_same(self):
        for folder in VARIANTS:
            made = subprocess.run(["kubectl", "kustomize", manifest(folder)], capture_output=True, text=True,
                                  check=True)
            self.assertEqual(made.stderr, "")
            by_name = [{(each["kind"], each["metadata"]["name"]): each for each in objects}
                       for objects in (yaml.safe_load_all(made.stdout), variant(folder))]
            self.assertEqual(*by_name)

    def check_one_per_node(self, template):
        labels = template["metadata"]["labels"]
        terms = template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        self.assertEqual(len(terms), 1)
        self.assertEqual(terms[0]["topologyKey"], "kubernetes.io/hostname")
        self.assertEqual(terms[0]["labelSelector"]["matchLabels"], labels)

    def check_options(self, args):
        """The program knows them all; --plan starts nothing."""
        result = support.run(*args, "--plan")
        self.assertEqual(result.code, 0, result)

    def check_job(self, job, root):
        self.assertEqual(job["completionMode"], "Indexed")
        self.assertEqual(job["completions"], job["parallelism"], "all ranks at once")
        self.assertEqual(job["backoffLimit"], 0)
        pod = job["template"]["spec"]
        self.assertEqual(pod["restartPolicy"], "Never")
        self.check_pod(pod)
        self.check_one_per_node(job["template"])
        args = pod["containers"][0]["args"]
        self.assertEqual(args[0], "cluster")
        self.assertEqual(int(args[args.index("--ranks") + 1]), job["completions"])
        self.assertEqual(args[args.index("--root") + 1], root)
        self.check_options(args)

    def test_indexed_job(self):
        both = documents("job")
        service, job = both["Service"], both["Job"]
        self.assertEqual((service["apiVersion"], job["apiVersion"]), ("v1", "batch/v1"))
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertIs(service["spec"]["publishNotReadyAddresses"], True)
        template = job["spec"]["template"]
        self.assertEqual(service["spec"]["selector"], template["metadata"]["labels"])
        self.assertEqual(template["spec"]["subdomain"], service["metadata"]["name"])
        self.check_job(job["spec"], f"{job['metadata']['name']}-0.{service['metadata']['name']}")

    def test_jobset(self):
        jobset = documents("jobset")["JobSet"]
        self.assertEqual(jobset["apiVersion"], "jobset.x-k8s.io/v1alpha2")
        self.assertIs(jobset["spec"]["network"]["publishNotReadyAddresses"], True)
        replicated = jobset["spec"]["replicatedJobs"]
        self.assertEqual([each["replicas"] for each in replicated], [1])
        name = jobset["metadata"]["name"]
        self.check_job(replicated[0]["template"]["spec"], f"{name}-{replicated[0]['name']}-0-0.{name}")

    def test_mpijob(self):
        job = documents("mpijob", "gpu")["MPIJob"]
        self.assertEqual(job["apiVersion"], "kubeflow.org/v2beta1")
        roles = job["spec"]["mpiReplicaSpecs"]
        self.assertEqual(job["spec"]["slotsPerWorker"], 1)
        self.assertEqual(roles["Launcher"]["replicas"], 1)
        launcher = roles["Launcher"]["template"]["spec"]["containers"][0]
        args = launcher["args"]
        self.assertEqual(launcher["command"], ["mpirun"])
        self.assertEqual(int(args[args.index("-np") + 1]), roles["Worker"]["replicas"])
        self.assertIn("--enable-recovery", args)
        self.assertEqual(args[args.index("orte_abort_on_non_zero_status") + 1], "0")
        self.check_options([*args[args.index("gdrperf") + 1:], "--ranks", 4])
        self.check_pod(roles["Worker"]["template"]["spec"])
        # Not the port of the node's own sshd, and mpirun knows it.
        worker = roles["Worker"]["template"]["spec"]["containers"][0]["args"]
        self.assertIn(f"Port {worker[worker.index('-p') + 1]}\\n", text("Dockerfile"))
        self.check_one_per_node(roles["Worker"]["template"])

    def test_servers(self):
        servers = documents("servers")["DaemonSet"]
        self.assertEqual(servers["apiVersion"], "apps/v1")
        template = servers["spec"]["template"]
        self.assertEqual(servers["spec"]["selector"]["matchLabels"], template["metadata"]["labels"])
        self.check_pod(template["spec"])
        container = template["spec"]["containers"][0]
        self.assertEqual(container["args"], ["serve", "--cluster"])
        # Who may make a server connect to others has the secret.
        secret = {each["name"]: each["valueFrom"] for each in container["env"]}["GDRPERF_TOKEN"]
        self.assertNotIn("optional", secret["secretKeyRef"])
        ports = re.findall(r"--port[^\n]*?(\d{4,5})", support.run("serve", "--help").out)
        self.assertIn(str(container["ports"][0]["containerPort"]), ports)


class NothingStarts(unittest.TestCase):
    def test_a_plan_starts_nothing(self):
        result = support.run("cluster", "--plan", "--ranks", 8, "--rails", 2, "-D", "500ms", "--nic-rate", "10GB/s",
                             "--small", "0")
        self.assertEqual(result.code, 0, result)
        self.assertIn("7 rounds of 2 runs each, 56 links", result.out)
        # 14 runs of 0.5 s, 0.15 s to start each, and what 16 MiB in flight take at both ends.
        self.assertIn("time: 9.1 s, 2.15 s of it", result.out)
        self.assertIn("560 GB", result.out)
        for ranks in (64, 128, 129):
            plan = support.run("cluster", "--plan", "--ranks", ranks, "--rails", 8)
            self.assertLess(float(plan.out.split("time: ")[1].split(" s")[0]), 40, plan)
            quick = support.run("cluster", "--plan", "--quick", "--ranks", ranks, "--rails", 8)
            self.assertIn(f", {4 * (ranks // 2) * 8} links in all", quick.out, "n/2 pairs in each of four rounds")
            self.assertLess(float(quick.out.split("time: ")[1].split(" s")[0]), 30, quick)

    def test_half_an_environment_is_named(self):
        result = support.run("cluster", env={"WORLD_SIZE": "4"})
        self.assertEqual(result.code, 2, result)
        self.assertIn("WORLD_SIZE is set but RANK is not", result.err)


@unittest.skipUnless(yaml and jsonschema and shutil.which("kubectl"),
                     "kubectl, python3-yaml or python3-jsonschema is not there")
class Schemas(unittest.TestCase):
    """check-manifests over schemas made up for this: of the published ones GDRPERF_K8S_SCHEMAS names the folder."""

    def check(self, folder):
        return subprocess.run([path("check-manifests"), folder], capture_output=True, text=True, check=False)

    def schemas(self, folder, change=lambda schemas: None):
        any_object = {"type": "object", "additionalProperties": True}
        kinds = {("", "v1", "Service"), ("batch", "v1", "Job"), ("apps", "v1", "DaemonSet")}
        schemas = {kind: {"type": "object", "required": ["spec"],
                          "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
                                         "metadata": any_object, "spec": {"$ref": "#/components/schemas/any"}},
                          "x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": kind}]}
                   for group, version, kind in kinds}
        schemas["any"] = any_object
        change(schemas)
        with open(os.path.join(folder, "api.json"), "w", encoding="utf-8") as file:
            json.dump({"components": {"schemas": schemas}}, file)
        crds = [{"kind": "CustomResourceDefinition",
                 "spec": {"group": group, "names": {"kind": kind},
                          "versions": [{"name": version, "schema": {"openAPIV3Schema": {
                              "type": "object",
                              "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
                                             "metadata": any_object,
                                             "spec": {"type": "object",
                                                      "x-kubernetes-preserve-unknown-fields": True}}}}}]}}
                for group, version, kind in (("jobset.x-k8s.io", "v1alpha2", "JobSet"),
                                             ("kubeflow.org", "v2beta1", "MPIJob"))]
        with open(os.path.join(folder, "crds.yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump_all(crds, file)

    def test_what_is_unknown_or_of_another_type_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.check(folder).returncode, 3)
            self.schemas(folder)
            fits = self.check(folder)
            self.assertEqual(fits.returncode, 0, fits.stdout + fits.stderr)
            self.assertEqual(fits.stdout.count(": fits"), 5 * len(VARIANTS))

            def narrow(schemas):
                schemas["any"] = {"type": "object", "properties": {"completions": {"type": "string"}}}
            self.schemas(folder, narrow)
            wrong = self.check(folder)
            self.assertEqual(wrong.returncode, 1, wrong.stdout)
            self.assertIn("sriov: batch/v1 Job: spec.completions: 4 is not of type 'string'", wrong.stdout)
            self.assertIn("'backoffLimit'", wrong.stdout)

    @unittest.skipUnless(os.environ.get("GDRPERF_K8S_SCHEMAS"), "GDRPERF_K8S_SCHEMAS names no folder")
    def test_published_schemas(self):
        done = self.check(os.environ["GDRPERF_K8S_SCHEMAS"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Result(unittest.TestCase):
    """The recorded run of 64 ranks, nic41 being 20 % slow."""

    def test_it_is_of_the_schema_and_names_the_slow_device_alone(self):
        folder = os.path.dirname(support.SCHEMA)
        with open(os.path.join(folder, "cluster-64.json"), encoding="utf-8") as file:
            document = json.load(file)
        if jsonschema:
            with open(os.path.join(folder, "cluster-schema.json"), encoding="utf-8") as file:
                jsonschema.validate(document, json.load(file))
        self.assertEqual([(each["part"], each["rank"]) for each in document["suspects"] if each["verdict"] == "slow"],
                         [("nic", 41)])
        self.assertEqual(len(document["measurements"]), 64 * 63)


class Scripts(unittest.TestCase):
    def test_a_shell_takes_them(self):
        for name in ("gdrperf.sbatch", "mpirun.sh"):
            subprocess.run(["bash", "-n", path(name)], check=True)

    def test_sbatch_keeps_the_job_when_a_node_fails(self):
        lines = text("gdrperf.sbatch").splitlines()
        self.assertEqual(lines[0], "#!/bin/bash")
        self.assertIn("#SBATCH --ntasks-per-node=1", lines)
        self.assertIn("#SBATCH --no-kill", lines)
        start = next(line for line in lines if line.startswith("srun "))
        for option in ("--no-kill", "-K0", "-W0", "gdrperf cluster"):
            self.assertIn(option, start)

    def test_mpirun_wants_a_hostfile_and_keeps_the_job(self):
        refused = subprocess.run([path("mpirun.sh")], capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("HOSTFILE", refused.stderr)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_mpirun_takes_its_options(self):
        script = text("mpirun.sh")
        options = script[script.index("--map-by"):script.index("gdrperf cluster")].replace("\\\n", " ").split()
        done = subprocess.run(["mpirun", "--allow-run-as-root", *options, "true"], capture_output=True, text=True,
                              timeout=support.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipUnless(shutil.which("ssh"), "no ssh here")
    def test_the_image_lets_mpirun_reach_workers_unasked(self):
        """What the Dockerfile writes for ssh, as ssh understands it."""
        written = re.search(r"printf '(.*?)' >/etc/ssh/ssh_config.d/", text("Dockerfile")).group(1).replace("\\n", "\n")
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "mpi.conf")
            with open(config, "w", encoding="utf-8") as file:
                file.write(written)
            told = subprocess.check_output(["ssh", "-G", "-F", config, "worker-0"], text=True).splitlines()
        self.assertIn("userknownhostsfile /dev/null", told)
        self.assertTrue({"stricthostkeychecking false", "stricthostkeychecking no"} & set(told), told)

    def test_the_image_has_what_the_build_needs(self):
        dockerfile = text("Dockerfile")
        with open(os.path.join(FOLDER, "..", "install-deps"), encoding="utf-8") as file:
            listed = re.search(r"kBuild=\((.*?)\)", file.read(), re.S).group(1).split()
        # What those are for is not in an image: plug-ins of hwloc's graphics, and reading schemas.
        needed = set(listed) - {"libhwloc-plugins", "python3-jsonschema", "ibverbs-providers"}
        self.assertEqual([each for each in sorted(needed) if each not in dockerfile.split()], [])
        self.assertIn("ibverbs-providers", dockerfile)


class Published(unittest.TestCase):
    def test_the_page_shows_what_the_document_of_64_ranks_says(self):
        root = os.path.dirname(os.path.dirname(FOLDER))
        with open(os.path.join(root, "results", "cluster-64.json"), encoding="utf-8") as file:
            document = json.load(file)
        with open(os.path.join(root, "docs", "how-to", "cluster.md"), encoding="utf-8") as file:
            page = file.read()
        test = document["test"]
        self.assertEqual((len(document["ranks"]), document["partial"], test["rounds_done"], document["failed"]),
                         (64, False, 63, []))
        slow = [each for each in document["suspects"] if each["verdict"] == "slow"]
        self.assertEqual([(each["part"], each["rank"]) for each in slow], [("nic", 41)],
                         "the planted one and nothing else")
        host = document["ranks"][41]["host"]
        self.assertIn(
            f"    64 ranks on 1 host, 64 NICs (simulated); write_bw 16 KiB; "
            f"63 rounds both ways in {test['seconds']:.1f} s, "
            f"the first {test['start_s']:.1f} s after rank 0 began\n", page)
        self.assertIn(
            f"    typical {document['typical_gbytes']:.4g} GB/s; NICs vary by {document['nic_sigma_percent']:.1f} %, "
            f"measurements by {document['pair_sigma_percent']:.1f} %; {100 * document['slow_share']:.1f} % of "
            f"{len(document['measurements'])} measurements were far below their NIC's usual rate\n", page)
        self.assertIn(f"    SLOW NIC nic41 of rank 41 ({host}): {slow[0]['retest_shift_percent']:+.1f} % when it "
                      f"sends ({slow[0]['retests']} retests; "
                      f"{slow[0]['shift_percent']:+.1f} % in {slow[0]['measurements']} measurements before)\n", page)
        look = document["inspections"][0]
        self.assertIn(
            f"    nic41 of rank 41 ({host}): loopback (no cable) {look['loopback_gbytes']:.4g} GB/s, against "
            f"{look['other_loopback_gbytes']:.4g} GB/s of nic{look['other_nic']} of rank {look['other_nic']} "
            f"({host}): ", page)


if __name__ == "__main__":
    support.main()
