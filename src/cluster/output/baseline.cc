#include "cluster/output/baseline.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cluster/output/compare.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/compare/side.h"

namespace gdrperf::app {
namespace {

namespace fs = std::filesystem;

// FNV-1a: names have to be the same everywhere.
std::uint64_t name_digest(std::string_view text) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return digest;
}

std::string cluster_key(const ClusterFile& file) {
  std::set<std::string> hosts;
  std::set<std::string> nics;
  for (const FileNic& nic : file.nics) {
    hosts.insert(nic.host);
    nics.insert(nic.host + "/" + nic.device + "\n");
  }
  std::string all;
  for (const std::string& nic : nics) all += nic;
  return fmt::format("hosts{}-nics{}-{:016x}", hosts.size(), nics.size(), name_digest(all));
}

// Sorts by time, and tells results of one second apart.
std::string stored_name(const ClusterFile& file, const std::string& text) {
  std::string stamp;
  for (const char c : file.started.substr(0, 40)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) stamp += c;
  }
  return fmt::format("{}-{:016x}.json", stamp.empty() ? "undated" : stamp, name_digest(text));
}

void make_cluster_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  throw Error(ExitCode::kEnvironment, fmt::format("cannot make {}: {}", folder.string(), error.message()),
              fmt::format("choose another place with {}", flags::kDir));
}

}  // namespace

bool is_cluster_file(const std::string& path) {
  if (path == "-") return false;
  std::ifstream file(path);
  if (!file) throw usage_error(path + ": cannot be read");
  std::string head(200, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return is_cluster_document(head);
}

std::vector<compare::Stored> store_clusters(const std::vector<std::string>& paths, const std::string& store) {
  std::vector<std::pair<fs::path, std::string>> copies;
  for (const std::string& path : paths) {
    const ClusterFile file = read_cluster(path);
    if (file.partial)
      throw usage_error(path + ": a partial result is no baseline",
                        "finish it with gdrperf cluster --resume; nothing was stored");
    std::string text = without_measurements(path);
    const fs::path to = fs::path(store) / compare::kClustersFolder / cluster_key(file) / stored_name(file, text);
    copies.emplace_back(to, std::move(text));
  }
  std::map<std::string, compare::Stored> folders;
  for (const auto& [to, text] : copies) {
    compare::Stored& stored = folders[to.parent_path().string()];
    std::error_code error;
    if (fs::exists(to, error)) {
      ++stored.already_there;
      continue;
    }
    make_cluster_folder(to.parent_path());
    write_file_atomic(to.string(), text);
    ++stored.added;
  }
  std::vector<compare::Stored> result;
  for (auto& [folder, stored] : folders) {
    stored.folder = folder;
    stored.sessions = compare::documents_at({folder}).size();
    result.push_back(stored);
  }
  return result;
}

std::vector<StoredCluster> clusters_of(const std::string& store) {
  const fs::path root = fs::path(store) / compare::kClustersFolder;
  std::error_code error;
  std::map<std::string, StoredCluster> clusters;
  if (!fs::is_directory(root, error) || fs::is_empty(root, error)) return {};
  for (const std::string& path : compare::documents_at({root.string()})) {
    const std::string name = (fs::path(compare::kClustersFolder) / fs::path(path).parent_path().filename()).string();
    clusters[name].results.push_back(read_cluster(path));
  }
  std::vector<StoredCluster> result;
  for (auto& [name, cluster] : clusters) {
    cluster.name = name;
    result.push_back(std::move(cluster));
  }
  return result;
}

ClusterFile read_cluster_baseline(const std::string& path, std::uint64_t size_bytes, std::string_view buffer) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return read_cluster(path);
  const fs::path below = fs::path(path) / compare::kClustersFolder;
  std::vector<ClusterFile> results;
  for (const std::string& each : compare::documents_at({fs::is_directory(below, error) ? below.string() : path})) {
    if (!is_cluster_file(each)) continue;
    ClusterFile file = read_cluster(each);
    if (!file.partial && file.size_bytes == size_bytes && file.buffer == buffer) results.push_back(std::move(file));
  }
  if (results.empty()) {
    throw usage_error(
        fmt::format("{}: no whole result of gdrperf cluster with -s {} --buffer {}", path, size_bytes, buffer),
        fmt::format("'gdrperf baseline add RESULT.json {} FOLDER' puts them there", flags::kDir));
  }
  return combine_clusters(results);
}

}  // namespace gdrperf::app
