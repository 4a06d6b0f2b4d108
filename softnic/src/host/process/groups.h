#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"
#include "shared/segment/layout.h"

namespace gdrperf::softnic {

/// Multicast groups: which QPs of this process are in them, and which processes of this network
/// namespace have any. A process that has one shows it by an abstract socket with the group and its
/// block in the name, which goes when it ends; whose QPs they are stands in its segment. Names are
/// believed in nothing else: who is sent to is a peer like any other. Thread-safe.
class Groups {
 public:
  explicit Groups(Segment& segment) noexcept : segment_(segment) {}

  /// A QP that is in the group already stays so. 0, or ENOMEM, or what no socket could be had for.
  /// Whoever sends after it has returned reaches the QP.
  int join(const ibv_gid& group, std::uint32_t block, std::uint32_t qp);
  /// 0, or EINVAL: it is not in the group.
  int leave(const ibv_gid& group, std::uint32_t qp);
  bool any_of(std::uint32_t qp);

  /// Blocks of the processes that have members of the group.
  std::vector<std::uint32_t> blocks(const ibv_gid& group);

  Mutex& mutex() RETURN_CAPABILITY(mutex_) { return mutex_; }
  /// In a forked child: closes what was inherited.
  void abandon() NO_THREAD_SAFETY_ANALYSIS;

 private:
  using Key = std::array<std::uint64_t, 2>;
  struct Joined {
    UniqueFd name;
    std::uint32_t block = 0;
    std::uint32_t members = 0;
  };
  struct Seen {
    std::uint64_t at_ns = 0;
    std::vector<std::uint32_t> blocks;
  };
  static Key key_of(const ibv_gid& group) noexcept;
  MemberShared* member(const Key& key, std::uint32_t qp) noexcept REQUIRES(mutex_);
  int add(const Key& key, std::uint32_t block, std::uint32_t qp, bool& fresh) REQUIRES(mutex_);

  Segment& segment_;
  Mutex mutex_;
  /// What this process has in `Segment::members`, which others write to as well.
  std::array<std::uint32_t, kMaxMemberships> qps_ GUARDED_BY(mutex_){};
  std::array<Key, kMaxMemberships> keys_ GUARDED_BY(mutex_){};
  std::map<Key, Joined> joined_ GUARDED_BY(mutex_);
  std::map<Key, Seen> seen_ GUARDED_BY(mutex_);
};

/// Is the entry of a process' table a QP of the group? Its index, or 0.
std::uint32_t member_of(const MemberShared& entry, const ibv_gid& group) noexcept;

}  // namespace gdrperf::softnic
