#include "gdrperf/compare/side.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/compare/noise.h"

namespace gdrperf::compare {
namespace fs = std::filesystem;

bool Side::add(const Session& session) {
  if (digests_.contains(session.digest)) return false;
  if (digests_.size() == kMostSessions) {
    throw usage_error(fmt::format("more than {} documents on one side", kMostSessions),
                      "a few dozen sessions are enough: leave the older ones out");
  }
  digests_.insert(session.digest);
  if (!session.tool.empty()) tools_.insert(session.tool);
  if (session.partial) partial_.push_back(session.path);
  for (const Outside& cell : session.unusable) unusable_.push_back(printable(session.path) + ": " + printable(cell));
  for (const CellValue& cell : session.cells) {
    std::vector<Series>& all = cells_[cell.key.name];
    auto series = std::find_if(all.begin(), all.end(), [&](const Series& each) {
      return changes(each.key, cell.key, across_).empty();
    });
    if (series == all.end()) series = all.insert(all.end(), Series{cell.key, {}, {}, {}, {}});
    series->values.push_back(cell.value);
    series->starts.push_back(session.started);
    if (!cell.doubt.empty()) series->doubts.push_back(cell.doubt);
    series->last_started = std::max(series->last_started, session.started);
  }
  return true;
}

std::vector<Change> changes(const CellKey& before, const CellKey& now,
                            const std::set<std::string>& across) {
  std::vector<Change> list;
  // Both come from one list of conditions, in one order, unless read from a file.
  for (std::size_t i = 0; i < now.conditions.size(); ++i) {
    const Condition& is = now.conditions[i];
    if (i < before.conditions.size() && before.conditions[i] == is) continue;
    if (across.contains(is.name)) continue;
    const auto was = std::find_if(before.conditions.begin(), before.conditions.end(),
                                  [&](const Condition& each) { return each.name == is.name; });
    const Outside old = was == before.conditions.end() ? Outside("-") : was->value;
    if (old != is.value) list.push_back({is.name, old, is.value});
  }
  return list;
}

namespace {

bool is_document(const fs::path& path) {
  return path.extension() == ".json" && path.filename() != kNoiseFile;
}

/// `folders`: also what is in its folders, as results/baselines/KEY in results/baselines.
void gather(const fs::path& folder, bool folders, std::vector<std::string>& found) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  if (error) throw usage_error(fmt::format("{}: {}", folder.string(), error.message()));
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) {
    if (fs::is_directory(entry, error)) {
      if (folders) gather(entry, false, found);
    } else if (is_document(entry)) {
      found.push_back(entry.string());
    }
  }
}

}  // namespace

std::vector<std::string> documents_at(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (path != "-" && !fs::exists(path, error)) {
        throw usage_error(path + ": no such file or folder");
      }
      found.push_back(path);
      continue;
    }
    const std::size_t before = found.size();
    gather(path, true, found);
    if (found.size() == before) {
      throw usage_error(path + ": no result documents in this folder",
                        "'gdrperf baseline add RESULTS.json... --dir FOLDER' puts them there");
    }
  }
  return found;
}

}  // namespace gdrperf::compare
