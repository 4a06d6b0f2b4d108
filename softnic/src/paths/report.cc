#include "paths/report.h"

#include <fmt/format.h>

#include "device/device.h"
#include "paths/ways.h"

namespace gdrperf::softnic {

std::string data_path_text(const Device& device) {
  if (device.config.mode == DeviceMode::kNull) return "window off mode=null: nothing is moved";
  std::string text;
  bool first = true;
  for (const Way* way : ways()) {
    auto obstacle = way->obstacle(device);
    if (device.config.shared == SharedPolicy::kNever && way != &tcp_way()) obstacle = "shared=never";
    if (!obstacle) continue;
    if (!text.empty()) text += '\n';
    const char* state = !obstacle->empty() ? "off" : first ? "first" : "fallback";
    text += fmt::format("{} {} {}", way->name(), state, obstacle->empty() ? way->words() : *obstacle);
    first = first && !obstacle->empty();
  }
  return text;
}

}  // namespace gdrperf::softnic
