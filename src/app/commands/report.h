#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace gdrperf::app {

struct ReportOptions {
  enum class Form { kHtml, kMarkdown, kSvg };
  std::vector<std::string> results;  ///< documents, or folders of them
  Form form = Form::kHtml;
  std::string output;  ///< file, "-" for standard output; "" by the form
};

/// Writes the report. Throws Error(kUsage) for documents that cannot be read.
int run_report(const ReportOptions& options, std::ostream& err);

}  // namespace gdrperf::app
