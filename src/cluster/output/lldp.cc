#include "cluster/output/lldp.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

using LldpJson = nlohmann::json;

constexpr const char* kLldpHint =
    R"(like {"hosts": {"n1": OUTPUT of lldpctl -f json on n1, ...}, "switches": {"leaf1": OUTPUT of leaf1, ...}})";

const LldpJson& part_of(const LldpJson& of, const char* name) {
  static const LldpJson kNothing;
  const auto at = of.is_object() ? of.find(name) : of.end();
  return of.is_object() && at != of.end() ? *at : kNothing;
}

// lldpctl makes a list of what it prints several of, and an object of a single one; json0 always a list.
void for_each(const LldpJson& one_or_many, const std::function<void(const LldpJson&)>& take) {
  if (one_or_many.is_array()) {
    for (const LldpJson& each : one_or_many) take(each);
  } else if (!one_or_many.is_null()) {
    take(one_or_many);
  }
}

std::string value_text(const LldpJson& of) {
  if (of.is_string()) return of.get<std::string>();
  std::string text;
  for_each(of, [&](const LldpJson& each) {
    const LldpJson& value = part_of(each, "value");
    if (text.empty() && value.is_string()) text = value.get<std::string>();
  });
  return text;
}

// Its name, or its ID (a MAC address) without one. json: {"leaf1": {"id": ...}}, or {"id": ...} alone; json0:
// [{"id": [...], "name": [...]}].
std::string name_of_chassis(const LldpJson& chassis) {
  std::string name;
  for_each(chassis, [&](const LldpJson& each) {
    if (!name.empty() || !each.is_object()) return;
    if (each.contains("id")) {
      name = value_text(part_of(each, "name"));
      if (name.empty()) name = value_text(each.at("id"));
    } else if (!each.empty() && each.begin()->is_object()) {
      name = each.begin().key();
    }
  });
  return name;
}

using TakeNeighbor = std::function<void(const std::string& interface, const std::string& chassis)>;

// All neighbors that lldpctl printed.
void for_each_neighbor(const LldpJson& output, const TakeNeighbor& take) {
  for_each(part_of(output, "lldp"), [&](const LldpJson& lldp) {
    for_each(part_of(lldp, "interface"), [&](const LldpJson& entry) {
      if (!entry.is_object()) return;
      const auto take_one = [&](const std::string& interface, const LldpJson& inside) {
        const std::string chassis = name_of_chassis(part_of(inside, "chassis"));
        if (!interface.empty() && !chassis.empty()) take(interface, chassis);
      };
      if (part_of(entry, "name").is_string()) {
        take_one(entry.at("name").get<std::string>(), entry);
      } else {
        for (const auto& [interface, inside] : entry.items()) take_one(interface, inside);
      }
    });
  });
}

[[noreturn]] void refuse_lldp(const std::string& path, const std::string& why) {
  throw usage_error(fmt::format("{}: {}", path, why), kLldpHint);
}

LldpJson parse_or_refuse(const std::string& text, const std::string& path) {
  try {
    return LldpJson::parse(text);
  } catch (const LldpJson::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    throw usage_error(fmt::format("{}:{}: no JSON from here on", path, 1 + std::count(text.begin(), end, '\n')),
                      kLldpHint);
  }
}

void check_outputs_of(const LldpJson& outputs, const std::string& path) {
  if (!outputs.is_object()) refuse_lldp(path, "'hosts' and 'switches' are objects, with an output for each name");
  for (const auto& [name, output] : outputs.items()) {
    if (name.empty() || !output.is_object() || !output.contains("lldp"))
      refuse_lldp(path, fmt::format("what '{:.60}' has is not what lldpctl -f json prints: no \"lldp\" in it", name));
  }
}

bool is_json(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

}  // namespace

bool is_lldp(const std::string& text) { return is_json(text) && text.find("\"lldp\"") != std::string::npos; }

cluster::Wiring parse_lldp(const std::string& text, const std::string& path) {
  const LldpJson document = parse_or_refuse(text, path);
  const LldpJson& hosts = part_of(document, "hosts");
  if (!hosts.is_object() || hosts.empty()) refuse_lldp(path, "no 'hosts' with an output of lldpctl -f json for each");
  check_outputs_of(hosts, path);
  cluster::Wiring wiring;
  for (const auto& [host, output] : hosts.items()) {
    for_each_neighbor(output, [&, &host_name = host](const std::string& interface, const std::string& chassis) {
      // Hosts see each other where no switch is between them.
      if (!hosts.contains(chassis)) wiring.attach(host_name, interface, wiring.add_switch(chassis));
    });
  }
  if (wiring.empty()) refuse_lldp(path, "no host there has a neighbor that is a switch");
  const LldpJson& switches = part_of(document, "switches");
  if (switches.is_null()) return wiring;
  check_outputs_of(switches, path);
  for (const auto& [name, output] : switches.items()) wiring.add_switch(name);
  for (const auto& [name, output] : switches.items()) {
    const int own = wiring.add_switch(name);
    for_each_neighbor(output, [&](const std::string&, const std::string& chassis) {
      // Hosts that are not listed are no switches, however many they have beside them.
      if (const int other = wiring.find_switch(chassis); other >= 0) wiring.link(own, other);
    });
  }
  return wiring;
}

cluster::Wiring parse_any_wiring(const std::string& text, const std::string& path) {
  if (!is_json(text)) return cluster::parse_wiring(text, path);
  return is_lldp(text) ? parse_lldp(text, path) : cluster::Wiring();
}

}  // namespace gdrperf::app
