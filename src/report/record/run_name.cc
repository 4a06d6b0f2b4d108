#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gdrperf/report/fields.h"
#include "gdrperf/proto/settings.h"
#include "report/record/json_text.h"

namespace gdrperf::report {
namespace {

/// "cuda:0000:3b:00.0" of the pair GPU1/mlx5_0 is GPU1; "simulated:GPU1" says so itself.
std::string memory_name(const std::string& buffer, const std::string& client_buffer, const std::string& pair) {
  constexpr std::string_view kGpu = "cuda:";
  constexpr std::string_view kSimulated = "simulated:";
  if (buffer.starts_with(kSimulated)) return buffer.substr(kSimulated.size());
  if (!buffer.starts_with(kGpu)) return buffer;
  const bool known = !pair.empty() && buffer == client_buffer;
  return known ? pair.substr(0, pair.find('/')) : "GPU" + buffer.substr(kGpu.size());
}

std::string name_of_end(const FieldText& text, const std::string& side) {
  std::string name = memory_name(text(side + "_buffer"), text("client_buffer"), text("pair"));
  name += ":" + text(side + "_device");
  const std::string port = text(side + "_port");
  if (!port.empty() && port != "1") name += "." + port;
  return name;
}

FieldText text_of(const RunRecord& record) {
  return [&record](std::string_view name) { return to_text(field(name).get(record)); };
}

/// Slashes and blanks have a meaning in names.
std::string plain(std::string text) {
  for (char& c : text) {
    if (c == '/' || c == ' ') c = '-';
  }
  return text.empty() ? "-" : text;
}

}  // namespace

std::string to_text(const FieldValue& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(bool yes) const { return yes ? "true" : "false"; }
    std::string operator()(std::uint64_t count) const { return std::to_string(count); }
    std::string operator()(double quantity) const {
      return std::isfinite(quantity) ? fmt::format("{}", rounded(quantity)) : std::string();
    }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Visitor(), value);
}

std::string name_suffix(const FieldText& text) {
  std::string suffix;
  for (const Field& each : fields()) {
    if (each.namer == nullptr && each.setting == nullptr) continue;
    const std::string said = each.in_name(text(each.name));
    if (!said.empty()) suffix += "/" + said;
  }
  return suffix;
}

std::string name_suffix(const RunRecord& record) { return name_suffix(text_of(record)); }

std::string series_name(const RunRecord& record) {
  const TestSpec& spec = record.spec;
  std::string name = to_string(spec.test) + name_suffix(record);
  if (spec.ordering != Ordering::kAuto)
    name += spec.ordering == Ordering::kRelaxed ? ", relaxed ordering" : ", strict ordering";
  if (spec.initiator == Initiator::kCpu) return name;
  return name + ", " + to_text(setting<&TestSpec::initiator>(), static_cast<std::int64_t>(spec.initiator));
}

std::string run_name(const FieldText& text) {
  const std::string client = name_of_end(text, "client");
  const std::string server = name_of_end(text, "server");
  return fmt::format("{}/{}/{}/{}{}", text("op"), text("relation"), client == server ? client : client + ">" + server,
                     text("size_bytes"), name_suffix(text));
}

std::string run_name(const RunRecord& record) { return run_name(text_of(record)); }

std::vector<std::string> run_names(std::span<const RunRecord> runs) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::size_t>> groups;
  for (const RunRecord& run : runs) {
    names.push_back(run_name(run));
    groups[names.back()].push_back(names.size() - 1);
  }
  for (const auto& [name, group] : groups) {
    if (group.size() == 1) continue;
    for (const Field& each : fields()) {
      if (each.identity == Identity::kNo) continue;
      std::set<std::string> values;
      for (const std::size_t i : group) values.insert(to_text(each.get(runs[i])));
      if (values.size() == 1) continue;
      for (const std::size_t i : group) {
        names[i] += fmt::format("/{}:{}", each.name, plain(to_text(each.get(runs[i]))));
      }
    }
  }
  return names;
}

}  // namespace gdrperf::report
