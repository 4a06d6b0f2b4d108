"""Forty servers without a fault, as text recordings: CPUs, GPUs, NICs, fabrics and kernels in the combinations that
are sold."""

CPUS = {"spr": ("GenuineIntel", 6, 143, "Intel(R) Xeon(R) Platinum 8480+"),
        "emr": ("GenuineIntel", 6, 207, "INTEL(R) XEON(R) PLATINUM 8568Y+"),
        "icx": ("GenuineIntel", 6, 106, "Intel(R) Xeon(R) Platinum 8380"),
        "milan": ("AuthenticAMD", 25, 1, "AMD EPYC 7763 64-Core Processor"),
        "genoa": ("AuthenticAMD", 25, 17, "AMD EPYC 9654 96-Core Processor"),
        "turin": ("AuthenticAMD", 26, 2, "AMD EPYC 9575F 64-Core Processor")}
# name, device, PCI device id, GB of BAR1
GPUS = {"h100": ("NVIDIA H100 80GB HBM3", "0x2330", 128), "h200": ("NVIDIA H200", "0x2335", 256),
        "b200": ("NVIDIA B200", "0x2901", 256),
        "a100": ("NVIDIA A100-SXM4-80GB", "0x20b2", 128), "l40s": ("NVIDIA L40S", "0x26b9", 64),
        "mi300x": ("AMD Instinct MI300X", "0x74a1", 256)}
# vendor, device, driver, RDMA module, firmware, Gb/s text, name
NICS = {"cx7": ("0x15b3", "0x1021", "mlx5_core", "mlx5_ib", "28.43.2026", "400 Gb/sec (4X NDR)", "mlx5_{}"),
        "cx6": ("0x15b3", "0x101b", "mlx5_core", "mlx5_ib", "20.43.2026", "200 Gb/sec (4X HDR)", "mlx5_{}"),
        "cx8": ("0x15b3", "0x1023", "mlx5_core", "mlx5_ib", "40.47.1088", "800 Gb/sec (4X XDR)", "mlx5_{}"),
        "bf3": ("0x15b3", "0xa2dc", "mlx5_core", "mlx5_ib", "32.43.2026", "400 Gb/sec (4X NDR)", "mlx5_{}"),
        "thor2": ("0x14e4", "0x1760", "bnxt_en", "bnxt_re", "231.0.162.0", "400 Gb/sec (4X NDR)", "bnxt_re{}"),
        "pollara": ("0x1dd8", "0x1002", "ionic", "ionic_rdma", "1.117.1-a-63", "400 Gb/sec (4X NDR)", "ionic_{}"),
        "e810": ("0x8086", "0x1592", "ice", "irdma", "1.71", "100 Gb/sec (4X EDR)", "rocep{}")}

DMESG = ["[    0.000000] DMAR: IOMMU enabled",
         "[    0.500000] pci 0000:00:1c.0: BAR 13: no space for [io  size 0x1000]",
         "[    1.100000] pcieport 0000:20:01.0: pciehp: Slot #12 AttnBtn- PwrCtrl- MRL- AttnInd- PwrInd- HotPlug+ "
         "Surprise+",
         "[    2.000000] mlx5_core 0000:23:00.0: 252.048 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
         "[    2.100000] mlx5_core 0000:23:00.0: mlx5_pcie_event:301:(pid 9): PCIe slot advertised sufficient power "
         "(75W).",
         "[    2.200000] mlx5_core 0000:23:00.0: Port module event: module 0, Cable plugged",
         "[    3.000000] nvidia: loading out-of-tree module taints kernel.",
         "[    3.100000] nvidia: module license 'NVIDIA' taints kernel.",
         "[    3.200000] nvidia-nvlink: Nvlink Core is being initialized, major device number 510",
         "[    3.300000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.172.08",
         "[    3.400000] [drm] [nvidia-drm] [GPU ID 0x00004500] Loading driver",
         "[    4.000000] mlx5_core 0000:23:00.0 ens3f0np0: Link up",
         "[    5.000000] amdgpu: RAS INFO: ras initialized successfully, hardware ability[7fff] ras_mask[7fff]",
         "[    5.100000] amdgpu 0000:24:00.0: amdgpu: RAS: optional ras ta ucode is not available",
         "[    6.000000] audit: type=1400 apparmor=\"STATUS\" operation=\"profile_load\"",
         "[    7.000000] systemd[1]: Started nvidia-fabricmanager.service."]


