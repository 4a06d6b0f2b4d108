// perftest's JSON. From 23.04 on it was written without quotes, later with them; it has no units, and bytes of a
// message that are known, times their rate, tell which one a bandwidth has.
#include <map>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/text.h"
#include "import/perftest.h"

namespace gdrperf::report {
namespace {

constexpr std::string_view kInfo = "test_info";
constexpr std::string_view kResults = "results";

struct Entry {
  std::string value;
  std::size_t line = 0;
};
/// One object of the file: its sections, and in each the values by name.
using Section = std::map<std::string, Entry, std::less<>>;
struct Report {
  std::map<std::string, Section, std::less<>> sections;
  std::size_t line = 0;
};

/// Objects of named values and of such objects, quotes as they come.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// nullopt behind the last one.
  std::optional<Report> next() {
    skip();
    if (at_ == text_.size()) return std::nullopt;
    if (text_[at_] != '{') throw place().error(fmt::format("'{}' in place of an object", near()));
    Report report;
    report.line = line_;
    object(report, "");
    return report;
  }

  ImportPlace place() const { return {file_, line_}; }

 private:
  void object(Report& report, const std::string& section) {
    ++at_;
    for (skip(); peek() != '}'; skip()) {
      if (peek() == ',') {
        ++at_;
        continue;
      }
      const std::string name = word(":");
      skip();
      if (peek() != ':') throw place().error(fmt::format("'{}' has no value", printable(name)));
      ++at_;
      skip();
      if (peek() != '{') {
        const std::size_t line = line_;
        report.sections[section][name] = {word(",}\n"), line};
      } else if (!section.empty()) {
        throw place().error(fmt::format("'{}': an object inside of '{}'", printable(name), printable(section)));
      } else {
        object(report, name);
      }
    }
    ++at_;
  }

  /// In quotes, or up to one of `ends`.
  std::string word(std::string_view ends) {
    const bool quoted = peek() == '"';
    if (quoted) ++at_;
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (quoted ? text_[at_] != '"' && text_[at_] != '\n' : ends.find(text_[at_]) == ends.npos)) {
      if (text_[at_] == '\n') break;
      ++at_;
    }
    const std::string_view found = text_.substr(begin, at_ - begin);
    if (at_ == text_.size()) cut();
    if (quoted && text_[at_] != '"')
      throw place().error(fmt::format("'{}': a quote that does not end", printable(found.substr(0, 40))));
    if (quoted) ++at_;
    if (trimmed(found).empty()) throw place().error("a name or a value is missing");
    return std::string(trimmed(found).substr(0, 200));
  }

  char peek() {
    if (at_ == text_.size()) cut();
    return text_[at_];
  }

  void skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n')) {
      line_ += text_[at_] == '\n' ? 1 : 0;
      ++at_;
    }
  }

  [[noreturn]] void cut() const {
    throw place().error("ends in the middle: it was cut off", "fetch it again, or run the test again");
  }

  std::string near() const { return printable(trimmed(text_.substr(at_, 20))); }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

using Quantity = std::optional<double> PerftestFigures::*;

struct Name {
  std::string_view name;
  Quantity quantity;
};
constexpr Name kQuantities[] = {
    {"BW_peak", &PerftestFigures::peak},      {"BW_average", &PerftestFigures::average},
    {"MsgRate", &PerftestFigures::rate_mpps}, {"t_min", &PerftestFigures::min},
    {"t_max", &PerftestFigures::max},         {"t_typical", &PerftestFigures::typical},
    {"t_avg", &PerftestFigures::mean},        {"t_stdev", &PerftestFigures::stdev},
    {"percentile_99", &PerftestFigures::p99}, {"percentile_99.9", &PerftestFigures::p999},
};

PerftestFigures figures_of(const Section& results, const std::string& file) {
  PerftestFigures figures;
  const auto refuse = [&](const std::string& name, const Entry& entry) {
    return ImportPlace{file, entry.line}.error(
        fmt::format("{}: '{}' is not a number", name, printable(std::string_view(entry.value).substr(0, 40))));
  };
  for (const auto& [name, entry] : results) {
    if (name == "MsgSize" || name == "n_iterations") {
      const auto count = count_in(entry.value);
      if (!count) throw refuse(name, entry);
      (name == "MsgSize" ? figures.bytes : figures.iterations) = count;
    }
    for (const Name& each : kQuantities) {
      if (each.name != name) continue;
      const auto quantity = quantity_in(entry.value);
      if (!quantity) throw refuse(name, entry);
      figures.*each.quantity = quantity;
    }
  }
  return figures;
}

/// The unit in which the average is what messages of that size make at their rate. Both are rounded.
PerftestUnit unit_of(const PerftestFigures& figures, const ImportPlace& place) {
  if (!figures.average || !figures.rate_mpps || !figures.bytes) return PerftestUnit::kMebibytes;
  const bool mebibytes = fits(figures, PerftestUnit::kMebibytes);
  if (mebibytes != fits(figures, PerftestUnit::kGigabits))
    return mebibytes ? PerftestUnit::kMebibytes : PerftestUnit::kGigabits;
  throw place.error(fmt::format("BW_average {} and MsgRate {} leave open whether that is MiB/s or Gb/s",
                                *figures.average, *figures.rate_mpps),
                    "perftest's JSON has no units; the text that it prints has them");
}

RunRecord run_of(const Report& report, const std::string& file) {
  const ImportPlace place{file, report.line};
  const auto info = report.sections.find(kInfo);
  const auto results = report.sections.find(kResults);
  if (info == report.sections.end() || results == report.sections.end()) {
    throw place.error("an object without 'test_info' and 'results': not written by perftest");
  }
  const auto title = info->second.find("test");
  auto settings = title == info->second.end()
                      ? std::nullopt
                      : PerftestSettings::of_title(title->second.value, {file, title->second.line});
  if (!settings) throw place.error("'test_info' does not name the test");
  for (const auto& [name, entry] : info->second) {
    settings->take(name, entry.value, {file, entry.line});
    if (name == "Test with events") settings->wait_for_events();
    constexpr std::string_view kDevice = "_device";  // "cuda_device", "rocm_device"
    const bool accelerator = name.ends_with(kDevice) && name.size() > kDevice.size();
    if (const auto index = count_in(entry.value); index && accelerator)
      settings->use_memory(name.substr(0, name.size() - kDevice.size()), index);
  }
  const PerftestFigures figures = figures_of(results->second, file);
  return perftest_run(*settings, figures, unit_of(figures, place), place);
}

}  // namespace

bool is_perftest_json(std::string_view text) {
  const std::string_view head = trimmed(text.substr(0, 4096));
  return head.starts_with('{') && head.find(kInfo) != head.npos;
}

void read_perftest_json(std::string_view text, const std::string& file, Imported& into) {
  Scanner scanner(text, file);
  while (const auto report = scanner.next()) {
    if (into.runs.size() == kMostImported)
      throw scanner.place().error(fmt::format("more than {} runs", kMostImported), "give it in parts");
    into.runs.push_back(run_of(*report, file));
  }
}

}  // namespace gdrperf::report
