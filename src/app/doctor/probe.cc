#include "app/doctor/probe.h"

#include <fmt/format.h>

#include <cstring>
#include <ostream>

#include "gdrperf/base/error.h"
#include "gdrperf/mem/gpudirect.h"
#include "gdrperf/verbs/inventory.h"
#include "gdrperf/verbs/resources.h"

namespace gdrperf::app {
namespace {

const char* words_of(int error) { return error == 0 ? "ok" : std::strerror(error); }

void probe_nic(const std::string& name, const std::vector<mem::GpuSupport>& gpus, std::ostream& out) {
  const verbs::Context context = verbs::Context::open(name);
  const verbs::Pd pd = verbs::make_pd(context.get());
  const int asked = mem::ask_for_dma_buf(pd.get());
  out << fmt::format("nic {} dmabuf {} {}\n", name, asked, words_of(asked));
  for (const mem::GpuSupport& gpu : gpus) {
    for (const mem::GpuWay way : {mem::GpuWay::kDmaBuf, mem::GpuWay::kPeerMemory}) {
      const int error = mem::try_registration(pd.get(), gpu, way);
      out << fmt::format("reg {} {} {} {} {}\n", name, gpu.pci_address,
                         way == mem::GpuWay::kDmaBuf ? "dmabuf" : "peermem", error, words_of(error));
    }
  }
}

}  // namespace

int run_gpu_probe(std::ostream& out) {
  std::string why_none;
  const auto gpus = mem::gpu_support(why_none);
  for (const mem::GpuSupport& gpu : gpus) {
    out << fmt::format("gpu {} gdr={:d} dmabuf={:d} {}\n", gpu.pci_address, gpu.gpu_direct_rdma, gpu.dma_buf, gpu.name);
  }
  if (gpus.empty()) out << "none " << why_none << '\n';
  for (const verbs::DeviceInfo& device : verbs::list_devices()) {
    if (device.kind != verbs::DeviceKind::kHardware || !device.error.empty()) continue;
    try {
      probe_nic(device.name, gpus, out);
    } catch (const Error& error) {
      out << "# " << error.what() << '\n';
    }
  }
  return 0;
}

}  // namespace gdrperf::app
