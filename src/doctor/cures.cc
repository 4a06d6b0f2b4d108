#include "doctor/cures.h"

#include <fmt/format.h>

namespace gdrperf::doctor {

Cure load_module(std::string_view module) {
  return {fmt::format("sudo modprobe {}", module),
          fmt::format("echo {0} | sudo tee /etc/modules-load.d/{0}.conf", module),
          fmt::format("sudo modprobe -r {0}; sudo rm /etc/modules-load.d/{0}.conf", module)};
}

Cure set_sysctl(std::string_view name, std::string_view value, std::string_view before) {
  return {fmt::format("sudo sysctl -w {}={}", name, value),
          fmt::format("echo '{} = {}' | sudo tee -a /etc/sysctl.d/90-rdma.conf", name, value),
          fmt::format("sudo sysctl -w {}={}; sudo sed -i '/^{} /d' /etc/sysctl.d/90-rdma.conf", name,
                      before, name)};
}

Cure kernel_words(const Platform& platform, std::string_view words) {
  if (platform.container()) {
    return {
        fmt::format("on the host, not in this container: add '{}' to the kernel's command line, then reboot", words),
        "", fmt::format("take '{}' out again, on the host", words)};
  }
  switch (platform.distribution) {
    case Distribution::kRedHat:
      return {fmt::format("sudo grubby --update-kernel=ALL --args='{}'  # then reboot", words),
              "", fmt::format("sudo grubby --update-kernel=ALL --remove-args='{}'", words)};
    case Distribution::kSuse:
      return {fmt::format("sudo sed -i 's/^GRUB_CMDLINE_LINUX_DEFAULT=\"/&{} /' /etc/default/grub && "
                          "sudo grub2-mkconfig -o /boot/grub2/grub.cfg  # then reboot",
                          words),
              "", fmt::format("take '{}' out of /etc/default/grub again", words)};
    case Distribution::kDebian:
      return {fmt::format("sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{} /' /etc/default/grub && sudo "
                          "update-grub  # then reboot",
                          words),
              "",
              fmt::format("sudo sed -i 's/{} //' /etc/default/grub && sudo update-grub", words)};
    case Distribution::kOther: break;
  }
  return {fmt::format("add '{}' to the kernel's command line in the boot loader, then reboot", words),
          "", fmt::format("take '{}' out again", words)};
}

std::string after_grub_defaults(const Platform& platform) {
  switch (platform.distribution) {
    case Distribution::kDebian: return "sudo update-grub  # then reboot";
    case Distribution::kRedHat:
    case Distribution::kSuse: return "sudo grub2-mkconfig -o /boot/grub2/grub.cfg  # then reboot";
    case Distribution::kOther: break;
  }
  return "rebuild the boot loader's configuration as this system does it, then reboot";
}

Cure set_mtu(const Platform& platform, const Outside& name, int mtu, int before) {
  const std::string netdev = shell_word(name);
  Cure cure;
  cure.now = fmt::format(
      "sudo ip link set {} mtu {}  # 4200 will do; on both hosts, and on the switch", netdev, mtu);
  if (platform.distribution == Distribution::kRedHat) {
    cure.for_good = fmt::format("sudo nmcli connection modify {0} 802-3-ethernet.mtu {1}", netdev, mtu);
  } else if (platform.distribution == Distribution::kSuse) {
    cure.for_good = fmt::format(
        "MTU='{1}' in /etc/sysconfig/network/ifcfg-{0}, then sudo wicked ifreload {0}; with NetworkManager: "
        "sudo nmcli connection modify {0} 802-3-ethernet.mtu {1}",
        netdev, mtu);
  } else if (platform.distribution == Distribution::kOther) {
    cure.for_good = fmt::format(
        "mtu {1} for {0} in what configures the network of this system: the command alone ends with a reboot", netdev,
        mtu);
  } else {
    cure.for_good = fmt::format(
        "netplan: 'mtu: {1}' below {0} in /etc/netplan/*.yaml, then 'sudo netplan apply'; with "
        "NetworkManager: sudo nmcli connection modify {0} 802-3-ethernet.mtu {1}",
        netdev, mtu);
  }
  if (before > 0) cure.undo = fmt::format("sudo ip link set {} mtu {}", netdev, before);
  return cure;
}

std::string container_devices(const Platform& platform) {
  switch (platform.runtime) {
    case Runtime::kKubernetes:
      return "give the pod an RDMA resource in resources.limits (rdma/hca_shared_devices_a: 1, or the "
             "SR-IOV one: 'kubectl describe node' lists them) and securityContext.capabilities.add: "
             "[IPC_LOCK]";
    case Runtime::kPodman:
      return "podman run --device=/dev/infiniband --ulimit memlock=-1 --network=host --group-add "
             "keep-groups ...";
    case Runtime::kEnroot:
      return "enroot start --mount /dev/infiniband:/dev/infiniband ...  # or the hook "
             "99-mellanox.sh, with MELLANOX_VISIBLE_DEVICES=all";
    case Runtime::kApptainer:
      return "apptainer exec --bind /dev/infiniband ...  # /dev is whole unless apptainer.conf has "
             "'mount dev = minimal'";
    default:
      return "docker run --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1 "
             "--network=host ...";
  }
}

std::string container_memlock(const Platform& platform) {
  switch (platform.runtime) {
    case Runtime::kKubernetes:
      return "securityContext.capabilities.add: [IPC_LOCK] in the pod, or LimitMEMLOCK=infinity for "
             "the node's containerd.service";
    case Runtime::kPodman:
      return "podman run --ulimit memlock=-1 ...  # rootless: no more than the user's own hard limit";
    case Runtime::kEnroot:
    case Runtime::kApptainer:
      return "raise the limit where the container is started: it keeps that of its shell or of "
             "slurmd (LimitMEMLOCK=infinity; PropagateResourceLimitsExcept=MEMLOCK in slurm.conf)";
    default:
      return "docker run --ulimit memlock=-1 ...  # or for all of them: default-ulimits in "
             "/etc/docker/daemon.json";
  }
}

std::string container_network(const Platform& platform) {
  switch (platform.runtime) {
    case Runtime::kKubernetes:
      return "hostNetwork: true, or an SR-IOV VF with its own RDMA device (network operator: SriovNetwork with "
             "'rdma: true'); the GIDs of a macvlan interface stay with the host's device";
    case Runtime::kPodman: return "podman run --network=host ...";
    case Runtime::kEnroot:
    case Runtime::kApptainer: return "these share the host's network unless set otherwise";
    default: return "docker run --network=host ...";
  }
}

std::string container_gpus(const Platform& platform) {
  switch (platform.runtime) {
    case Runtime::kKubernetes: return "resources.limits: nvidia.com/gpu: 1 in the pod";
    case Runtime::kPodman: return "podman run --device nvidia.com/gpu=all ...";
    case Runtime::kEnroot: return "NVIDIA_VISIBLE_DEVICES=all enroot start ...";
    case Runtime::kApptainer: return "apptainer exec --nv ...";
    default: return "docker run --gpus all ...";
  }
}

}  // namespace gdrperf::doctor
