#include "host/process/groups.h"

#include <endian.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "host/process/names.h"
#include "shared/segment/completion.h"

namespace gdrperf::softnic {
namespace {

/// Senders look for processes no more often than this; a process that joins waits until none goes by
/// an older look.
constexpr std::uint64_t kLookNs = 2'000'000;
/// Of groups that were sent to.
constexpr std::size_t kMostSeen = 1024;

std::string name_of(const std::array<std::uint64_t, 2>& key) {
  return fmt::format("gdrperf-softnic-mcast{}.{:016x}{:016x}.", kLayoutVersion, be64toh(key[0]), be64toh(key[1]));
}

/// From the names that processes with members have; in order, each once.
std::vector<std::uint32_t> look_up(const std::array<std::uint64_t, 2>& key) {
  const std::string start = name_of(key);
  std::vector<std::uint32_t> blocks;
  for (const std::string& name : names_beginning(start)) {
    std::uint32_t block = 0;
    const auto parsed = std::from_chars(name.data() + start.size(), name.data() + name.size(), block, 16);
    if (parsed.ec == std::errc() && block != 0 && block < 1u << (24 - kQpIndexBits)) blocks.push_back(block);
  }
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

}  // namespace

Groups::Key Groups::key_of(const ibv_gid& group) noexcept {
  Key key;
  std::memcpy(key.data(), group.raw, sizeof group.raw);
  return key;
}

MemberShared* Groups::member(const Key& key, std::uint32_t qp) noexcept {
  for (std::uint32_t i = 0; i < kMaxMemberships; ++i) {
    if (qps_[i] == qp && (qp == 0 || keys_[i] == key)) return &segment_.members[i];
  }
  return nullptr;
}

int Groups::add(const Key& key, std::uint32_t block, std::uint32_t qp, bool& fresh) {
  if (member(key, qp) != nullptr) return 0;
  MemberShared* const free = member(key, 0);
  if (free == nullptr) return ENOMEM;
  Joined& joined = joined_[key];
  if (joined.members == 0) {
    std::string name = fmt::format("{}{:x}", name_of(key), block);
    joined.name = listen_beside(name, 0);
    if (!joined.name) {
      const int error = errno;
      joined_.erase(key);
      return error;
    }
    fresh = true;
  }
  joined.block = block;
  ++joined.members;
  const auto index = static_cast<std::uint32_t>(free - segment_.members);
  qps_[index] = qp;
  keys_[index] = key;
  free->gid[0].store(key[0]);
  free->gid[1].store(key[1]);
  free->qp.store(qp, std::memory_order_release);
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < kMaxMemberships; ++i) {
    if (qps_[i] != 0) used = i + 1;
  }
  segment_.header.members_used.store(used);
  return 0;
}

int Groups::join(const ibv_gid& group, std::uint32_t block, std::uint32_t qp) {
  bool fresh = false;
  {
    const MutexLock guard(mutex_);
    if (const int error = add(key_of(group), block, qp, fresh); error != 0) return error;
  }
  if (fresh) ::usleep(kLookNs / 1000 + 1);
  return 0;
}

int Groups::leave(const ibv_gid& group, std::uint32_t qp) {
  const Key key = key_of(group);
  const MutexLock guard(mutex_);
  MemberShared* const entry = member(key, qp);
  if (entry == nullptr) return EINVAL;
  entry->qp.store(0);
  qps_[static_cast<std::size_t>(entry - segment_.members)] = 0;
  const auto joined = joined_.find(key);
  if (--joined->second.members == 0) joined_.erase(joined);
  return 0;
}

bool Groups::any_of(std::uint32_t qp) {
  const MutexLock guard(mutex_);
  return !joined_.empty() && std::find(qps_.begin(), qps_.end(), qp) != qps_.end();
}

std::vector<std::uint32_t> Groups::blocks(const ibv_gid& group) {
  const Key key = key_of(group);
  const MutexLock guard(mutex_);
  if (seen_.size() >= kMostSeen) seen_.clear();
  Seen& seen = seen_[key];
  const std::uint64_t now = monotonic_ns();
  if (seen.at_ns == 0 || now - seen.at_ns >= kLookNs) {
    seen.at_ns = now;
    seen.blocks = look_up(key);
  }
  std::vector<std::uint32_t> blocks = seen.blocks;
  // This process knows by itself, also without /proc.
  const auto own = joined_.find(key);
  if (own != joined_.end() && std::find(blocks.begin(), blocks.end(), own->second.block) == blocks.end()) {
    blocks.push_back(own->second.block);
  }
  return blocks;
}

void Groups::abandon() {
  for (auto& it : joined_) it.second.name.reset();
}

std::uint32_t member_of(const MemberShared& entry, const ibv_gid& group) noexcept {
  std::uint64_t key[2];
  std::memcpy(key, group.raw, sizeof key);
  const std::uint32_t qp = entry.qp.load(std::memory_order_acquire);
  return qp < kMaxQps && entry.gid[0].load() == key[0] && entry.gid[1].load() == key[1] ? qp : 0;
}

}  // namespace gdrperf::softnic
