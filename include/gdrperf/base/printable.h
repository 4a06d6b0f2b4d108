#pragma once

#include <string>
#include <string_view>

namespace gdrperf {

/// `text` as a terminal may get it: names and messages come from documents, devices
/// and other hosts. Control characters (line ends, tabs and escapes too, C0, DEL and
/// C1), marks that reverse the direction of writing, and bytes that are no UTF-8
/// become U+FFFD; all else stays.
std::string printable(std::string_view text);

/// The same with line ends left in: text of several lines that are ours.
std::string printable_lines(std::string_view text);

/// The same with tabs and the sequences of base/terminal.h's styled() left in: what a terminal gets, whoever wrote it.
std::string terminal_text(std::string_view text);

/// `text` as a Markdown page may get it: printable, nothing in it ends a table's
/// cell or is taken for markup.
std::string markdown_text(std::string_view text);
/// The same as code, between backticks.
std::string markdown_code(std::string_view text);

}  // namespace gdrperf
