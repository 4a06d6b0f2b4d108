#include "cluster/output/file.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cluster/output/lldp.h"
#include "gdrperf/base/compat/bits.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"

namespace gdrperf::app {
namespace {

using FileJson = nlohmann::json;

constexpr std::size_t kMostBytes = 1u << 30;
constexpr std::size_t kRecordBytes = 12;

FileEffect effect_of(const FileJson& value) {
  if (value.is_null()) return {};
  return {true, value.at("shift_percent"), value.at("ci95_low_percent"), value.at("ci95_high_percent")};
}

/// Throws for a fraction, which may be out of the type's range.
template <class Number>
Number whole(const FileJson& value) {
  return static_cast<Number>(value.get_ref<const FileJson::number_integer_t&>());
}
int number_or(const FileJson& value, int otherwise) { return value.is_null() ? otherwise : whole<int>(value); }
std::string text_or_empty(const FileJson& value) { return value.is_null() ? std::string() : value.get<std::string>(); }

FileSuspect suspect_of(const FileJson& value) {
  FileSuspect suspect;
  suspect.part = value.at("part");
  suspect.verdict = value.at("verdict");
  suspect.rank = number_or(value.at("rank"), -1);
  suspect.nic = number_or(value.at("nic"), -1);
  suspect.peer = number_or(value.at("peer_nic"), -1);
  suspect.rail = number_or(value.at("rail"), -1);
  suspect.leaf = text_or_empty(value.at("leaf"));
  suspect.pod = text_or_empty(value.value("pod", FileJson()));
  suspect.other = text_or_empty(value.value("other", FileJson()));
  suspect.way = value.at("way");
  suspect.series = value.value("series", "bandwidth");
  suspect.when = value.value("when", "always");
  if (suspect.when != "always") suspect.bad_share = value.at("bad_share");
  const FileJson& again = value.at("retest_shift_percent");
  suspect.percent = again.is_null() ? value.at("shift_percent").get<double>() : again.get<double>();
  suspect.retests = whole<int>(value.at("retests"));
  return suspect;
}

std::vector<cluster::Sample> unpack(const std::string& bytes, const std::string& path) {
  if (bytes.size() % kRecordBytes != 0) {
    throw usage_error(fmt::format("{}: {} bytes are no whole number of measurements", path, bytes.size()));
  }
  std::vector<cluster::Sample> samples(bytes.size() / kRecordBytes);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::uint32_t words[3];
    for (std::size_t word = 0; word < 3; ++word) {
      words[word] = 0;
      for (std::size_t byte = 0; byte < 4; ++byte) {
        words[word] |= std::uint32_t{static_cast<unsigned char>(bytes[i * kRecordBytes + word * 4 + byte])}
                       << (8 * byte);
      }
    }
    samples[i] = {words[0], words[1], bit_cast<float>(words[2])};
  }
  return samples;
}

// Of the document itself, or of one of its further series.
std::vector<cluster::Sample> read_measurements(const FileJson& document, const std::string& path,
                                               const ClusterFile& file) {
  std::vector<cluster::Sample> samples;
  if (const FileJson& beside = document.at("measurements_file"); !beside.is_null()) {
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
    const std::string name = beside.get<std::string>();
    // A document from elsewhere names no file of ours.
    if (name.find('/') != std::string::npos) {
      throw usage_error(fmt::format("{}: measurements_file '{:.60}' is not in the same folder", path, name));
    }
    samples = unpack(read_file(folder + name, kMostBytes), folder + name);
  } else {
    for (const FileJson& one : document.at("measurements")) {
      samples.push_back({whole<std::uint32_t>(one.at(0)), whole<std::uint32_t>(one.at(1)), one.at(2).get<float>()});
    }
  }
  // Documents of earlier versions do not say when.
  std::size_t at = 0;
  std::uint32_t moment = 0;
  for (const FileJson& end : document.value("moment_ends", FileJson::array())) {
    for (; at < std::min(samples.size(), whole<std::size_t>(end)); ++at) samples[at].moment = moment;
    ++moment;
  }
  const auto wrong = [&](const cluster::Sample& sample) {
    return sample.from >= file.nics.size() || sample.to >= file.nics.size() || !(sample.gbytes > 0);
  };
  if (std::any_of(samples.begin(), samples.end(), wrong)) {
    throw usage_error(
        fmt::format("{}: a measurement is of a NIC that the document does not list, or has no rate", path));
  }
  return samples;
}

void check_suspects(const ClusterFile& file, const std::string& path) {
  const auto count = static_cast<int>(file.nics.size());
  const auto unknown = [&](int nic) { return nic < 0 || nic >= count; };
  if (std::any_of(file.losing.begin(), file.losing.end(), unknown)) {
    throw usage_error(fmt::format("{}: losses are of a NIC that the document does not list", path));
  }
  for (const FileSuspect& suspect : file.suspects) {
    if (suspect.nic >= count || suspect.peer >= count) {
      throw usage_error(fmt::format("{}: a suspect is a NIC that the document does not list", path));
    }
  }
}

}  // namespace

const FileRank* ClusterFile::rank(int number) const {
  const auto at = std::find_if(ranks.begin(), ranks.end(), [&](const FileRank& each) { return each.rank == number; });
  return at == ranks.end() ? nullptr : &*at;
}

bool is_cluster_document(std::string_view text) {
  return text.substr(0, 200).find("\"gdrperf-cluster/") != std::string_view::npos;
}

