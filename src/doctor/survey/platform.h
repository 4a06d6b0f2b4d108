#pragma once

#include <map>
#include <string>
#include <string_view>

#include "gdrperf/doctor/machine.h"

namespace gdrperf::doctor {

enum class Distribution { kDebian, kRedHat, kSuse, kOther };
enum class Runtime { kNone, kDocker, kPodman, kKubernetes, kEnroot, kApptainer, kOther };
enum class Cloud { kNone, kAzure, kAws, kGoogle, kOracle, kAlibaba };

/// Kind of machine: advice differs by it.
struct Platform {
  std::string kernel;  ///< "6.8.0-60-generic"
  Distribution distribution = Distribution::kDebian;
  std::string os;  ///< "ubuntu 24.04"
  bool virtual_machine = false;
  std::string hypervisor;  ///< "Microsoft Corporation Virtual Machine"
  Cloud cloud = Cloud::kNone;
  std::string instance;  ///< the cloud's name of the machine type, where it tells
  Runtime runtime = Runtime::kNone;
  std::string cpu_vendor;  ///< "GenuineIntel", "AuthenticAMD", "ARM"
  int cpu_family = 0;
  int cpu_model = 0;
  bool grace = false;  ///< NVIDIA Grace or Vera
  bool secure_boot = false;
  std::map<std::string, std::string> environment;  ///< of this process, RDMA's and containers'

  bool container() const { return runtime != Runtime::kNone; }
  bool arm() const { return cpu_vendor == "ARM"; }
};

Platform look_at_platform(const Machine& machine);

/// "6.8.0-60" is at least 5.12.
bool version_at_least(std::string_view version, std::string_view least);

const char* to_string(Runtime runtime);
const char* to_string(Cloud cloud);

}  // namespace gdrperf::doctor