class Machine:
    def __init__(self):
        self.text = []

    def file(self, path, value):
        self.text += [f"== file {path}", str(value)]

    def link(self, path, to):
        self.text.append(f"== link {path} {to}")

    def function(self, parents, address, vendor, device, code, driver, node, speed="32.0 GT/s PCIe", width=16):
        real = "/".join([f"/sys/devices/pci{parents[0][:7] if parents else address[:7]}", *parents, address])
        self.link(f"/sys/bus/pci/devices/{address}", real)
        if driver:
            self.link(f"{real}/driver", f"/sys/bus/pci/drivers/{driver}")
        for name, value in (("vendor", vendor), ("device", device), ("class", code), ("numa_node", node),
                            ("current_link_speed", speed),
                            ("max_link_speed", speed), ("current_link_width", width), ("max_link_width", width)):
            self.file(f"{real}/{name}", value)
        return real


def machine(cpu, gpu, nic, fabric, kernel, stack, pairs=8, guest=False, spare=False, mode="passthrough"):
    """stack: "ofed" with nvidia_peermem, or "inbox" with dma-buf; fabric: "ib" or "roce"; spare: each NIC has a second
    port without a cable."""
    m = Machine()
    probe, names = [], []
    vendor, device, driver, module, firmware, rate, name_of = NICS[nic]
    amd = gpu == "mi300x"
    for i in range(pairs):
        node = 0 if guest else i * 2 // pairs
        bus = 0x20 + 8 * i
        root, up = f"0000:{bus:02x}:01.0", f"0000:{bus + 1:02x}:00.0"
        m.function([], root, "0x8086", "0x352a", "0x060400", "pcieport", node)
        m.function([root], up, "0x1000", "0xc030", "0x060400", "pcieport", node)
        ports = [f"0000:{bus + 2:02x}:{slot:02x}.0" for slot in (0, 1)]
        for port in ports:
            m.function([root, up], port, "0x1000", "0xc030", "0x060400", "pcieport", node)
        name = name_of.format(i)
        nic_address, gpu_address = f"0000:{bus + 3:02x}:00.0", f"0000:{bus + 4:02x}:00.0"
        real = m.function([root, up, ports[0]], nic_address, vendor, device,
                          "0x020700" if fabric == "ib" else "0x020000", driver, node)
        add_port(m, real, name, i, rate, firmware, fabric, up=True)
        names.append(name)
        if spare:
            real = m.function([root, up, ports[0]], f"0000:{bus + 3:02x}:00.1", vendor, device, "0x020000", driver,
                              node)
            add_port(m, real, name_of.format(100 + i), 100 + i, rate, firmware, fabric, up=False)
        if gpu:
            title, number, gib = GPUS[gpu]
            real = m.function([root, up, ports[1]], gpu_address, "0x1002" if amd else "0x10de", number,
                              "0x120000" if amd else "0x030200",
                              "amdgpu" if amd else "nvidia", node)
            # Of guests memory lies low: not every device addresses 46 bits.
            base = (0x10000000000 if guest else 0x200000000000) + i * (gib << 31)
            m.file(f"{real}/resource", f"0x{base:016x} 0x{base + (gib << 30) - 1:016x} 0x000000000014220c")
            if not amd:
                m.file(f"/proc/driver/nvidia/gpus/{gpu_address}/information",
                       f"Model: \t\t {title}\nIRQ:   \t\t 100\nBus Location: \t {gpu_address}")
                probe.append(f"gpu {gpu_address} gdr=1 dmabuf=1 {title}")
        group = f"/sys/kernel/iommu_groups/{i}"
        m.link(f"/sys/bus/pci/devices/{nic_address}/iommu_group",
               group) if mode == "passthrough" and not guest else None
        m.file(f"{group}/type", "identity")
    host(m, cpu, gpu, module, driver, kernel, stack, guest, names, probe, amd)
    return "\n".join(m.text) + "\n"


