#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include <nlohmann/json.hpp>

namespace gdrperf::proto {

/// Checked access to the members of one JSON object that came from a stranger.
/// Every failure is a peer_error naming the member by its path
/// ("accept.endpoint.qps"). Borrows the object.
class JsonReader {
 public:
  static constexpr std::size_t kMaxTextBytes = 16384;

  /// Throws when `value` is no object.
  JsonReader(const nlohmann::json& value, std::string path);

  bool has(const char* member) const { return object_->contains(member); }

  /// An integer within [low, high]; without limits, within T.
  template <typename T>
  T integer(const char* member, T low = std::numeric_limits<T>::min(),
            T high = std::numeric_limits<T>::max()) const {
    static_assert(std::is_integral_v<T>);
    return to_integer<T>(at(member), path_of(member), low, high);
  }
  /// A finite number.
  double number(const char* member) const;
  /// Text of at most kMaxTextBytes, by printable(): it may end on a terminal.
  std::string text(const char* member) const;
  /// text(), or "" where the member is absent.
  std::string text_or_empty(const char* member) const;
  JsonReader object(const char* member) const;
  /// An array of at most `max_items`.
  const nlohmann::json& array(const char* member, std::size_t max_items) const;

  std::string path_of(const char* member) const { return path_ + "." + member; }

  template <typename T>
  static T to_integer(const nlohmann::json& value, const std::string& path, T low, T high) {
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(to_signed(value, path, low, high));
    } else {
      return static_cast<T>(to_unsigned(value, path, low, high));
    }
  }
  static double to_number(const nlohmann::json& value, const std::string& path);
  static std::string to_text(const nlohmann::json& value, const std::string& path,
                             std::size_t most_bytes = kMaxTextBytes);
  [[noreturn]] static void refuse(const std::string& path, const std::string& what);

 private:
  const nlohmann::json& at(const char* member) const;
  static std::int64_t to_signed(const nlohmann::json&, const std::string&, std::int64_t low,
                                std::int64_t high);
  static std::uint64_t to_unsigned(const nlohmann::json&, const std::string&, std::uint64_t low,
                                   std::uint64_t high);

  const nlohmann::json* object_;
  std::string path_;
};

}  // namespace gdrperf::proto
