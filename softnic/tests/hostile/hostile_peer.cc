#include "hostile_peer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>

#include "host/process/names.h"
#include "shared/sync/ring.h"
#include "shared/segment/sealed.h"
#include "host/process/wire.h"

namespace softnic_fuzz {

using namespace gdrperf;           // NOLINT: the device's own words
using namespace gdrperf::softnic;  // NOLINT

namespace {

/// Entries of the tables that the world's objects are in, or a little beyond.
constexpr std::uint32_t kEntries = 64;

Segment* map_segment(int fd) {
  void* mapped = ::mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<Segment*>(mapped);
}

std::uint64_t any_value(std::uint64_t before, Random& random) {
  switch (random.below(10)) {
    case 0: return 0;
    case 1: return ~std::uint64_t{0};
    case 2: return std::uint64_t{1} << random.below(64);
    case 3: return before ^ std::uint64_t{1} << random.below(64);
    case 4: return before + 1;
    case 5: return before - 1;
    case 6: return random.below(4096);
    case 7: return random();
    case 8: return before + 4096 * random.below(64);
    default: return static_cast<std::uint64_t>(random()) << 32 | random();
  }
}

std::uint32_t block_of(const Board& board, int side, Random& random) {
  return qpn_block(board.entries[side][random.below(kSlots)].qpn.load() & 0xffffff);
}

UniqueFd greet(const Board& board, Random& random) {
  const std::uint32_t block = block_of(board, 0, random);
  return block == 0 ? UniqueFd() : connect_to(socket_name(block), is_own_user);
}

/// Any descriptor; memory of the right size among them.
UniqueFd any_descriptor(Random& random) {
  constexpr std::uint64_t kSizes[] = {0, 4096, kAgentBytes, kSegmentBytes, kWindowBytes, std::uint64_t{1} << 50};
  switch (random.below(6)) {
    case 0: return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    case 1: return UniqueFd(::eventfd(random.below(2), EFD_CLOEXEC));
    case 2: return UniqueFd(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
    case 3: {
      UniqueFd memory(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      if (::ftruncate(memory.get(), static_cast<off_t>(kSizes[random.below(5)])) != 0) memory.reset();
      return memory;
    }
    case 4: return sealed_memory("hostile", kAgentBytes);
    default: return sealed_memory("hostile", kSizes[random.below(6)]);
  }
}

void send_any(int socket, const void* bytes, std::size_t size, Random& random, Tally& tally) {
  const UniqueFd given[2] = {any_descriptor(random), any_descriptor(random)};
  const int fds[2] = {given[0].get(), given[1].get()};
  const unsigned count = fds[0] < 0 || fds[1] < 0 ? 0 : random.below(3);
  send_packet(socket, bytes, size, fds, count);
  ++tally.packets;
}

/// As an agent's peer: requests for copies of what the victim has registered, and of what it has not.
void ask_agent(const Board& board, int socket, Random& random, Tally& tally) {
  WireRequest greeting;
  greeting.kind = WireKind::kAgent;
  greeting.process_id = random();
  const UniqueFd memory = sealed_memory("hostile", kAgentBytes);
  const int shared = memory.get();
  if (!send_packet(socket, &greeting, sizeof greeting, &shared, 1)) return;
  WireReply welcome;
  int fds[2];
  if (!receive_packet(socket, &welcome, sizeof welcome, fds)) return;
  for (int i = 0; i < 50; ++i) {
    const Entry& entry = board.entries[0][random.below(kSlots)];
    CopyRequest request;
    request.key = random.one_in(4) ? random() : entry.rkey.load();
    request.region = random.one_in(4) ? random() : request.key >> 8;
    request.address = any_value(entry.address.load(), random);
    request.length = random.one_in(2) ? random.below(4096) : any_value(4096, random);
    request.fetch = random.below(3);
    ++tally.packets;
    CopyReply reply;
    if (!send_packet(socket, &request, sizeof request, nullptr, 0) ||
        !receive_packet(socket, &reply, sizeof reply, fds))
      return;
  }
}

/// A segment of which nothing is right but what is looked at first.
UniqueFd false_segment(std::uint64_t process_id, Random& random) {
  UniqueFd fd = sealed_memory("hostile", kSegmentBytes);
  Segment* segment = fd ? map_segment(fd.get()) : nullptr;
  if (segment == nullptr) return {};
  const auto scatter = [&](void* begin, std::size_t bytes) {
    auto* words = static_cast<std::uint64_t*>(begin);
    for (std::size_t i = 0; i < bytes / 8; i += 1 + random.below(4)) words[i] = any_value(words[i], random);
  };
  scatter(&segment->header, sizeof(SegmentHeader));
  scatter(segment->qps, sizeof(QpShared) * kEntries);
  scatter(segment->cqs, sizeof(CqShared) * kEntries);
  scatter(segment->mrs, sizeof(MrShared) * kEntries);
  segment->header.process_id = process_id;
  segment->header.magic.store(random.one_in(16) ? random() : kSegmentMagic);
  ::munmap(segment, kSegmentBytes);
  return fd;
}

void answer_one(int connection, Random& random, Tally& tally) {
  WireRequest request;
  int fds[2];
  if (!receive_packet(connection, &request, sizeof request, fds)) return;
  const UniqueFd given[2] = {UniqueFd(fds[0]), UniqueFd(fds[1])};
  ++tally.answers;
  WireReply reply;
  reply.process_id = random();
  reply.window_bytes = random.one_in(2) ? kWindowBytes : any_value(kWindowBytes, random);
  reply.error = random.one_in(8) ? static_cast<std::int32_t>(random()) : 0;
  const UniqueFd segment = random.one_in(4) ? any_descriptor(random) : false_segment(reply.process_id, random);
  const UniqueFd window = random.one_in(2) ? sealed_memory("hostile", kWindowBytes) : any_descriptor(random);
  const int shared[2] = {segment.get(), window.get()};
  const std::size_t size = random.one_in(8) ? random.below(sizeof reply) : sizeof reply;
  send_packet(connection, &reply, size, shared, segment && window ? 2 : 0);
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (victim_ != nullptr) ::munmap(victim_, kSegmentBytes);
  if (own_ != nullptr) ::munmap(own_, kSegmentBytes);
}

bool SharedMemory::get_victims() {
  Random random(1);
  const UniqueFd socket = greet(board_, random);
  if (!socket) return false;
  WireRequest request;
  request.process_id = 4711;
  WireReply reply;
  int fds[2];
  if (!send_packet(socket.get(), &request, sizeof request, nullptr, 0) ||
      !receive_packet(socket.get(), &reply, sizeof reply, fds)) {
    return false;
  }
  const UniqueFd segment(fds[0]);
  const UniqueFd window(fds[1]);
  victim_ = map_segment(segment.get());
  return victim_ != nullptr;
}

bool SharedMemory::get_own() {
  DIR* folder = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(folder)) {
    char link[128] = {};
    if (::readlinkat(::dirfd(folder), entry->d_name, link, sizeof link - 1) <= 0) continue;
    if (std::strstr(link, "softnic-segment") == nullptr) continue;
    own_ = map_segment(static_cast<int>(std::strtol(entry->d_name, nullptr, 10)));
    break;
  }
  ::closedir(folder);
  return own_ != nullptr;
}

std::uint64_t* SharedMemory::place(Segment& segment, Random& random) {
  const auto in = [&random](void* begin, std::size_t bytes) {
    return static_cast<std::uint64_t*>(begin) + random.below(static_cast<std::uint32_t>(bytes / 8));
  };
  const std::uint32_t index = random.below(kEntries);
  switch (random.below(8)) {
    case 0: return in(&segment.header, sizeof segment.header);
    case 1: return in(&segment.qps[index], sizeof(QpShared));
    case 2: return in(&segment.cqs[index], sizeof(CqShared));
    case 3: return in(&segment.mrs[index], sizeof(MrShared));
    case 4: return in(&segment.gpu_regions[index], sizeof(GpuRegion));
    case 5:
    case 6: {
      const CqRing ring = CqRing::at(segment, segment.cqs[index].ring.load());
      return ring.memory == nullptr ? nullptr : in(ring.memory, std::min<std::size_t>(CqRing::bytes(ring.shift), 8192));
    }
    default: {
      const RecvRing ring = RecvRing::at(segment, segment.qps[index].recv_ring.load());
      return ring.memory == nullptr
                 ? nullptr
                 : in(ring.memory, std::min<std::size_t>(RecvRing::bytes(ring.shift, ring.max_sge), 8192));
    }
  }
}

void SharedMemory::mutate(Random& random) {
  if ((victim_ == nullptr && !get_victims()) || (own_ == nullptr && !get_own())) {
    ::usleep(1000);
    return;
  }
  const std::uint32_t burst = random.below(200);
  for (std::uint32_t i = 0; i < burst; ++i) {
    std::uint64_t* const word = place(random.one_in(3) ? *own_ : *victim_, random);
    if (word == nullptr) continue;
    std::atomic_ref<std::uint64_t> there(*word);
    there.store(any_value(there.load(), random));
    ++tally_.words;
  }
  ::usleep(random.below(4000));
}

void attack_socket(const Board& board, Random& random, Tally& tally) {
  const UniqueFd socket = greet(board, random);
  if (!socket) {
    ::usleep(1000);
    return;
  }
  const timeval limit{0, 200'000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (random.one_in(3)) {
    ask_agent(board, socket.get(), random, tally);
    return;
  }
  const std::uint32_t packets = random.below(50);
  for (std::uint32_t i = 0; i < packets; ++i) {
    std::uint8_t bytes[128];
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    WireRequest request;
    request.process_id = random();
    request.kind = static_cast<WireKind>(random.below(9));
    request.number = random.one_in(2) ? random.below(64) : board.entries[0][random.below(kSlots)].qpn.load();
    request.event = random.below(20);
    if (!random.one_in(8)) std::memcpy(bytes, &request, sizeof request);
    send_any(socket.get(), bytes, random.one_in(8) ? random.below(sizeof bytes) : sizeof request, random, tally);
  }
}

void listen_falsely(Board& board, Random& random, Tally& tally) {
  std::uint32_t block = 1 + random.below(4094);
  const UniqueFd listener = listen_at(socket_name(block), 8);
  if (!listener) return;
  Entry& entry = board.entries[1][random.below(kSlots)];
  const std::uint32_t before = entry.qpn.exchange(make_qpn(block, random.below(kEntries)));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (std::chrono::steady_clock::now() < end) {
    const UniqueFd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) {
      ::usleep(1000);
      continue;
    }
    const timeval limit{0, 200'000};
    ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    answer_one(connection.get(), random, tally);
    // It stays a while, so that the victim takes it for a peer.
    ::usleep(random.below(50'000));
  }
  entry.qpn.store(before);
}

}  // namespace softnic_fuzz