def add_port(m, real, name, index, rate, firmware, fabric, up):
    place = f"{real}/infiniband/{name}"
    m.link(f"/sys/class/infiniband/{name}", place)
    m.link(f"{place}/device", real)
    netdev = f"ens{index}np0" if fabric == "roce" else f"ibs{index}"
    m.link(f"/sys/class/net/{netdev}", f"{real}/net/{netdev}")
    m.link(f"{real}/net/{netdev}/device", real)
    for key, value in (("node_type", "1: CA"), ("fw_ver", firmware), ("board_id", "MT_0000000838"),
                       ("node_guid", f"b83f:d203:00{index:02x}:0001")):
        m.file(f"{place}/{key}", value)
    port = f"{place}/ports/1"
    for key, value in (("state", "4: ACTIVE" if up else "1: DOWN"),
                       ("phys_state", "5: LinkUp" if up else "3: Disabled"), ("rate", rate),
                       ("link_layer", "InfiniBand" if fabric == "ib" else "Ethernet"),
                       ("lid", "0x1" if fabric == "ib" else "0x0")):
        m.file(f"{port}/{key}", value)
    for counter in ("symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors"):
        m.file(f"{port}/counters/{counter}", 0)
    for counter in ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err"):
        m.file(f"{port}/hw_counters/{counter}", 0)
    m.file(f"{real}/net/{netdev}/mtu", 9000 if fabric == "roce" else 4092)
    m.file(f"{real}/net/{netdev}/flags", "0x1003" if up else "0x1002")
    m.file(f"{real}/net/{netdev}/carrier", 1 if up else 0)
    if fabric == "roce" and up:
        for number, kind in enumerate(("IB/RoCE v1", "RoCE v2", "IB/RoCE v1", "RoCE v2")):
            link_local = f"fe80:0000:0000:0000:ba3f:d2ff:fe00:{index:04x}"
            address = link_local if number < 2 else f"0000:0000:0000:0000:0000:ffff:0a{index:02x}:0001"
            m.file(f"{port}/gids/{number}", address)
            m.file(f"{port}/gid_attrs/types/{number}", kind)
            m.file(f"{port}/gid_attrs/ndevs/{number}", netdev)
        m.text += [f"== program ethtool -a {netdev}", f"Pause parameters for {netdev}:", "Autonegotiate:\toff",
                   "RX:\t\toff", "TX:\t\toff",
                   f"== program mlnx_qos -i {netdev}", "DCBX mode: OS controlled", "Priority trust state: dscp",
                   "PFC configuration:",
                   "\tpriority    0   1   2   3   4   5   6   7", "\tenabled     0   0   0   1   0   0   0   0"]
        m.file(f"{place}/tc/1/traffic_class", "Global tclass=106")
    m.file(f"/sys/class/infiniband_verbs/uverbs{index}/ibdev", name)
    m.file(f"/dev/infiniband/uverbs{index}", "")


