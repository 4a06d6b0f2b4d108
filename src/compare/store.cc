#include "gdrperf/compare/store.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::vector<std::string> folders_of(const std::string& store) {
  std::vector<std::string> names;
  bool clusters = false;
  std::error_code error;
  for (fs::directory_iterator it(store, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_directory()) continue;
    if (it->path().filename() == kClustersFolder) clusters = true;
    else names.push_back(it->path().filename().string());
  }
  if (names.empty() && !clusters)
    throw usage_error(fmt::format("no baseline in '{}'", store), fmt::format("{} names the store", flags::kDir));
  std::sort(names.begin(), names.end());
  return names;
}

/// The folder or document of the store that `name` means: relative to the store, or as a path.
fs::path in_store(const std::string& name, const std::string& store) {
  std::error_code error;
  const fs::path root = fs::canonical(store, error);
  for (const fs::path& candidate : {fs::path(store) / name, fs::path(name)}) {
    const fs::path found = fs::canonical(candidate, error);
    if (error) continue;
    const fs::path below = found.lexically_relative(root);
    const auto depth = std::distance(below.begin(), below.end()) - (*below.begin() == kClustersFolder ? 1 : 0);
    const bool machine = depth == 1 && below != "." && below != ".." && fs::is_directory(found);
    const bool document =
        depth == 2 && *below.begin() != ".." && found.extension() == ".json" && fs::is_regular_file(found);
    if (machine || document) return found;
  }
  throw usage_error(fmt::format("'{}' is no machine and no document of '{}'; nothing was removed", name, store),
                    fmt::format("'gdrperf baseline list {} {}' lists them", flags::kDir, store));
}

void remove_path(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw Error(ExitCode::kEnvironment, fmt::format("cannot remove {}: {}", path.string(), error.message()));
}

}  // namespace

std::vector<Stored> store_documents(const std::vector<std::string>& paths, const std::string& store) {
  std::vector<std::pair<std::string, fs::path>> copies;
  for (const std::string& path : documents_at(paths)) {
    if (path == "-") throw usage_error("baseline add reads files, not standard input");
    const Session session = read_session(path);
    if (session.cells.empty()) {
      throw usage_error(path + ": has no result that could be a baseline", "nothing was stored");
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
    for (const std::string& cell : side.unusable()) result.warnings.push_back(cell + " has no result");
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

std::vector<StoredMachine> machines_of(const std::string& store) {
  std::vector<StoredMachine> machines;
  for (const std::string& name : folders_of(store)) {
    StoredMachine machine;
    machine.machine = name;
    machine.noise = fs::exists(fs::path(store) / name / kNoiseFile);
    for (const std::string& path : documents_of(name, store)) {
      const std::string started = read_session(path).started;
      machine.first = machine.first.empty() ? started : std::min(machine.first, started);
      machine.last = std::max(machine.last, started);
      ++machine.sessions;
    }
    machines.push_back(std::move(machine));
  }
  return machines;
}

std::vector<std::string> documents_of(const std::string& machine, const std::string& store) {
  const std::vector<std::string> names = folders_of(store);
  if (machine.empty() && names.size() == 1) return documents_at({(fs::path(store) / names.front()).string()});
  if (std::find(names.begin(), names.end(), machine) == names.end()) {
    throw usage_error(machine.empty() ? fmt::format("'{}' has {} machines: name one", store, names.size())
                                      : fmt::format("no machine '{}' in '{}'", machine, store),
                      fmt::format("there are {}", fmt::join(names, ", ")));
  }
  return documents_at({(fs::path(store) / machine).string()});
}

std::vector<std::string> remove_from_store(const std::vector<std::string>& names, const std::string& store) {
  std::set<fs::path> paths;
  for (const std::string& name : names) {
    const fs::path path = in_store(name, store);
    if (!fs::is_directory(path)) {
      paths.insert(path);
      continue;
    }
    for (const std::string& document : documents_at({path.string()})) paths.insert(document);
    if (fs::exists(path / kNoiseFile)) paths.insert(path / kNoiseFile);
  }
  std::vector<std::string> removed;
  std::set<fs::path> folders;
  for (const fs::path& path : paths) {
    remove_path(path);
    removed.push_back(path.string());
    folders.insert(path.parent_path());
  }
  for (const fs::path& folder : folders) {
    const auto entries = std::distance(fs::directory_iterator(folder), fs::directory_iterator());
    // Noise is that of documents.
    if (entries == 1 && fs::exists(folder / kNoiseFile)) {
      remove_path(folder / kNoiseFile);
      removed.push_back((folder / kNoiseFile).string());
    }
    if (fs::is_empty(folder)) remove_path(folder);
  }
  return removed;
}

}  // namespace gdrperf::compare
