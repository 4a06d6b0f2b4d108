#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gdrperf/proto/spec.h"

namespace gdrperf {

/// Facts about an operation without libibverbs: a row of the table of
/// operations. engine/op_traits.h has the rest.
struct OperationFacts {
  Operation operation = Operation::kWrite;
  std::string_view name;     ///< "write": of its tests "write_bw", "write_lat"
  std::string_view title;    ///< "Bandwidth of ..."
  const char* request = "";  ///< "... failed"
  bool carries_data = false;     ///< in the request itself, so that it can be inlined
  bool names_address = false;    ///< of the peer's memory
  bool receives = false;         ///< the peer posts receives
  bool round_in_memory = false;  ///< a latency round ends with a byte in memory, not with a completion
  bool in_sweep = true;          ///< part of a sweep that names no tests
  bool over_uc = false;          ///< verbs have it on unreliable connections
  bool over_ud = false;          ///< and as datagrams
  std::uint64_t only_bytes = 0;  ///< the one size that its messages have; 0: any
};

/// All of them, in the order in which tests are listed.
std::span<const OperationFacts> operations();
const OperationFacts& facts_of(Operation operation);

/// Of the sizes asked for, those that a sweep measures: all of them, or the only one there is.
std::vector<std::uint64_t> sizes_of(Operation operation, const std::vector<std::uint64_t>& asked);

/// Whether requests are acknowledged, and sent again, over QPs of this kind: all but UC and UD.
bool acknowledged(Transport transport);

/// Whether QPs of this kind are made by a maker's own library alone: DC and SRD.
bool by_driver(Transport transport);

/// Whether verbs have the operation on QPs of this kind.
bool goes_over(Operation operation, Transport transport);

/// Whether an end knows when a message has arrived, so that --verify can compare it.
bool can_verify(const Test& test, Transport transport);

/// Largest UD message there is: one packet of the largest MTU.
inline constexpr std::uint64_t kMostDatagramBytes = 4096;
/// Bytes of the largest UD message at the path MTU of a test, as far as the spec alone tells.
std::uint64_t largest_datagram(const TestSpec& spec);
/// Sizes up to the largest that a test's transport carries, as far as the spec alone tells.
std::vector<std::uint64_t> sizes_within(const TestSpec& spec, const std::vector<std::uint64_t>& sizes);

}  // namespace gdrperf
