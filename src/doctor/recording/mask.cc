#include "doctor/recording/mask.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

/// Groups of hex digits of these lengths between `separator`s.
bool is_groups(std::string_view word, char separator, std::size_t groups, std::size_t digits) {
  if (word.size() != groups * digits + groups - 1) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool between = (i + 1) % (digits + 1) == 0;
    if (between ? word[i] != separator : !is_hex(word[i])) return false;
  }
  return true;
}

bool all_zero(std::string_view word) {
  return word.find_first_not_of("0:.-") == std::string_view::npos;
}

int number_for(Masks& seen, const std::string& kind, const std::string& what) {
  const auto [it, fresh] = seen.given.try_emplace(kind + what);
  if (fresh) it->second = std::to_string(++seen.counts[kind]);
  return leading_int(it->second);
}

/// IPv4: a /24 network keeps being one.
std::string mask_ipv4(const std::string& word, Masks& seen) {
  if (word.starts_with("127.") || word.starts_with("0.") || word.starts_with("255.") ||
      word.starts_with("169.254.")) {
    return word;
  }
  const std::string net = word.substr(0, word.rfind('.'));
  const int number = number_for(seen, "net4 ", net);
  const int host = number_for(seen, "host4 " + net, word);
  return fmt::format("10.{}.{}.{}", number / 250 % 250, number % 250, host % 250);
}

/// IPv6 and GIDs, in any of their forms: the network keeps being one.
std::string mask_ipv6(const std::string& word, Masks& seen) {
  std::array<unsigned char, 16> raw{};
  if (::inet_pton(AF_INET6, word.c_str(), raw.data()) != 1) return word;
  const bool mapped = std::all_of(raw.begin(), raw.begin() + 10, [](auto b) { return b == 0; }) &&
                      raw[10] == 0xff && raw[11] == 0xff;
  if (std::all_of(raw.begin(), raw.begin() + 15, [](auto b) { return b == 0; })) return word;
  if (mapped) {
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, raw.data() + 12, text.data(), text.size());
    const std::string changed = mask_ipv4(text.data(), seen);
    ::inet_pton(AF_INET, changed.c_str(), raw.data() + 12);
  } else {
    const std::string bytes(raw.begin(), raw.end());
    const bool link_local = raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
    const int host = number_for(seen, "host6 ", bytes.substr(8));
    if (!link_local) {
      const int net = number_for(seen, "net6 ", bytes.substr(0, 8));
      raw = {0x20, 0x01, 0x0d, 0xb8, 0, 0, static_cast<unsigned char>(net >> 8),
             static_cast<unsigned char>(net)};
    }
    std::fill(raw.begin() + 8, raw.end(), 0);
    raw[14] = static_cast<unsigned char>(host >> 8);
    raw[15] = static_cast<unsigned char>(host);
  }
  if (is_groups(word, ':', 8, 4)) {
    std::string text;
    for (std::size_t i = 0; i < 16; i += 2) {
      text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", raw[i], raw[i + 1]);
    }
    return text;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, raw.data(), text.data(), text.size());
  return text.data();
}

bool is_ipv4(const std::string& word) {
  std::array<unsigned char, 4> raw{};
  return ::inet_pton(AF_INET, word.c_str(), raw.data()) == 1;
}

/// One run of letters, digits, ':', '.' and '-'. "" keeps it.
std::string mask_word(const std::string& word, std::string_view before, Masks& seen) {
  if (all_zero(word)) return {};
  if (is_groups(word, ':', 6, 2) || is_groups(word, '-', 6, 2)) {
    const int number = number_for(seen, "mac ", word);
    return fmt::format("02:00:00:00:{:02x}:{:02x}", number >> 8 & 255, number & 255);
  }
  if (is_groups(word, ':', 4, 4)) {  // a GUID
    const int number = number_for(seen, "guid ", word);
    return fmt::format("0200:0000:0000:{:04x}", number & 0xffff);
  }
  if (word.starts_with("GPU-") || word.starts_with("MIG-") ||
      (word.size() == 36 && word[8] == '-' && word[13] == '-' && word[18] == '-')) {
    const bool named = word[3] == '-';
    return fmt::format("{}00000000-0000-0000-0000-{:012d}", named ? word.substr(0, 4) : "",
                       number_for(seen, "uuid ", word));
  }
  // Versions of drivers and packages look like addresses: not behind a dash or
  // the word itself.
  const bool version = before.ends_with('-') || before.ends_with("ersion ") ||
                       before.ends_with("ersion: ") || before.ends_with("fw_ver:\t\t\t\t");
  if (is_ipv4(word) && !version) return mask_ipv4(word, seen);
  if (std::count(word.begin(), word.end(), ':') >= 2) return mask_ipv6(word, seen);
  return {};
}

/// Serial numbers stand behind their names.
bool is_serial_line(std::string_view line) {
  for (const char* name : {"[SN] Serial number:", "Serial Number", "serial:", "[V3] Vendor specific:",
                           "[VU] Vendor specific:", "Device Serial Number", "Board Serial",
                           "sys_image_guid"}) {
    if (line.find(name) != std::string_view::npos) return true;
  }
  return false;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '.' || c == '-';
}

std::string mask_line(std::string_view line, Masks& seen) {
  if (is_serial_line(line)) {
    const std::size_t colon = std::min(line.find(": "), line.rfind(':'));
    if (colon != std::string_view::npos && !trimmed(line.substr(colon + 1)).empty()) {
      const int number = number_for(seen, "serial ", std::string(trimmed(line.substr(colon + 1))));
      return fmt::format("{}: MASKED{}", line.substr(0, colon), number);
    }
  }
  std::string result;
  std::size_t at = 0;
  while (at < line.size()) {
    std::size_t end = at;
    while (end < line.size() && is_word(line[end])) ++end;
    // A word may end in a full stop or a colon that is not its own.
    std::size_t stop = end;
    while (stop > at && (line[stop - 1] == '.' || (line[stop - 1] == ':' && line[at] != ':'))) --stop;
    const std::string word(line.substr(at, stop - at));
    const std::string changed = word.size() < 6 ? "" : mask_word(word, line.substr(0, at), seen);
    result += changed.empty() ? word : changed;
    result += line.substr(stop, std::max(end, at + 1) - stop);
    at = std::max(end, at + 1);
  }
  return result;
}

/// Files whose names say that a number of theirs is a serial number.
bool is_serial_file(const std::string& path) {
  return path.ends_with("_serial") || path.ends_with("/serial") || path.ends_with("_uuid") ||
         path.ends_with("/hostname");
}

}  // namespace

std::string masked(std::string_view text, Masks& seen) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    result += mask_line(text.substr(at, end - at), seen);
    if (end < text.size()) result += '\n';
    at = end + 1;
  }
  return result;
}

Tree masked(const Tree& tree) {
  Masks seen;
  Tree result;
  for (const auto& [from, to] : tree.links()) result.add_link(from, to);
  for (const std::string& path : tree.folders()) result.add_folder(path);
  for (const auto& [path, text] : tree.files()) {
    result.add_file(path, is_serial_file(path) ? "MASKED\n" : masked(text, seen));
  }
  for (const std::string& path : tree.denied()) result.deny(path);
  for (const auto& [command, program] : tree.programs()) {
    ProgramResult changed = program;
    changed.output = masked(program.output, seen);
    result.add_program(command, std::move(changed));
  }
  for (const std::string& damage : tree.damage()) result.add_damage(damage);
  return result;
}

}  // namespace gdrperf::doctor
