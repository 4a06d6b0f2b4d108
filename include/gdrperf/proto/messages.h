#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gdrperf/base/outside.h"
#include "gdrperf/proto/counters.h"
#include "gdrperf/proto/gpu.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf::proto {

/// Both ends differ in `major`: they print both versions and part.
inline constexpr int kProtocolMajor = 2;
inline constexpr int kProtocolMinor = 0;

/// First frame from either end, sent without waiting for the other's. A server
/// tells strangers no host name.
struct Hello {
  int major = kProtocolMajor;
  int minor = kProtocolMinor;
  Outside tool_version;
  Outside host;
  std::string nonce;   ///< random, new for each connection: what a Proof answers
  bool token = false;  ///< this end has a token and wants proof of the other's
};
/// Ends with a token: the client proves it first, then the server (proto/token.h).
struct Proof {
  std::string hmac;  ///< 64 hex digits
};
/// Client, after Hello and Proof: asks for its turn. Who does not ask has no place in the queue.
struct Enter {
  std::string beside = {};  ///< Turn::ticket of this client's session that is served: no turn of its own; "": none
};
/// Either end, about twice a second from Enter on: it is there. Counts frames other than Alive, so that
/// a lost one shows at once.
struct Alive {
  std::uint64_t sent = 0;   ///< by this end so far
  std::uint64_t taken = 0;  ///< of the other's
  Outside work = {};        ///< what delays this end's next message ("setting up"); "": nothing does
  std::uint64_t steps = 0;  ///< of this end's runs so far: grows while one goes on
};

/// Server to a client whose turn has not come, every second: who is being served, for how long, and how
/// many wait in front.
struct Busy {
  Outside serving;
  double seconds = 0;
  int ahead = 0;
};
/// Server, once after Enter (and any Busy): this client is served from now on.
struct Turn {
  std::string ticket =
      {};  ///< lets further connections of this client in (Enter::beside); "": an older server, or one of those
  bool results = false;     ///< it prints results, too: a Result after each run
};

/// Client: the next run, with the client's GID families in its order of
/// preference (printable names, see verbs/gid.h) and its active MTU, from
/// which the server chooses.
struct RunRequest {
  TestSpec spec;
  std::vector<std::string> gid_families;
  int active_mtu_bytes = 0;
  std::string host_id = {};    ///< of the client's running kernel (base/host.h)
  std::vector<int> cpus = {};  ///< that the client's end may use, for a server on the same host
};

/// Memory that a peer may reach.
struct Region {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
};

/// Enhanced connection establishment (ibv_query_ece(3)): options that mean something to devices of one maker.
struct Ece {
  std::uint32_t vendor = 0;  ///< 0: none
  std::uint32_t options = 0;
  explicit operator bool() const { return vendor != 0; }
};

/// One QP's address.
struct QpAddress {
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;
  std::optional<Region> region = {};  ///< of this QP alone, at an end that speaks another protocol: it does not travel
};

/// Of XRC and DC: what answers the peer's QP, and the queue that its requests name.
struct XrcAddress {
  std::uint32_t qpn = 0;
  std::uint32_t srq = 0;
};

/// One end's description of itself: all that is needed to connect and
/// what goes into the record.
struct Endpoint {
  std::string device;
  std::string kind;  ///< hardware | rxe | software | simulated
  std::string firmware;  ///< "" where the device says none
  std::string driver;    ///< of the kernel; "" where there is none
  int port = 0;
  int lid = 0;
  int mtu_bytes = 0;
  int gid_index = 0;
  std::string gid;      ///< as address text
  std::string gid_raw;  ///< 32 hex digits
  std::string gid_family;
  std::string gid_why;
  std::string buffer;
  std::string registration;    ///< host | dmabuf | peermem; empty: not known
  std::string transport;       ///< of its QPs; "": RC
  std::string checker;         ///< of --verify: cpu | gpu | copy
  std::optional<GpuInfo> gpu;  ///< where the buffer is
  std::string host_id;  ///< of the running kernel (base/host.h)
  int cpu = -1;
  int numa = -1;
  std::uint64_t address = 0;  ///< of the region the peer may reach
  std::uint64_t length = 0;
  std::uint32_t rkey = 0;
  std::vector<std::uint32_t> rkeys = {};  ///< by QP, where each has a region of its own; empty: `rkey` for all
  int max_rd_atomic = 0;  ///< outstanding reads this end serves as target
  int cm_port = 0;        ///< rdma_cm listener (server only, -R)
  std::string cm_address;
  Ece ece = {};           ///< server: what its QPs offer; client: what its QPs took of that
  std::string doorbells = {};  ///< of rings that messages are posted to: uar | memory | cpu (mem/rings.h); "": none
  std::string interrupt_cpus = {};    ///< that serve its completion vector's interrupt: "4", "0-3"; "": not known
  std::string relaxed_ordering = {};  ///< of its memory: off | asked | disabled | enabled; "": no NIC
  bool ooo = false;       ///< its QPs place packets out of order: both ends' do, or none
  std::uint32_t rate_limit_kbps = 0;  ///< that its device keeps each of its QPs to; 0: none
  std::vector<QpAddress> qps;
  std::vector<XrcAddress> xrc = {};  ///< by QP, over XRC and DC
};

