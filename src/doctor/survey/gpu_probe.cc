#include "doctor/survey/gpu_probe.h"

#include <algorithm>

#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

/// Text behind the first `count` words of a line.
std::string rest_of(std::string_view line, std::size_t count) {
  const auto words = words_of(line);
  if (words.size() <= count) return {};
  return std::string(trimmed(line.substr(static_cast<std::size_t>(words[count].data() - line.data()))));
}

}  // namespace

GpuProbe parse_gpu_probe(std::string_view text) {
  GpuProbe probe;
  for (const std::string_view line : lines_of(text)) {
    const auto words = words_of(line);
    if (words.size() >= 4 && words[0] == "gpu") {
      probe.gpus.push_back({std::string(words[1]), rest_of(line, 4), words[2] == "gdr=1",
                            words[3] == "dmabuf=1"});
    } else if (words.size() >= 4 && words[0] == "nic") {
      probe.tries.push_back({std::string(words[1]), {}, std::string(words[2]),
                             leading_int(words[3]), rest_of(line, 4)});
    } else if (words.size() >= 5 && words[0] == "reg") {
      probe.tries.push_back({std::string(words[1]), std::string(words[2]), std::string(words[3]),
                             leading_int(words[4]), rest_of(line, 5)});
    } else if (!words.empty() && words[0] == "none") {
      probe.why_none = rest_of(line, 1);
    }
  }
  if (probe.gpus.empty() && probe.tries.empty() && probe.why_none.empty()) {
    probe.why_none = "no GPU was asked";
  }
  return probe;
}

const GpuProbe::Gpu* GpuProbe::gpu(std::string_view address) const {
  const auto it = std::find_if(gpus.begin(), gpus.end(),
                               [&](const Gpu& each) { return each.address == address; });
  return it == gpus.end() ? nullptr : &*it;
}

std::optional<bool> GpuProbe::registers(std::string_view way) const {
  std::optional<bool> answer;
  for (const Try& each : tries) {
    if (each.way == way && !each.gpu.empty()) answer = answer.value_or(false) || each.error == 0;
  }
  return answer;
}

std::optional<bool> GpuProbe::registers(std::string_view nic, std::string_view gpu) const {
  std::optional<bool> answer;
  for (const Try& each : tries) {
    if (each.nic == nic && each.gpu == gpu) answer = answer.value_or(false) || each.error == 0;
  }
  return answer;
}

}  // namespace gdrperf::doctor
