#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gdrperf/compare/noise.h"

namespace gdrperf::compare {

/// Folder of a store with results of `gdrperf cluster`, one folder for each cluster; no machine.
inline constexpr const char* kClustersFolder = "clusters";

/// Outcome for one folder of the store.
struct Stored {
  std::string folder;
  std::size_t added = 0;
  std::size_t already_there = 0;
  std::size_t sessions = 0;  ///< now in it
};

/// Copies documents, unchanged, into `store`/KEY/, one folder for each machine:
/// hosts, CPU, kernel, GPUs and NICs with kind, firmware and driver make the key.
/// A document that is there already is not stored twice. All are read before any
/// is stored. Throws usage_error for a document that cannot be read or holds no
/// figure, Error(kEnvironment) where the store cannot be written.
std::vector<Stored> store_documents(const std::vector<std::string>& paths, const std::string& store);

/// Measures the A/A noise of every cell with kFewestForNoise sessions in the
/// documents at `paths` and records it in `store`/KEY/noise.json, replacing what
/// was recorded there. Throws as store_documents(); Error(kInconclusive) where no
/// cell has enough sessions.
struct RecordedNoise {
  std::vector<std::string> files;
  NoiseTable table;
  std::size_t too_few = 0;  ///< cells with fewer sessions
  std::vector<std::string> warnings;
};
RecordedNoise record_noise(const std::vector<std::string>& paths, const std::string& store);

/// One machine's folder of a store.
struct StoredMachine {
  std::string machine;  ///< the folder's name
  std::size_t sessions = 0;
  std::string first;    ///< started, RFC 3339
  std::string last;
  bool noise = false;   ///< recorded
};
/// By name. Throws usage_error where there is no store, or it has a document that cannot be read.
std::vector<StoredMachine> machines_of(const std::string& store);

/// The documents of that machine; of the only one where `machine` is "". Throws usage_error, naming
/// what there is, for a machine that the store does not have.
std::vector<std::string> documents_of(const std::string& machine, const std::string& store);

/// Removes machines, with their noise (also with their last document), and single documents ("MACHINE/FILE.json", or
/// paths to them) from `store`, and returns what was removed. All are looked up before any is removed: throws
/// usage_error for what is not in the store, Error(kEnvironment) where removing fails.
std::vector<std::string> remove_from_store(const std::vector<std::string>& names, const std::string& store);

}  // namespace gdrperf::compare
