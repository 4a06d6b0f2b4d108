#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/doctor/machine.h"

namespace gdrperf::doctor {

/// Files, links and program outputs of a recorded machine, in memory. Paths are
/// absolute, as on that machine.
class Tree {
 public:
  void add_file(const std::string& path, std::string text);
  /// A link to an absolute path or one relative to its own folder.
  void add_link(const std::string& path, const std::string& target);
  void add_folder(const std::string& path);
  void deny(const std::string& path) { denied_.insert(path); }
  /// `command`: "lspci -D -vvv"; with the program's name alone it answers for
  /// any arguments.
  void add_program(const std::string& command, ProgramResult result);
  void add_damage(std::string sentence) { damage_.push_back(std::move(sentence)); }

  FileText read(const std::string& path) const;
  std::vector<std::string> list(const std::string& path) const;
  std::string resolve(const std::string& path) const;
  Access access(const std::string& path) const;
  ProgramResult run(const std::vector<std::string>& argv) const;

  const std::map<std::string, std::string>& files() const { return files_; }
  const std::map<std::string, std::string>& links() const { return links_; }
  const std::map<std::string, ProgramResult>& programs() const { return programs_; }
  const std::set<std::string>& folders() const { return folders_; }
  const std::set<std::string>& denied() const { return denied_; }
  const std::vector<std::string>& damage() const { return damage_; }
  bool empty() const { return files_.empty() && links_.empty() && programs_.empty(); }

 private:
  std::string follow(std::string path) const;
  std::string place_of(std::string path) const;
  void add_parents(const std::string& path);

  std::map<std::string, std::string> files_;
  std::map<std::string, std::string> links_;
  std::set<std::string> folders_;  ///< with all that lie above others
  std::set<std::string> denied_;
  std::map<std::string, ProgramResult> programs_;
  std::vector<std::string> damage_;
};

/// Limits on what is read: an entry, and all of them.
inline constexpr std::size_t kMostEntryBytes = 4u << 20;
inline constexpr std::size_t kMostTreeBytes = 256u << 20;
inline constexpr std::size_t kMostEntries = 200'000;

/// "== file PATH", "== link PATH TARGET", "== folder PATH", "== denied PATH",
/// "== program COMMAND", "== failed COMMAND", "== hung COMMAND"; what belongs to
/// each stands below it, up to the next.
Tree parse_tree_text(std::string_view text);
bool looks_like_tree_text(std::string_view text);
/// Below `folder` what stood below "/"; outputs of programs in `commands`.
Tree read_tree_folder(const std::string& folder);
/// The same as a tar archive.
Tree parse_tree_tar(std::string_view archive);
/// A tar archive that parse_tree_tar() reads.
std::string tree_as_tar(const Tree& tree);

/// Joins `target` to the folder of `link`, and takes out "." and "..". "" when
/// it leads above the root.
std::string join_link(const std::string& link, const std::string& target);

/// Adds an entry named as in a recording's folder ("sys/...", "commands/lspci",
/// "gdrperf-recording") to `tree`.
void add_recorded_entry(Tree& tree, const std::string& name, std::string text);

}  // namespace gdrperf::doctor
