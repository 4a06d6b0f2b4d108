#include "report/record/json_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gdrperf/base/compat/real.h"

namespace gdrperf::report {
namespace {

void append_array(std::string& out, const Json& array, int indent) {
  const bool plain = std::none_of(array.begin(), array.end(),
                                  [](const Json& item) { return item.is_structured(); });
  const std::string pad(static_cast<std::size_t>(indent) + 2, ' ');
  const char* separator = "";
  out += '[';
  for (const Json& item : array) {
    out += separator;
    if (plain) {
      out += one_line(item);
      separator = ", ";
    } else {
      out += '\n' + pad + pretty(item, indent + 2);
      separator = ",";
    }
  }
  if (!plain) out += '\n' + pad.substr(2);
  out += ']';
}

void append_object(std::string& out, const Json& object, int indent) {
  const std::string pad(static_cast<std::size_t>(indent) + 2, ' ');
  const char* separator = "";
  out += '{';
  for (const auto& [key, item] : object.items()) {
    out += separator;
    out += '\n' + pad + one_line(key) + ": " + pretty(item, indent + 2);
    separator = ",";
  }
  if (!object.empty()) out += '\n' + pad.substr(2);
  out += '}';
}

}  // namespace

std::string one_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

double rounded(double value) {
  char digits[32];
  const char* const end = fmt::format_to_n(digits, sizeof digits, "{:.7g}", value).out;
  double result = 0;
  real_from_chars(digits, end, result);
  return result;
}

Json number(double value) { return std::isfinite(value) ? Json(rounded(value)) : Json(nullptr); }

Json text_or_null(const Outside& text) { return text_or_null(text.raw()); }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string pretty(const Json& value, int indent) {
  std::string out;
  if (value.is_array()) {
    append_array(out, value, indent);
  } else if (value.is_object()) {
    append_object(out, value, indent);
  } else {
    out = one_line(value);
  }
  return out;
}

}  // namespace gdrperf::report