/// Server: it can do the run; its resources are up. Client: its own follow.
struct Accept {
  Endpoint endpoint;
  Outside environment;                     ///< of the server's host, as JSON text (report/environment.h)
  std::optional<EndSpec> server_end = {};  ///< the server's end, where what was typed there decided
};
struct Connect {
  Endpoint endpoint;
};
/// Server: it cannot do the run, in words; the session goes on.
struct Reject {
  int exit_code = 3;
  Outside reason;
  Outside hint;
};
/// Server: QPs are in RTS and receives are posted; once more in bidirectional
/// runs, when it has begun to send; in reversed ones in front of that, and, of several at the same time, when its rate
/// is known.
struct Ready {};
/// Client: the run begins; of reversed runs at the same time once more, when all are ready.
struct Start {
  double begin_ns = 0;  ///< by the server's clock; 0: at once
};
/// Clock comparison of bidirectional runs, and of reversed ones at the same time: the server tells its clock.
struct Ping {
  std::uint64_t token = 0;
};
struct Pong {
  std::uint64_t token = 0;
  double server_ns = 0;
};
/// Client: it has sent `messages` per QP in all (send tests: so many are to be
/// received) and the server is to stop.
struct Stop {
  std::vector<std::uint64_t> messages;
};
inline constexpr std::size_t kMaxDoneSeries = 1u << 16;
inline constexpr std::size_t kMaxCounters = 1024;
inline constexpr int kMostStopReasons = 4;
/// A stretch of a run: messages that completed in it.
struct LedBatch {
  double start_s = 0;
  double seconds = 0;
  std::uint64_t messages = 0;
};
/// Server, of a run that it led: its batches, at most kMaxDoneSeries, and why it ended (report::StopReason by number).
struct ReverseRun {
  std::vector<LedBatch> batches;
  double ramp_s = 0;
  double seconds = 0;
  std::uint64_t sent = 0;
  int stop = 0;
  double start_ns = 0;        ///< its first post, by the server's clock
  double first_batch_ns = 0;  ///< likewise
};
/// Server: how its side ended. `series` is (time in its own ns, payload bytes
/// sent so far) of a bidirectional run, at most kMaxDoneSeries pairs.
struct Done {
  std::uint64_t messages = 0;
  std::optional<std::uint64_t> received = {};  ///< of the client's messages, where some may be lost
  std::vector<std::pair<double, std::uint64_t>> series;
  std::vector<Outside> warnings;
  double standstill_s = 0;  ///< longest time between Start and Stop in which it did not run
  std::optional<double> cpu_s = {};  ///< CPU time of its thread from Start to Stop
  Counters counters = {};            ///< of its port, that rose from Start to Stop; at most kMaxCounters
  std::optional<ReverseRun> led = {};       ///< reversed: what it measured
};
/// Client, in runs that verify data: lap `iteration` is next; the server makes
/// its share of it ready and says Ready.
struct Lap {
  std::uint64_t iteration = 0;
};
/// Client: its share of the lap is done; `messages` per QP in all so far.
struct LapDone {
  std::vector<std::uint64_t> messages;
};
/// Server: what arrived there in this lap is as it should be; its own share
/// (bidirectional): messages in all so far, and the time this lap's took.
struct Checked {
  std::uint64_t messages = 0;
  double seconds = 0;
};
/// Either end, at any time: the run (or the session) failed there.
struct Failure {
  int exit_code = 5;
  Outside reason;
  Outside hint;
};
/// Client, after a run, to a server whose Turn asked for it: what the client measured.
struct Result {
  TestSpec spec;  ///< with its defaults resolved
  std::string device_kind;
  std::string client_device;
  std::string server_device;
  std::string gid_type;
  int client_gid_index = 0;
  int server_gid_index = 0;
  std::uint64_t iterations = 0;
  double seconds = 0;
  /// GB/s: average and peak; or ns: least, most, median, average, deviation, p99, p99.9. What is not known is -1.
  std::vector<double> figures;
};
inline constexpr std::size_t kRateFigures = 2;
inline constexpr std::size_t kLatencyFigures = 7;

/// Client: no further run.
struct Bye {};

/// Between the ranks of `gdrperf cluster`: bytes of its own (app/cluster/wire.h), as they are behind "cluster\n".
struct Cluster {
  std::string text;
};

using Message = std::variant<Hello, Busy, Turn, RunRequest, Accept, Connect, Reject, Ready, Start,
                             Ping, Pong, Stop, Done, Failure, Bye, Lap, LapDone, Checked, Proof,
                             Enter, Alive, Cluster, Result>;

/// "hello", "run_request", ...: the `type` member of the frame's JSON.
const char* type_name(const Message& message);

/// JSON text of one message; a Cluster's frame is no JSON.
std::string encode(const Message& message);

/// Inverse of encode. Unknown members are ignored (minor versions add them);
/// throws peer_error naming the member on anything missing, of a wrong type or
/// out of range. Safe on hostile input.
Message decode(std::string_view text);

}  // namespace gdrperf::proto
