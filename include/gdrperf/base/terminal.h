#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gdrperf {

enum class Colour { kOff, kOn };
/// --color.
enum class ColourChoice { kAuto, kAlways, kNever };

/// With kAuto: kOn when `fd` is a terminal that is not dumb and NO_COLOR is unset or empty.
Colour colour_for(int fd, ColourChoice choice = ColourChoice::kAuto);

enum class Style { kBold, kDim, kGood, kDoubtful, kBad };
/// `text` in that style; as it is with kOff.
std::string styled(Colour colour, Style style, const std::string& text);

/// Columns of the terminal that `fd` is, 80 where it does not tell; 0: no terminal.
std::size_t terminal_columns(int fd);

/// Whether the locale (LC_ALL, LC_CTYPE, LANG) takes UTF-8.
bool locale_takes_utf8();

/// `text` in lines of at most `columns`, broken at blanks; what goes on stands `hang` columns in. A word that is
/// longer stays whole; blanks in front stay. 0 columns: as it is. Line ends in `text` stay, each begins anew.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t hang);

}  // namespace gdrperf
