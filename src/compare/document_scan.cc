#include "compare/document_scan.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "compare/trust.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/report/fields.h"

namespace gdrperf::compare {
namespace {

using Tree = nlohmann::json;

/// A result document is six deep; more is no result document.
constexpr std::size_t kDeepest = 32;
/// relations, RELATION, TEST, the list, the run.
constexpr std::size_t kRunDepth = 5;
/// Names and versions are shorter; a document cannot make us keep long ones many times.
constexpr std::size_t kLongestText = 200;

/// Fields of a run that name a cell, state a condition or are the figure.
const std::set<std::string_view>& run_fields() {
  static const std::set<std::string_view> wanted = [] {
    std::set<std::string_view> names = {"bw.median_gbps", "latency.p50_ns"};
    for (const report::Field& each : report::fields()) {
      if (each.identity != report::Identity::kNo && !each.json.empty()) names.insert(each.json);
    }
    return names;
  }();
  return wanted;
}

class Scan {
 public:
  Scan(std::string_view text, const std::string& path, const ScanHandler& handler)
      : text_(text), path_(path), handler_(handler) {}

  bool null() { return scalar({}); }
  bool boolean(bool value) {
    return scalar({Scalar::Kind::kBool, value ? 1.0 : 0.0, value ? "true" : "false"});
  }
  bool number_integer(std::int64_t value) {
    return scalar({Scalar::Kind::kNumber, static_cast<double>(value), {}}, value);
  }
  bool number_unsigned(std::uint64_t value) {
    return scalar({Scalar::Kind::kNumber, static_cast<double>(value), {}}, value);
  }
  bool number_float(double value, const std::string&) {
    return scalar({Scalar::Kind::kNumber, value, {}}, value);
  }
  bool string(std::string& value) {
    return scalar({Scalar::Kind::kString, 0, value.substr(0, kLongestText)});
  }
  bool binary(Tree::binary_t&) { return true; }

  bool start_object(std::size_t) { return enter(false); }
  bool start_array(std::size_t) { return enter(true); }
  bool key(std::string& name) {
    levels_.back().key = name.substr(0, kLongestText);
    return true;
  }
  bool end_object() {
    if (in_run()) {
      if (levels_.size() == kRunDepth) {
        if (++runs_ > kMostRuns) {
          throw usage_error(fmt::format("{}: more than {} runs", path_, kMostRuns),
                            "give one file per invocation");
        }
        handler_.run(levels_[1].key, levels_[3].items - 1, fields_);
      }
    } else if (in_inventory() && levels_.size() == 4) {
      handler_.inventory(levels_[1].key, fields_);
    }
    levels_.pop_back();
    return true;
  }
  bool end_array() {
    levels_.pop_back();
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Tree::exception&) {
    if (position > text_.size()) {
      throw usage_error(fmt::format("{}: ends in the middle, after {} bytes", path_, text_.size()),
                        "it was cut off: fetch or measure it again");
    }
    // Of "NaN" the parser has read one byte, of "nan" two, as it might be null.
    const std::string_view near = text_.substr(position - std::min<std::size_t>(position, 2), 4);
    const bool nan = near.find("NaN") != near.npos || near.find("nan") != near.npos;
    throw usage_error(fmt::format("{}: not JSON at byte {}{}", path_, position,
                                  nan ? ": NaN is no JSON value, what is not known is null" : ""),
                      "give the file that 'gdrperf sweep --json FILE' wrote");
  }

 private:
  struct Level {
    bool list = false;
    std::string key;        ///< of an object: the member being read
    std::size_t items = 0;  ///< of a list: seen so far
  };

  bool in_run() const { return levels_.size() >= kRunDepth && levels_[0].key == "relations"; }
  bool in_inventory() const {
    return levels_.size() >= 4 && levels_[0].key == "topology" && levels_[2].list;
  }

