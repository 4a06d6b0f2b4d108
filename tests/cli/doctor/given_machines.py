"""Servers whose PCI trees were captured by others (hwloc's and NCCL's XML), as text recordings of them without a fault.

Functions, links, NUMA nodes and names of NICs are those of the file; drivers, counters, addresses and what the probe of
GPU memory answers are a healthy server's, as no such file holds them.
"""

import pathlib
import re
import xml.etree.ElementTree

from healthy_machines import Machine, NICS, add_port, host

LANES = ((0.25, "2.5 GT/s PCIe"), (0.5, "5.0 GT/s PCIe"), (0.9846, "8.0 GT/s PCIe"), (1.9692, "16.0 GT/s PCIe"),
         (3.9385, "32.0 GT/s PCIe"))
NVIDIA, AMD, MELLANOX, INTEL, AMAZON, BRIDGE = "0x10de", "0x1002", "0x15b3", "0x8086", "0x1d0f", "0x0604"
GEFORCE = ("0x2684",)  # RTX 4090: no GPUDirect RDMA, which is no health


def link_of(gigabytes):
    """Speed and width of an hwloc link, which is told in GB/s of payload."""
    for width in (16, 8, 4, 2, 1):
        for lane, speed in LANES:
            if abs(gigabytes - lane * width) < 0.02 * gigabytes:
                return speed, width
    return "8.0 GT/s PCIe", 16


def node_of(nodeset):
    bits = 0
    for place, word in enumerate(reversed(nodeset.split(","))):
        bits |= int(word or "0", 16) << (32 * place)
    return bits.bit_length() - 1 if bits and bits & (bits - 1) == 0 else -1


def functions_of_hwloc(element, parents, node, found):
    """(parents, address, vendor, device, class, node, speed, width, RDMA devices, over InfiniBand) of each function."""
    for child in element.findall("object"):
        kind = child.get("type")
        own = node
        if kind not in ("Bridge", "PCIDev", "OSDev"):
            own = node_of(child.get("nodeset", "")) if child.get("nodeset") else node
        inside = parents
        if kind in ("Bridge", "PCIDev") and child.get("pci_busid"):
            code, ids = child.get("pci_type").split(" ")[:2]
            vendor, device = (f"0x{part}" for part in ids.strip("[]").split(":"))
            speed, width = link_of(float(child.get("pci_link_speed", "0")))
            names = [it.get("name") for it in child.findall("object") if it.get("type") == "OSDev"]
            rdma = [name for name in names if re.match(r"(mlx[45]|hfi1)_\w+$", name)]
            infiniband = code == "0207" or any(re.match(r"(ib|hsi)\d", name) for name in names)
            found.append(
                (parents, child.get("pci_busid"), vendor, device, f"0x{code}00", own, speed, width, rdma, infiniband))
            inside = [*parents, child.get("pci_busid")]
        functions_of_hwloc(child, inside, own, found)


def functions_of_nccl(element, parents, node, found):
    for child in element.findall("pci"):
        address, code = child.get("busid"), child.get("class", "0x060400")
        # Files of clouds name classes alone: there the GPUs are NVIDIA's and the InfiniBand functions Mellanox's.
        ids = {"0x03": (NVIDIA, "0x2330"), "0x02": (MELLANOX, "0x101e")}.get(code[:4], ("0x1000", "0xc030"))
        vendor, device = child.get("vendor", ids[0]), child.get("device", ids[1])
        names = [it.get("name") for it in child.iter("net")
                 if it.get("name", "").startswith("mlx5")] if code[:4] == "0x02" else []
        if not names and vendor in (MELLANOX, AMAZON) and child.find("nic") is None:
            names = [("rdmap{}" if vendor == AMAZON else "mlx5_{}").format(sum(len(it[8]) for it in found))]
        found.append((parents, address, vendor, device, code, node, child.get("link_speed", "8.0 GT/s PCIe"),
                      int(child.get("link_width", "16")), names, code == "0x020700"))
        functions_of_nccl(child, [*parents, address], node, found)


