#include "machine.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/topo/readers.h"

namespace gdrperf::app {
namespace {

constexpr topo::Relation kRelations[] = {topo::Relation::kPix, topo::Relation::kPxb,
                                         topo::Relation::kPhb, topo::Relation::kNode,
                                         topo::Relation::kSys};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The software device would refuse them in each run, without the line.
void check_value(const std::string& key, const std::string& value, const std::string& where) {
  const std::string flag = fmt::format("{}: {}", where, key);
  const bool unitless = value.find_first_not_of("0123456789.") == std::string::npos;
  if (key == "rate") {
    parse_rate(value, flag);
  } else if (key == "header" || key == "slow") {
    const char* end = value.data() + value.size();
    double number = -1;
    const auto parsed = std::from_chars(value.data(), end, number, std::chars_format::fixed);
    const bool header = key == "header";
    const bool whole = !header || value.find('.') == std::string::npos;
    if (parsed.ec != std::errc() || parsed.ptr != end || !whole || number < (header ? 0 : 0.001) ||
        number > (header ? 4096 : 1e6)) {
      throw usage_error(fmt::format("{} '{:.40}': give {}", flag, value,
                                    header ? "bytes per packet, from 0 to 4096" : "a factor, like 1.05"));
    }
  } else {
    const std::string time = key == "ack" && value.starts_with('+') ? value.substr(1) : value;
    if (unitless) throw usage_error(fmt::format("{} '{:.40}': give a time with a unit, like 2us", flag, value));
    if (parse_duration(time, flag) > std::chrono::seconds(60)) {
      throw usage_error(fmt::format("{} '{:.40}': at most 60s", flag, value));
    }
  }
}

void check_options(const std::string& options, const std::string& where) {
  constexpr std::string_view kKnown[] = {"rate", "latency", "ack", "header", "per_message", "slow",
                                         "react"};
  std::istringstream items(options);
  for (std::string item; std::getline(items, item, ',');) {
    const std::string key = item.substr(0, item.find('='));
    if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown) ||
        item.size() < key.size() + 2) {
      throw usage_error(fmt::format("{}: '{:.40}' is no option of a link; there are {}", where, item,
                                    fmt::join(kKnown, "=, ")),
                        "like: PIX rate=12.5GB/s,latency=2us");
    }
    check_value(key, item.substr(key.size() + 1), where);
  }
}

}  // namespace

LinkModel default_link_model() {
  using topo::Relation;
  return {{Relation::kPix, "rate=11GB/s,latency=2us"},
          {Relation::kPxb, "rate=11GB/s,latency=2.2us"},
          {Relation::kPhb, "rate=10GB/s,latency=2.5us"},
          {Relation::kNode, "rate=10GB/s,latency=2.8us"},
          {Relation::kSys, "rate=2GB/s,latency=4us"}};
}

LinkModel parse_link_model(const std::string& text, const std::string& name) {
  LinkModel model = default_link_model();
  std::set<topo::Relation> seen;
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}:{}", name, ++number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string relation;
    std::string options;
    std::string more;
    if (!(words >> relation)) continue;
    const auto known = topo::relation_from_token(relation);
    if (!known) {
      throw usage_error(fmt::format("{}: '{:.40}' is no relation; there are PIX, PXB, PHB, NODE and SYS",
                                    where, relation));
    }
    if (!(words >> options) || words >> more) {
      throw usage_error(fmt::format("{}: a line is a relation and options without blanks", where),
                        "like: PIX rate=12.5GB/s,latency=2us");
    }
    check_options(options, where);
    if (!seen.insert(*known).second) {
      throw usage_error(fmt::format("{}: {} comes twice", where, relation));
    }
    model[*known] = options;
  }
  return model;
}

LinkModel read_link_model(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  return parse_link_model(topo::read_capture(path, kMost), path);
}

std::string client_device(topo::Relation relation) {
  return lower(std::string(to_string(relation))) + "0";
}

std::string server_device(topo::Relation relation) {
  return lower(std::string(to_string(relation))) + "1";
}

std::string softnic_devices(const LinkModel& model, const std::set<topo::Relation>& relations,
                            Copy copy) {
  std::string text;
  for (const topo::Relation relation : kRelations) {
    if (!relations.contains(relation)) continue;
    const std::string options = model.at(relation) + (copy == Copy::kEdges ? ",copy=edges" : "");
    for (const std::string& device : {client_device(relation), server_device(relation)}) {
      text += fmt::format("{}{}:{}", text.empty() ? "" : ";", device, options);
    }
  }
  return text;
}

}  // namespace gdrperf::app