  bool enter(bool list) {
    if (levels_.size() >= kDeepest) {
      throw usage_error(fmt::format("{}: no result document, it is more than {} levels deep", path_, kDeepest));
    }
    if (levels_.empty() && list) throw usage_error(path_ + ": no result document, it is a list");
    if (!levels_.empty()) ++levels_.back().items;
    levels_.push_back({list, {}, 0});
    check_run_place();
    if ((in_run() && levels_.size() == kRunDepth) || (in_inventory() && levels_.size() == 4)) fields_.clear();
    return true;
  }

  /// relations holds objects of objects of lists of objects.
  void check_run_place() const {
    if (levels_[0].key != "relations" || levels_.size() == 1 || levels_.size() > kRunDepth) return;
    const bool list_wanted = levels_.size() == 4;
    if (levels_.back().list != list_wanted) refuse_relations();
  }

  [[noreturn]] void refuse_relations() const {
    const bool inside = levels_.size() > 1 && !levels_[1].key.empty();
    throw usage_error(fmt::format("{}: no result document, relations{}{} is not built as one", path_, inside ? "." : "",
                                  inside ? levels_[1].key : ""),
                      "results/schema.json describes result documents");
  }

  template <typename... Shown>
  bool scalar(Scalar value, Shown... shown) {
    if (levels_.empty()) throw usage_error(path_ + ": no result document, it is a single value");
    ++levels_.back().items;
    if (levels_[0].key == "relations" && levels_.size() < kRunDepth) refuse_relations();
    if constexpr (sizeof...(shown) == 1) value.text = fmt::format("{}", shown...);
    if (levels_.back().list) return keep_item(std::move(value));
    if (in_run()) {
      keep_run_field(std::move(value));
    } else if (in_inventory()) {
      if (levels_.size() == 4) fields_[levels_[3].key] = std::move(value);
    } else if (levels_.size() <= 3) {
      std::string name = levels_[0].key;
      for (std::size_t i = 1; i < levels_.size(); ++i) {
        if (levels_[i].list) return true;
        name += "." + levels_[i].key;
      }
      handler_.value(name, value);
    }
    return true;
  }

  void keep_run_field(Scalar value) {
    if (levels_.size() > kRunDepth + 1) return;
    name_ = levels_[kRunDepth - 1].key;
    if (levels_.size() == kRunDepth + 1) (name_ += '.') += levels_[kRunDepth].key;
    if (!run_fields().contains(name_) && !is_trust_field(name_)) return;
    fields_[name_] = std::move(value);
  }

  /// Of an interval: "bw.ci95_gbps.0". A series of batches is not kept.
  bool keep_item(Scalar value) {
    if (!in_run() || levels_.size() != kRunDepth + 2 || levels_.back().items > 2) return true;
    name_ = fmt::format("{}.{}.{}", levels_[kRunDepth - 1].key, levels_[kRunDepth].key, levels_.back().items - 1);
    if (is_trust_field(name_)) fields_[name_] = std::move(value);
    return true;
  }

  std::string_view text_;
  const std::string& path_;
  const ScanHandler& handler_;
  std::vector<Level> levels_;
  Fields fields_;
  std::string name_;
  std::size_t runs_ = 0;
};

}  // namespace

std::string read_document(const std::string& path, std::size_t largest) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw usage_error(path + ": a folder, where a result document was expected");
  }
  if (std::filesystem::is_regular_file(path, error)) {
    const auto bytes = std::filesystem::file_size(path, error);
    if (!error && bytes > largest) {
      throw usage_error(fmt::format("{}: {} MB; result documents above {} MB are not read", path,
                                    bytes / 1'000'000, largest / 1'000'000),
                        "a document of one sweep has a few MB: give one file per invocation");
    }
  }
  return read_file(path, largest);
}

void scan_document(std::string_view text, const std::string& path, const ScanHandler& handler) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw usage_error(path + ": empty", "the run that should have written it failed");
  }
  Scan scan(text, path, handler);
  Tree::sax_parse(text.begin(), text.end(), &scan);
}

}  // namespace gdrperf::compare
