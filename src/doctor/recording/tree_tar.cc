// Recordings as tar archives: POSIX ustar (IEEE 1003.1, pax), with GNU's and
// pax' long names.

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "doctor/text.h"
#include "doctor/recording/tree.h"

namespace gdrperf::doctor {
namespace {

constexpr std::size_t kBlock = 512;

// Offsets and sizes of a header's fields.
struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kSize{124, 12}, kTime{136, 12}, kSum{148, 8},
    kType{156, 1}, kLink{157, 100}, kMagic{257, 8}, kPrefix{345, 155};

std::string field(std::string_view header, Field where) {
  const std::string_view text = header.substr(where.at, where.size);
  return std::string(text.substr(0, std::min(text.find('\0'), text.size())));
}

std::size_t octal(const std::string& text) {
  std::size_t value = 0;
  for (const char digit : text) {
    if (digit >= '0' && digit <= '7') value = value * 8 + static_cast<std::size_t>(digit - '0');
  }
  return value;
}

/// "sys/a" for "./sys/a" and "/sys/a"; "" for what leads out of the archive.
std::string entry_name(std::string name) {
  const std::string joined = join_link("/", name.starts_with('/') ? name.substr(1) : name);
  return joined.empty() ? joined : joined.substr(1);
}

/// Long names that go in front of the entry they belong to.
struct LongNames {
  std::string path;
  std::string link;
};

// Records of a pax header: "LENGTH KEY=VALUE\n".
void take_pax(std::string_view text, LongNames& names) {
  while (!text.empty()) {
    const std::size_t length = static_cast<std::size_t>(leading_int(text));
    const std::size_t blank = text.find(' ');
    if (length <= blank || length > text.size() || blank == std::string_view::npos) return;
    const std::string_view record = text.substr(blank + 1, length - blank - 2);
    if (record.starts_with("path=")) names.path = record.substr(5);
    if (record.starts_with("linkpath=")) names.link = record.substr(9);
    text.remove_prefix(length);
  }
}

void take_entry(Tree& tree, char type, const std::string& name, const std::string& link,
                std::string_view content) {
  if (name.empty()) {
    tree.add_damage("the archive has an entry that leads out of it");
  } else if (type == '2') {
    tree.add_link("/" + name, link);
  } else if (type == '5') {
    tree.add_folder("/" + name);
  } else if (type == '0' || type == '\0') {
    if (content.size() > kMostEntryBytes) {
      tree.add_damage("/" + name + " is larger than 4 MiB and was left out");
    } else {
      add_recorded_entry(tree, name, std::string(content));
    }
  }
}

void put(std::string& header, Field where, const std::string& text) {
  std::copy_n(text.begin(), std::min(text.size(), where.size),
              header.begin() + static_cast<std::ptrdiff_t>(where.at));
}

void append_entry(std::string& archive, const std::string& name, char type,
                  const std::string& content, const std::string& link = {}) {
  if (name.size() > kName.size) append_entry(archive, "././@LongLink", 'L', name + '\0');
  if (link.size() > kLink.size) append_entry(archive, "././@LongLink", 'K', link + '\0');
  std::string header(kBlock, '\0');
  put(header, kName, name);
  put(header, kMode, type == '5' ? "0000755" : "0000644");
  put(header, {108, 8}, "0000000");
  put(header, {116, 8}, "0000000");
  put(header, kSize, fmt::format("{:011o}", content.size()));
  put(header, kTime, "00000000000");
  put(header, kSum, "        ");
  header[kType.at] = type;
  put(header, kLink, link);
  put(header, kMagic, std::string("ustar  \0", 8));
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put(header, kSum, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  archive += header;
  archive += content;
  archive.append((kBlock - content.size() % kBlock) % kBlock, '\0');
}

/// `target` as seen from `link`'s folder, so that a recording unpacks anywhere.
std::string relative_target(const std::string& link, const std::string& target) {
  std::string up;
  for (std::size_t at = link.find('/', 1); at != std::string::npos; at = link.find('/', at + 1)) up += "../";
  return up + target.substr(1);
}

std::string command_name(const std::string& command, int status) {
  std::string name = command;
  std::replace(name.begin(), name.end(), '/', '%');
  std::replace(name.begin(), name.end(), ' ', '_');
  return "commands/" + name + (status == 0 ? "" : fmt::format(".exit{}", status));
}

}  // namespace

Tree parse_tree_tar(std::string_view archive) {
  Tree tree;
  LongNames names;
  std::size_t count = 0;
  while (archive.size() >= kBlock) {
    const std::string_view header = archive.substr(0, kBlock);
    archive.remove_prefix(kBlock);
    if (header.find_first_not_of('\0') == std::string_view::npos) return tree;
    const std::size_t size = octal(field(header, kSize));
    if (size > archive.size() || ++count > kMostEntries) break;
    const std::string_view content = archive.substr(0, size);
    archive.remove_prefix(std::min(archive.size(), (size + kBlock - 1) / kBlock * kBlock));
    const char type = header[kType.at];
    if (type == 'x') {
      take_pax(content, names);
    } else if (type == 'L') {
      names.path = content.substr(0, content.find('\0'));
    } else if (type == 'K') {
      names.link = content.substr(0, content.find('\0'));
    } else if (type != 'g') {
      const std::string prefix = header.substr(kMagic.at, 6) == std::string_view("ustar\0", 6)
                                     ? field(header, kPrefix)
                                     : "";
      const std::string own = (prefix.empty() ? "" : prefix + "/") + field(header, kName);
      take_entry(tree, type, entry_name(names.path.empty() ? own : names.path),
                 names.link.empty() ? field(header, kLink) : names.link, content);
      names = {};
    }
  }
  tree.add_damage("the archive is cut off or damaged: its end is missing");
  return tree;
}

std::string tree_as_tar(const Tree& tree) {
  std::string about = "made by gdrperf doctor --record\n";
  for (const std::string& path : tree.denied()) about += "denied " + path + "\n";
  for (const auto& [command, result] : tree.programs()) {
    if (result.end == ProgramResult::End::kTimedOut) about += "hung " + command + "\n";
  }
  for (const std::string& damage : tree.damage()) about += "lacks " + damage + "\n";
  std::string archive;
  append_entry(archive, "gdrperf-recording", '0', about);
  for (const auto& [path, target] : tree.links()) {
    append_entry(archive, path.substr(1), '2', {}, relative_target(path, target));
  }
  for (const std::string& path : tree.folders()) {
    append_entry(archive, path.substr(1) + "/", '5', {});
  }
  for (const auto& [path, text] : tree.files()) append_entry(archive, path.substr(1), '0', text);
  for (const auto& [command, result] : tree.programs()) {
    if (result.end == ProgramResult::End::kExited) {
      append_entry(archive, command_name(command, result.status), '0', result.output);
    }
  }
  archive.append(2 * kBlock, '\0');
  return archive;
}

}  // namespace gdrperf::doctor
