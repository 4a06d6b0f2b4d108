#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/base/outside.h"
#include "gdrperf/proto/counters.h"
#include "gdrperf/proto/gpu.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/required.h"

namespace gdrperf::report {

/// `device_kind` of a run that another program made: it does not say what its device is.
inline constexpr char kImported[] = "imported";

/// Why a run ended.
enum class StopReason { kPrecision, kIterations, kDuration, kCap, kSignal };
std::string_view to_string(StopReason reason);

/// Rates are GB/s (1e9 bytes of payload per second); bidirectional: both ends'
/// bytes over the common window.
struct Bandwidth {
  double median_gbytes = 0;
  double ci95_low_gbytes = 0;   ///< 95 % rank interval of the median; NaN when too few batches
  double ci95_high_gbytes = 0;
  double mean_gbytes = 0;
  double min_gbytes = 0;
  double max_gbytes = 0;
  std::vector<double> batches_gbytes;  ///< after the warm-up cut, in time order
  double msg_rate_mpps = 0;            ///< million messages per second, from the median
};

/// Nanoseconds; halves of round trips when `halved`.
struct Latency {
  double min_ns = 0;
  double p50_ns = 0;
  double p90_ns = 0;
  double p99_ns = 0;
  double p999_ns = 0;
  double p9999_ns = 0;
  double max_ns = 0;
  double mean_ns = 0;
  std::uint64_t samples = 0;
  bool halved = false;
  double ci95_p50_low_ns = 0;
  double ci95_p50_high_ns = 0;
  double stdev_ns = std::numeric_limits<double>::quiet_NaN();  ///< of all samples; NaN unknown
  std::vector<double> batches_p50_ns = {};  ///< medians of batches after the warm-up cut, in time order
};

/// Messages of a run over UC or UD, warm-up included, by count of the receiving end.
struct Delivery {
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  double lost_share() const { return sent == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(sent); }
};

/// One QP's part in a run over several paths.
struct QpShare {
  int flow_label = 0;
  double share = 0;  ///< of this end's messages
};

/// Of a latency test beside a stream: what the test took without it, and the stream's rates (0: not known).
struct UnderLoad {
  Latency idle;
  Test stream;
  double offered_gbytes = 0;  ///< 0: as fast as it goes
  double carried_gbytes = 0;
  double alone_gbytes = 0;    ///< with no test beside it
};

/// Latency test beside an incast, and the same before it.
struct Victim {
  Test test;
  Outside device;       ///< of the client's end
  Latency idle;
  Latency loaded;
};

/// One of several runs at the same time.
struct Part {
  Outside name;         ///< "rail mlx5_0", "thread 1", "client 2"
  Outside device;
  Outside peer_device;
  int cpu = -1;
  int peer_cpu = -1;
  int qps = 1;
  std::string buffer = {};  ///< of this end; "": as the record's
  std::string peer_buffer = {};
  double gbytes = 0;        ///< mean over the time that all had in common
};

/// Stretch of a run in which its figure kept one level.
struct RunLevel {
  double value = 0;    ///< median of its batches: GB/s, or nanoseconds of a latency
  double from_s = 0;   ///< since the run began
  double seconds = 0;
  double share = 0;    ///< of the time of all levels
};
/// "two levels: 20 MB/s for 1.4 s, then 10 MB/s"; "" of fewer than two. `latency`: values are nanoseconds.
std::string levels_text(const std::vector<RunLevel>& levels, bool latency);

/// The engine's measurement of one run.
struct Measurement {
  std::uint64_t iterations = 0;   ///< messages (round trips) counted, warm-up excluded
  double duration_s = 0;          ///< counted time
  double warmup_cut_s = 0;        ///< time cut off in front
  StopReason stop = StopReason::kPrecision;
  bool unstable = false;          ///< the cap came before the precision
  std::string unstable_reason = {};  ///< steps | drift | bimodal | periodic | scatter; "" when stable
  std::vector<RunLevel> levels = {};  ///< in time order, where there is more than one
  std::optional<Bandwidth> bandwidth;
  std::optional<Latency> latency;
  std::uint64_t chunk_bytes = 0;  ///< staged: what was copied at once
  std::optional<UnderLoad> under_load = {};
  std::vector<Part> parts = {};     ///< of a run of several threads or rails
  bool incast = false;              ///< those are clients of one port
  std::optional<Victim> victim = {};
  double start_spread_s = 0;        ///< between the first and the last of them to begin, at most
  std::vector<QpShare> qp_shares = {};  ///< by QP; empty where they were not spread
  /// CPU time of the end's thread over the messages of the run, warm-up included.
  /// Where others than the CPU's thread post (mem/rings.h): by so much their clock was fast, and the doubt of that.
  std::optional<double> poster_clock_ppm = {};
  std::optional<double> poster_clock_doubt_ppm = {};
  std::optional<double> client_cpu_per_message_ns = {};
  std::optional<double> server_cpu_per_message_ns = {};
  /// Bidirectional: what each end sent, the median over the same batches as that of both.
  std::optional<double> client_sent_gbytes = {};
  std::optional<double> server_sent_gbytes = {};
  std::optional<Delivery> delivery = {};  ///< where messages may be lost, and somebody counts them
  Counters client_counters = {};    ///< of each end's port, that rose from start to stop
  Counters server_counters = {};
  bool one_port = false;            ///< both ends are the same port, which counts what it sends to itself twice
  double counted_s = 0;             ///< time between the two readings of the client's
  std::uint64_t counted_bytes = 0;  ///< payload sent in that time, warm-up included; 0: not known
  std::vector<std::string> warnings;
};

/// Device and memory of an end that does not tell.
inline constexpr const char* kUnknown = "unknown";

/// One end as it was used.
struct EndRecord {
  Outside device;
  std::string kind;      ///< hardware | rxe | software | simulated
  int port = 0;
  int gid_index = 0;
  Outside gid;
  std::string gid_type;  ///< "RoCE v2/IPv4", ...
  Outside gid_why;
  std::string buffer;
  int cpu = -1;
  int numa = -1;
  Outside firmware = {};  ///< of the NIC; "" where it says none
  Outside driver = {};    ///< kernel driver of the NIC; "" where there is none
  std::string registration = {};  ///< host | dmabuf | peermem | ""
  std::string checker = {};       ///< cpu | gpu | copy | "" (nothing was verified)
  std::optional<GpuInfo> gpu = {};
  Outside host = {};  ///< its name; "" unknown
  Outside doorbells = {};         ///< of rings that threads post to themselves: uar | memory | cpu; "": verbs post
  Outside interrupt_cpus = {};    ///< that serve its completion vector's interrupt; "": not known
  std::string relaxed_ordering = {};  ///< of its memory: off | asked | disabled | enabled; "": no NIC
  bool ooo = false;          ///< its QPs place packets out of order
  std::string ece = {};      ///< "vendor 0x15b3, options 0x3": agreed on with the other end (client alone); "": none
  std::optional<double> rate_limit_gbps =
      {};                ///< that its device keeps its QPs to, all together; none: it keeps no rate
  Outside program = {};  ///< "perftest 6.06"; "": gdrperf
};

/// Place of a run's memory relative to its NIC, and the ceiling of the path between them.
struct RunPath {
  Outside pair;             ///< "GPU0/mlx5_0"; "" with host memory
  std::string host_node;    ///< host memory: "local" or "remote" to the NIC's node; "" unknown
  double ceiling_gbps = 0;  ///< 1e9 bit/s of payload; 0: unknown
  std::string limited_by;   ///< the part of the path that sets the ceiling
  double link_gbps = 0;     ///< rate of the NIC's port; 0: unknown
};

/// One run, complete. `relation` is PIX, PXB, PHB, NODE, SYS or HOST. `spec`
/// has every default resolved (cq_mod, inline, MTU, footprint).
struct RunRecord {
  TestSpec spec;
  EndRecord client;
  EndRecord server;
  std::string device_kind;  ///< the less real of both ends' kinds; of another program's run kImported (report/import.h)
  std::string relation = "HOST";
  Measurement measured;
  std::vector<std::string> warnings;
  RunPath path = {};
  Required required = {};    ///< asked of its figures
  std::string started = {};  ///< RFC 3339 in UTC: when this run was begun; "" unknown
  /// Of another program's run: names of the fields that it told, beside what makes a run (test, size, this end's device
  /// and memory) and its figures. Unset: all are known.
  std::optional<std::set<std::string, std::less<>>> told = {};
};

/// Puts in `measured.delivery`, with a warning where messages were lost.
void note_delivery(Measurement& measured, std::uint64_t sent, std::uint64_t arrived);
/// GB/s that arrived: the median, less the lost share. NaN without a rate.
double goodput_gbytes(const Measurement& measured);

/// Goodput over the ceiling; nothing without either.
std::optional<double> efficiency(const RunRecord& record);

/// How many of `samples` lie beyond the nearest-rank percentile: what a figure
/// for it rests on (p99.9 of 1000 samples: 1).
std::uint64_t samples_beyond(double percent, std::uint64_t samples);
/// With fewer beyond it, a percentile is marked as resting on too few samples.
inline constexpr std::uint64_t kEnoughBeyond = 10;

}  // namespace gdrperf::report
