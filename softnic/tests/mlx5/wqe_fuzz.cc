// Random bytes as the rings that a program writes to: WQEs, doorbell counts, commands. What is read out of them stays
// within its bounds, and what the device writes is read as it was. A sanitizer or an abort is a finding.
//
// Usage: softnic_wqe_fuzz [SECONDS [SEED]]     (of CPU time; SOFTNIC_FUZZ_SECONDS overrides SECONDS)

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

#include "mlx5/command.h"
#include "mlx5/send_wqe.h"

namespace gdrperf::softnic::mlx5 {
namespace {

using Random = std::mt19937_64;
constexpr std::uint32_t kQpn = 0x123456;

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "softnic_wqe_fuzz: %s\n", what);
  std::abort();
}

/// The ring ends with its allocation, so that a sanitizer sees a byte beyond it.
struct Ring {
  explicit Ring(std::uint32_t block_count) : blocks(block_count), bytes(new std::uint8_t[block_count * kBlockBytes]) {}
  std::uint32_t blocks;
  std::unique_ptr<std::uint8_t[]> bytes;
};

void check(const SendWqe& wqe, std::uint32_t blocks, std::uint32_t posted) {
  require(wqe.blocks <= std::min(blocks, posted), "longer than what is posted");
  require(wqe.op.num_sge <= kMaxSge && wqe.op.sges == wqe.sges, "more segments than there is room for");
  if (wqe.kind != SendWqe::Kind::kRequest) return;
  require(wqe.op.opcode <= IBV_WR_SEND_WITH_INV, "an opcode that verbs does not have");
  if ((wqe.op.flags & IBV_SEND_INLINE) == 0) return;
  const auto from = reinterpret_cast<std::uint64_t>(wqe.bytes);
  for (unsigned i = 0; i < wqe.op.num_sge; ++i) {
    require(wqe.sges[i].addr >= from && wqe.sges[i].addr - from + wqe.sges[i].length <= wqe.blocks * kBlockBytes,
            "inline data beyond the WQE");
  }
}

/// Random bytes, of which the control segment is mostly as it should be.
void random_wqe(Random& random, const Ring& ring, std::uint16_t index) {
  for (std::uint32_t i = 0; i < ring.blocks * kBlockBytes; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(ring.bytes.get() + i, &word, 8);
  }
  if (random() % 8 == 0) return;
  Control control{};
  constexpr std::uint8_t kKnown[] = {kNop, kSendInvalidate, kRdmaWrite, kRdmaWriteImm, kSend, kSendImm, kRdmaRead,
                                     kAtomicCompareSwap, kAtomicFetchAdd, kLocalInvalidate, kDump, kUmr};
  const auto opcode = random() % 4 == 0 ? static_cast<std::uint8_t>(random()) : kKnown[random() % std::size(kKnown)];
  control.opmod_index_opcode = htobe32(static_cast<std::uint32_t>(index) << 8 | opcode);
  control.qpn_segments = htobe32(kQpn << 8 | static_cast<std::uint32_t>(random() % 64));
  control.fm_ce_se = static_cast<std::uint8_t>(random());
  std::uint8_t* const at = ring.bytes.get() + (index & (ring.blocks - 1)) * kBlockBytes;
  std::memcpy(at, &control, sizeof control);
  // Heads of inline data, here and there.
  if (random() % 2 == 0) {
    const std::uint32_t head = htobe32(kInlineData | static_cast<std::uint32_t>(random() % 200));
    std::memcpy(at + kOctoword * (1 + random() % 3), &head, sizeof head);
  }
}

void read_anything(Random& random) {
  const Ring ring(1u << random() % 6);
  const auto index = static_cast<std::uint16_t>(random());
  random_wqe(random, ring, index);
  const auto posted = static_cast<std::uint32_t>(random() % (ring.blocks + 2));
  SendWqe wqe;
  read_send_wqe(ring.bytes.get(), ring.blocks, index, posted, kQpn, wqe);
  check(wqe, ring.blocks, posted);
}

