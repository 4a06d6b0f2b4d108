// A recorded machine, or captured text, that is hostile: findings and a fix script without a control character in them,
// or gdrperf::Error.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "fuzz.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/doctor/doctor.h"
#include "gdrperf/doctor/machine.h"

namespace {

using namespace gdrperf;

void try_script(const std::vector<doctor::Finding>& findings) {
  const std::string script = doctor::fix_script(findings);
  if (printable_lines(script) != script) std::abort();
}

void try_recording(std::string_view text) {
  const UniqueFd file(::memfd_create("recording", MFD_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  try {
    const auto machine = doctor::recorded_machine("/proc/self/fd/" + std::to_string(file.get()));
    try_script(doctor::examine(*machine, {}).findings);
  } catch (const Error&) {  // no recording
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_recording(text);
  try_script(doctor::read_capture(text));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "== file /proc/sys/kernel/osrelease\n6.1.0-44-amd64\n== file /proc/modules\nmlx5_ib 1 0 - Live 0x0\nib_uverbs 1 "
      "1 mlx5_ib, Live 0x0\n"
      "== file /etc/os-release\nID=ubuntu\nID_LIKE=debian\n== link /sys/bus/pci/devices/0000:3b:00.0 "
      "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0\n"
      "== file /sys/bus/pci/devices/0000:3b:00.0/vendor\n0x15b3\n== file "
      "/sys/bus/pci/devices/0000:3b:00.0/class\n0x020700\n"
      "== file /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/current_link_width\n8\n"
      "== file /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/max_link_width\n16\n== link "
      "/sys/class/infiniband/mlx5_0/device ../../../0000:3b:00.0\n"
      "== file /sys/class/infiniband/mlx5_0/fw_ver\n28.39.1002\n== file /sys/class/infiniband/mlx5_0/ports/1/state\n1: "
      "DOWN\n"
      "== file /sys/class/infiniband/mlx5_0/ports/1/link_layer\nInfiniBand\n== denied /dev/infiniband/uverbs0\n"
      "== program lspci -D -vvv\n0000:3b:00.0 Infiniband controller: Mellanox\n== hung nvidia-smi -L\n",
      "mlx5_core 0000:3b:00.0: firmware error\nhca_id: mlx5_0\n  transport: InfiniBand (0)\n  state: PORT_DOWN (1)\n  "
      "max_mtu: 4096 (5)\n"
      "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\nnvidia_peermem 16384 0\nib_core 1 1 "
      "nvidia_peermem\n"};
}
