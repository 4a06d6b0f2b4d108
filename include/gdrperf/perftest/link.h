#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "gdrperf/proto/admission.h"
#include "gdrperf/proto/channel.h"

// perftest's own handshake over TCP, for an end whose other end is an unmodified ib_write_bw or one of its family:
// docs/reference/perftest-handshake.md has the wire format.
namespace gdrperf::proto {

/// Version that gdrperf gives as its own: ends from 6.28 on then leave out the exchange of their options.
inline constexpr std::string_view kPerftestSpoken = "6.06";
inline constexpr std::size_t kPerftestVersionBytes = 16;
/// Stands behind it: an end of gdrperf knows another by that.
inline constexpr std::string_view kPerftestMarker = "gdrperf";
/// An address without a GID, and what a GID adds.
inline constexpr std::size_t kPerftestAddressBytes = 59;
inline constexpr std::size_t kPerftestGidBytes = 49;
inline constexpr std::size_t kPerftestMtuBytes = 2;

/// One QP and the memory behind it. Ends exchange one for each QP, and again whenever they wait for each other.
struct PerftestAddress {
  int lid = 0;
  int outstanding_reads = 1;
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::string gid_raw = {};  ///< 32 hex digits; "": by LID alone
};

/// Figures of a bandwidth test, in the unit that both ends were started with.
struct PerftestReport {
  std::uint64_t size_bytes = 0;
  std::uint64_t iterations = 0;
  double peak = 0;
  double average = 0;
  double mpps = 0;
};

std::string encode_perftest_version();
/// "6.29" of the 16 bytes that an end introduces itself with. Throws peer_error for others and for versions with
/// another handshake.
std::string decode_perftest_version(std::string_view bytes);
/// An MTU of 256 to 4096 bytes as the digit that stands for it.
std::string encode_perftest_mtu(int bytes);
/// 0 where it is none: the other end's own then decides.
int decode_perftest_mtu(std::string_view bytes);
/// 59 bytes, with a GID 108.
std::string encode_perftest_address(const PerftestAddress& address);
/// Throws peer_error on anything else.
PerftestAddress decode_perftest_address(std::string_view bytes);
/// Whether the first 59 bytes are of an address that goes on with a GID.
bool has_perftest_gid(std::string_view bytes);

enum class PerftestRole { kClient, kServer };

/// Who a client is by its first words, which stay to be read: gdrperf's, which greets; perftest's; or gdrperf's, which
/// took a server that waits to be greeted for perftest's.
enum class FirstWords { kGdrperf, kPerftest, kGdrperfAsPerftest };
/// Waits for them, at most so long; of a client that says nothing, or hangs up, kGdrperf.
FirstWords await_first_words(const Channel& channel, std::chrono::milliseconds patience);

/// The conversation with a perftest over `channel`, which carries nothing else and outlives this. Each step is an
/// exchange: the client's bytes first, then the server's. Waits throw peer_error, naming the step, on hang-up, on
/// garbage and when the other end does not answer in time, and an Error once `*stop` is true (null: never).
class PerftestLink {
 public:
  PerftestLink(const Channel& channel, const Admission& admission, PerftestRole role, const std::atomic<bool>* stop);

  /// Versions. False where the other end speaks gdrperf's protocol: it is no perftest.
  bool greet();
  /// Page size and MTU; `own_mtu_bytes`: this end's.
  void agree(int own_mtu_bytes);
  const std::string& version() const { return version_; }
  /// The larger of both ends' pages: messages up to that size walk through so much memory for each QP.
  std::uint64_t page_bytes() const { return page_bytes_; }
  /// The lesser of both ends'.
  int mtu_bytes() const { return mtu_bytes_; }

  /// The other end's, for this end's, which the server makes once it knows the client's.
  PerftestAddress exchange(const std::function<PerftestAddress(const PerftestAddress* theirs)>& own, const char* step);
  PerftestAddress exchange(const PerftestAddress& own, const char* step);
  PerftestReport exchange(const PerftestReport& own);

  /// Whether something has come, without waiting; throws on hang-up.
  bool has_spoken() const;
  /// Whether the other end has hung up.
  bool has_left() const;
  /// Until the other end hangs up, at most `patience`: whether it did.
  bool await_end(std::chrono::milliseconds patience);

  const std::string& peer() const { return peer_; }

 private:
  void send(std::string_view bytes) const;
  std::string receive(std::size_t bytes, const char* step);
  std::string swap(const std::string& own, const char* step);
  PerftestAddress receive_address(const char* step);
  [[noreturn]] void gone(const char* step) const;

  int fd_;
  std::string peer_;
  PerftestRole role_;
  const std::atomic<bool>* stop_;
  std::string version_;
  std::uint64_t page_bytes_ = 0;
  int mtu_bytes_ = 0;
};

}  // namespace gdrperf::proto