void write_and_read(Random& random) {
  const Ring ring(64);
  std::uint8_t data[400];
  for (std::uint8_t& it : data) it = static_cast<std::uint8_t>(random());
  ibv_sge sges[kMaxSge];
  SendOp op{};
  op.opcode = static_cast<std::uint8_t>(random() % (IBV_WR_ATOMIC_FETCH_AND_ADD + 1));
  op.flags = static_cast<std::uint8_t>(random() & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
  op.remote_addr = random();
  op.rkey = static_cast<std::uint32_t>(random());
  op.imm = static_cast<std::uint32_t>(random());
  op.compare_add = random();
  op.swap = random();
  op.sges = sges;
  const bool inlined = !is_read_like(op.opcode) && random() % 2 == 0;
  op.num_sge = static_cast<std::uint16_t>(inlined ? 1 : random() % (kMaxSge + 1));
  for (unsigned i = 0; i < op.num_sge; ++i)
    sges[i] = {random(), 1 + static_cast<std::uint32_t>(random() % 0x7fffffff), static_cast<std::uint32_t>(random())};
  if (inlined) {
    op.flags |= IBV_SEND_INLINE;
    sges[0] = {reinterpret_cast<std::uint64_t>(data), 1 + static_cast<std::uint32_t>(random() % sizeof data), 0};
  }
  const auto index = static_cast<std::uint16_t>(random());
  write_send_wqe(ring.bytes.get(), ring.blocks, index, kQpn, op, false);
  SendWqe wqe;
  read_send_wqe(ring.bytes.get(), ring.blocks, index, ring.blocks, kQpn, wqe);
  check(wqe, ring.blocks, ring.blocks);
  require(wqe.kind == SendWqe::Kind::kRequest && wqe.blocks == blocks_of(op), "a WQE of the device's own is not read");
  require(
      wqe.op.opcode == op.opcode && wqe.op.flags == op.flags && wqe.op.imm == op.imm && wqe.op.num_sge == op.num_sge,
      "another request");
  if (!is_send(op.opcode))
    require(wqe.op.remote_addr == op.remote_addr && wqe.op.rkey == op.rkey, "another remote address");
  if (is_atomic(op.opcode)) require(wqe.op.compare_add == op.compare_add, "another operand");
  if (op.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) require(wqe.op.swap == op.swap, "another value");
  for (unsigned i = 0; i < op.num_sge; ++i) {
    require(wqe.sges[i].length == sges[i].length, "another length");
    if (inlined) {
      require(std::memcmp(reinterpret_cast<const void*>(wqe.sges[i].addr), data, sges[i].length) == 0, "other data");
    } else {
      require(wqe.sges[i].addr == sges[i].addr && wqe.sges[i].lkey == sges[i].lkey, "another segment");
    }
  }
}

void read_command(Random& random) {
  std::vector<std::uint8_t> bytes(random() % 300);
  for (std::uint8_t& it : bytes) it = static_cast<std::uint8_t>(random());
  Words words(bytes.data(), bytes.size());
  const Field field{static_cast<std::uint32_t>(random() % 3000), 1 + static_cast<std::uint32_t>(random() % 64)};
  words.get(field);
  const std::uint64_t value = random();
  words.set(field, value);
  if (field.at + field.width <= bytes.size() * 8) {
    const std::uint64_t kept = field.width == 64 ? value : value & ((std::uint64_t{1} << field.width) - 1);
    require(words.get(field) == kept, "another value of a field");
  }
  std::uint8_t raw[16];
  words.get_bytes(static_cast<std::uint32_t>(random() % 3000), raw, sizeof raw);
}

int fuzz(int argc, char** argv) {
  const char* const given = std::getenv("SOFTNIC_FUZZ_SECONDS");
  const long seconds = given != nullptr ? std::atol(given) : argc > 1 ? std::atol(argv[1]) : 5;
  const unsigned long seed = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : static_cast<unsigned long>(::getpid());
  std::printf("softnic_wqe_fuzz: %ld s, seed %lu\n", seconds, seed);
  std::fflush(stdout);
  Random random(seed);
  std::uint64_t rounds = 0;
  for (; rounds % 256 != 0 || std::clock() < seconds * CLOCKS_PER_SEC; ++rounds) {
    read_anything(random);
    write_and_read(random);
    read_command(random);
  }
  std::printf("figure: softnic WQE fuzz: %llu rounds\n", static_cast<unsigned long long>(rounds));
  return 0;
}

}  // namespace
}  // namespace gdrperf::softnic::mlx5

int main(int argc, char** argv) { return gdrperf::softnic::mlx5::fuzz(argc, argv); }
