#include "topo/readers/copied_files.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
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
  const bool lost_link = real_sys_ != "/sys" && place.lexically_normal() != plain_place_of(path).lexically_normal();
  if (!lost_link && !fs::is_symlink(place, error)) return path;
  const fs::path real = fs::canonical(place, error);
  if (error) return {};
  const fs::path below = real.lexically_relative(real_sys_);
  return below.empty() || *below.begin() == ".." ? std::string() : ("/sys" / below).string();
}

std::string CopiedFiles::link_name(const std::string& path) const {
  std::error_code error;
  const fs::path plain = plain_place_of(path);
  const fs::path parent = real_sys_ == "/sys" ? plain.parent_path() : with_lost_links(plain.parent_path());
  if (const std::string target = lost_target(parent / plain.filename()); !target.empty())
    return fs::path(target).filename().string();
  return fs::read_symlink(parent / plain.filename(), error).filename().string();
}

std::string CopiedFiles::lost_target(const fs::path& place) {
  constexpr std::uintmax_t kLongest = 4096;
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(place, error)) || fs::file_size(place, error) > kLongest) return {};
  std::ifstream in(place, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return text.starts_with("../") && text.find('\n') == std::string::npos ? text : std::string();
}

fs::path CopiedFiles::with_lost_links(const fs::path& plain) const {
  fs::path place = sys_;
  for (const fs::path& part : plain.lexically_relative(sys_)) {
    const std::string target = lost_target(place / part);
    place = target.empty() ? place / part : (place / target).lexically_normal();
  }
  return place;
}

fs::path CopiedFiles::place_of(const std::string& path) const {
  const fs::path plain = plain_place_of(path);
  std::error_code error;
  if (real_sys_ == "/sys" || !path.starts_with("/sys/")) return plain;
  if (fs::exists(plain, error) && lost_target(plain).empty()) return plain;
  return with_lost_links(plain);
}

fs::path CopiedFiles::plain_place_of(const std::string& path) const {
  constexpr std::string_view kSys = "/sys/";
  constexpr std::string_view kProc = "/proc/";
  return path.starts_with(kSys) ? sys_ / path.substr(kSys.size()) : proc_ / path.substr(kProc.size());
}

}  // namespace gdrperf::topo
