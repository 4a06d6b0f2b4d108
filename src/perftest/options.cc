// The table of docs/reference/perftest-options.md. tests/cli/perftest/perftest_test.py compares it with perftest's own
// help.
#include "gdrperf/perftest/options.h"

#include <algorithm>

#include <fmt/format.h>

#include "gdrperf/base/text.h"

namespace gdrperf::app {
namespace {

using Fate = PerftestFate;

constexpr const char* kLeaveOut = "leave it out";
constexpr const char* kNoEncryption = "nothing is encrypted";
constexpr const char* kNoEthernet = "raw Ethernet is not measured";
constexpr const char* kGpuMemory = "only GPUs of NVIDIA, AMD and Intel are supported";
constexpr const char* kBuffers = "--buffer cuda:N, cuda-vmm:N, cuda-host, rocm:N or ze:N";

constexpr PerftestOption kOptions[] = {
    {"-a,--all", "", Fate::kSame, ""},
    {"-A,--atomic_type", "TYPE", Fate::kSame, "also accepts fetch_add and cmp_swap"},
    {"-b,--bidirectional", "", Fate::kSame, "given on the client; the server does not need it"},
    {"-c,--connection", "TYPE", Fate::kSame,
     "RC, UC, UD, XRC, DC and SRD, as --transport; DC needs an mlx5 device, SRD an EFA"},
    {"-C,--report-cycles", "", Fate::kRefused, "times are in microseconds, in documents in nanoseconds", kLeaveOut},
    {"-d,--ib-dev", "DEVICE", Fate::kSame, "--peer-dev names the server's device"},
    {"-D,--duration", "SECONDS", Fate::kSame, "may have a unit: 500ms, 2m"},
    {"-e,--events", "", Fate::kSame, ""},
    {"-X,--vector", "N", Fate::kSame, "as --comp-vector, on both hosts"},
    {"-f,--margin", "SECONDS", Fate::kIgnored, "warm-up is found in the series and cut off"},
    {"-F,--CPU-freq", "", Fate::kMapped,
     "accepted without a note: times come from the invariant TSC, whatever the CPU's frequency"},
    {"-g,--mcg", "", Fate::kSame, "as --multicast; RoCE only, one QP"},
    {"-M,--MGID", "GID", Fate::kSame, "as --multicast-group"},
    {"--connectionless", "", Fate::kRefused, "datagrams are sent with -c UD", kLeaveOut},
    {"-h,--help", "", Fate::kSame, ""},
    {"-H,--report-histogram", "", Fate::kIgnored, "percentiles to p99.99 are always shown, batches are in --json FILE"},
    {"--report-histogrm", "", Fate::kIgnored, "percentiles to p99.99 are always shown, batches are in --json FILE"},
    {"-U,--report-unsorted", "", Fate::kIgnored,
     "--samples FILE writes the latencies as an HdrHistogram log, one line per interval"},
    {"-i,--ib-port", "PORT", Fate::kSame, "default: the first active one"},
    {"-I,--inline_size", "SIZE", Fate::kSame, ""},
    {"--inline_recv", "SIZE", Fate::kRefused,
     "perftest had it with the experimental verbs of MLNX_OFED 4 alone; mlx5 devices put small receives into the "
     "completion by themselves",
     kLeaveOut},
    {"-l,--post_list", "N", Fate::kSame, "completions are requested by queue depth, not by list"},
    {"--recv_post_list", "N", Fate::kIgnored, "receives are always posted in lists"},
    {"-L,--hop_limit", "N", Fate::kSame, "as --hop-limit; default: 64"},
    {"-m,--mtu", "BYTES", Fate::kSame, "default: the smaller of both ports' active MTUs"},
    {"-n,--iters", "N", Fate::kSame,
     "default: until the median is known within 1 %, at most 5 s; as ib_write_bw at most 0.5 s"},
    {"-N,--noPeak", "", Fate::kIgnored, "there is no peak search to switch off"},
    {"-o,--outs", "N", Fate::kSame,
     "as --max-rd-atomic; -o means this only as ib_read_bw and the other perftest names; elsewhere it is the file of "
     "--format"},
    {"-O,--dualport", "", Fate::kMapped,
     "--rails DEVICE:1,DEVICE:2: both ports, each with -q QPs; the table has the sum"},
    {"--report-per-port", "", Fate::kMapped, "columns of each port in the client's table, with -O and -D"},
    {"-p,--port", "PORT", Fate::kSame, ""},
    {"-q,--qp", "N", Fate::kSame, ""},
    {"-Q,--cq-mod", "N", Fate::kSame, "default: a quarter of the depth up to 8 KiB, 1 above"},
    {"-r,--rx-depth", "N", Fate::kSame, ""},
    {"--use-srq", "", Fate::kSame, ""},
    {"-R,--rdma_cm", "", Fate::kSame, ""},
    {"-z,--comm_rdma_cm,--com_rdma_cm", "", Fate::kIgnored, "addresses of QPs always travel over the TCP connection"},
    {"-s,--size", "SIZE", Fate::kSame,
     "4k is 4096 bytes; lists and ranges: 64,4K and 2:8M:x2; as ib_send_bw -c UD, a larger one becomes the MTU"},
    {"-S,--sl", "N", Fate::kSame, ""},
    {"-t,--tx-depth", "N", Fate::kSame, "default: at most 16 MiB in flight"},
    {"-T,--tos", "N", Fate::kSame, "also for QPs that are connected without rdma_cm"},
    {"--tclass", "N", Fate::kSame, ""},
    {"-u,--qp-timeout", "N", Fate::kSame, ""},
    {"-V,--version", "", Fate::kSame, ""},
    {"-w,--limit_bw", "RATE", Fate::kMapped,
     "--min-gbps: MiB/s, with --report_gbits Gb/s; exit status 1 if any size is slower; ignored by latency tests"},
    {"-y,--limit_msgrate", "MPPS", Fate::kMapped, "--min-gbps, for one message size"},
    {"-W,--report-counters", "NAMES", Fate::kIgnored,
     "--json FILE lists the port counters that increased, of both hosts"},
    {"-x,--gid-index", "INDEX", Fate::kSame, "default: RoCE v2 over IPv4 first, link-local last"},
    {"--ipv6", "", Fate::kSame, "as --gid-family ipv6: GIDs of both hosts"},
    {"--ipv6-addr", "", Fate::kMapped, "HOST may be a name or an address of either family"},
    {"--source_ip,--bind_source_ip", "ADDR", Fate::kSame,
     "as --bind: the address that the TCP connection comes from, or that the server listens on"},
    {"--dlid", "LID", Fate::kRefused, "the peer reports its LID", kLeaveOut},
    {"--force-link", "TYPE", Fate::kRefused, "the port reports its link layer", "-x INDEX chooses the GID"},
    {"--pkey_index", "N", Fate::kSame, "on both hosts"},
    {"--flow_label", "N", Fate::kSame, "one label for all QPs"},
    {"--retry_count", "N", Fate::kMapped, "--retry-count, at most 7; also for QPs that are connected without rdma_cm"},
    {"--dont_xchg_versions", "", Fate::kIgnored, "both hosts always agree on a version"},
    {"--out_json", "", Fate::kMapped,
     "as ib_write_bw and its family: perftest's keys in perftest_out.json, on both hosts, and on the client gdrperf's "
     "document in perftest_out.gdrperf.json; elsewhere only gdrperf's document"},
    {"--out_json_file", "FILE", Fate::kMapped,
     "names that file: out.json, and out.gdrperf.json; with several sizes, perftest's keys are those of the last size"},
    {"--output", "WHAT", Fate::kMapped,
     "perftest: its columns (--format perftest); bandwidth, message_rate or latency: only this value, for each size; "
     "anything else is the file of --format"},
    {"--report_gbits", "", Fate::kSame, ""},
    {"--report-both", "", Fate::kIgnored, "-b prints the sum of both directions, and each direction in the next line"},
    {"--reversed", "", Fate::kSame, "as --reverse: the server sends"},
    {"--run_infinitely", "", Fate::kSame,
     "as --forever; --interval 5s prints a line every 5 s; as ib_write_bw there is a line every 5 s, or every -D "
     "seconds"},
    {"--cpu_util", "", Fate::kIgnored, "--json FILE has the CPU time per message of client and server"},
    {"--cqe_poll", "N", Fate::kIgnored, "a poll takes all completions that are ready, up to a fixed number"},
    {"--disable_dynamic_polling", "", Fate::kIgnored,
     "a poll takes all completions that are ready, up to a fixed number"},
    {"--perform_warm_up", "", Fate::kIgnored, "there is always a warm-up, and it is cut off"},
    {"--use_old_post_send", "", Fate::kIgnored, "messages are posted by ibv_post_send"},
    {"--latency_gap", "US", Fate::kMapped, "--latency-gap, in microseconds"},
    {"--data_validation", "", Fate::kSame, "as --verify: every byte of every message, in all tests"},
    {"--data_validation_debug", "", Fate::kRefused, "the first wrong byte is always reported", "--verify"},
    {"--payload_file_path", "FILE", Fate::kSame, "as --payload: on the client"},
    {"--mmap", "FILE", Fate::kMapped, "--buffer file:FILE; what is in the file is lost"},
    {"--mmap-offset", "OFFSET", Fate::kMapped, "--buffer file:FILE@OFFSET"},
    {"--use_hugepages", "", Fate::kSame, "as --buffer hugepage"},
    {"--mr_per_qp", "", Fate::kSame, "as --mr-per-qp: each region covers all of the memory, on both hosts"},
    {"--odp", "", Fate::kSame, "on both hosts"},
    {"--use-null-mr", "", Fate::kSame, "as --null-mr"},
    {"--use_ib_dm_dmabuf", "DEVICE", Fate::kRefused, "the memory of a device is not measured",
     "--buffer host or cuda:N"},
    {"--disable_pcie_relaxed", "", Fate::kSame, "as --relaxed-ordering off"},
    {"--wait_destroy", "SECONDS", Fate::kIgnored, "resources are freed when the run ends"},
    {"--no_lock", "", Fate::kSame, "as --no-lock: a thread domain, on both hosts"},
    {"--no_ddp", "", Fate::kSame, "as --ooo off, the default"},
    {"--no_enhanced_reorder", "", Fate::kSame, "as --ooo off, the default here; perftest's is on where the device can"},
    {"--use_ooo", "", Fate::kSame, "as --ooo on"},
    {"--unsolicited_write", "", Fate::kRefused, "SRD is not measured", kLeaveOut},
    {"--write_with_imm", "", Fate::kMapped, "write_bw runs as write_imm_bw, write_lat as write_imm_lat"},
    {"--send_with_imm", "", Fate::kMapped, "send_bw runs as send_imm_bw, send_lat as send_imm_lat"},
    {"--pin_cores", "CPU", Fate::kMapped,
     "one CPU: --cpu; a list or ranges: the run uses CPUs of these only, as with taskset"},
    {"--numa_node", "NODE", Fate::kSame, "as --numa"},
    {"--disable_numa", "", Fate::kRefused, "a thread runs on its NIC's NUMA node", "--numa NODE or --cpu N"},
    {"--congest_type", "NAME", Fate::kRefused, "congestion control is configured on the device", kLeaveOut},
    {"--tph_mem", "TYPE", Fate::kMapped, "--tph, with --ph and --cpu_id"},
    {"--cpu_id", "N", Fate::kMapped, "--tph, with --ph and --tph_mem"},
    {"--ph", "N", Fate::kMapped, "--tph: TLP processing hints, by ibv_alloc_dmah of rdma-core 60"},
    {"--sig_offload", "", Fate::kRefused, "signatures are not offloaded", "--verify compares every byte"},
    {"--use_cuda", "GPU", Fate::kSame, "as --buffer cuda:GPU"},
    {"--use_cuda_bus_id", "ADDRESS", Fate::kSame, "as --buffer cuda:ADDRESS"},
    {"--use_cuda_dmabuf", "", Fate::kSame, "as --register dmabuf, in any order"},
    {"--use_cuda_pcie_mapping", "", Fate::kRefused, "the mapping is the driver's choice", kLeaveOut},
    {"--use_data_direct", "", Fate::kSame, "as --register data-direct"},
    {"--cuda_mem_type", "N", Fate::kRefused, "kinds of memory have names", kBuffers},
    {"--gpu_touch", "WHEN", Fate::kRefused, "the GPU always reads the data within the measured time", "--consume"},
    {"--use_rocm", "GPU", Fate::kSame, "as --buffer rocm:GPU"},
    {"--use_rocm_dmabuf", "", Fate::kSame, "as --register dmabuf"},
    {"--use_neuron,--use_hl,--use_mlu,--use_musa,--use_musa_bus_id,--use_opencl,"
     "--opencl_platform_id",
     "N", Fate::kRefused, kGpuMemory, kBuffers},
    {"--use_neuron_dmabuf,--use_mlu_dmabuf,--use_musa_dmabuf,"
     "--use_musa_pcie_mapping",
     "", Fate::kRefused, kGpuMemory, kBuffers},
    {"--rate_limit", "RATE", Fate::kMapped, "--rate, in the units of --rate_units"},
    {"--rate_limit_type", "TYPE", Fate::kSame,
     "as --rate-limiter: SW, the default; HW and PP are both packet pacing (ibv_modify_qp_rate_limit)"},
    {"--rate_units", "UNIT", Fate::kMapped, "M: MiB/s, g: Gb/s (default), p: messages per second"},
    {"--burst_size", "N", Fate::kMapped, "--burst, at most what is in flight; default: evenly spaced"},
    {"--typical_pkt_size", "BYTES", Fate::kIgnored,
     "a device that paces packets is given the smaller of -s and the MTU"},
    {"--log_dci_streams,--log_active_dci_streams", "N", Fate::kRefused, "DC is not measured", kLeaveOut},
    {"--aes_xts,--encrypt_on_tx,--sig_before", "", Fate::kRefused, kNoEncryption, kLeaveOut},
    {"--aes_block_size,--data_enc_keys_number,--kek_path,--credentials_path,--data_enc_key_app_path", "WHAT",
     Fate::kRefused, kNoEncryption, kLeaveOut},
    {"-B,--source_mac,-E,--dest_mac,-J,--dest_ip,-j,-K,--dest_port,-k,--source_port,-Y,--ethertype", "WHAT",
     Fate::kRefused, kNoEthernet, kLeaveOut},
    {"--remote_mac,--local_mac,--remote_ip,--local_ip,--remote_port,--local_port,--vlan_pcp,--flows,"
     "--flows_burst,--reply_every",
     "WHAT", Fate::kRefused, kNoEthernet, kLeaveOut},
    {"-Z,--server,-P,--client,-v,--mac_fwd,-G,--use_rss,--tcp,--raw_ipv6,--promiscuous,--sniffer,"
     "--raw_mcast,--vlan_en",
     "", Fate::kRefused, kNoEthernet, kLeaveOut},
};

}  // namespace

std::span<const PerftestOption> perftest_options() { return kOptions; }

std::string whole_perftest_option(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  if (!name.starts_with("--") || name.size() == 2) return word;
  std::string whole;
  for (const PerftestOption& each : kOptions) {
    for (const std::string_view flag : split(each.flags, ',')) {
      if (flag == name) return word;
      if (!flag.starts_with(name)) continue;
      if (!whole.empty()) return word;
      whole = flag;
    }
  }
  return whole.empty() ? word : whole + word.substr(name.size());
}

std::string_view to_string(PerftestFate fate) {
  switch (fate) {
    case Fate::kSame: return "same";
    case Fate::kMapped: return "mapped";
    case Fate::kIgnored: return "ignored";
    case Fate::kRefused: break;
  }
  return "refused";
}

std::string perftest_note(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  for (const PerftestOption& each : kOptions) {
    const auto flags = split(each.flags, ',');
    if (std::find(flags.begin(), flags.end(), name) == flags.end()) continue;
    if (each.fate == Fate::kSame) return {};
    if (each.fate == Fate::kRefused) return fmt::format("{}; {}", each.text, each.instead);
    return fmt::format("leave {} out: {}", name, each.text);
  }
  return {};
}

std::string fate_of(const PerftestOption& option) {
  const std::string_view text = option.text;
  std::string said(to_string(option.fate));
  if (!text.empty()) said += fmt::format(": {}", text);
  if (option.fate == Fate::kRefused) said += fmt::format("; {}", option.instead);
  return said;
}

}  // namespace gdrperf::app
