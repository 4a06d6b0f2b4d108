#include "gdrperf/base/units.h"
#include "gdrperf/report/reference.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gdrperf::report {
namespace {

// Written by the build from results/reference/gpudirect-rdma.json.
constexpr const char* kText =
#include "reference_data.inc"
    ;

template <typename Value>
Value or_default(const nlohmann::json& figure, const char* key) {
  const auto found = figure.find(key);
  return found == figure.end() || found->is_null() ? Value{} : found->get<Value>();
}

bool is_infiniband(std::string_view link) {
  constexpr std::array kNames = {"InfiniBand", "FDR", "EDR", "HDR", "NDR", "XDR"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](const char* name) { return link.find(name) != std::string_view::npos; });
}

std::vector<PublishedFigure> parse() {
  std::vector<PublishedFigure> figures;
  const nlohmann::json document = nlohmann::json::parse(kText);
  for (const auto& each : document.at("figures")) {
    PublishedFigure figure;
    figure.machine = or_default<std::string>(each, "machine");
    figure.gpu = or_default<std::string>(each, "gpu");
    figure.nic = or_default<std::string>(each, "nic");
    figure.link_gbps = or_default<double>(each, "link_gbps");
    figure.infiniband = is_infiniband(or_default<std::string>(each, "link"));
    figure.relations = or_default<std::vector<std::string>>(each, "relations");
    figure.op = or_default<std::string>(each, "op");
    figure.gbytes = or_default<double>(each, "gbytes_per_s");
    figure.gpu_pcie_gen = or_default<int>(each, "gpu_pcie_gen");
    figure.direction = or_default<std::string>(each, "direction");
    figure.gpudirect_rdma = or_default<bool>(each, "gpudirect_rdma");
    figure.fault = or_default<bool>(each, "fault");
    figure.source = or_default<std::string>(each, "source");
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::vector<double> values_for(std::string_view relation, double link_gbps) {
  std::vector<double> values;
  for (const PublishedFigure& figure : published_figures()) {
    const bool fits = std::find(figure.relations.begin(), figure.relations.end(), relation) !=
                      figure.relations.end();
    if (figure.fault || !figure.gpudirect_rdma || figure.gbytes <= 0 || !fits) continue;
    if (link_gbps > 0 && figure.link_gbps != link_gbps) continue;
    values.push_back(figure.gbytes);
  }
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

const std::vector<PublishedFigure>& published_figures() {
  static const std::vector<PublishedFigure> figures = parse();
  return figures;
}

std::string standing(std::string_view relation, double link_gbps, double gbytes) {
  std::vector<double> values = values_for(relation, link_gbps);
  std::string rate = link_gbps > 0 ? fmt::format("at {:g} Gb/s", link_gbps)
                                   : std::string("at any link rate (this one's is not known)");
  if (values.empty() && link_gbps > 0) {
    values = values_for(relation, 0);
    rate = fmt::format("at other link rates (none at {:g} Gb/s)", link_gbps);
  }
  if (values.empty()) return {};
  const auto below = std::count_if(values.begin(), values.end(),
                                   [&](double value) { return value < gbytes; });
  return fmt::format("Published for {} {}: {:g} to {:g} GB/s, {} result{}; {} GB/s here is above "
                     "{} of them (results/reference).",
                     relation, rate, values.front(), values.back(), values.size(),
                     values.size() == 1 ? "" : "s", plain_digits(gbytes, 3), below);
}

}  // namespace gdrperf::report
