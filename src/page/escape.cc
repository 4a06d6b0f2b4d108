#include "page/escape.h"

namespace gdrperf::page {

std::string html_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default:
        if (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') {
          result += "\xEF\xBF\xBD";
        } else {
          result += c;
        }
    }
  }
  return result;
}

std::string script_safe(std::string json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace gdrperf::page
