"""A recorded server of two sockets, as hwloc writes it: what tests of placement show, simulate and compare."""

import os

from support import CliTest

GPU = '<object type="PCIDev" pci_busid="{}" pci_type="0302 [10de:2330] [10de:0000] a1" pci_link_speed="63.0">' \
      '<object type="OSDev" name="cuda{}" osdev_type="5"><info name="NVIDIAUUID" value="GPU-{}"/></object></object>'
NIC = '<object type="PCIDev" pci_busid="{}" pci_type="0200 [15b3:1021] [15b3:0000] 00" pci_link_speed="31.5">' \
      '<object type="OSDev" name="mlx5_0" osdev_type="3"><info name="NodeGUID" value="1:2:3:4"/></object></object>'


def bridge(address, inner):
    return f'<object type="Bridge" bridge_type="1-1" bridge_pci="0000:[00-ff]" pci_busid="{address}" ' \
           f'pci_type="0604 [8086:352a] [0000:0000] 00" pci_link_speed="63.0">{inner}</object>'


def machine(near, other_port, other_socket):
    """A server of two sockets: GPUs (number, UUID) beside the NIC on its switch, on another
    port of its root complex, and on the other socket."""
    switch = bridge("0000:01:00.0", bridge("0000:02:00.0", NIC.format("0000:03:00.0")) +
                    bridge("0000:02:01.0", "".join(GPU.format("0000:04:00.0", *gpu) for gpu in near)))
    first = bridge("0000:00:01.0", switch) + bridge(
        "0000:00:02.0", "".join(GPU.format("0000:09:00.0", *gpu) for gpu in other_port))
    second = bridge("0000:80:01.0", "".join(GPU.format("0000:81:00.0", *gpu) for gpu in other_socket))
    socket = '<object type="Package" nodeset="0x0000000{}"><object type="Bridge" bridge_type="0-1" ' \
             'bridge_pci="0000:[{}]">{}</object></object>'
    return '<?xml version="1.0"?><topology version="2.0"><object type="Machine" nodeset="0x00000003">' + \
        socket.format(1, "00-1f", first) + socket.format(2, "80-9f", second) + "</object></topology>"


class MachineTest(CliTest):
    def write(self, name, content):
        """Path of a file of this test."""
        path = os.path.join(self.scratch(), name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def three_relations(self):
        return self.write("machine.xml", machine([(0, "a")], [(1, "b")], [(2, "c")]))
