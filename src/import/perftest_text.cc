// perftest's tables: a title and settings, the names of the columns, a row for each size.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/text.h"
#include "import/perftest.h"

namespace gdrperf::report {
namespace {

using Quantity = std::optional<double> PerftestFigures::*;
using Count = std::optional<std::uint64_t> PerftestFigures::*;

/// A column by its name in the heading, and its figure; neither count nor quantity: it is left out.
struct Column {
  std::string_view name;
  Count count = nullptr;
  Quantity quantity = nullptr;
};
/// No name begins another one that stands behind it.
constexpr Column kColumns[] = {
    {"#bytes", &PerftestFigures::bytes},
    {"#iterations", &PerftestFigures::iterations},
    {"#sl"},
    {"BW peak[MB/sec]", nullptr, &PerftestFigures::peak},
    {"BW peak[MiB/sec]", nullptr, &PerftestFigures::peak},
    {"BW peak[Gb/sec]", nullptr, &PerftestFigures::peak},
    {"BW average[MB/sec]", nullptr, &PerftestFigures::average},
    {"BW average[MiB/sec]", nullptr, &PerftestFigures::average},
    {"BW average[Gb/sec]", nullptr, &PerftestFigures::average},
    {"MsgRate[Mpps]", nullptr, &PerftestFigures::rate_mpps},
    {"t_min[usec]", nullptr, &PerftestFigures::min},
    {"t_max[usec]", nullptr, &PerftestFigures::max},
    {"t_typical[usec]", nullptr, &PerftestFigures::typical},
    {"t_avg[usec]", nullptr, &PerftestFigures::mean},
    {"t_stdev[usec]", nullptr, &PerftestFigures::stdev},
    {"99% percentile[usec]", nullptr, &PerftestFigures::p99},
    {"99.9% percentile[usec]", nullptr, &PerftestFigures::p999},
    {"tps average"},
    {"CPU_Util[%]"}, {"CPU_Util[%%]"},
};

/// Settings stand as "Name   : value", one or two to a line.
constexpr std::string_view kSettings[] = {"Dual-port", "Device",    "Number of qps",   "Connection type",
                                          "TX depth",  "RX depth",  "CQ Moderation",   "Post List",
                                          "Mtu",       "GID index", "Max inline data", "rdma_cm QPs"};
/// What it prints as it takes memory of an accelerator: whose, where the words say it, and in front of which index, if
/// any.
struct MemoryWords {
  std::string_view words;
  std::string_view kind;  ///< "": some accelerator's
  bool index = false;
};
constexpr MemoryWords kMemoryWords[] = {
    {"Picking device No.", "cuda", true},
    {"Picking GPU number", "cuda", true},
    {"initializing CUDA", "cuda"},
    {"Using ROCm Device with ID:", "rocm", true},
    {"initializing ROCm", "rocm"},
    {"initializing Neuron", "neuron"},
    {"initializing HL", "hl"},
    {"initializing MUSA", "musa"},
    {"initializing MLU", "mlu"},
    {"CUDA_MEM_", "cuda"},
    {"GPU buffer", ""},
    {"of accelerator buffer", ""},
};

constexpr std::string_view kHeading = "#bytes";
constexpr std::size_t kMostNamed = 20;  ///< cut rows, each by its line

class TableReader {
 public:
  TableReader(const std::string& file, Imported& into) : place_{file}, into_(into) {}

  void read(std::string_view text) {
    ImportLines lines(text);
    while (lines.next()) {
      place_.line = lines.number();
      take(trimmed(lines.line()), lines.open_ended());
    }
    if (!columns_.empty()) note_cut();
    if (cut_rows_ > kMostNamed)
      into_.warnings.push_back(
          fmt::format("{}: {} more rows that were cut off: left out", place_.text(), cut_rows_ - kMostNamed));
    if (!into_.runs.empty()) return;
    if (headings_ == 0)
      throw place_.error("ends without a table: no line begins with '#bytes'", "give all that perftest printed");
    throw place_.error("no table in it has a whole row",
                       "for a write or a read the client has the result, the server has none");
  }

 private:
  void take(std::string_view line, bool open_ended) {
    if (line.starts_with(kHeading)) return begin(line);
    if (line.starts_with("---")) return end();
    if (line.starts_with("#,")) return columns_.clear();  // all samples, one by one, and then the heading again
    if (columns_.empty()) return take_setting(line);
    const bool row = !line.empty() && line.front() >= '0' && line.front() <= '9';
    if (row) return take_row(line, open_ended);
    if (!PerftestSettings::of_title(line, place_)) return;  // a message between rows
    note_cut();
    take_setting(line);
  }

  void note_cut() {
    into_.warnings.push_back(fmt::format("{}: the table was cut off here: rows may be missing", place_.text()));
  }

