#include "gdrperf/base/compat/real.h"

#ifndef __cpp_lib_to_chars
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

#include <locale.h>
#endif

namespace gdrperf {

#ifdef __cpp_lib_to_chars

std::from_chars_result real_from_chars(const char* first, const char* last, double& value, std::chars_format format) {
  return std::from_chars(first, last, value, format);
}

#else

std::from_chars_result real_from_chars(const char* first, const char* last, double& value, std::chars_format format) {
  const std::string_view all(first, static_cast<std::size_t>(last - first));
  const std::string_view digits = all.starts_with('-') ? all.substr(1) : all;
  // strtod also takes blanks, a plus and hexadecimal digits. A fixed number ends before the exponent.
  const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (digits.empty() || digits.front() == '+' || digits.front() == '-' || digits.front() <= ' ') {
    return {first, std::errc::invalid_argument};
  }
  std::string text(all);
  if (hexadecimal) text = all.substr(0, all.size() - digits.size() + 1);
  const bool words = (digits.front() < '0' || digits.front() > '9') && digits.front() != '.';
  if (format == std::chars_format::fixed && !words) text = text.substr(0, text.find_first_of("eE"));
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  char* end = nullptr;
  const double read = ::strtod_l(text.c_str(), &end, plain);
  if (end == text.c_str()) return {first, std::errc::invalid_argument};
  const char* const rest = first + (end - text.c_str());
  if (!words && (std::isinf(read) || (read == 0 && text.find_first_of("123456789") < text.find_first_of("eE")))) {
    return {rest, std::errc::result_out_of_range};
  }
  value = read;
  return {rest, std::errc()};
}

#endif

}  // namespace gdrperf
