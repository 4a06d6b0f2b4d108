// Recordings as text and as a folder.

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "doctor/text.h"
#include "doctor/recording/tree.h"

namespace gdrperf::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "== ";

/// "/sys/a" for "sys/a", and for what stands on the root already.
std::string absolute(std::string_view path) {
  return (path.starts_with('/') ? "" : "/") + std::string(path);
}

/// One headline of a text recording; the text below it goes where `text`
/// points afterwards.
struct Headline {
  std::string kind;
  std::string name;
  std::string text;
};

void add_headline(Tree& tree, Headline& entry) {
  using End = ProgramResult::End;
  if (entry.kind == "file") tree.add_file(absolute(entry.name), std::move(entry.text));
  if (entry.kind == "folder") tree.add_folder(absolute(entry.name));
  if (entry.kind == "denied") tree.deny(absolute(entry.name));
  if (entry.kind == "program") {
    tree.add_program(entry.name, {End::kExited, 0, std::move(entry.text)});
  }
  if (entry.kind == "failed") {
    tree.add_program(entry.name, {End::kExited, 1, std::move(entry.text)});
  }
  if (entry.kind == "hung") tree.add_program(entry.name, {End::kTimedOut, 0, {}});
  if (entry.kind == "link") {
    const auto words = words_of(entry.name);
    if (words.size() == 2) {
      tree.add_link(absolute(words[0]), std::string(words[1]));
    } else {
      tree.add_damage("a link that leads nowhere: " + entry.name);
    }
  }
  entry = {};
}

// Block by block: thousands of small files must not keep room for large ones.
std::string read_some(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::array<char, 4096> block;
  std::string text;
  while (text.size() < kMostEntryBytes && in) {
    in.read(block.data(), block.size());
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

void add_entry(Tree& tree, const fs::directory_entry& entry, const std::string& name,
               std::size_t& bytes) {
  std::error_code error;
  if (entry.is_symlink(error)) {
    tree.add_link("/" + name, fs::read_symlink(entry.path(), error).string());
  } else if (entry.is_directory(error)) {
    tree.add_folder("/" + name);
  } else if (!entry.is_regular_file(error)) {
    tree.add_file("/" + name, {});
  } else if (entry.file_size(error) > kMostEntryBytes) {
    tree.add_damage("/" + name + " is larger than 4 MiB and was left out");
  } else {
    std::string text = read_some(entry.path());
    bytes += text.size();
    // A copy by a program that knows no links has their targets as text.
    const bool lost_link = name.starts_with("sys/") && text.starts_with("../") && text.find('\n') == std::string::npos;
    if (lost_link) return tree.add_link("/" + name, text);
    add_recorded_entry(tree, name, std::move(text));
  }
}

}  // namespace

bool looks_like_tree_text(std::string_view text) {
  for (const std::string_view line : lines_of(text.substr(0, 65536))) {
    if (trimmed(line).empty() || line.starts_with('#')) continue;
    return line.starts_with(kMark);
  }
  return false;
}

Tree parse_tree_text(std::string_view text) {
  Tree tree;
  Headline entry;
  for (const std::string_view line : lines_of(text)) {
    if (line.starts_with(kMark)) {
      add_headline(tree, entry);
      const std::string_view rest = trimmed(line.substr(kMark.size()));
      const std::size_t blank = std::min(rest.find(' '), rest.size());
      entry.kind = rest.substr(0, blank);
      entry.name = trimmed(rest.substr(blank));
    } else if (entry.text.size() < kMostEntryBytes) {
      entry.text.append(line).append("\n");
    }
  }
  add_headline(tree, entry);
  return tree;
}

Tree read_tree_folder(const std::string& folder) {
  Tree tree;
  std::error_code error;
  std::size_t count = 0;
  std::size_t bytes = 0;
  const auto options = fs::directory_options::skip_permission_denied;
  // Links first: files may be named by paths that go through them.
  for (const bool links : {true, false}) {
    for (fs::recursive_directory_iterator it(folder, options, error), end; !error && it != end;
         it.increment(error)) {
      std::error_code ignored;
      if (it->is_symlink(ignored) != links) continue;
      if (++count > kMostEntries || bytes > kMostTreeBytes) {
        tree.add_damage("the recording is too large: the rest of it was left out");
        return tree;
      }
      add_entry(tree, *it, it->path().lexically_relative(folder).string(), bytes);
    }
  }
  if (error) tree.add_damage("a folder cannot be read: " + error.message());
  return tree;
}

}  // namespace gdrperf::doctor
