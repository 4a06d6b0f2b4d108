#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include "page/escape.h"
#include "page/headline.h"
#include "gdrperf/page/page.h"
#include "gdrperf/page/verdict.h"

namespace gdrperf::page {
namespace {

// web/template.html, in pieces that compilers take.
constexpr const char* kTemplate[] = {
#include "template.inc"
};

std::string filled(std::string_view text, std::string_view mark, std::string_view content) {
  const std::size_t at = text.find(mark);
  if (at == text.npos) throw std::logic_error("the page's template has no " + std::string(mark));
  std::string result(text.substr(0, at));
  result += content;
  result += text.substr(at + mark.size());
  return result;
}

/// So many findings stand open, the rest is folded.
constexpr std::size_t kOpenFindings = 8;

std::string list_html(std::span<const Finding> findings) {
  std::string out = "<ul class=\"findings\">\n";
  for (const Finding& each : findings) {
    out += fmt::format("<li class=\"{0}\"><span class=\"level\">{0}</span> ", to_string(each.level));
    if (!each.subject.empty()) out += fmt::format("<b>{}</b> ", html_text(each.subject));
    out += html_text(each.text);
    if (!each.todo.empty()) out += fmt::format(" <span class=\"todo\">{}</span>", html_text(each.todo));
    out += "</li>\n";
  }
  return out + "</ul>\n";
}

/// The verdict is there without scripts as well.
std::string verdict_html(const Verdict& verdict) {
  const std::span<const Finding> all(verdict.findings);
  const std::size_t open = all.size() > kOpenFindings + 2 ? kOpenFindings : all.size();
  std::string out =
      fmt::format("<p class=\"headline {}\">{}</p>\n", to_string(verdict.level), html_text(verdict.headline));
  out += list_html(all.first(open));
  if (open < all.size()) {
    out += fmt::format("<details><summary>{} more</summary>\n{}</details>\n", all.size() - open,
                       list_html(all.subspan(open)));
  }
  return out;
}

}  // namespace

std::string to_html(const Page& page) {
  std::string text;
  for (const char* piece : kTemplate) text += piece;
  const std::string title = html_text(title_of(page));
  text = filled(text, "@TITLE@", title);
  text = filled(text, "<!--HEADING-->", title);
  text = filled(text, "<!--VERDICT-->", verdict_html(judge(page)));
  text = filled(text, "<!--PICTURE-->", to_svg(page));
  return filled(text, "\"@DATA@\"", page_data(page));
}

}  // namespace gdrperf::page
