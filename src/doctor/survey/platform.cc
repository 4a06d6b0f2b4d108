#include "doctor/survey/platform.h"

#include <fmt/format.h>

#include <cstdlib>

#include "doctor/survey/survey.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

std::map<std::string, std::string> environment_of(const Machine& machine) {
  std::map<std::string, std::string> environment;
  std::string text = machine.read("/proc/self/environ").text;
  for (char& c : text) {
    if (c == '\0') c = '\n';
  }
  for (const std::string_view line : lines_of(text)) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return environment;
}

void look_at_os(const Machine& machine, Platform& platform) {
  std::string id;
  std::string like;
  std::string version;
  const std::string os = machine.read("/etc/os-release").text;
  const auto unquoted = [](std::string_view value) {
    if (value.size() > 1 && value.front() == '"') value = value.substr(1, value.size() - 2);
    return std::string(value);
  };
  for (const std::string_view line : lines_of(os)) {
    if (const auto value = value_after(line, "ID=")) id = unquoted(*value);
    if (const auto value = value_after(line, "ID_LIKE=")) like = unquoted(*value);
    if (const auto value = value_after(line, "VERSION_ID=")) version = unquoted(*value);
  }
  platform.os = id + (version.empty() ? "" : " " + version);
  const std::string all = id + " " + like;
  const auto names = [&](std::string_view word) { return all.find(word) != std::string::npos; };
  const auto is = [&](const char* word) { return id == word; };
  // Images that call themselves like another, but are configured otherwise.
  if (is("gardenlinux") || is("talos") || is("cos") || is("flatcar") || is("bottlerocket")) {
    platform.distribution = Distribution::kOther;
  } else if (names("suse") || names("sles")) {
    platform.distribution = Distribution::kSuse;
  } else if (names("rhel") || names("fedora") || names("centos") || names("ol") || names("amzn")) {
    platform.distribution = Distribution::kRedHat;
  } else if (os.empty() || names("debian") || names("ubuntu")) {
    platform.distribution = Distribution::kDebian;
  } else {
    platform.distribution = Distribution::kOther;
  }
}

void look_at_dmi(const Machine& machine, Platform& platform) {
  const auto id = [&](const char* name) {
    return line_of(machine, std::string("/sys/class/dmi/id/") + name);
  };
  const std::string vendor = id("sys_vendor");
  const std::string product = id("product_name");
  const std::string tag = id("chassis_asset_tag");
  const auto in = [](const std::string& text, std::string_view words) {
    return text.find(words) != std::string::npos;
  };
  // The tag is what Azure's own agents look for.
  if (tag == "7783-7084-3265-9085-8269-3286-77") platform.cloud = Cloud::kAzure;
  if (in(vendor, "Amazon EC2")) platform.cloud = Cloud::kAws;
  if (in(product, "Google Compute Engine") || in(vendor, "Google")) {
    platform.cloud = Cloud::kGoogle;
  }
  if (in(tag, "OracleCloud")) platform.cloud = Cloud::kOracle;
  if (in(vendor, "Alibaba Cloud")) platform.cloud = Cloud::kAlibaba;
  if (platform.cloud == Cloud::kAws) platform.instance = product;
  const bool hyper_v = in(vendor, "Microsoft") && in(product, "Virtual Machine");
  platform.virtual_machine = platform.virtual_machine || hyper_v || in(product, "KVM") ||
                             in(product, "VMware") || in(vendor, "QEMU") ||
                             in(product, "Standard PC");
  if (platform.cloud == Cloud::kAws && in(product, ".metal")) platform.virtual_machine = false;
  if (platform.virtual_machine) platform.hypervisor = one_line(vendor + " " + product);
}