def functions_of(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    found = []
    if root.tag == "topology":
        functions_of_hwloc(root, [], -1, found)
    else:
        for cpu in root.findall("cpu"):
            functions_of_nccl(cpu, [], int(cpu.get("numaid")), found)
    return found


def driver_of(vendor, device, code):
    if code.startswith(BRIDGE):
        return "pcieport"
    if vendor == MELLANOX:
        # ConnectX to ConnectX-3.
        number = int(device, 16)
        return "mlx4_core" if 0x1002 <= number <= 0x1010 or 0x6340 <= number <= 0x6764 else "mlx5_core"
    if code.startswith("0x03") or code.startswith("0x12"):
        return {NVIDIA: "nvidia", AMD: "amdgpu"}.get(vendor, "ast")
    if vendor == AMAZON:
        return "efa"
    return "hfi1" if vendor == INTEL and device in ("0x24f0", "0x24f1") else "igb" if code.startswith("0x02") else ""


def add_gpu(m, real, address, vendor, count, probe):
    base = 0x200000000000 + (count << 38)
    m.file(f"{real}/resource", f"0x{base:016x} 0x{base + (128 << 30) - 1:016x} 0x000000000014220c")
    if vendor == NVIDIA:
        title = "NVIDIA data-centre GPU"
        m.file(f"/proc/driver/nvidia/gpus/{address}/information",
               f"Model: \t\t {title}\nIRQ:   \t\t 100\nBus Location: \t {address}")
        probe.append(f"gpu {address} gdr=1 dmabuf=1 {title}")


def machine_of(path):
    """Text recording, number of GPUs and number of RDMA devices of a file; None: no RDMA device, or GeForce."""
    m = Machine()
    probe, names, drivers = [], [], set()
    gpus = amd = 0
    functions = functions_of(path)
    if any(vendor == NVIDIA and device in GEFORCE for _, _, vendor, device, *_ in functions):
        return None
    for parents, address, vendor, device, code, node, speed, width, rdma, infiniband in functions:
        driver = driver_of(vendor, device, code)
        real = m.function(parents, address, vendor, device, code, driver, node, speed, width)
        if driver in ("nvidia", "amdgpu"):
            add_gpu(m, real, address, vendor, gpus, probe)
            gpus, amd = gpus + 1, amd + (driver == "amdgpu")
        for name in rdma:
            rate = "400 Gb/sec (4X NDR)" if speed.startswith("32") else "100 Gb/sec (4X EDR)"
            if float(speed.split(" ")[0]) * width < 110:
                rate = "40 Gb/sec (4X QDR)"
            firmware = "2.42.5000" if driver != "mlx5_core" else NICS["bf3"][4] if device == NICS["bf3"][1] \
                else NICS["cx7"][4]
            add_port(m, real, name, len(names), rate, firmware, "ib" if infiniband else "roce", up=True)
            names.append(name)
            drivers.add(driver)
    if not names:
        return None
    driver = sorted(drivers)[-1]
    module = {"mlx4_core": "mlx4_ib", "mlx5_core": "mlx5_ib", "efa": "efa"}.get(driver, "rdmavt")
    gpu = "" if gpus == 0 else "mi300x" if amd == gpus else "h100"
    host(m, "genoa", gpu, module, driver, "6.8.0-60-generic", "ofed", False, names, probe, gpu == "mi300x")
    return "\n".join(m.text) + "\n", gpus, len(names)


def given_machines(folder):
    """Name, text, GPUs and RDMA devices of each captured machine below `folder` that has both."""
    for path in sorted(pathlib.Path(folder).glob("hwloc/*.xml")) + sorted(pathlib.Path(folder).glob("nccl-xml/*.xml")):
        made = machine_of(path)
        if made:
            yield path.stem, *made
