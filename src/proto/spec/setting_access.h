#pragma once

#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "gdrperf/proto/settings.h"

namespace gdrperf::setting_access {

using Limits = std::numeric_limits<std::int64_t>;

template <typename T>
struct Held {
  using Type = T;
};
template <typename T>
struct Held<std::optional<T>> {
  using Type = T;
};

template <typename T>
SettingValue to_value(const T& member) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, double>) {
    return member;
  } else if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
    return std::int64_t{member.count()};
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // Larger values are refused as out of range.
    return std::in_range<std::int64_t>(member) ? static_cast<std::int64_t>(member) : Limits::max();
  } else {
    return static_cast<std::int64_t>(member);
  }
}

template <typename T>
SettingValue to_value(const std::optional<T>& member) {
  return member ? to_value(*member) : SettingValue();
}

template <typename T>
T from_value(const SettingValue& value) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, double>) {
    return std::get<T>(value);
  } else if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
    return T(std::get<std::int64_t>(value));
  } else {
    return static_cast<T>(std::get<std::int64_t>(value));
  }
}

template <typename T>
constexpr Range holds() {
  if constexpr (std::is_same_v<T, bool>) {
    return {0, 1};
  } else if constexpr (std::is_integral_v<T>) {
    constexpr bool fits = std::in_range<std::int64_t>(std::numeric_limits<T>::max());
    return {static_cast<std::int64_t>(std::numeric_limits<T>::min()),
            fits ? static_cast<std::int64_t>(std::numeric_limits<T>::max()) : Limits::max()};
  } else {
    return {Limits::min(), Limits::max()};
  }
}

template <auto... Members>
SettingValue get(const TestSpec& spec) {
  return to_value(SettingMember<Members...>::in(spec));
}

template <auto... Members>
void set(TestSpec& spec, const SettingValue& value) {
  auto& member = SettingMember<Members...>::in(spec);
  using Member = std::remove_reference_t<decltype(member)>;
  using Type = typename Held<Member>::Type;
  if (std::holds_alternative<std::monostate>(value)) {
    member = Member();
  } else {
    member = from_value<Type>(value);
  }
}

/// The access of spec.*first.*second...
template <auto... Members>
constexpr SettingAccess to() {
  using Member = std::remove_cvref_t<decltype(SettingMember<Members...>::in(std::declval<TestSpec&>()))>;
  return {SettingMember<Members...>::at, get<Members...>, set<Members...>, holds<typename Held<Member>::Type>()};
}

}  // namespace gdrperf::setting_access
