#include "gdrperf/compare/session.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "compare/document_scan.h"
#include "compare/trust.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/text.h"
#include "gdrperf/report/document.h"
#include "gdrperf/report/fields.h"
#include "gdrperf/import/import.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::compare {
namespace {

constexpr const char* kUnknown = "-";

std::string text_of(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  if (found == fields.end() || found->second.kind == Scalar::Kind::kNull) return kUnknown;
  return found->second.text.empty() ? kUnknown : found->second.text;
}

/// "a" when both ends say so, "a / b" when they differ.
std::string both(const std::string& client, const std::string& server) {
  return client == server || server == kUnknown ? client : client + " / " + server;
}

/// Facts of a host that figures depend on.
struct Host {
  std::string name = kUnknown;
  std::string kernel = kUnknown;
  std::string cpu = kUnknown;
  std::string cpus = kUnknown;
  std::string governor = kUnknown;
  std::string clock_source = kUnknown;
  std::string gpu_driver = kUnknown;
};

/// Gathers one document.
class Reader {
 public:
  explicit Reader(const std::string& path) { session_.path = path; }

  Session read(std::string_view text) {
    const ScanHandler handler{
        [&](const std::string& path, const Scalar& value) { take(path, value); },
        [&](std::string_view list, const Fields& item) { take_inventory(list, item); },
        [&](const std::string& relation, std::size_t index, const Fields& run) {
          runs_.push_back({relation, index, run});
        }};
    scan_document(text, session_.path.raw(), handler);
    if (!schema_seen_) {
      throw usage_error(printable(session_.path) + ": no result document, it has no \"schema\"",
                        "give the file that 'gdrperf sweep --json FILE' wrote");
    }
    session_.digest = digest(text);
    for (const Run& run : runs_) add(run);
    for (auto& [name, cell] : cells_) {
      if (cell.values.empty()) {
        session_.unusable.push_back(cell.key.name);
      } else {
        session_.cells.push_back({std::move(cell.key), stats::median(cell.values), std::move(cell.doubt)});
      }
    }
    name_machine();
    return std::move(session_);
  }

 private:
  struct Run {
    std::string relation;
    std::size_t index;
    Fields fields;
  };
  struct Cell {
    CellKey key;
    std::vector<double> values;
    std::string doubt;  ///< of the first of its runs that has one
  };

  void take(const std::string& path, const Scalar& value) {
    if (path == "schema") return check_schema(value.text);
    if (path == "partial") session_.partial = value.text == "true";
    if (path == "started") session_.started = value.text;
    if (path == "tool.version") session_.tool = value.text + session_.tool.raw();
    if (path == "tool.git") session_.tool = session_.tool.raw() + " (" + value.text + ")";
    if (!path.starts_with("hosts.") || value.kind == Scalar::Kind::kNull) return;
    Host& host = path.starts_with("hosts.server") ? server_ : client_;
    const std::string_view field = std::string_view(path).substr(path.rfind('.') + 1);
    if (field == "hostname") host.name = value.text;
    if (field == "kernel") host.kernel = value.text;
    if (field == "cpu_model") host.cpu = value.text;
    if (field == "cpus_allowed") host.cpus = value.text;
    if (field == "governor") host.governor = value.text;
    if (field == "clock_source") host.clock_source = value.text;
    if (field == "gpu_driver") host.gpu_driver = value.text;
  }

  void check_schema(const std::string& schema) {
    schema_seen_ = true;
    if (schema == report::kSchemaName) return;
    throw usage_error(
        fmt::format("{}: its schema is '{:.60}', this gdrperf reads '{}'", printable(session_.path), schema,
                    report::kSchemaName),
        "measure again with this version, or compare with the version that wrote it");
  }

  void take_inventory(std::string_view list, const Fields& item) {
    if (list == "gpus") gpus_[text_of(item, "name")] = text_of(item, "model");
    if (list == "nics") nics_[text_of(item, "name")] = item;
  }

  std::string where(const Run& run, const char* field) const {
    return fmt::format("{}: relations.{}, run {}: {}", printable(session_.path), printable(run.relation), run.index + 1,
                       field);
  }

  std::string required(const Run& run, const char* field, Scalar::Kind kind) const {
    const auto found = run.fields.find(field);
    if (found == run.fields.end() || found->second.kind != kind || found->second.text.empty()) {
      throw usage_error(where(run, field) + (kind == Scalar::Kind::kNumber ? " is no number" : " is no text"),
                        "results/schema.json describes result documents");
    }
    return found->second.text;
  }

  /// nullopt where the run has no usable figure.
  std::optional<double> figure(const Run& run, const char* field) const {
    const auto found = run.fields.find(field);
    if (found == run.fields.end() || found->second.kind == Scalar::Kind::kNull) return std::nullopt;
    if (found->second.kind != Scalar::Kind::kNumber) throw usage_error(where(run, field) + " is no number");
    if (found->second.number <= 0) return std::nullopt;
    return found->second.number;
  }

  void add(const Run& run) {
    CellKey key;
    const std::string op = required(run, "op", Scalar::Kind::kString);
    const bool bandwidth = op.ends_with("_bw");
    if (!bandwidth && !op.ends_with("_lat")) {
      throw usage_error(where(run, "op") + fmt::format(" '{:.60}' is no test", op));
    }
    key.better = bandwidth ? Better::kHigher : Better::kLower;
    key.name = cell_name(run, op);
    session_.imported = session_.imported || text_of(run.fields, "device_kind") == report::kImported;
    key.conditions = conditions(run);
    std::string id = key.name.raw();
    for (const Condition& each : key.conditions) id += "\n" + each.value.raw();
    Cell& cell = cells_[id];
    cell.key = std::move(key);
    if (const auto value = figure(run, bandwidth ? "bw.median_gbps" : "latency.p50_ns")) {
      cell.values.push_back(*value);
      if (cell.doubt.empty()) cell.doubt = doubt_of(run.fields);
    }
  }