void look_at_cpu(const Machine& machine, Platform& platform) {
  std::string model_name;
  // Only the first CPU: a server repeats it hundreds of times.
  const std::string all = machine.read("/proc/cpuinfo").text;
  const std::string first = all.substr(0, all.find("\n\n"));
  for (const std::string_view line : lines_of(first)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trimmed(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (key == "vendor_id") platform.cpu_vendor = value;
    if (key == "cpu family") platform.cpu_family = leading_int(value);
    if (key == "model") platform.cpu_model = leading_int(value);
    if (key == "CPU implementer") platform.cpu_vendor = "ARM";
    // Neoverse V2 by Arm (Grace), Olympus by NVIDIA (Vera).
    if (key == "CPU part" && value == "0xd4f") platform.grace = true;
    if (key == "CPU implementer" && value == "0x4e") platform.grace = true;
    if (key == "flags" && value.find(" hypervisor") != std::string_view::npos) {
      platform.virtual_machine = true;
    }
  }
}

Runtime runtime_of(const Machine& machine, const Platform& platform) {
  const auto there = [&](const char* path) {
    return machine.read(path).access != Access::kMissing || !machine.list(path).empty();
  };
  const auto set = [&](const char* name) { return platform.environment.contains(name); };
  const std::string cgroup = machine.read("/proc/self/cgroup").text;
  const std::string mounts = machine.read("/proc/self/mountinfo").text;
  // A pod need not have a service account.
  if (there("/var/run/secrets/kubernetes.io") || set("KUBERNETES_SERVICE_HOST") ||
      cgroup.find("kubepods") != std::string::npos ||
      mounts.find("/var/lib/kubelet/pods/") != std::string::npos ||
      machine.read("/etc/hosts").text.find("Kubernetes-managed") != std::string::npos) {
    return Runtime::kKubernetes;
  }
  if (there("/.singularity.d") || set("APPTAINER_CONTAINER") || set("SINGULARITY_CONTAINER")) {
    return Runtime::kApptainer;
  }
  if (set("ENROOT_ROOTFS") || there("/etc/system/enroot") || there("/etc/enroot") ||
      mounts.find("/enroot/") != std::string::npos) {
    return set("ENROOT_ROOTFS") || mounts.find("/enroot/") != std::string::npos ? Runtime::kEnroot
                                                                                : Runtime::kNone;
  }
  if (there("/run/.containerenv")) return Runtime::kPodman;
  if (there("/.dockerenv") || cgroup.find("/docker/") != std::string::npos) return Runtime::kDocker;
  if (there("/run/systemd/container") || set("container")) return Runtime::kOther;
  return Runtime::kNone;
}

}  // namespace

Platform look_at_platform(const Machine& machine) {
  Platform platform;
  platform.kernel = line_of(machine, "/proc/sys/kernel/osrelease");
  platform.environment = environment_of(machine);
  look_at_os(machine, platform);
  look_at_cpu(machine, platform);
  look_at_dmi(machine, platform);
  platform.runtime = runtime_of(machine, platform);
  // The variable's value is behind four bytes of attributes.
  const std::string secure =
      machine
          .read("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
          .text;
  platform.secure_boot = secure.size() == 5 && secure[4] == 1;
  return platform;
}

bool version_at_least(std::string_view version, std::string_view least) {
  while (!least.empty()) {
    const int have = leading_int(version);
    const int want = leading_int(least);
    if (have != want) return have > want;
    const auto next = [](std::string_view text) {
      const std::size_t end = text.find_first_not_of("0123456789");
      return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    };
    version = next(version);
    least = next(least);
  }
  return true;
}

const char* to_string(Runtime runtime) {
  switch (runtime) {
    case Runtime::kNone: return "none";
    case Runtime::kDocker: return "Docker";
    case Runtime::kPodman: return "Podman";
    case Runtime::kKubernetes: return "Kubernetes";
    case Runtime::kEnroot: return "enroot";
    case Runtime::kApptainer: return "Apptainer";
    case Runtime::kOther: return "container";
  }
  return "";
}

const char* to_string(Cloud cloud) {
  switch (cloud) {
    case Cloud::kNone: return "none";
    case Cloud::kAzure: return "Azure";
    case Cloud::kAws: return "AWS";
    case Cloud::kGoogle: return "Google Cloud";
    case Cloud::kOracle: return "Oracle Cloud";
    case Cloud::kAlibaba: return "Alibaba Cloud";
  }
  return "";
}

}  // namespace gdrperf::doctor
