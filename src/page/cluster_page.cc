#include "gdrperf/page/cluster_page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gdrperf::page {
namespace {

using ClusterJson = nlohmann::ordered_json;

const ClusterJson& member(const ClusterJson& object, const char* name) {
  static const ClusterJson kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

std::string word_at(const ClusterJson& object, const char* name) {
  const ClusterJson& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// NaN where there is no number.
double figure_at(const ClusterJson& object, const char* name) {
  const ClusterJson& value = member(object, name);
  return value.is_number() ? value.get<double>() : std::nan("");
}

ClusterJson figure_or_null(double value) {
  return std::isfinite(value) ? ClusterJson(std::round(value * 1e4) / 1e4) : ClusterJson(nullptr);
}

/// Elements of a list; none where it is none.
const ClusterJson& list_at(const ClusterJson& object, const char* name) {
  static const ClusterJson kEmpty = ClusterJson::array();
  const ClusterJson& value = member(object, name);
  return value.is_array() ? value : kEmpty;
}

/// "node7 mlx5_3" of a NIC's number.
std::string nic_words(const ClusterJson& nics, double number) {
  if (!(number >= 0) || number >= static_cast<double>(nics.size())) return "an unknown NIC";
  const ClusterJson& nic = nics[static_cast<std::size_t>(number)];
  const double rank = figure_at(nic, "rank");
  return fmt::format("{} {} (rank {:.0f})", word_at(nic, "host"), word_at(nic, "device"),
                     std::isfinite(rank) ? rank : -1.0);
}

std::string part_words(const ClusterJson& suspect, const ClusterJson& nics, const ClusterJson& ranks) {
  const std::string part = word_at(suspect, "part");
  const double rail = figure_at(suspect, "rail");
  const std::string of_rail = std::isfinite(rail) ? fmt::format(", rail {:.0f}", rail) : std::string();
  if (part == "nic") return "NIC " + nic_words(nics, figure_at(suspect, "nic")) + of_rail;
  if (part == "pair")
    return fmt::format("pair {} and {}", nic_words(nics, figure_at(suspect, "nic")),
                       nic_words(nics, figure_at(suspect, "peer_nic")));
  if (part == "rail") return fmt::format("rail {:.0f}", std::isfinite(rail) ? rail : -1.0);
  if (part == "leaf") return "leaf " + word_at(suspect, "leaf") + of_rail;
  if (part == "uplink") return "uplinks of leaf " + word_at(suspect, "leaf") + of_rail;
  if (part != "node") return part;
  const double rank = figure_at(suspect, "rank");
  for (const ClusterJson& each : ranks) {
    if (figure_at(each, "rank") == rank) return "node " + word_at(each, "host");
  }
  return "a node";
}

/// What to do about a part of this kind.
std::string cluster_advice(const std::string& part) {
  if (part == "nic") return "on that host: gdrperf doctor; then its cable, its switch port and its PCIe slot";
  if (part == "node") return "on that host: gdrperf doctor, and what else runs there";
  if (part == "pair") return "look at the path between these two: ECMP, a link of the fabric";
  if (part == "rail") return "look at the switches of that rail";
  return "look at that switch and its links";
}

std::string series_words(const ClusterJson& suspect) {
  const std::string series = word_at(suspect, "series");
  if (series.empty() || series == "bandwidth") return {};
  if (series == "small_bandwidth") return " in small messages";
  return series == "latency" ? " in latency" : " in latency of small messages";
}

/// What a slow NIC does to itself tells its host's side from the network's.
std::string inspection_words(const ClusterJson& document, double nic) {
  for (const ClusterJson& each : list_at(document, "inspections")) {
    if (figure_at(each, "nic") != nic) continue;
    std::string words;
    const double own = figure_at(each, "loopback_gbytes");
    const double other = figure_at(each, "other_loopback_gbytes");
    constexpr double kAlike = 0.95;
    if (own > 0 && other > 0) {
      words =
          fmt::format("; its loopback reaches {:.0f} % of another NIC's: {}", 100 * own / other,
                      own < kAlike * other ? "suspect the NIC or its host" : "more likely its cable or switch port");
    }
    const ClusterJson& rose = member(each, "counters_that_rose");
    if (rose.is_object()) {
      for (const auto& [name, value] : rose.items()) words += fmt::format("; {} rose by {}", name, value.dump());
    }
    return words;
  }
  return {};
}

void take_suspect(const ClusterJson& suspect, const ClusterJson& document, PageCluster& cluster, ClusterJson& list) {
  const std::string verdict = word_at(suspect, "verdict");
  const double again = figure_at(suspect, "retest_shift_percent");
  double shift = std::isfinite(again) ? again : figure_at(suspect, "shift_percent");
  // Latencies are recorded as 1/us.
  if (word_at(suspect, "series").find("latency") != std::string::npos) shift = 100 * (1 / (1 + shift / 100) - 1);
  const std::string part = part_words(suspect, list_at(document, "nics"), list_at(document, "ranks"));
  const std::string way = word_at(suspect, "way");
  const std::string text =
      fmt::format("{:+.1f} % compared with the others{}{}", std::isfinite(shift) ? shift : 0.0, series_words(suspect),
                  way == "sends"      ? " when it sends"
                  : way == "receives" ? " when it receives"
                                      : "");
  list.push_back({{"part", part},
                  {"verdict", verdict},
                  {"text", text},
                  {"nic", figure_or_null(figure_at(suspect, "nic"))},
                  {"rail", figure_or_null(figure_at(suspect, "rail"))},
                  {"rank", figure_or_null(figure_at(suspect, "rank"))},
                  {"retests", figure_or_null(figure_at(suspect, "retests"))},
                  {"measurements", figure_or_null(figure_at(suspect, "measurements"))}});
  // The same part in other series is one part.
  const Level level = verdict == "slow" ? Level::kBad : Level::kWarn;
  const auto same = std::find_if(cluster.findings.begin(), cluster.findings.end(),
                                 [&](const Finding& one) { return one.subject == part && one.level == level; });
  if (verdict != "cleared" && same != cluster.findings.end()) {
    same->text += "; also " + text;
  } else if (verdict == "slow") {
    ++cluster.slow;
    cluster.findings.push_back({Level::kBad, part,
                                text + ", confirmed by retests" + inspection_words(document, figure_at(suspect, "nic")),
                                cluster_advice(word_at(suspect, "part"))});
  } else if (verdict == "undecided") {
    ++cluster.undecided;
    cluster.findings.push_back(
        {Level::kWarn, part, text + "; retests did not decide", "run gdrperf cluster again, with more --rounds"});
  }
}

void take_ranks(const ClusterJson& document, PageCluster& cluster) {
  for (const ClusterJson& rank : list_at(document, "ranks")) {
    const std::string lost = word_at(rank, "lost");
    if (lost.empty()) continue;
    cluster.findings.push_back({Level::kWarn,
                                fmt::format("rank {:.0f} on {}", figure_at(rank, "rank"), word_at(rank, "host")),
                                "was lost: " + lost, ""});
  }
  const ClusterJson& failed = list_at(document, "failed");
  if (!failed.empty()) {
    cluster.findings.push_back(
        {Level::kWarn, "", fmt::format("{} links failed, the first: {}", failed.size(), word_at(failed.front(), "why")),
         ""});
  }
  if (cluster.partial)
    cluster.findings.push_back(
        {Level::kWarn, "", "The job ended early: rounds are missing, suspects were not judged.", ""});
  const ClusterJson& differences = member(document, "differences");
  if (!differences.is_object()) return;
  for (const auto& [what, values] : differences.items()) {
    cluster.findings.push_back(
        {Level::kNote, "", fmt::format("{} differs between ranks ({} values)", what, values.size()), ""});
  }
}

}  // namespace

PageCluster parse_cluster_page(std::string_view text, const std::string& path) {
  const ClusterJson document = ClusterJson::parse(text.begin(), text.end());
  PageCluster cluster;
  cluster.path = path;
  cluster.started = word_at(document, "started");
  cluster.verdict = word_at(document, "verdict");
  cluster.partial = member(document, "partial") == true;
  ClusterJson nics = ClusterJson::array();
  for (const ClusterJson& nic : list_at(document, "nics")) {
    ClusterJson row = {word_at(nic, "host"), figure_or_null(figure_at(nic, "rank")), word_at(nic, "device"),
                       figure_or_null(figure_at(nic, "rail"))};
    for (const char* way : {"sends", "receives"}) {
      const ClusterJson& effect = member(nic, way);
      for (const char* name : {"shift_percent", "ci95_low_percent", "ci95_high_percent"})
        row.push_back(figure_or_null(figure_at(effect, name)));
    }
    nics.push_back(std::move(row));
  }
  cluster.nics = nics.size();
  ClusterJson suspects = ClusterJson::array();
  for (const ClusterJson& suspect : list_at(document, "suspects")) take_suspect(suspect, document, cluster, suspects);
  take_ranks(document, cluster);
  const ClusterJson data = {{"path", path},
                            {"started", cluster.started},
                            {"verdict", cluster.verdict},
                            {"partial", cluster.partial},
                            {"test", member(document, "test")},
                            {"typical_gbytes", figure_or_null(figure_at(document, "typical_gbytes"))},
                            {"tool", member(document, "tool")},
                            {"launcher", word_at(document, "launcher")},
                            {"nics", std::move(nics)},
                            {"suspects", std::move(suspects)},
                            {"patterns", list_at(document, "patterns")},
                            {"collectives", list_at(document, "collectives")},
                            {"differences", member(document, "differences")}};
  cluster.data = data.dump(-1, ' ', false, ClusterJson::error_handler_t::replace);
  return cluster;
}

std::string cluster_headline(const PageCluster& cluster) {
  const auto parts = [](std::size_t count) { return fmt::format("{} part{}", count, count == 1 ? "" : "s"); };
  if (cluster.slow == 1) {
    const auto slow = std::find_if(cluster.findings.begin(), cluster.findings.end(),
                                   [](const Finding& each) { return each.level == Level::kBad; });
    if (slow != cluster.findings.end())
      return fmt::format("{} is slow: {}. The cluster has {} NICs.", slow->subject,
                         slow->text.substr(0, slow->text.find_first_of(",;")), cluster.nics);
  }
  if (cluster.slow > 0)
    return fmt::format("{} of a cluster of {} NICs {} slow.", parts(cluster.slow), cluster.nics,
                       cluster.slow == 1 ? "is" : "are");
  if (cluster.undecided > 0)
    return fmt::format("{} of a cluster of {} NICs may be slow.", parts(cluster.undecided), cluster.nics);
  if (cluster.partial || cluster.verdict == "inconclusive")
    return fmt::format("A cluster of {} NICs could not be judged.", cluster.nics);
  return fmt::format("All well: none of the cluster's {} NICs is slow.", cluster.nics);
}

Level level_of(const PageCluster& cluster) {
  if (cluster.slow > 0) return Level::kBad;
  const bool well = cluster.undecided == 0 && !cluster.partial && cluster.verdict == "fine";
  return well ? Level::kGood : Level::kWarn;
}

}  // namespace gdrperf::page
