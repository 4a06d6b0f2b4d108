#include "gdrperf/doctor/doctor.h"

#include "checks.h"
#include "text.h"

namespace gdrperf::doctor {

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "OK";
    case Verdict::kWarn:
      return "WARN";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kSkip:
      return "SKIP";
  }
  return "?";
}

// Names and outputs of programs are quoted in findings: one line they stay.
void Check::add(Verdict verdict, std::string subject, std::string found, std::string fix) const {
  findings_.push_back({verdict, name_, one_line(subject), one_line(found), why_, one_line(fix)});
}

std::vector<Finding> examine(const Machine& machine, const Settings& settings) {
  const Survey survey = look_at(machine);
  std::vector<Port> ports;
  for (const RdmaDevice& device : survey.rdma) {
    for (const Port& port : device.ports) {
      ports.push_back(port);
      // iWARP addresses hosts by IP alone.
      if (device.iwarp) ports.back().link_layer = "iWARP";
    }
  }
  Findings findings;
  check_rdma_device(survey, findings);
  check_softnic(survey, settings, findings);
  check_rdma_modules(survey, findings);
  check_device_files(survey, findings);
  check_provider(survey, findings);
  check_port_states(ports, findings);
  check_gids(ports, findings);
  check_mtu(ports, findings);
  check_memlock(survey, findings);
  check_nic_links(survey, findings);
  check_iommu(survey, findings);
  check_governor(survey, findings);
  check_numa_balancing(survey, findings);
  check_nvidia_driver(survey, findings);
  check_gpu_links(survey, findings);
  check_dma_buf(survey, findings);
  check_peer_memory(survey, findings);
  check_acs(survey, findings);
  return findings;
}

}  // namespace gdrperf::doctor
