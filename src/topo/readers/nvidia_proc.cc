#include "gdrperf/topo/nvidia_proc.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "gdrperf/base/file.h"

namespace gdrperf::topo {
namespace {

/// "Model: \t NVIDIA H200" -> "NVIDIA H200"
std::string model_in(const std::filesystem::path& information) {
  constexpr std::string_view kKey = "Model:";
  std::ifstream in(information);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(kKey)) continue;
    const std::size_t first = line.find_first_not_of(" \t", kKey.size());
    return first == std::string::npos ? std::string() : line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
  }
  return {};
}

}  // namespace

std::vector<NvidiaGpu> nvidia_gpus(const std::string& root) {
  std::vector<NvidiaGpu> gpus;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/proc/driver/nvidia/gpus", error)) {
    gpus.push_back({entry.path().filename().string(), model_in(entry.path() / "information")});
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const NvidiaGpu& one, const NvidiaGpu& other) { return one.pci_address < other.pci_address; });
  return gpus;
}

int nvidia_gpus_on_bus(const std::string& root) {
  int gpus = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/sys/bus/pci/devices", error)) {
    // Display controllers: 0300 and 0302; other functions of the card are sound and USB.
    gpus += read_line_or_empty(entry.path() / "vendor") == "0x10de" &&
            read_line_or_empty(entry.path() / "class").starts_with("0x03");
  }
  return gpus;
}

std::string nvidia_version_in(const std::string& line) {
  // The first word of three digits and a dot.
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
    if (word.size() > 4 && std::all_of(word.begin(), word.begin() + 3, digit) && word[3] == '.') return word;
  }
  return {};
}

std::string nvidia_driver_version(const std::string& root) {
  return nvidia_version_in(read_line_or_empty(root + "/proc/driver/nvidia/version"));
}

}  // namespace gdrperf::topo