ClusterFile parse_cluster(const std::string& text, const std::string& path) {
  ClusterFile file;
  try {
    const FileJson document = FileJson::parse(text);
    const std::string schema = document.at("schema");
    if (schema != "gdrperf-cluster/1") {
      throw usage_error(fmt::format("{}: its schema is '{:.40}', which is not gdrperf-cluster/1", path, schema));
    }
    file.started = document.at("started");
    file.verdict = document.at("verdict");
    file.partial = document.at("partial");
    const FileJson& test = document.at("test");
    file.size_bytes = whole<decltype(file.size_bytes)>(test.at("size_bytes"));
    file.buffer = test.value("buffer", "host");
    file.duration_s = test.at("duration_s");
    file.seed = whole<decltype(file.seed)>(test.at("seed"));
    file.matchings = whole<decltype(file.matchings)>(test.at("matchings"));
    file.rounds = whole<decltype(file.rounds)>(test.at("rounds"));
    file.rounds_done = whole<decltype(file.rounds_done)>(test.at("rounds_done"));
    file.runs_per_round = whole<int>(test.value("runs_per_round", FileJson(2)));
    file.seconds_per_round = test.value("seconds_per_round", 0.0);
    file.typical_gbytes = document.at("typical_gbytes");
    for (const FileJson& one : document.at("ranks")) {
      file.ranks.push_back({whole<int>(one.at("rank")), one.at("host"), text_or_empty(one.at("lost")),
                            one.value("node", "")});
    }
    for (const FileJson& one : document.at("nics")) {
      file.nics.push_back({whole<int>(one.at("rank")), one.at("host"), one.at("device"), whole<int>(one.at("rail")),
                           effect_of(one.at("sends")), effect_of(one.at("receives"))});
    }
    for (const FileJson& one : document.value("unexpected", FileJson::array()))
      file.unexpected.emplace_back(whole<int>(one.at("rank")), one.at("what"));
    for (const FileJson& one : document.value("losses", FileJson::array()))
      file.losing.push_back(whole<int>(one.at("nic")));
    for (const FileJson& one : document.value("failed", FileJson::array())) {
      for (const char* side : {"from", "to"}) {
        const int nic = whole<int>(one.at(side));
        const auto at = static_cast<std::size_t>(nic);
        if (nic >= 0 && at < file.nics.size() && !file.nics[at].sends.known && !file.nics[at].receives.known)
          file.failed.try_emplace(nic, one.at("why"));
      }
    }
    for (const FileJson& one : document.at("suspects")) file.suspects.push_back(suspect_of(one));
    file.measurements = read_measurements(document, path, file);
    for (const FileJson& one : document.value("more", FileJson::array())) {
      file.more.push_back({one.at("series"), whole<std::uint64_t>(one.at("size_bytes")),
                           read_measurements(one, path, file)});
    }
  } catch (const nlohmann::json::exception& error) {
    throw usage_error(fmt::format("{}: no whole document of gdrperf cluster: {}", path, error.what()),
                      "give the file that gdrperf cluster --json FILE wrote");
  }
  check_suspects(file, path);
  return file;
}

ClusterFile read_cluster(const std::string& path) { return parse_cluster(read_file(path, kMostBytes), path); }

std::string without_measurements(const std::string& path) {
  try {
    auto document = nlohmann::ordered_json::parse(read_file(path, kMostBytes));
    const auto strip = [](nlohmann::ordered_json& of) {
      of["measurements_file"] = nullptr;
      of["measurements"] = of["retests"] = nlohmann::ordered_json::array();
    };
    strip(document);
    if (document.contains("more")) {
      for (auto& series : document["more"]) strip(series);
    }
    return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  } catch (const nlohmann::json::exception& error) {
    throw usage_error(fmt::format("{}: no whole document of gdrperf cluster: {}", path, error.what()));
  }
}

cluster::Leaves parse_leaves(const std::string& text, const std::string& path) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && text[first] == '{';
  if (!json || is_lldp(text)) return parse_any_wiring(text, path).leaves();
  cluster::Leaves leaves;
  try {
    const FileJson document = FileJson::parse(text);
    const auto take = [&](const FileJson& of) {
      for (const auto& [leaf, hosts] : of.items()) {
        for (const FileJson& host : hosts) leaves[host.get<std::string>()] = leaf;
      }
    };
    for (const auto& [name, inside] : document.items()) {
      if (inside.is_object()) take(inside);
      else take(FileJson{{name, inside}});
    }
  } catch (const nlohmann::json::exception& error) {
    throw usage_error(fmt::format("{}: no JSON of leaves: {}", path, error.what()),
                      "like {\"leaf1\": [\"n1\", \"n2\"]}");
  }
  return leaves;
}

cluster::Pods parse_leaf_pods(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return cluster::parse_pods(text);
  cluster::Pods pods;
  if (is_lldp(text)) return pods;
  // parse_leaves() has refused what is none.
  const FileJson document = FileJson::parse(text);
  for (const auto& [pod, inside] : document.items()) {
    if (!inside.is_object()) continue;
    for (const auto& [leaf, hosts] : inside.items()) pods[leaf] = pod;
  }
  return pods;
}

std::string pack_measurements(const std::vector<cluster::Sample>& samples) {
  std::string bytes;
  bytes.reserve(samples.size() * kRecordBytes);
  for (const cluster::Sample& sample : samples) {
    for (const std::uint32_t word : {sample.from, sample.to, bit_cast<std::uint32_t>(sample.gbytes)}) {
      for (std::size_t byte = 0; byte < 4; ++byte) bytes.push_back(static_cast<char>(word >> (8 * byte) & 0xff));
    }
  }
  return bytes;
}

}  // namespace gdrperf::app
