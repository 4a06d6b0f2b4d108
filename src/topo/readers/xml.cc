#include "topo/readers/xml.h"

#include <expat.h>

#include <algorithm>
#include <exception>
#include <memory>

#include <fmt/format.h>

namespace gdrperf::topo {
namespace {

constexpr std::size_t kMostDepth = 128;
constexpr std::size_t kMostElements = 2'000'000;
constexpr std::size_t kMostTag = std::size_t{1} << 20;
/// Piece handed over at once: the parser looks at a pending tag each time.
constexpr std::size_t kPiece = std::size_t{1} << 16;

}  // namespace

struct FreeXmlParser {
  void operator()(XML_Parser parser) const { ::XML_ParserFree(parser); }
};

std::optional<std::string_view> XmlAttributes::get(std::string_view name) const {
  for (const char** pair = pairs_; *pair != nullptr; pair += 2) {
    if (name == pair[0]) return pair[1];
  }
  return std::nullopt;
}

Error XmlHandler::error(const std::string& message) const { return make_error_(message); }

/// One run of the parser. Exceptions must not cross expat's C frames: they are
/// kept until it has returned.
class XmlParse {
 public:
  XmlParse(std::string_view name, XmlHandler& handler)
      : parser_(::XML_ParserCreate(nullptr)), name_(name), handler_(handler) {
    if (!parser_) throw std::bad_alloc();
    handler_.make_error_ = [this](const std::string& message) { return error(message); };
    ::XML_SetUserData(parser_.get(), this);
    ::XML_SetElementHandler(parser_.get(), &XmlParse::on_start, &XmlParse::on_end);
    ::XML_SetEntityDeclHandler(parser_.get(), &XmlParse::on_entity);
  }

  void run(std::string_view text) {
    std::size_t fed = 0;
    do {
      const std::size_t piece = std::min(kPiece, text.size() - fed);
      const bool last = fed + piece == text.size();
      const XML_Status status =
          ::XML_Parse(parser_.get(), text.data() + fed, static_cast<int>(piece), last ? 1 : 0);
      fed += piece;
      if (failure_) std::rethrow_exception(failure_);
      if (status != XML_STATUS_OK) throw malformed();
      const auto done = ::XML_GetCurrentByteIndex(parser_.get());
      if (done >= 0 && fed - static_cast<std::size_t>(done) > kMostTag) {
        throw error(fmt::format("one tag or text is longer than {} bytes", kMostTag));
      }
    } while (fed < text.size());
    handler_.finish();
  }

 private:
  Error error(const std::string& message) const {
    return usage_error(fmt::format("{}:{}:{}: {}", name_, ::XML_GetCurrentLineNumber(parser_.get()),
                                   ::XML_GetCurrentColumnNumber(parser_.get()) + 1, message));
  }

  Error malformed() const {
    return error(fmt::format("not well-formed XML: {}",
                             ::XML_ErrorString(::XML_GetErrorCode(parser_.get()))));
  }

  template <typename Do>
  void guarded(Do action) {
    if (failure_) return;
    try {
      action();
    } catch (...) {
      failure_ = std::current_exception();
      ::XML_StopParser(parser_.get(), XML_FALSE);
    }
  }

  static void on_start(void* self, const char* element, const char** attributes) {
    auto& parse = *static_cast<XmlParse*>(self);
    parse.guarded([&] {
      if (++parse.depth_ > kMostDepth) {
        throw parse.error(fmt::format("elements nest deeper than {}", kMostDepth));
      }
      if (++parse.elements_ > kMostElements) {
        throw parse.error(fmt::format("more than {} elements", kMostElements));
      }
      parse.handler_.start(element, XmlAttributes(attributes));
    });
  }

  static void on_end(void* self, const char* element) {
    auto& parse = *static_cast<XmlParse*>(self);
    parse.guarded([&] {
      --parse.depth_;
      parse.handler_.end(element);
    });
  }

  // No topology defines any: what does wants to blow up.
  static void on_entity(void* self, const char*, int, const char*, int, const char*, const char*,
                        const char*, const char*) {
    auto& parse = *static_cast<XmlParse*>(self);
    parse.guarded([&] { throw parse.error("defines an entity, which no topology does"); });
  }

  std::unique_ptr<std::remove_pointer_t<XML_Parser>, FreeXmlParser> parser_;
  std::string name_;
  XmlHandler& handler_;
  std::exception_ptr failure_;
  std::size_t depth_ = 0;
  std::size_t elements_ = 0;
};

void parse_xml(std::string_view text, std::string_view name, XmlHandler& handler) {
  XmlParse(name, handler).run(text);
}

}  // namespace gdrperf::topo