  void take_setting(std::string_view line) {
    if (auto title = PerftestSettings::of_title(line, place_)) {
      settings_ = std::move(title);
      columns_.clear();
      for (const auto& [kind, index] : memory_) settings_->use_memory(kind, index);
      return;
    }
    // It takes the memory before the title, or behind it.
    for (const MemoryWords& each : kMemoryWords) take_memory(line, each);
    if (!settings_) return;
    if (line.starts_with("Test with events")) settings_->wait_for_events();
    if (const std::size_t colon = line.find(':'); colon != line.npos && line.starts_with("Use ")) {
      settings_->take(trimmed(line.substr(0, colon)), line.substr(colon + 1), place_);
    }
    for (const std::string_view name : kSettings) take_setting(line, name);
  }

  void take_memory(std::string_view line, const MemoryWords& memory) {
    const std::size_t at = line.find(memory.words);
    if (at == line.npos || line.starts_with("deallocating")) return;
    const auto rest = words_of(line.substr(at + memory.words.size()));
    const std::string_view first = rest.empty() ? std::string_view() : rest.front();
    const auto index = memory.index ? count_in(first.substr(0, first.find(','))) : std::nullopt;
    memory_.emplace_back(memory.kind, index);
    if (settings_) settings_->use_memory(memory.kind, index);
  }

  void take_setting(std::string_view line, std::string_view name) {
    const std::size_t at = line.find(name);
    if (at == line.npos) return;
    std::string_view rest = line.substr(at + name.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (!rest.starts_with(':')) return;
    const auto words = words_of(rest.substr(1));
    if (!words.empty()) settings_->take(name, words.front(), place_);
  }

  void begin(std::string_view line) {
    ++headings_;
    if (!settings_) {
      throw place_.error(
          "a table without the title that perftest prints above it (like 'RDMA_Write BW Test'): which test it is "
          "is not known",
          "give all that perftest printed");
    }
    columns_.clear();
    if (line.find(" Port1[") != line.npos) settings_->take("Dual-port", "ON", place_);
    unit_ = line.find("[Gb/sec]") == line.npos ? PerftestUnit::kMebibytes : PerftestUnit::kGigabits;
    while (!line.empty()) {
      const auto column = std::find_if(std::begin(kColumns), std::end(kColumns),
                                       [&](const Column& each) { return line.starts_with(each.name); });
      if (column == std::end(kColumns)) {
        throw place_.error(fmt::format("no column of perftest that is known: '{}'", printable(line.substr(0, 40))));
      }
      columns_.push_back(column);
      line = trimmed(line.substr(column->name.size()));
    }
  }

  void end() {
    if (columns_.empty()) return;
    columns_.clear();
    settings_.reset();
    memory_.clear();
  }

  void take_row(std::string_view line, bool open_ended) {
    const auto words = words_of(line);
    // A number may go on where the file was cut.
    if (open_ended || words.size() < columns_.size()) {
      if (++cut_rows_ <= kMostNamed)
        into_.warnings.push_back(fmt::format("{}: a row that was cut off: left out", place_.text()));
      return;
    }
    if (into_.runs.size() == kMostImported)
      throw place_.error(fmt::format("more than {} rows", kMostImported), "give it in parts");
    if (words.size() > columns_.size())
      throw place_.error(fmt::format("a row of {} numbers under {} columns", words.size(), columns_.size()));
    PerftestFigures figures;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const Column& column = *columns_[i];
      const auto quantity = quantity_in(words[i]);
      const auto count = column.count ? count_in(words[i]) : std::nullopt;
      if (column.count ? !count : !quantity) {
        throw place_.error(fmt::format("'{}' is not a number for {}", printable(words[i].substr(0, 40)), column.name));
      }
      if (column.count) figures.*column.count = count;
      if (column.quantity) figures.*column.quantity = quantity;
    }
    check_unit(figures, unit_, place_);
    into_.runs.push_back(perftest_run(*settings_, figures, unit_, place_));
  }

  ImportPlace place_;
  Imported& into_;
  std::optional<PerftestSettings> settings_;
  std::vector<std::pair<std::string_view, std::optional<std::uint64_t>>> memory_;  ///< as use_memory() takes it
  std::vector<const Column*> columns_;  ///< of the table being read
  PerftestUnit unit_ = PerftestUnit::kMebibytes;
  std::size_t headings_ = 0;
  std::size_t cut_rows_ = 0;
};

}  // namespace

bool is_perftest_text(std::string_view text) {
  ImportLines lines(text);
  while (lines.next()) {
    const std::string_view line = trimmed(lines.line());
    if (line.starts_with(kHeading) && line.find("#iterations") != line.npos) return true;
    if ((line.starts_with("RDMA_") || line.starts_with("Send") || line.starts_with("Atomic")) &&
        line.ends_with(" Test"))
      return true;
  }
  return false;
}

void read_perftest_text(std::string_view text, const std::string& file, Imported& into) {
  TableReader(file, into).read(text);
}

}  // namespace gdrperf::report
