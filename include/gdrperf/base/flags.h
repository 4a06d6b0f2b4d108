#pragma once

/// Options of commands that modules below `app` name in messages, so that each is spelled
/// once. What a test itself is made of has its flags in the option table (proto/settings.h).
namespace gdrperf::flags {

// Flags of the other end's address and of who may talk to it.
inline constexpr const char* kPort = "-p";
inline constexpr const char* kBind = "--bind";
inline constexpr const char* kToken = "--token";

// Devices and what this machine is.
inline constexpr const char* kSoftnic = "--softnic";
inline constexpr const char* kNvidiaSmi = "--nvidia-smi";

// Flags of limits on a run.
inline constexpr const char* kMaxMemory = "--max-memory";
inline constexpr const char* kMaxTime = "--max-time";

// Flags of figures that a run has to reach.
inline constexpr const char* kMinGbps = "--min-gbps";
inline constexpr const char* kMinEfficiency = "--min-efficiency";
inline constexpr const char* kMaxP99Us = "--max-p99-us";

// Comparisons and stores of documents.
inline constexpr const char* kSensitivity = "--sensitivity";
inline constexpr const char* kAcross = "--across";
inline constexpr const char* kDir = "--dir";

// Facts that another program's output does not tell.
inline constexpr const char* kRelation = "--relation";

// Ranks of a cluster run.
inline constexpr const char* kRank = "--rank";
inline constexpr const char* kRanks = "--ranks";
inline constexpr const char* kRoot = "--root";

}  // namespace gdrperf::flags
