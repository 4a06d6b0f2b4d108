#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gdrperf/base/error.h"

namespace gdrperf::topo {

/// The attributes of one element, valid during the call that got them.
class XmlAttributes {
 public:
  explicit XmlAttributes(const char** pairs) : pairs_(pairs) {}
  /// Its value, or nothing.
  std::optional<std::string_view> get(std::string_view name) const;
  std::string_view get_or_empty(std::string_view name) const { return get(name).value_or(""); }

 private:
  const char** pairs_;
};

/// Takes the elements of a document as they come. What it throws ends the
/// parsing and reaches the caller of parse_xml().
class XmlHandler {
 public:
  virtual ~XmlHandler() = default;
  virtual void start(std::string_view element, const XmlAttributes& attributes) = 0;
  virtual void end(std::string_view element) = 0;
  /// After the whole document, when error() still tells a place.
  virtual void finish() {}

 protected:
  /// "NAME:LINE:COLUMN: message" for the element at hand; during the calls above.
  Error error(const std::string& message) const;

 private:
  friend class XmlParse;
  std::function<Error(const std::string&)> make_error_;
};

/// Parses a whole document. Throws usage_error with line and column for what
/// is no well-formed XML, defines entities, nests deeper than 128 elements,
/// has more than 2 million elements, or one tag longer than 1 MiB.
void parse_xml(std::string_view text, std::string_view name, XmlHandler& handler);

}  // namespace gdrperf::topo
