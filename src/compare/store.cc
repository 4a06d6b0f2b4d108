#include "gdrperf/compare/store.h"

#include <cctype>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/compare/session.h"

namespace gdrperf::compare {
namespace fs = std::filesystem;
namespace {

/// Sorts by time, and tells documents of one second apart.
std::string file_name(const Session& session) {
  std::string stamp;
  for (const char c : session.started.substr(0, 40)) {
    if (std::isalnum(static_cast<unsigned char>(c))) stamp += c;
  }
  return fmt::format("{}-{:016x}.json", stamp.empty() ? "undated" : stamp, session.digest);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(ExitCode::kEnvironment, fmt::format("cannot make {}: {}", folder.string(), error.message()),
                fmt::format("choose another place with {}", flags::kDir));
  }
}

}  // namespace

std::vector<Stored> store_documents(const std::vector<std::string>& paths, const std::string& store) {
  std::vector<std::pair<std::string, fs::path>> copies;
  for (const std::string& path : documents_at(paths)) {
    if (path == "-") throw usage_error("baseline add reads files, not standard input");
    const Session session = read_session(path);
    if (session.cells.empty()) {
      throw usage_error(path + ": holds no figure that could be a baseline", "nothing was stored");
    }
    copies.emplace_back(path, fs::path(store) / session.machine / file_name(session));
  }
  std::map<std::string, Stored> folders;
  for (const auto& [from, to] : copies) {
    Stored& stored = folders[to.parent_path().string()];
    std::error_code error;
    if (fs::exists(to, error)) {
      ++stored.already_there;
      continue;
    }
    make_folder(to.parent_path());
    write_file_atomic(to.string(), read_file(from, kLargestDocument));
    ++stored.added;
  }
  std::vector<Stored> result;
  for (auto& [folder, stored] : folders) {
    stored.folder = folder;
    stored.sessions = documents_at({folder}).size();
    result.push_back(stored);
  }
  return result;
}

RecordedNoise record_noise(const std::vector<std::string>& paths, const std::string& store) {
  std::map<std::string, Side> machines;
  for (const std::string& path : documents_at(paths)) {
    const Session session = read_session(path);
    machines[session.machine].add(session);
  }
  RecordedNoise result;
  for (const auto& [machine, side] : machines) {
    NoiseTable table;
    for (const auto& [name, all] : side.cells()) {
      for (const Series& series : all) {
        if (auto noise = measure_noise(series)) {
          result.table.add(*noise);
          table.add(std::move(*noise));
        } else {
          ++result.too_few;
        }
      }
    }
    for (const std::string& cell : side.unusable()) result.warnings.push_back(cell + " has no figure");
    if (table.size() == 0) continue;
    const fs::path folder = fs::path(store) / machine;
    make_folder(folder);
    result.files.push_back((folder / kNoiseFile).string());
    write_file_atomic(result.files.back(), table.to_json());
  }
  if (result.files.empty()) {
    throw Error(ExitCode::kInconclusive,
                fmt::format("no cell has the {} sessions that its noise takes", kFewestForNoise),
                "measure the same thing in more invocations, with nothing changed between them");
  }
  return result;
}

}  // namespace gdrperf::compare
