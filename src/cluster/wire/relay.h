#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/wire/tree.h"
#include "cluster/wire/wire.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

/// The ranks that hang on this one in a tree. One thread.
class Relay {
 public:
  Relay(const BecomeRelay& order, proto::Token token, std::chrono::nanoseconds deadline);

  /// Waits until they and all below have come; returns the missing ones.
  std::vector<int> gather(proto::Listener& listener);
  /// Hands on what is for others than `own`.
  void send(const Bundle& bundle, int own);
  /// Appends the answers to the last send() to `bundle`, or Lost where a child was lost.
  void collect(std::chrono::nanoseconds patience, std::string& bundle);

 private:
  struct Child {
    RelayChild who;
    std::optional<proto::Channel> channel;
    std::set<int> due;  ///< whose answers have not come
  };
  void greet(proto::Channel channel);
  void take_from(Child& child, std::string& bundle);
  void lose(Child& child, const std::string& why, std::string& bundle);
  Child* child_for(int rank);

  proto::Token token_;
  std::chrono::nanoseconds deadline_;
  std::vector<Child> children_;
  std::map<int, std::size_t> child_of_;  ///< index, by rank of a child and of all below it
  std::string unsaid_;  ///< of children that were lost while nobody asked
};

}  // namespace gdrperf::app
