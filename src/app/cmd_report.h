#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace gdrperf::app {

struct ReportOptions {
  enum class Form { kHtml, kMarkdown, kSvg };
  std::vector<std::string> results;  ///< documents, or folders of them
  Form form = Form::kHtml;
  std::string output;  ///< file, "-" for standard output; "" by the form
};

/// Registers `gdrperf report`; parsing fills `options`.
CLI::App* add_report_command(CLI::App& app, ReportOptions& options);

/// Writes the report. Throws Error(kUsage) for documents that cannot be read.
int run_report(const ReportOptions& options, std::ostream& err);

}  // namespace gdrperf::app
