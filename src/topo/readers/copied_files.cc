#include "topo/readers/copied_files.h"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "topo/readers/tree_limits.h"

namespace gdrperf::topo {

namespace fs = std::filesystem;

CopiedFiles::CopiedFiles(const fs::path& sys, fs::path proc) : sys_(sys), proc_(std::move(proc)) {
  std::error_code error;
  real_sys_ = fs::canonical(sys, error);
}

std::string CopiedFiles::read(const std::string& path, std::size_t most) const {
  std::ifstream in;
  in.rdbuf()->pubsetbuf(nullptr, 0);
  in.open(place_of(path), std::ios::binary);
  std::string bytes(most, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

std::vector<std::string> CopiedFiles::list(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(place_of(folder), error), end; !error && it != end; it.increment(error)) {
    if (names.size() == kMostFunctions) break;
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string CopiedFiles::resolve(const std::string& path) const {
  std::error_code error;
  const fs::path place = place_of(path);
  if (!fs::is_symlink(place, error)) return path;
  const fs::path real = fs::canonical(place, error);
  if (error) return {};
  const fs::path below = real.lexically_relative(real_sys_);
  return below.empty() || *below.begin() == ".." ? std::string() : ("/sys" / below).string();
}

std::string CopiedFiles::link_name(const std::string& path) const {
  std::error_code error;
  return fs::read_symlink(place_of(path), error).filename().string();
}

fs::path CopiedFiles::place_of(const std::string& path) const {
  constexpr std::string_view kSys = "/sys/";
  constexpr std::string_view kProc = "/proc/";
  return path.starts_with(kSys) ? sys_ / path.substr(kSys.size()) : proc_ / path.substr(kProc.size());
}

}  // namespace gdrperf::topo
