#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gdrperf/compare/judge.h"
#include "gdrperf/compare/session.h"
#include "gdrperf/compare/trend.h"
#include "gdrperf/page/cluster_page.h"
#include "gdrperf/page/run_table.h"

namespace gdrperf::page {

/// Direct against staged, as the document itself says it.
struct PathWords {
  std::string op;
  Outside client;
  Outside server;
  std::string better;
};

/// A counter of a port that rose: over all runs of a document that used the port.
struct PageCounter {
  std::string end;  ///< "client" or "server"
  Outside device;
  std::string name;
  std::uint64_t rise = 0;   ///< of all runs together
  std::size_t runs = 0;  ///< in which it rose
};

/// A result document, ready to be shown. Nothing in it is trusted: any text may be
/// in any string.
struct PageDocument {
  Outside path;
  std::string started;
  bool simulated = false;
  std::string head;  ///< JSON: the document without its runs
  std::vector<PathWords> paths;
  std::vector<std::string> warnings;
  std::vector<PageCounter> counters;
  RunTable runs;
};

/// Reads a document of schema gdrperf-results/1. Throws usage_error as
/// compare::parse_session() does; `path` is for messages.
PageDocument parse_document(std::string_view text, const std::string& path);

/// One document, or several sessions, against others.
struct PageComparison {
  Outside before;
  Outside after;
  compare::Comparison result;
};

/// The sessions of a folder, in the order in which they were started.
struct PageTrend {
  struct Cell {
    Outside name;
    compare::Better better = compare::Better::kHigher;
    std::vector<double> values;  ///< one for each session, NaN where it has none
  };
  std::string folder;
  std::string machine;  ///< of the latest session
  std::vector<std::pair<std::string, Outside>> sessions;  ///< started, path
  std::vector<Cell> cells;
  compare::Trends trends;
};
PageTrend trend_of(const std::string& folder, std::vector<compare::Session> sessions);

/// All that a report shows.
struct Page {
  std::string tool;  ///< which gdrperf made it
  std::vector<PageDocument> documents;  ///< at least one, or a cluster
  std::vector<PageCluster> clusters;
  std::vector<PageComparison> comparisons;
  std::vector<PageTrend> trends;
};

/// One file that needs nothing else: no network, no other file. The data of all
/// documents, the charts and what draws them. Text of documents is shown, never run.
std::string to_html(const Page& page);
/// The verdict, a table by relation and what was compared; for CI's summary pages.
std::string to_markdown(const Page& page);
/// Bandwidth and latency over size of the last document, a line per relation; "" where there is none.
std::string to_svg(const Page& page);

/// JSON that to_html() puts into the template, without '<'.
std::string page_data(const Page& page);

}  // namespace gdrperf::page
