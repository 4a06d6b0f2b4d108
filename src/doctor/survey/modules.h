#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gdrperf::doctor {

/// One loaded kernel module.
struct Module {
  std::string name;
  std::vector<std::string> used_by;  ///< modules that hold it
  bool users_known = true;           ///< false in a kernel that does not unload modules
};

/// The lines of lsmod or /proc/modules within `text`; others are passed over.
std::vector<Module> parse_modules(std::string_view text);

const Module* find_module(const std::vector<Module>& modules, std::string_view name);

/// State of NVIDIA's peer memory module in the RDMA core. It registers with
/// ib_core or, in newer stacks, ib_uverbs, and only then is there for them.
struct PeerMemory {
  std::string module;    ///< "nvidia_peermem", "nv_peer_mem"; "": not loaded
  std::string bound_to;  ///< "ib_core", "ib_uverbs"; "": loaded, but bound to neither
  bool users_known = true;
};
PeerMemory peer_memory(const std::vector<Module>& modules);

/// Why the peer memory module did not load, from dmesg or modprobe.
enum class PeerMemoryTrouble {
  kNone,
  kNoPeerMemoryApi,  ///< the RDMA core has no ib_register_peer_memory_client
  kAbiMismatch,      ///< it has one of another version: built against another stack
  kDriverMismatch,   ///< nvidia_p2p_*: built against another NVIDIA driver
  kNotFound,         ///< there is no such module for this kernel
  kWrongKernel,      ///< built for another kernel
  kKeyRejected,      ///< Secure Boot refuses an unsigned module
  kInvalidArgument,  ///< the module refuses: built without the peer memory API
  kUnsigned,         ///< only a warning: the module was accepted
};
PeerMemoryTrouble peer_memory_trouble(std::string_view log);

/// One line on what `trouble` means, and what to do about it.
const char* meaning_of(PeerMemoryTrouble trouble);
const char* cure_of(PeerMemoryTrouble trouble);

}  // namespace gdrperf::doctor