def host(m, cpu, gpu, module, driver, kernel, stack, guest, names, probe, amd):
    vendor, family, model, title = CPUS[cpu]
    m.file("/proc/cpuinfo",
           f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {title}\n"
                            f"flags\t\t: fpu vme{' hypervisor' if guest else ''}")
    m.file("/proc/sys/kernel/osrelease", kernel)
    m.file("/proc/sys/kernel/numa_balancing", 0)
    m.file("/etc/os-release", "ID=ubuntu\nVERSION_ID=\"24.04\"\nID_LIKE=debian")
    m.file("/proc/cmdline", "root=/dev/sda1 ro quiet iommu=pt")
    m.file("/proc/self/limits",
           "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         "
           "unlimited"
                                "            unlimited            bytes\nMax open files            1048576            "
                                "  1048576              files")
    modules = [module, driver, "ib_uverbs", "ib_core", "rdma_ucm", "rdma_cm"]
    if amd:
        modules.append("amdgpu")
        if stack == "ofed":
            m.text.append("== folder /sys/kernel/mm/memory_peers/amdkfd")
    elif gpu:
        modules += ["nvidia"] + (["nvidia_peermem"] if stack == "ofed" else [])
        m.file("/proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build")
        m.file("/sys/module/nvidia/version", "570.172.08")
        lines = list(probe)
        for name in names:
            lines.append(f"nic {name} dmabuf 9 Bad file descriptor")
            for line in probe:
                address = line.split()[1]
                lines += [f"reg {name} {address} dmabuf 0 ok",
                          f"reg {name} {address} peermem " + ("0 ok" if stack == "ofed" else "14 Bad address")]
        m.text += ["== program gdr-probe", *lines, "== program nvidia-smi -L"]
        m.text += [f"GPU {i}: {' '.join(line.split()[4:])} (UUID: GPU-{i})" for i, line in enumerate(probe)]
    used = {"ib_core": "nvidia_peermem,ib_uverbs,",
            "nvidia": "nvidia_peermem,"} if "nvidia_peermem" in modules else {"ib_core": "ib_uverbs,"}
    m.file("/proc/modules", "\n".join(f"{it} 100000 {1 if it in used else 0} {used.get(it, '-')} Live 0x0"
                                      for it in dict.fromkeys(modules)))
    m.file("/dev/infiniband/rdma_cm", "")
    m.text += ["== program dmesg", *DMESG, "== program rdma system", "netns shared copy-on-fork on"]
    if stack == "ofed":
        m.text += ["== program ofed_info -s", "OFED-internal-24.10-2.1.8:"]
    if guest:
        m.file("/sys/class/dmi/id/sys_vendor", "QEMU")
        m.file("/sys/class/dmi/id/product_name", "Standard PC (Q35 + ICH9, 2009)")


def machines():
    """Name and text of each."""
    rows = [(cpu, gpu, nic, fabric, kernel, stack)
            for cpu, gpu, nic, fabric, kernel, stack in (
                ("spr", "h100", "cx7", "ib", "5.15.0-113-generic", "ofed"),
                ("spr", "h100", "cx7", "roce", "6.8.0-60-generic", "inbox"),
                ("spr", "h200", "cx7", "roce", "6.8.0-60-generic", "ofed"),
                ("emr", "h200", "cx7", "ib", "6.8.0-60-generic", "inbox"),
                ("emr", "b200", "cx7", "ib", "6.8.0-60-generic", "ofed"),
                ("emr", "b200", "bf3", "roce", "6.8.0-60-generic", "inbox"),
                ("icx", "a100", "cx6", "ib", "5.15.0-113-generic", "ofed"),
                ("icx", "a100", "cx6", "roce", "6.8.0-60-generic", "inbox"),
                ("milan", "a100", "cx6", "ib", "5.15.0-113-generic", "ofed"),
                ("milan", "a100", "cx6", "roce", "6.8.0-60-generic", "ofed"),
                ("genoa", "h100", "cx7", "ib", "6.8.0-60-generic", "inbox"),
                ("genoa", "h100", "thor2", "roce", "6.8.0-60-generic", "inbox"),
                ("genoa", "l40s", "cx6", "roce", "6.8.0-60-generic", "inbox"),
                ("genoa", "mi300x", "cx7", "roce", "6.8.0-60-generic", "ofed"),
                ("genoa", "mi300x", "thor2", "roce", "6.8.0-60-generic", "inbox"),
                ("turin", "mi300x", "pollara", "roce", "6.8.0-60-generic", "inbox"),
                ("turin", "h200", "cx7", "roce", "6.11.0-26-generic", "inbox"),
                ("turin", "b200", "cx8", "ib", "6.14.0-15-generic", "inbox"),
                ("spr", "", "e810", "roce", "6.8.0-60-generic", "inbox"),
                ("turin", "", "cx7", "ib", "6.8.0-60-generic", "inbox"))]
    for row in rows:
        yield "-".join(filter(None, row)), machine(*row)
        # The same again: a pair less, in a guest, or with second ports that have no cable.
        number = rows.index(row) % 3
        if number == 0:
            yield "-".join(filter(None, row)) + "-spare", machine(*row, pairs=4, spare=True)
        elif number == 1:
            yield "-".join(filter(None, row)) + "-guest", machine(*row, pairs=4, guest=True)
        else:
            yield "-".join(filter(None, row)) + "-two", machine(*row, pairs=2)
