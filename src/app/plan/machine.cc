#include "app/plan/machine.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/compat/real.h"
#include "gdrperf/base/units.h"
#include "gdrperf/topo/readers.h"

namespace gdrperf::app {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The software device would refuse them in each run, without the line.
void check_value(const std::string& key, const std::string& value, const std::string& where) {
  const std::string flag = fmt::format("{}: {}", where, key);
  const bool unitless = value.find_first_not_of("0123456789.") == std::string::npos;
  if (key == "rate" || key == "strict") {
    parse_rate(value, flag);
  } else if (key == "header" || key == "slow") {
    const char* end = value.data() + value.size();
    double number = -1;
    const auto parsed = real_from_chars(value.data(), end, number, std::chars_format::fixed);
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
                                         "strict", "react"};
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

bool is_pair(const std::string& word) {
  const std::size_t colon = word.find(':');
  return word.starts_with("GPU") && colon != word.npos && colon + 1 < word.size();
}

/// Link of one pair, and the name of its software devices but for the number.
struct PairLink {
  topo::Relation relation;
  std::string device;
  std::string options;
};

PairLink link_of(const LinkModel& model, const topo::Pair& pair) {
  const auto own = model.pairs.find(pair.gpu + ":" + pair.nic.raw());
  const std::string relation = lower(std::string(to_string(*pair.relation)));
  if (own == model.pairs.end()) return {*pair.relation, relation, model.relations.at(*pair.relation)};
  return {*pair.relation, fmt::format("{}pair{}_", relation, std::distance(model.pairs.begin(), own)), own->second};
}

}  // namespace

LinkModel default_link_model() {
  using topo::Relation;
  return {{{Relation::kPix, "rate=11GB/s,latency=2us"},
           {Relation::kPxb, "rate=11GB/s,latency=2.2us"},
           {Relation::kPhb, "rate=10GB/s,latency=2.5us"},
           {Relation::kNode, "rate=10GB/s,latency=2.8us"},
           {Relation::kSys, "rate=2GB/s,latency=4us"}},
          {}};
}

LinkModel parse_link_model(const std::string& text, const std::string& name) {
  LinkModel model = default_link_model();
  std::set<std::string> seen;
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
    if (!known && !is_pair(relation)) {
      throw usage_error(fmt::format(
          "{}: '{:.40}' is no relation; give PIX, PXB, PHB, NODE or SYS, or a pair like GPU0:mlx5_0", where, relation));
    }
    if (!(words >> options) || words >> more) {
      throw usage_error(fmt::format("{}: a line is a relation, or a pair, and options without blanks", where),
                        "like: PIX rate=12.5GB/s,latency=2us");
    }
    check_options(options, where);
    if (!seen.insert(relation).second) {
      throw usage_error(fmt::format("{}: {} comes twice", where, relation));
    }
    (known ? model.relations[*known] : model.pairs[relation]) = options;
  }
  return model;
}

LinkModel read_link_model(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  return parse_link_model(topo::read_capture(path, kMost), path);
}

std::string client_device(const LinkModel& model, const topo::Pair& pair) { return link_of(model, pair).device + "0"; }

std::string server_device(const LinkModel& model, const topo::Pair& pair) { return link_of(model, pair).device + "1"; }

std::string softnic_devices(const LinkModel& model, const std::vector<topo::Pair>& pairs, Copy copy) {
  // By relation, then the pairs of their own.
  std::map<std::pair<topo::Relation, std::string>, std::string> links;
  for (const topo::Pair& pair : pairs) {
    const PairLink link = link_of(model, pair);
    links[{link.relation, link.device}] = link.options;
  }
  std::string text;
  for (const auto& [name, link] : links) {
    const std::string options = link + (copy == Copy::kEdges ? ",copy=edges" : "");
    for (const char* end : {"0", "1"})
      text += fmt::format("{}{}{}:{}", text.empty() ? "" : ";", name.second, end, options);
  }
  return text;
}

}  // namespace gdrperf::app
