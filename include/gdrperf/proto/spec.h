#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdrperf {

/// Operation on the wire. The opcode is data: one loop serves all.
enum class Operation { kWrite, kSend, kRead, kWriteImm, kSendImm, kAtomic };
/// Operation of an atomic test.
enum class Atomic { kFetchAdd, kCompareSwap };
enum class Metric { kBandwidth, kLatency };
enum class Direction { kUnidirectional, kBidirectional };
/// How a completion is waited for: by polling the CQ, or asleep on its
/// completion channel (`-e`).
enum class Wait { kPoll, kEvent };
/// How QPs reach RTS: addresses exchanged over the control channel, or rdma_cm.
enum class Connector { kExchange, kRdmaCm };
/// Service of the QPs: reliable or unreliable connections, datagrams, or extended reliable connections. Over UC and UD
/// nothing is sent again, and a message that finds no receive is lost.
enum class Transport { kRc, kUc, kUd, kXrc, kDc, kSrd };

/// How a NIC is given GPU memory: kAuto the first of Data Direct, dma-buf and peer memory that works, or one of them;
/// kDmabufPcie: a dma-buf whose pages are mapped over PCIe also where the GPU is joined to the CPU by C2C.
enum class Registration { kAuto, kDmabuf, kPeermem, kDmabufPcie, kDataDirect };
/// How data gets between GPU memory and the NIC: at once (GPUDirect RDMA), or
/// by way of pinned host memory.
enum class Path { kDirect, kStaged };

/// Whether a NIC's writes to memory may overtake each other (IBV_ACCESS_RELAXED_ORDERING): kAuto: yes,
/// but where the last byte is polled for.
enum class Ordering { kAuto, kRelaxed, kStrict };

/// Whether a capability of devices is used: kAuto: where both ends' have it.
enum class Use { kOff, kOn, kAuto };

/// Which GIDs are chosen among where no index says which.
enum class GidFamily { kAny, kIpv4, kIpv6 };

/// Who keeps a bandwidth test's rate: the sender, the device (packet pacing), or the device where it can.
enum class Limiter { kSoftware, kHardware, kAuto };

/// Who posts messages. The CPU, by verbs; a kernel on the GPU that sees the last byte (write_lat), with a CPU thread
/// that posts for it; a kernel that writes to the rings of mlx5 QPs itself; or a CPU thread that does the same.
enum class Initiator { kCpu, kGpuProxy, kGpu, kCpuRings };

/// Which threads of a kernel write a list of messages together.
enum class GpuScope { kThread, kWarp, kBlock };

/// An operation and what is measured of it: "write_bw", "read_lat", ...
struct Test {
  Operation operation = Operation::kWrite;
  Metric metric = Metric::kBandwidth;
  bool operator==(const Test&) const = default;
};

std::string to_string(Test test);
std::string_view to_string(Operation operation);
std::string_view to_string(Connector connector);
std::string_view to_string(Path path);
/// "RC", as the specification has it.
std::string_view to_string(Transport transport);
/// nullopt when `name` is none of all_tests().
std::optional<Test> parse_test(std::string_view name);
/// In the order of operations() (proto/operation.h); bandwidth before latency.
const std::vector<Test>& all_tests();
/// Of a sweep that names none: write, send, read.
const std::vector<Test>& default_tests();

/// Choices asked of one end; defaults mean "choose and say which".
struct EndSpec {
  std::string device;            ///< RDMA device name; empty: first with an active port
  int port = 0;                  ///< 1-based; 0: first active
  int gid_index = -1;            ///< -1: chosen by itself
  std::string buffer = "host";   ///< memory kind
  bool buffer_given = false;     ///< `buffer` was asked for, also where it is the default
  int cpu = -1;                  ///< CPU to pin the benchmark thread to; -1: any of `numa`
  int numa = -1;                 ///< NUMA node of thread and host buffers; -1: the NIC's
  bool operator==(const EndSpec&) const = default;
};

/// When a run ends. Exactly one of `iterations`, `duration` or neither is set;
/// with neither it runs until the 95 % interval of the median is within
/// +-`precision`, or `cap` is reached; `forever` until a signal.
struct StopRule {
  std::optional<std::uint64_t> iterations;  ///< messages (round trips for latency)
  std::optional<std::chrono::nanoseconds> duration;
  bool forever = false;  ///< until a signal
  double precision = 0.01;
  std::chrono::nanoseconds cap = std::chrono::seconds(5);
  /// From then on only as long as the rest of `cap` may make the figure known; 0: all of it. Of the client alone.
  std::chrono::nanoseconds share{0};
  bool operator==(const StopRule&) const = default;
};

/// Messages due per second, however they were asked for; 0: as fast as they complete.
double rate_of(const struct TestSpec& spec);
/// The same where the sender keeps it; 0: there is none, or the device keeps it.
double paced_rate_of(const struct TestSpec& spec);
/// The initiator's messages carry no data, the answers do: reads and atomics.
bool answers_carry_data(const struct TestSpec& spec);

/// What follows each message of write_lat, in a work request of its own, to say that it is there: nothing, a write of 8
/// bytes, a write with immediate of none, or a fetch and add.
enum class Signal { kNone, kWrite, kImmediate, kAtomic };

