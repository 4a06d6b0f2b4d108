"""Result documents for tests of the report: real ones take too long to measure, and are too tame."""

RELATIONS = ("PIX", "PXB", "PHB", "NODE", "SYS")
CEILING_GBPS = {"PIX": 98.0, "PXB": 98.0, "PHB": 90.0, "NODE": 80.0, "SYS": 50.0, "HOST": 98.0}


def environment(host):
    return {"hostname": host, "kernel": "Linux 6.1.0", "os": "Debian GNU/Linux 12", "cpu_model": "CPU",
            "cpus_online": 64,
            "cpus_allowed": 64, "numa_nodes": 2, "memory_bytes": 1 << 38, "governor": "performance",
            "hypervisor": False,
            "memlock_limit_bytes": None, "gpu_driver": "580.1", "clock_source": "tsc", "tool_version": "0.1.0"}


def end(device, buffer, kind):
    return {"device": device, "kind": kind, "firmware": "28.39", "driver": "mlx5_core", "port": 1, "gid_index": 3,
            "gid": "10.0.0.1", "gid_type": "RoCE v2/IPv4", "gid_why": "first", "buffer": buffer, "cpu": 1, "numa": 0}


def run(op, size, gpu, nic, relation, path="direct", kind="hardware", share=0.95, bidirectional=False, batches=20,
        unstable=None):
    rate = op.endswith("_bw")
    staged = path == "staged"
    ceiling = CEILING_GBPS[relation]
    # A pipe with a cost per message; staging costs less per message and carries less.
    per_message = 400 if staged else 2000
    most = ceiling * share * (0.5 if staged else 1.0)
    gbps = size * 8 / (size * 8 / most + per_message)
    p50 = (1500 if staged else 2500) + size * 8 / most
    wobble = [((i * 7919) % 13 - 6) / 6 * 0.01 for i in range(batches)]
    made = {"op": op, "size_bytes": size, "client": end(nic, f"cuda:{gpu[3:]}" if gpu else "host", kind),
            "server": end("mlx5_9", "host", kind), "device_kind": kind,
            "direction": "bidirectional" if bidirectional else "unidirectional", "connection": "exchange",
            "wait": "poll",
            "qps": 1, "rate_per_s": None, "tx_depth": 128, "rx_depth": 512, "cq_mod": 32, "post_list": 1,
            "inline_bytes": 0, "footprint_bytes": size, "mtu_bytes": 4096, "qp_timeout": 14, "service_level": 0,
            "traffic_class": 0, "iterations": 10000 + size, "duration_s": 0.5, "warmup_cut_s": 0.05,
            "stop": "precision",
            "unstable": unstable is not None, "unstable_reason": unstable, "bw": None, "msg_rate_mpps": None,
            "latency": None,
            "pair": f"{gpu}/{nic}" if gpu else None, "host_node": None if gpu else "local", "ceiling_gbps": ceiling,
            "limited_by": "link of the NIC", "efficiency": gbps / ceiling if rate else None, "verified": None,
            "path": path,
            "consume": False, "warnings": []}
    digits = lambda value: float(f"{value:.7g}")
    if rate:
        made["bw"] = {"median_gbps": digits(gbps), "ci95_gbps": [digits(gbps * 0.995), digits(gbps * 1.004)],
                      "mean_gbps": digits(gbps * 0.9991), "min_gbps": digits(gbps * 0.98),
                      "max_gbps": digits(gbps * 1.01),
                      "batches_gbps": [digits(gbps * (1 + each)) for each in wobble]}
        made["msg_rate_mpps"] = digits(gbps * 1e3 / 8 / size)
    else:
        made["latency"] = {"min_ns": digits(p50 * 0.9), "p50_ns": digits(p50), "p90_ns": digits(p50 * 1.11),
                           "p99_ns": digits(p50 * 1.37),
                           "p999_ns": digits(p50 * 2.3), "p9999_ns": digits(p50 * 7.1), "max_ns": digits(p50 * 9),
                           "mean_ns": digits(p50 * 1.02),
                           "samples": 50000,
                           "samples_beyond": {"p50": 25000, "p90": 5000, "p99": 500, "p999": 50, "p9999": 5},
                           "halved": True, "ci95_p50_ns": [digits(p50 * 0.99), digits(p50 * 1.01)],
                           "batches_p50_ns": [digits(p50 * (1 + each)) for each in wobble]}
    return made


def document(runs, host="left", schema="gdrperf-results/1", simulated=False, started="2025-01-31T12:00:00Z",
             warnings=()):
    """`runs`: (relation, run) in order."""
    relations = {}
    pairs = {}
    for relation, each in runs:
        relations.setdefault(relation, {}).setdefault(each["op"], []).append(each)
        if each["pair"]:
            pairs[each["pair"]] = {"relation": relation, "nvidia_smi": relation, "pci": relation,
                                   "common_ancestor": "0000:00:01.0",
                                   "hops": [{"bdf": "0000:01:00.0", "gen": 4, "width": 16, "gen_max": 4,
                                             "width_max": 16, "max_payload_bytes": 256}],
                                   "acs_redirect": False, "ceiling_gbps": each["ceiling_gbps"],
                                   "limited_by": each["limited_by"], "difference": None}
    return {"schema": schema, "tool": {"version": "0.1.0", "git": "abc", "argv": ["gdrperf", "sweep", host]},
            "started": started,
            "simulated": simulated, "hosts": {"client": environment(host), "server": environment("right")},
            "topology": {"source": "nvidia-smi",
                         "gpus": [{"name": name, "model": "H100", "pci_address": None, "numa_node": 0, "uuid": None}
                                  for name in sorted({pair.split("/")[0] for pair in pairs})],
                         "nics": [], "pairs": pairs},
            "relations": relations, "warnings": list(warnings)}


def relation_of(gpu, nic):
    if gpu == nic:
        return "PIX"
    return ("PXB", "PHB", "NODE")[abs(gpu - nic) - 1] if gpu // 4 == nic // 4 else "SYS"


def machine(gpus, nics, sizes, ops=("write_bw", "write_lat"), both_ways=False, staged=False, kind="hardware", poor=None,
            batches=20):
    """A sweep of all pairs. `poor`: a pair that gets half of what its path can."""
    runs = []
    for gpu in range(gpus):
        for nic in range(nics):
            relation = relation_of(gpu, nic)
            for op in ops:
                for bidirectional in ((False, True) if both_ways and op.endswith("_bw") and op != "send_bw"
                                      else (False,)):
                    for path in ("direct", "staged") if staged else ("direct",):
                        for size in sizes:
                            names = (f"GPU{gpu}", f"mlx5_{nic}")
                            share = 0.5 if "/".join(names) == poor else 0.93 + ((gpu * 31 + nic * 17 + size) % 7) / 100
                            runs.append((relation,
                                         run(op, size, *names, relation, path, kind, share, bidirectional, batches)))
    return document(runs, simulated=kind == "simulated")
