// The option table. docs/explanation/architecture.md says how to add a row.
#include "gdrperf/proto/settings.h"

#include <limits>

#include "proto/spec/setting_access.h"
#include "proto/spec/setting_choices.h"
#include "proto/spec/setting_takers.h"

namespace gdrperf {
namespace setting_rows {

using setting_access::to;
using T = TestSpec;
using E = EndSpec;
using S = StopRule;
using enum SettingType;

constexpr auto kClient = &T::client;
constexpr auto kServer = &T::server;
constexpr auto kStop = &T::stop;

constexpr const char* kHostMemory =
    "client and server both use host memory; GPU memory is --buffer or --peer-buffer cuda:N";

// Rows that both ends have: each states what differs.
template <auto End>
constexpr Setting of_end(Setting row, const char* member, SettingAccess access, const char* placeholder) {
  row.object = End == kClient ? "client" : "server";
  row.group = End == kClient ? kOwnGroup : kPeerGroup;
  row.member = member;
  row.access = access;
  row.placeholder = placeholder;
  return row;
}

template <auto End>
constexpr Setting device(Setting row) {
  row.type = kName;
  row.range = {0, kMaxName};
  return of_end<End>(row, "device", to<End, &E::device>(), "DEVICE");
}

template <auto End>
constexpr Setting port(Setting row) {
  row.range = {1, 255};
  row.rule = "a device's ports have the numbers {}";
  row.help = "its port (default: the first active one)";
  return of_end<End>(row, "port", to<End, &E::port>(), "N");
}

template <auto End>
constexpr Setting gid_index(Setting row) {
  row.range = {0, 65535};
  row.rule = "a GID has an index {}";
  return of_end<End>(row, "gid_index", to<End, &E::gid_index>(), "N");
}

template <auto End>
constexpr Setting buffer(Setting row) {
  row.type = kName;
  row.range = {1, kMaxName};
  return of_end<End>(row, "buffer", to<End, &E::buffer>(), "KIND");
}

template <auto End>
constexpr Setting buffer_given() {
  Setting row = of_end<End>({.type = kFlag, .wire = Wire::kMayMiss}, "buffer_given", to<End, &E::buffer_given>(), "");
  row.group = "";
  return row;
}

template <auto End>
constexpr Setting cpu(Setting row) {
  row.range = {0, 65535};
  row.rule = "a CPU has a number {}";
  return of_end<End>(row, "cpu", to<End, &E::cpu>(), "N");
}

template <auto End>
constexpr Setting numa(Setting row) {
  row.range = {0, 4095};
  row.rule = "a NUMA node has a number {}";
  row.help = "NUMA node of thread and host buffers (default: the NIC's)";
  row.wire = Wire::kMayMiss;
  return of_end<End>(row, "numa", to<End, &E::numa>(), "N");
}

constexpr Setting kSettings[] = {
    {.member = "size_bytes", .access = to<&T::size_bytes>(), .type = kSize, .range = {1, kMaxMessageBytes},
     .rule = "a message has {}",
     .flags = "-s,--size", .placeholder = "SIZES", .recorded = {.identity = Identity::kName, .unit = "B", .label = nullptr}},

    device<kClient>({.flags = "-d,--ib-dev", .help = "RDMA device (default: the first with an active port)"}),
    port<kClient>({.flags = "-i,--ib-port"}),
    gid_index<kClient>({.flags = "-x,--gid-index", .help = "GID index (default: RoCE v2 over IPv4 first, link-local last)"}),
    buffer<kClient>({.flags = "--buffer",
                     .help = "kind of memory: host, hugepage, cuda:N, cuda-vmm:N, cuda-host, staged:N or rocm:N, where N is a GPU index, "
             "PCI address or UUID; with --rails a list, or cuda for the GPU nearest to each NIC (default: {})"}),
    buffer_given<kClient>(),
    cpu<kClient>({.flags = "--cpu", .help = "CPU to run on (default: any of --numa)"}),
    numa<kClient>({.flags = "--numa,--numa_node"}),

    device<kServer>({.flags = "--peer-dev",
                     .help = "RDMA device (default: the first with an active port; with --local that of -d)"}),
    port<kServer>({.flags = "--peer-port,--peer-ib-port"}),
    gid_index<kServer>({.flags = "--peer-gid-index", .help = "GID index (default: as for -x)"}),
    buffer<kServer>({.flags = "--peer-buffer",
                     .help = "memory, as for --buffer (default: {}, or the server's own --buffer)",
                     .take = take_peer_buffer}),
    buffer_given<kServer>(),
    cpu<kServer>({.flags = "--peer-cpu", .help = "CPU to run on (default: any of --peer-numa)"}),
    numa<kServer>({.flags = "--peer-numa"}),

    {.member = "registration", .access = to<&T::registration>(), .type = kChoice, .choices = kRegistrations, .every = "all",
     .flags = "--register", .placeholder = "HOW", .group = kGpuGroup,
     .help = "how to register GPU memory: data-direct, dmabuf, dmabuf-pcie (over PCIe on C2C machines), peermem, "
             "or all to measure each (default: first of data-direct, dmabuf, peermem that works)",
     .scope = Scope::kGpu, .elsewhere = Elsewhere::kNoted, .reason = kHostMemory, .wire = Wire::kWhenSet},
    {.member = "path", .access = to<&T::path>(), .type = kChoice, .choices = kPaths, .every = "both",
     .flags = "--path", .placeholder = "WAY", .group = kGpuGroup,
     .help = "direct (GPUDirect RDMA), staged (through pinned host memory), or both to compare them (default: {})",
     .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "initiator", .access = to<&T::initiator>(), .type = kChoice, .choices = kInitiators, .every = "both",
     .flags = "--initiator", .placeholder = "WHO", .group = kGpuGroup,
     .help = "write_lat: who detects arrival in GPU memory and starts the next message: cpu (by write with "
             "immediate), gpu-proxy (a GPU kernel; the CPU posts for it), or both to compare them (default: {})",
     .wire = Wire::kWhenSet, .recorded = kCondition},
    {.member = "chunk_bytes", .access = to<&T::chunk_bytes>(), .type = kSize, .range = {4096, 1 << 30},
     .rule = "a copy has {}", .flags = "--chunk", .placeholder = "SIZE", .group = kGpuGroup,
     .help = "staged: bytes per copy (default: the fastest of several, tried before the run)",
     .scope = Scope::kStaged, .elsewhere = Elsewhere::kNoted,
     .reason = "the path is direct; --path staged copies in chunks", .wire = Wire::kWhenSet,
     .recorded = {.identity = Identity::kCondition, .name = "chunk_asked_bytes", .unit = "B"}},
    {.member = "consume", .access = to<&T::consume>(), .type = kFlag, .flags = "--consume", .group = kGpuGroup,
     .help = "the receiving GPU computes on each message and copies the result to the host, within the measured "
             "time",
     .wire = Wire::kWhenSet, .recorded = kNamed},
    {.object = "client", .type = kName, .flags = "--use_cuda", .placeholder = "N", .group = kGpuGroup, .help = "as --buffer cuda:N",
     .take = take_gpu},
    {.object = "client", .type = kName, .flags = "--use_cuda_bus_id", .placeholder = "ADDRESS", .group = kGpuGroup,
     .help = "as --buffer cuda:ADDRESS", .take = take_gpu},
    {.object = "client", .type = kName, .flags = "--use_rocm", .placeholder = "N", .group = kGpuGroup, .help = "as --buffer rocm:N",
     .take = take_rocm},
    {.object = "client", .type = kFlag, .flags = "--use_hugepages", .group = kOwnGroup, .help = "as --buffer hugepage",
     .take = take_hugepages},
    {.type = kFlag, .flags = "--use_cuda_dmabuf,--use_rocm_dmabuf", .group = kGpuGroup, .help = "as --register dmabuf",
     .scope = Scope::kGpu, .elsewhere = Elsewhere::kNoted, .reason = kHostMemory, .take = take_dmabuf},
    {.type = kFlag, .flags = "--use_data_direct", .group = kGpuGroup, .help = "as --register data-direct",
     .scope = Scope::kGpu, .elsewhere = Elsewhere::kNoted, .reason = kHostMemory, .take = take_data_direct},

    {.member = "atomic", .access = to<&T::atomic>(), .type = kChoice, .choices = kAtomics,
     .flags = "-A,--atomic,--atomic_type", .placeholder = "WHICH", .group = kQueueGroup,
     .help = "fetch_add or cmp_swap, of 8 bytes (default: {}; atomic)",
     .scope = Scope::kAtomic, .reason = "{} does no atomics", .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "transport", .access = to<&T::transport>(), .type = kChoice, .choices = kTransports,
     .flags = "--transport,-c,--connection", .placeholder = "KIND", .group = kQueueGroup,
     .help = "QP transport: rc; uc (write, write_imm, send only); ud (send only, up to one MTU) (default: {})",
     .wire = Wire::kWhenSet, .recorded = kNamed, .take = take_transport},
    {.member = "rate_per_s", .access = to<&T::rate_per_s>(), .type = kNumber, .range = {1, 1'000'000'000},
     .rule = "a rate is {} messages per second", .flags = "--rate", .placeholder = "RATE", .group = kQueueGroup,
     .help = "send at a fixed rate: messages per second, or payload such as 10Gb/s or 1.25GB/s, per direction; "
             "latency counts from the scheduled time (default: as fast as they complete)",
     .wire = Wire::kMayMiss, .recorded = {.identity = Identity::kName, .unit = "1/s", .label = "rate"}, .take = take_rate},
    {.member = "rate_bytes_per_s", .access = to<&T::rate_bytes_per_s>(), .type = kNumber, .range = {1, 1'000'000'000'000'000},
     .rule = "a rate is {} bytes per second", .flags = "--rate-bytes-per-s", .placeholder = "N", .group = kQueueGroup,
     .help = "payload per second, as --rate with a unit", .wire = Wire::kWhenSet,
     .recorded = {.identity = Identity::kName, .unit = "B/s"}},
    {.member = "burst", .access = to<&T::burst>(), .range = {1, kMaxDepth}, .rule = "a burst has {} messages",
     .flags = "--burst", .placeholder = "N", .group = kQueueGroup,
     .help = "messages sent together at --rate (default: {}: evenly spaced; bandwidth)",
     .scope = Scope::kBandwidth, .reason = "{} has one message in flight", .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "limiter", .access = to<&T::limiter>(), .type = kChoice, .choices = kLimiters,
     .flags = "--rate-limiter,--rate_limit_type", .placeholder = "WHO", .group = kQueueGroup,
     .help = "who enforces --rate: sw (the sender), hw (the device: packet pacing per QP), or auto (the device "
             "where it can) (default: {}; bandwidth)",
     .scope = Scope::kBandwidth, .reason = "{} has one message in flight", .wire = Wire::kWhenSet, .recorded = {.identity = Identity::kName, .name = "rate_limiter"}},
    {.member = "load", .access = to<&T::load>(), .type = kName, .range = {0, kMaxName},
     .flags = "--load", .placeholder = "SHARE", .group = kQueueGroup,
     .help = "also measure while a stream runs on a second QP: a share of the rate it reaches alone, such as 50%, "
             "or a rate as for --rate (default: none; latency)",
     .scope = Scope::kLatency, .reason = "{} is no latency test", .wire = Wire::kWhenSet, .recorded = kNamed, .take = take_load},
    {.member = "load_size_bytes", .access = to<&T::load_size_bytes>(), .type = kSize, .range = {1, kMaxMessageBytes},
     .rule = "a message of the stream has {}", .flags = "--load-size", .placeholder = "SIZE", .group = kQueueGroup,
     .help = "message size of the --load stream (default: 64K)",
     .scope = Scope::kLatency, .reason = "{} is no latency test", .wire = Wire::kWhenSet,
     .recorded = {.identity = Identity::kCondition, .name = "load_size"}},
    {.member = "threads", .access = to<&T::threads>(), .range = {1, kMaxParts}, .rule = "a run has {} threads",
     .flags = "--threads", .placeholder = "N", .group = kQueueGroup,
     .help = "threads on client and server, one CPU each; QPs are distributed across them (default: {}; bandwidth)",
     .scope = Scope::kBandwidth, .reason = "{} has one message in flight", .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "rails", .access = to<&T::rails>(), .type = kName, .range = {0, kMaxList},
     .flags = "--rails", .placeholder = "LIST", .group = kQueueGroup,
     .help = "devices to use simultaneously, such as mlx5_0,mlx5_1, or all with an active port (default: one; "
             "bandwidth)",
     .scope = Scope::kBandwidth, .reason = "{} has one message in flight", .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "peer_rails", .access = to<&T::peer_rails>(), .type = kName, .range = {0, kMaxList},
     .flags = "--peer-rails", .placeholder = "LIST", .group = kQueueGroup,
     .help = "the server's devices for --rails, in the same order (default: the same names)",
     .scope = Scope::kBandwidth, .reason = "{} has one message in flight", .wire = Wire::kWhenSet, .recorded = kCondition},
    {.member = "incast", .access = to<&T::incast>(), .range = {1, kMaxParts}, .rule = "an incast has {} clients",
     .flags = "--incast", .placeholder = "N", .group = kQueueGroup,
     .help = "run N clients against one device of the server simultaneously, each with its own QPs, memory and "
             "thread, on the devices of --rails round-robin; prints shares and fairness (default: {}; bandwidth)",
     .scope = Scope::kBandwidth, .reason = "{} has one message in flight", .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "victim", .access = to<&T::victim>(), .type = kName, .range = {0, kMaxName},
     .flags = "--victim", .placeholder = "DEVICE", .group = kQueueGroup,
     .help = "measure latency from this device (or any) to the same port, alone and during --incast (default: "
             "none; bandwidth)",
     .scope = Scope::kBandwidth, .reason = "{} has one message in flight", .wire = Wire::kWhenSet, .recorded = kCondition},
    {.member = "parts", .access = to<&T::parts>(), .range = {1, kMaxParts}, .rule = "a client has {} runs at the same time",
     .wire = Wire::kWhenSet},
    {.member = "part", .access = to<&T::part>(), .range = {0, kMaxParts}, .rule = "of runs at the same time one has a number {}",
     .wire = Wire::kWhenSet},
    {.member = "qps", .access = to<&T::qps>(), .range = {1, 16384},
     .rule = "a test has {} QPs", .flags = "-q,--qp", .placeholder = "N", .group = kQueueGroup, .help = "QPs; a list or a range (1,8 or 1:4096:x4): a run with each (default: {}; bandwidth)",
     .scope = Scope::kBandwidth, .reason = "{} uses one QP", .recorded = kNamed},
    {.member = "tx_depth", .access = to<&T::tx_depth>(), .range = {1, kMaxDepth},
     .rule = "a QP has {} messages in flight", .flags = "-t,--tx-depth", .placeholder = "N", .group = kQueueGroup,
     .help = "messages in flight per QP (default: 128; fewer from 128 KiB on, but at least 8 and -Q)",
     .scope = Scope::kBandwidth, .elsewhere = Elsewhere::kNoted, .reason = kOneInFlight, .recorded = kCondition},
    {.member = "rx_depth", .access = to<&T::rx_depth>(), .range = {1, kMaxDepth},
     .rule = "a QP has {} receives posted", .flags = "-r,--rx-depth", .placeholder = "N", .group = kQueueGroup,
     .help = "receives posted per QP (default: {}; send)",
     .scope = Scope::kReceives, .elsewhere = Elsewhere::kNoted, .reason = "{} posts no receives", .recorded = kCondition},
    {.member = "srq", .access = to<&T::srq>(), .type = kFlag, .flags = "--srq,--use-srq", .group = kQueueGroup,
     .help = "one shared receive queue (SRQ) for all QPs of a side (send, write_imm)",
     .scope = Scope::kReceives, .reason = "{} posts no receives", .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "cq_mod", .access = to<&T::cq_mod>(), .range = {1, kMaxDepth},
     .rule = "every N-th message is signalled, N {}", .flags = "-Q,--cq-mod", .placeholder = "N", .group = kQueueGroup,
     .help = "signal every N-th message (default: a quarter of -t up to 8 KiB, 1 above)",
     .scope = Scope::kBandwidth, .elsewhere = Elsewhere::kNoted, .reason = kOneInFlight, .recorded = kCondition},
    {.member = "post_list", .access = to<&T::post_list>(), .range = {1, kMaxDepth},
     .rule = "a list has {} messages", .flags = "-l,--post_list,--post-list", .placeholder = "N", .group = kQueueGroup,
     .help = "messages per ibv_post_send (default: {}; bandwidth)",
     .scope = Scope::kBandwidth, .reason = "{} posts one message at a time", .recorded = kCondition},
    {.member = "inline_bytes", .access = to<&T::inline_bytes>(), .range = {0, 65536},
     .rule = "inline messages have {} bytes", .flags = "-I,--inline_size,--inline-size", .placeholder = "N", .group = kQueueGroup,
     .help = "send messages of up to N bytes inline (default: latency: the device maximum, up to 220; bandwidth: "
             "0)",
     .scope = Scope::kCarriesData, .off = 0, .reason = "{} carries no data to inline", .recorded = kBytes},
    {.member = "footprint_bytes", .access = to<&T::footprint_bytes>(), .type = kSize, .range = {1, 1ll << 40},
     .rule = "the memory that a QP walks through has {}", .flags = "--footprint", .placeholder = "SIZE", .group = kQueueGroup,
     .help = "memory each QP walks through (default: one slot per message in flight, up to 4 MiB)",
     .scope = Scope::kBandwidth, .elsewhere = Elsewhere::kNoted, .reason = "a latency test sends from one place", .recorded = kBytes},
    {.member = "sges", .access = to<&T::sges>(), .range = {1, 256},
     .rule = "a message has {} pieces", .flags = "--sge", .placeholder = "N", .group = kQueueGroup,
     .help = "gather each message from N pieces of memory, and scatter it to N pieces of its receive (default: {})",
     .wire = Wire::kWhenSet, .recorded = {.identity = Identity::kName, .name = "sge"}},
    {.member = "mr_per_qp", .access = to<&T::mr_per_qp>(), .type = kFlag, .flags = "--mr-per-qp,--mr_per_qp", .group = kQueueGroup,
     .help = "register the memory once for each QP: as many keys (default: one memory region for all)", .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "odp", .access = to<&T::odp>(), .type = kFlag, .flags = "--odp", .group = kQueueGroup,
     .help = "register host memory for on-demand paging on client and server", .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "null_mr", .access = to<&T::null_mr>(), .type = kFlag, .flags = "--null-mr,--use-null-mr", .group = kQueueGroup,
     .help = "a null memory region for the client's own memory: the NIC reads and writes nothing there",
     .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "thread_domain", .access = to<&T::thread_domain>(), .type = kFlag, .flags = "--no-lock,--no_lock", .group = kQueueGroup,
     .help = "put QPs and completion queues into a thread domain, where the provider needs no locks",
     .wire = Wire::kWhenSet, .recorded = {.identity = Identity::kCondition, .name = "no_lock"}},
    {.member = "direction", .access = to<&T::direction>(), .type = kSwitch, .choices = kDirections,
     .flags = "-b,--bidirectional", .group = kQueueGroup, .help = "client and server send simultaneously (bandwidth)",
     .scope = Scope::kBandwidth, .reason = "{} has one message in flight; only bandwidth tests are bidirectional", .recorded = kNamed},
    {.member = "reverse", .access = to<&T::reverse>(), .type = kFlag, .flags = "--reverse,--reversed", .group = kQueueGroup,
     .help = "the server sends, or reads, instead of the client (bandwidth)",
     .scope = Scope::kBandwidth, .reason = "{} goes back and forth", .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "relaxed_ordering", .access = to<&T::ordering>(), .type = kChoice, .choices = kOrderings, .every = "both",
     .flags = "--relaxed-ordering", .placeholder = "WHEN", .group = kQueueGroup,
     .help = "PCIe relaxed ordering for memory that the NIC writes: auto (off where the last byte is polled), on, "
             "off, or both to compare them (default: {})",
     .wire = Wire::kWhenSet, .recorded = kCondition},
    {.type = kFlag, .flags = "--disable_pcie_relaxed", .group = kQueueGroup, .help = "as --relaxed-ordering off", .take = take_strict},
    {.type = kFlag, .flags = "--verify,--data_validation", .group = kQueueGroup,
     .help = "fill every message with a pattern and compare every byte that arrives", .take = take_verify},
    {.member = "verify_seed", .access = to<&T::verify_seed>(), .range = {0, std::numeric_limits<std::int64_t>::max()},
     .rule = "a seed is {}", .flags = "--seed", .placeholder = "N", .group = kQueueGroup,
     .help = "the pattern's seed; implies --verify (default: 1)", .wire = Wire::kWhenSet,
     .recorded = {.identity = Identity::kCondition, .name = "verified"}},
    {.member = "wait", .access = to<&T::wait>(), .type = kSwitch, .choices = kWaits,
     .flags = "-e,--events", .group = kQueueGroup, .help = "sleep on completion events instead of polling",
     .scope = Scope::kEvents, .reason = "{} waits for the last byte in memory, which raises no event", .recorded = kNamed},

    {.object = "stop", .member = "iterations", .access = to<kStop, &S::iterations>(), .range = {1, 1'000'000'000'000},
     .rule = "a run has {} messages or round trips", .flags = "-n,--iters", .placeholder = "N", .group = kStopGroup,
     .help = "messages, or round trips of a latency test", .wire = Wire::kWhenSet},
    {.object = "stop", .member = "duration_ns", .access = to<kStop, &S::duration>(), .type = kTime, .range = kTimeRange,
     .rule = "a measurement takes {}", .flags = "-D,--duration", .placeholder = "TIME", .group = kStopGroup,
     .help = "time to measure, like 2s, 500ms or 1m", .wire = Wire::kWhenSet},
    {.object = "stop", .member = "forever", .access = to<kStop, &S::forever>(), .type = kFlag,
     .flags = "--forever,--run_infinitely", .group = kStopGroup, .help = "run until a signal (Ctrl-C), then print the result of the whole run",
     .wire = Wire::kWhenSet},
    {.object = "stop", .member = "precision", .access = to<kStop, &S::precision>(), .type = kPercent,
     .rule = "the half width of the interval is {}", .flags = "--precision", .placeholder = "PERCENT", .group = kStopGroup,
     .help = "half width of the 95 % interval to reach (default: {})"},
    {.object = "stop", .member = "cap_ns", .access = to<kStop, &S::cap>(), .type = kTime, .range = kTimeRange,
     .rule = "a limit of time is {}", .flags = "--cap", .placeholder = "TIME", .group = kStopGroup,
     .help = "stop after this time even if --precision is not reached (default: {}; a run of sweep 1s)"},

    {.member = "mtu_bytes", .access = to<&T::mtu_bytes>(), .range = {256, 4096}, .only = kMtus,
     .rule = "a path MTU is {} bytes", .flags = "-m,--mtu", .placeholder = "N", .group = kNetworkGroup,
     .help = "path MTU in bytes: {range} (default: the smaller of the two ports' MTUs)", .recorded = kBytes},
    {.member = "service_level", .access = to<&T::service_level>(), .range = {0, 15},
     .rule = "a service level is {}",
     .flags = "-S,--sl", .placeholder = "N", .group = kNetworkGroup, .help = "service level (default: {})", .recorded = kCondition},
    {.member = "traffic_class", .access = to<&T::traffic_class>(), .range = {0, 255},
     .rule = "a traffic class is {}", .flags = "-T,--tos,--tclass", .placeholder = "N", .group = kNetworkGroup,
     .help = "traffic class, the IP type of service of RoCE v2 (default: {})", .recorded = kCondition},
    {.member = "flow_label", .access = to<&T::flow_label>(), .range = {0, kMostFlowLabel},
     .rule = "a flow label is {}", .flags = "--flow-label,--flow_label", .placeholder = "LIST", .group = kNetworkGroup,
     .help = "flow label of the GRH, or a list for the QPs round-robin: selects among paths of equal cost "
             "(default: {})",
     .wire = Wire::kWhenSet, .recorded = kCondition, .take = take_flow_labels},
    {.member = "flow_labels", .access = to<&T::flow_labels>(), .type = kName, .range = {0, kMaxList},
     .wire = Wire::kWhenSet},
    {.type = kName, .flags = "--udp-sport", .placeholder = "LIST", .group = kNetworkGroup,
     .help = "UDP source ports of RoCE v2 for the QPs round-robin, 49152 to 65535 (by flow labels that map to "
             "them)",
     .take = take_source_ports},
    {.member = "spread", .access = to<&T::spread>(), .range = {2, 16384},
     .rule = "a run spreads over {} UDP source ports", .flags = "--spread", .placeholder = "N", .group = kNetworkGroup,
     .help = "use at least N QPs over N UDP source ports and print the share of each (default: no)",
     .scope = Scope::kBandwidth, .reason = "{} has one QP", .wire = Wire::kWhenSet, .recorded = kNamed},
    {.member = "hop_limit", .access = to<&T::hop_limit>(), .range = {1, 255},
     .rule = "a hop limit is {}", .flags = "-L,--hop-limit,--hop_limit", .placeholder = "N", .group = kNetworkGroup,
     .help = "hop limit of the GRH, the time to live of RoCE v2 (default: {})", .wire = Wire::kWhenSet, .recorded = kCondition},
    {.member = "gid_family", .access = to<&T::gid_family>(), .type = kChoice, .choices = kGidFamilies,
     .flags = "--gid-family", .placeholder = "WHICH", .group = kNetworkGroup,
     .help = "GIDs to choose from on client and server: ipv4, ipv6 or any (default: {}; -x names one)",
     .wire = Wire::kWhenSet, .recorded = kCondition},
    {.type = kFlag, .flags = "--ipv6", .group = kNetworkGroup, .help = "as --gid-family ipv6", .take = take_ipv6},
    {.member = "qp_timeout", .access = to<&T::qp_timeout>(), .range = {0, 31},
     .rule = "the ACK timeout is 4.096 us * 2^N, N {}", .flags = "-u,--qp-timeout", .placeholder = "N", .group = kNetworkGroup,
     .help = "local ACK timeout, 4.096 us * 2^N; 0 is none (default: {}, 67 ms)",
     .scope = Scope::kReliable, .elsewhere = Elsewhere::kNoted, .reason = kUnacknowledged, .recorded = kCondition},
    {.member = "retry_count", .access = to<&T::retry_count>(), .range = {0, 7},
     .rule = "a retry count is {}", .flags = "--retry-count", .placeholder = "N", .group = kNetworkGroup,
     .help = "retries of an unacknowledged request (default: {})",
     .scope = Scope::kReliable, .elsewhere = Elsewhere::kNoted, .reason = kUnacknowledged, .wire = Wire::kWhenSet,
     .recorded = kCondition},
    {.member = "rnr_retry", .access = to<&T::rnr_retry>(), .range = {0, 7},
     .rule = "an RNR retry count is {}", .flags = "--rnr-retry,--rnr_retry", .placeholder = "N", .group = kNetworkGroup,
     .help = "retries of a send for which the peer has no receive posted; 7: no limit (default: {})",
     .scope = Scope::kReliable, .elsewhere = Elsewhere::kNoted, .reason = kUnacknowledged, .wire = Wire::kWhenSet, .recorded = kCondition},
    {.member = "rnr_timer", .access = to<&T::rnr_timer>(), .range = {0, 31},
     .rule = "the RNR timer has a code {}", .flags = "--rnr-timer", .placeholder = "N", .group = kNetworkGroup,
     .help = "RNR timer code as in ibv_modify_qp: how long a sender waits for a receive to be posted "
             "(default: {}, 0.64 ms)",
     .wire = Wire::kWhenSet, .recorded = kCondition},
    {.member = "max_rd_atomic", .access = to<&T::max_rd_atomic>(), .range = {1, 255},
     .rule = "a QP has {} reads or atomics outstanding", .flags = "--max-rd-atomic,--outs", .placeholder = "N", .group = kNetworkGroup,
     .help = "reads and atomics outstanding per QP (default: what both devices can)", .wire = Wire::kWhenSet, .recorded = kCondition},
    {.member = "pkey_index", .access = to<&T::pkey_index>(), .range = {0, 65535},
     .rule = "a partition key has an index {}", .flags = "--pkey-index,--pkey_index", .placeholder = "N", .group = kNetworkGroup,
     .help = "partition key index on client and server (default: {})", .wire = Wire::kWhenSet, .recorded = kCondition},
    {.member = "comp_vector", .access = to<&T::comp_vector>(), .range = {0, 65535},
     .rule = "a completion vector has a number {}", .flags = "--comp-vector,-X,--vector", .placeholder = "N", .group = kQueueGroup,
     .help = "completion vector on client and server: the interrupt, hence the CPU, for completion events "
             "(default: {})",
     .wire = Wire::kWhenSet, .recorded = kCondition},
    {.member = "lag_port", .access = to<&T::lag_ports>(), .type = kName, .range = {0, kMaxList},
     .flags = "--lag-port", .placeholder = "LIST", .group = kNetworkGroup,
     .help = "ports of a bonded mlx5 device for the QPs round-robin, from 1 (default: the device chooses)",
     .wire = Wire::kWhenSet, .recorded = kCondition, .take = take_lag_ports},
    {.member = "ece", .access = to<&T::ece>(), .type = kChoice, .choices = kUses,
     .flags = "--ece", .placeholder = "WHEN", .group = kNetworkGroup,
     .help = "enhanced connection establishment (vendor-specific options that both devices support): on, auto or "
             "off (default: {})",
     .wire = Wire::kWhenSet, .recorded = kCondition},
    {.member = "ooo", .access = to<&T::ooo>(), .type = kChoice, .choices = kUses,
     .flags = "--ooo", .placeholder = "WHEN", .group = kNetworkGroup,
     .help = "mlx5: place packets that arrive out of order directly, and use receives in any order: on, auto or "
             "off (default: {})",
     .wire = Wire::kWhenSet, .recorded = kCondition},
    {.type = kFlag, .flags = "--use_ooo", .group = kNetworkGroup, .help = "as --ooo on", .take = take_ooo},
    {.type = kFlag, .flags = "--no_enhanced_reorder,--no_ddp", .group = kNetworkGroup, .help = "as --ooo off", .take = take_in_order},
    {.member = "connector", .access = to<&T::connector>(), .type = kSwitch, .choices = kConnectors,
     .flags = "-R,--rdma_cm,--rdma-cm", .group = kNetworkGroup,
     .help = "connect QPs by rdma_cm (default: exchange addresses)",
     .recorded = {.identity = Identity::kCondition, .name = "connection"}},
};

}  // namespace setting_rows

std::span<const Setting> settings() { return setting_rows::kSettings; }

}  // namespace gdrperf