/// Everything both ends agree on for one run; immutable once validated. One
/// default for a sweep and for a single run.
struct TestSpec {
  Test test;
  std::uint64_t size_bytes = 65536;
  EndSpec client;
  EndSpec server;
  int qps = 1;
  int tx_depth =
      0;  ///< work requests in flight per QP; 0: 128, less above 128 KiB so that 16 MiB are in flight, at least 8
  int rx_depth = 512;        ///< receives posted per QP (send tests)
  bool srq = false;          ///< all QPs of an end take them from one shared queue
  int cq_mod = 0;            ///< every how many sends one is signalled; 0: tx_depth / 4 up to 8 KiB, 1 above
  int post_list = 1;         ///< work requests per ibv_post_send
  int inline_bytes =
      -1;  ///< largest inline message; -1: by itself (latency: what the device can, up to 220; bandwidth: 0)
  int mtu_bytes = 0;         ///< path MTU; 0: the lesser active MTU of both ends
  /// Memory each QP walks through; 0: one slot per message in flight (srq: per receive), up to 4 MiB.
  std::uint64_t footprint_bytes = 0;
  int qp_timeout = 14;       ///< IB local ACK timeout exponent: 4.096 us * 2^n
  int retry_count = 7;       ///< of requests that no acknowledgement came for
  int rnr_retry = 7;         ///< of sends that found no receive; 7: without limit
  int rnr_timer = 12;        ///< code of the time that a sender without a receive is told to wait; 12: 0.64 ms
  int max_rd_atomic = 0;     ///< reads and atomics outstanding per QP; 0: what both devices can
  int pkey_index = 0;        ///< of the partition
  int comp_vector = 0;       ///< of the completion queues: which interrupt announces their events
  std::string lag_ports = {};  ///< ports of a bonded device that the QPs take in turn: "1,2"; "": the device's choice
  int service_level = 0;
  int hop_limit = 64;        ///< of the GRH
  GidFamily gid_family = GidFamily::kAny;  ///< of both GIDs
  std::uint64_t stride_bytes = 0;  ///< bandwidth: from one message to the next in memory; 0: as close as they lie
  bool random_places = false;      ///< bandwidth: messages take the places of their memory in no order
  /// bandwidth: sizes of a list of messages whose mean is `size_bytes`, "4096x100,65536x10"; "": one size
  std::string mix = {};
  int sges = 1;              ///< pieces that a message is gathered from, and scattered to by its receive
  bool mr_per_qp = false;    ///< a memory region for each QP, of the same memory
  std::string tph = {};      ///< TLP processing hints of host memory (proto/hints.h); "": none
  bool odp = false;          ///< memory is registered for on-demand paging
  bool null_mr = false;      ///< the client's own memory is a null memory region, which takes and gives nothing
  bool thread_domain = false;  ///< QPs and CQs belong to a thread domain: the provider takes no locks
  int traffic_class = 0;
  int flow_label = 0;        ///< of the GRH; RoCE v2's switches hash it, as the UDP source port, to choose among paths
  std::string flow_labels = {};  ///< several, which the QPs take in turn: "7,8,9"; "": one for all
  int spread = 0;            ///< bandwidth: UDP source ports that the QPs, at least as many, take in turn; 0: no matter
  Atomic atomic = Atomic::kFetchAdd;
  double rate_per_s = 0;  ///< messages due per second and direction, times of latency counted from when they were due;
                          ///< 0: as fast as they complete
  double rate_bytes_per_s = 0;  ///< the same in payload; one of them is set at most
  int burst = 1;             ///< messages that are due together
  Signal signal = Signal::kNone;            ///< write_lat: the receiver waits for it, and then looks at the message
  std::chrono::nanoseconds latency_gap{0};  ///< latency: pause between the end of a round and the next one
  std::string load = {};     ///< latency: stream beside the test, as parse_load() reads it (proto/rate.h); "": none
  std::uint64_t load_size_bytes = 65536;  ///< of the stream's messages
  int threads = 1;           ///< bandwidth: of each rail at both ends, to which its QPs are dealt
  std::string rails = {};    ///< bandwidth: this end's devices that are used at the same time, "a,b", or "all"; "": one
  std::string peer_rails = {};  ///< the server's, as many; "": the same names
  int incast = 1;            ///< bandwidth: clients, on `rails` in turn, of one device of the server
  std::string victim = {};   ///< bandwidth: this end's device of a latency test beside an incast, or "any"; "": none
  int parts = 1;             ///< runs of one client at the same time
  int part = 0;              ///< this one of them: it has a CPU of its own
  Direction direction = Direction::kUnidirectional;
  bool reverse = false;      ///< bandwidth: the server's end sends or reads, the client's is the target
  Wait wait = Wait::kPoll;
  Connector connector = Connector::kExchange;
  Transport transport = Transport::kRc;
  std::string multicast = {};  ///< UD: group that datagrams are sent to, as an address; "auto": one by itself; "": none
  Registration registration = Registration::kAuto;  ///< of GPU memory, at both ends
  Ordering ordering = Ordering::kAuto;
  Limiter limiter = Limiter::kSoftware;
  Use ece = Use::kOff;                  ///< enhanced connection establishment (ibv_query_ece(3))
  Use ooo = Use::kOff;                  ///< packets are placed, and receives taken, in any order
  Path path = Path::kDirect;            ///< for ends in GPU memory
  Initiator initiator = Initiator::kCpu;
  int gpu_threads = 1;       ///< kGpu, bandwidth: of a block
  int gpu_blocks = 1;
  GpuScope gpu_scope = GpuScope::kThread;
  std::uint64_t chunk_bytes = 0;        ///< staged: bytes per copy; 0: the best of several, tried before the run
  bool consume = false;                 ///< the receiving GPU computes on what arrived and copies the result back
  std::optional<std::uint64_t> verify_seed;  ///< every message carries a pattern and is checked
  StopRule stop;
  bool operator==(const TestSpec&) const = default;
};

/// `asked` with `typed_there` in place of what it leaves at its defaults.
EndSpec with_defaults(EndSpec asked, const EndSpec& typed_there);

/// Throws usage_error naming the command-line flag when a value or a
/// combination cannot be (size 0, -b with latency, -l not dividing -t, ...).
void validate(const TestSpec& spec);

}  // namespace gdrperf
