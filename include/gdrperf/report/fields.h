#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gdrperf/proto/settings.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// Value of a field in one run; monostate: not known, not measured, does not apply.
using FieldValue = std::variant<std::monostate, bool, std::uint64_t, double, std::string>;

/// Yes and no as "true" and "false", numbers in at most 7 significant digits
/// without an exponent where that is short; "" for monostate, NaN and infinities.
std::string to_text(const FieldValue& value);

/// Reads a field off a run. Its type is that of the field in a document.
template <typename Value>
using Getter = std::optional<Value> (*)(const RunRecord&);

using gdrperf::Identity;

/// Reason why a document has no value for a field.
enum class Missing { kNull, kOmitted };

/// One field of a run. Every form of output takes its fields from one table. What a
/// setting of the test is recorded as stands in the option table (proto/settings.h).
struct Field {
  std::string_view name;  ///< column of CSV, label of Prometheus
  std::string_view json = {};  ///< where a run of a document has it, like "client.device"; "": nowhere
  std::string_view unit = {};  ///< "B", "ns", "us", "s", "Gb/s", "GB/s", "million/s", "1/s"; "" for none
  Identity identity = Identity::kNo;
  std::string_view condition = {};  ///< its name in comparisons; fields of both ends share one
  /// monostate: the setting's value.
  std::variant<std::monostate, Getter<bool>, Getter<std::uint64_t>, Getter<double>, Getter<std::string>> getter = {};
  Missing missing = Missing::kNull;
  /// What results/schema.json says of it; "": what a person wrote there, or the unit alone.
  std::string_view description = {};
  /// nullptr: the rule of settings (a word, or "name:value", where it is not the default).
  std::string (*namer)(std::string_view value) = nullptr;
  const Setting* setting = nullptr;  ///< null: no setting

  FieldValue get(const RunRecord& run) const;
  /// Part of a run's name that a value adds at its end: "" for a default, and
  /// for what stands further in front.
  std::string in_name(std::string_view value) const;
};

/// The table, in the order of CSV columns. A run's relation is not inside of its
/// JSON but above it, its hosts are in the document's head.
std::span<const Field> fields();
/// The field of that name, which exists.
const Field& field(std::string_view name);

/// Value of a field as text, by the field's name; "" where it is not known.
using FieldText = std::function<std::string(std::string_view name)>;

/// "write_bw/PIX/GPU0:mlx5_0/65536": test, relation, memory and NIC of the client's
/// end ("client>server" where the ends differ), bytes; "/bidirectional", "/qps:N",
/// "/event", "/rate:N", "/staged", "/consume", "/remote" (node), "/simulated" where
/// so. GPUs are called what topology calls them. The name of a run in every other
/// tool's format, and of its cell in comparisons.
std::string run_name(const FieldText& text);
std::string run_name(const RunRecord& record);
/// Part of the name behind the bytes: "/staged/simulated".
std::string name_suffix(const FieldText& text);
std::string name_suffix(const RunRecord& record);
/// Of figures that are compared among pairs: the test, name_suffix(), and what a sweep measures in turn and names do
/// not show: "write_bw/simulated, strict ordering".
std::string series_name(const RunRecord& record);

/// Names of all runs. Where runs of one name differ in a condition, that is
/// added ("/tx_depth:64"), so that only runs of one identity share a name.
std::vector<std::string> run_names(std::span<const RunRecord> runs);

}  // namespace gdrperf::report
