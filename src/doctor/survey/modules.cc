#include "doctor/survey/modules.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "doctor/text.h"

#include "gdrperf/base/text.h"

namespace gdrperf::doctor {
namespace {

constexpr std::array kPeerMemoryModules = {"nvidia_peermem", "nv_peer_mem"};

bool is_module_name(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(text, ',')) {
    if (!part.empty() && part != "-") parts.emplace_back(part);
  }
  return parts;
}

bool mentions_peer_memory(std::string_view line) {
  // dkms and the file name it nvidia-peermem.
  return line.find("nvidia-peermem") != std::string_view::npos ||
         std::any_of(kPeerMemoryModules.begin(), kPeerMemoryModules.end(),
                     [&](const char* name) { return line.find(name) != std::string_view::npos; });
}

}  // namespace

std::vector<Module> parse_modules(std::string_view text) {
  std::vector<Module> modules;
  for (const std::string_view line : lines_of(text)) {
    // NAME SIZE COUNT [USERS], /proc/modules adds a state and an address. The
    // count is "-" in a kernel that does not unload modules.
    const auto words = words_of(line);
    if (words.size() < 3 || !is_module_name(words[0])) continue;
    if (!number_of(words[1]) || (!number_of(words[2]) && words[2] != "-")) continue;
    modules.push_back({std::string(words[0]),
                       words.size() > 3 ? split_at_commas(words[3]) : std::vector<std::string>(),
                       words[2] != "-"});
  }
  return modules;
}

const Module* find_module(const std::vector<Module>& modules, std::string_view name) {
  const auto it = std::find_if(modules.begin(), modules.end(),
                               [&](const Module& module) { return module.name == name; });
  return it == modules.end() ? nullptr : &*it;
}

PeerMemory peer_memory(const std::vector<Module>& modules) {
  PeerMemory found;
  for (const char* name : kPeerMemoryModules) {
    const Module* own = find_module(modules, name);
    if (own == nullptr) continue;
    found.module = name;
    found.users_known = own->users_known;
    for (const char* core : {"ib_core", "ib_uverbs"}) {
      const Module* module = find_module(modules, core);
      if (module == nullptr) continue;
      const auto& users = module->used_by;
      if (std::find(users.begin(), users.end(), name) == users.end()) continue;
      found.bound_to = core;
      return found;
    }
  }
  return found;
}

PeerMemoryTrouble peer_memory_trouble(std::string_view log) {
  PeerMemoryTrouble trouble = PeerMemoryTrouble::kNone;
  // Why a symbol did not fit outweighs that one was missing.
  bool no_api = false;
  for (const std::string_view line : lines_of(log)) {
    if (!mentions_peer_memory(line)) continue;
    const auto has = [&](std::string_view words) { return line.find(words) != std::string::npos; };
    const bool unknown = has("Unknown symbol") || has("disagrees about version of symbol") ||
                         has("no symbol version for");
    if (unknown && has("nvidia_p2p_")) return PeerMemoryTrouble::kDriverMismatch;
    if (unknown && has("peer_memory_client")) {
      if (has("disagrees") || has("err -22")) return PeerMemoryTrouble::kAbiMismatch;
      no_api = true;
    }
    if (has("Key was rejected") || has("Required key not available")) {
      trouble = PeerMemoryTrouble::kKeyRejected;
    }
    if (has("Invalid argument")) trouble = PeerMemoryTrouble::kInvalidArgument;
    if (has("Exec format error") || has("version magic")) trouble = PeerMemoryTrouble::kWrongKernel;
    if (has("not found")) trouble = PeerMemoryTrouble::kNotFound;
    if (has("module verification failed") && trouble == PeerMemoryTrouble::kNone) {
      trouble = PeerMemoryTrouble::kUnsigned;
    }
  }
  return no_api ? PeerMemoryTrouble::kNoPeerMemoryApi : trouble;
}

const char* meaning_of(PeerMemoryTrouble trouble) {
  switch (trouble) {
    case PeerMemoryTrouble::kNone: return "";
    case PeerMemoryTrouble::kNoPeerMemoryApi:
      return "the running RDMA stack has no peer memory API (ib_register_peer_memory_client): the "
             "kernel's own has none; that of MLNX_OFED or DOCA has";
    case PeerMemoryTrouble::kAbiMismatch:
      return "ABI mismatch: the module was built against another RDMA stack than the one that runs "
             "(version of ib_register_peer_memory_client disagrees)";
    case PeerMemoryTrouble::kDriverMismatch:
      return "the module was built against another NVIDIA driver than the one that runs (nvidia_p2p_* "
             "does not match)";
    case PeerMemoryTrouble::kNotFound:
      return "there is no such module for the running kernel: modprobe cannot help";
    case PeerMemoryTrouble::kWrongKernel: return "the module was built for another kernel";
    case PeerMemoryTrouble::kKeyRejected:
      return "Secure Boot rejects the module: it is not signed with an enrolled key";
    case PeerMemoryTrouble::kInvalidArgument:
      return "the module refuses to load: it was built without the peer memory API, or for a "
             "combination of kernel, OFED and driver that its version does not support";
    case PeerMemoryTrouble::kUnsigned:
      return "the module is not signed; the kernel took it all the same and is marked tainted: "
             "harmless";
  }
  return "";
}

const char* cure_of(PeerMemoryTrouble trouble) {
  switch (trouble) {
    case PeerMemoryTrouble::kNone:
    case PeerMemoryTrouble::kUnsigned: return "";
    case PeerMemoryTrouble::kNoPeerMemoryApi:
      return "install MLNX_OFED or DOCA-OFED for the running kernel, restart it (sudo "
             "/etc/init.d/openibd restart), and install the NVIDIA driver again, so that it builds "
             "nvidia_peermem against it; or use dma-buf: Linux 5.12 and NVIDIA's open kernel module";
    case PeerMemoryTrouble::kInvalidArgument:
      return "build nvidia_peermem anew after OFED was installed (reinstall the NVIDIA driver), "
             "never nv_peer_mem 1.x with driver 470 and later; or use dma-buf";
    case PeerMemoryTrouble::kAbiMismatch:
      return "rebuild it against the OFED that runs: sudo dkms remove nvidia/VERSION --all && sudo "
             "dkms install nvidia/VERSION  # ('dkms status' names it), or reinstall the NVIDIA "
             "driver after OFED";
    case PeerMemoryTrouble::kDriverMismatch:
      return "rebuild it against the NVIDIA driver that runs, after every driver change: sudo dkms "
             "autoinstall  # or reinstall nv_peer_mem; nvidia_peermem of the driver itself always "
             "matches";
    case PeerMemoryTrouble::kNotFound:
      return "dkms status  # is the nvidia module built for 'uname -r'? If not: install "
             "linux-headers for it, then sudo dkms autoinstall; nvidia_peermem comes with the "
             "driver's dkms package";
    case PeerMemoryTrouble::kWrongKernel:
      return "sudo dkms autoinstall  # builds it for the running kernel, with its headers installed";
    case PeerMemoryTrouble::kKeyRejected:
      return "sudo mokutil --import MOK.der  # the key the module was signed with; then reboot and "
             "enrol it";
  }
  return "";
}

}  // namespace gdrperf::doctor