  std::string cell_name(const Run& run, const std::string& op) const {
    const std::string size = required(run, "size_bytes", Scalar::Kind::kNumber);
    return report::run_name([&](std::string_view name) -> std::string {
      if (name == "op") return op;
      if (name == "relation") return run.relation;
      if (name == "size_bytes") return size;
      const std::string text = text_of(run.fields, report::field(name).json);
      return text == kUnknown && !name.ends_with("_buffer") && !name.ends_with("_device") ? std::string() : text;
    });
  }

  /// Of the NIC at one end: the run says it, or the list of NICs does.
  std::string nic_fact(const Run& run, const char* side, std::string_view fact) const {
    const std::string own = text_of(run.fields, fmt::format("{}.{}", side, fact));
    if (own != kUnknown || std::string_view(side) == "server") return own;
    const auto nic = nics_.find(text_of(run.fields, fmt::format("{}.device", side)));
    return nic == nics_.end() ? own : text_of(nic->second, fact);
  }

  /// Of no concern where no GPU takes part.
  std::string gpu_driver(const Run& run, const char* side, const Host& host) const {
    return text_of(run.fields, fmt::format("{}.buffer", side)).starts_with("host") ? kUnknown : host.gpu_driver;
  }

  /// "cuda:0" is GPU0 of the list.
  std::string gpu_model(const Run& run, const char* side) const {
    const std::string buffer = text_of(run.fields, fmt::format("{}.buffer", side));
    if (buffer.starts_with("host")) return kUnknown;
    const auto gpu = gpus_.find("GPU" + buffer.substr(buffer.find_last_not_of("0123456789") + 1));
    return gpu == gpus_.end() ? kUnknown : gpu->second;
  }

  /// A condition of the host, or of what its topology lists; the rest is in the run.
  std::string condition(const Run& run, std::string_view name) const {
    if (name == "host") return both(client_.name, server_.name);
    if (name == "cpu") return both(client_.cpu, server_.cpu);
    if (name == "cpus") return both(client_.cpus, server_.cpus);
    if (name == "governor") return both(client_.governor, server_.governor);
    if (name == "clock_source") return both(client_.clock_source, server_.clock_source);
    if (name == "kernel") return both(client_.kernel, server_.kernel);
    if (name == "gpu") return both(gpu_model(run, "client"), gpu_model(run, "server"));
    if (name == "gpu_driver") return both(gpu_driver(run, "client", client_), gpu_driver(run, "server", server_));
    std::string text;
    for (const report::Field& each : report::fields()) {
      if (each.condition != name) continue;
      const bool nic = name == "firmware" || name == "driver";
      const char* side = each.json.starts_with("server.") ? "server" : "client";
      const std::string own = nic ? nic_fact(run, side, each.condition) : text_of(run.fields, each.json);
      text = text.empty() ? own : both(text, own);
    }
    return text;
  }

  std::vector<Condition> conditions(const Run& run) {
    // Part of a folder's key that tells one machine from another.
    static const std::set<std::string_view> kOfMachine = {"host",     "cpu",    "kernel",     "gpu",
                                                          "firmware", "driver", "gpu_driver", "registration"};
    std::vector<Condition> list;
    for (const std::string_view name : condition_names()) {
      list.push_back({std::string(name), condition(run, name)});
      if (kOfMachine.contains(name)) machine_key_.insert(list.back().name + "=" + list.back().value.raw());
    }
    std::string nics = text_of(run.fields, "client.device") + "_" + condition(run, "kind");
    const std::string firmware = condition(run, "firmware");
    if (firmware != kUnknown) nics += "_" + firmware;
    machine_.insert(std::move(nics));
    return list;
  }

  /// Readable, then unique: HOST_NICS-DIGEST.
  void name_machine() {
    std::string readable = both(client_.name, server_.name);
    std::string exact;
    for (const std::string& nic : machine_) readable += "_" + nic, exact += nic + "\n";
    for (const std::string& part : machine_key_) exact += part + "\n";
    std::string safe;
    for (const char c : readable.substr(0, 80)) {
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_';
      if (plain) {
        safe += c;
      } else if (!safe.empty() && safe.back() != '-') {
        safe += '-';
      }
    }
    if (safe.starts_with(".")) safe.insert(0, "_");
    session_.machine = fmt::format("{}-{:08x}", safe, static_cast<std::uint32_t>(digest(exact)));
  }

  Session session_;
  bool schema_seen_ = false;
  Host client_;
  Host server_;
  std::map<std::string, std::string> gpus_;
  std::map<std::string, Fields> nics_;
  std::vector<Run> runs_;  ///< hosts and topology may come behind them
  std::map<std::string, Cell> cells_;
  std::set<std::string> machine_;
  std::set<std::string> machine_key_;
};

}  // namespace

const std::vector<std::string_view>& condition_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list = {"host",         "cpu",    "cpus", "governor",
                                          "clock_source", "kernel", "gpu",  "gpu_driver"};
    for (const report::Field& each : report::fields()) {
      const bool known = std::find(list.begin(), list.end(), each.condition) != list.end();
      if (!each.condition.empty() && !known) list.push_back(each.condition);
    }
    return list;
  }();
  return names;
}

Session parse_session(std::string_view text, const std::string& path) { return Reader(path).read(text); }

Session read_session(const std::string& path, std::size_t largest) {
  return parse_session(read_document(path, largest), path);
}

}  // namespace gdrperf::compare
