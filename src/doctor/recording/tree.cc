#include "doctor/recording/tree.h"

#include <algorithm>

#include "doctor/text.h"

namespace gdrperf::doctor {

void Tree::add_parents(const std::string& path) {
  for (std::size_t end = path.rfind('/'); end != std::string::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    if (!folders_.insert(path.substr(0, end)).second) return;
  }
}

void Tree::add_file(const std::string& path, std::string text) {
  const std::string real = follow(path);
  add_parents(real);
  files_[real] = std::move(text);
}

void Tree::add_link(const std::string& path, const std::string& target) {
  const std::string real = place_of(path);
  const std::string joined = join_link(real, target);
  if (joined.empty()) {
    add_damage(path + " is a link that leads out of the recording: " + target);
    return;
  }
  add_parents(real);
  links_[real] = joined;
}

void Tree::add_folder(const std::string& path) {
  const std::string real = follow(path);
  add_parents(real + "/");
}

void Tree::add_program(const std::string& command, ProgramResult result) {
  programs_[one_line(command)] = std::move(result);
}

// With the links along the path replaced, the first one first; a loop of links
// ends after a few turns.
std::string Tree::follow(std::string path) const {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  for (int turn = 0; turn < 40; ++turn) {
    bool changed = false;
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      const std::string prefix = path.substr(0, end);
      const auto link = links_.find(prefix);
      if (link != links_.end()) {
        path = link->second + (end == std::string::npos ? "" : path.substr(end));
        changed = true;
        break;
      }
      if (end == std::string::npos) break;
    }
    if (!changed) return path;
  }
  return path;
}

// With the links above its last part replaced.
std::string Tree::place_of(std::string path) const {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : follow(path.substr(0, slash)) + path.substr(slash);
}

FileText Tree::read(const std::string& path) const {
  const std::string real = follow(path);
  if (denied_.contains(real) || denied_.contains(path)) return {Access::kDenied, {}};
  const auto it = files_.find(real);
  if (it != files_.end()) return {Access::kGranted, it->second};
  return {folders_.contains(real) ? Access::kDenied : Access::kMissing, {}};
}

std::vector<std::string> Tree::list(const std::string& path) const {
  const std::string folder = follow(path) + "/";
  std::set<std::string> names;
  const auto take = [&](const auto& entries, const auto& key) {
    auto it = entries.lower_bound(folder);
    while (it != entries.end() && key(it).starts_with(folder)) {
      const std::string& each = key(it);
      const std::size_t end = std::min(each.find('/', folder.size()), each.size());
      names.insert(each.substr(folder.size(), end - folder.size()));
      // Past all that lies below the same name: '0' follows '/'.
      it = end == each.size() ? std::next(it) : entries.lower_bound(each.substr(0, end) + '0');
    }
  };
  take(files_, [](auto it) -> const std::string& { return it->first; });
  take(links_, [](auto it) -> const std::string& { return it->first; });
  take(folders_, [](auto it) -> const std::string& { return *it; });
  names.erase("");
  return {names.begin(), names.end()};
}

std::string Tree::resolve(const std::string& path) const {
  const std::string real = follow(path);
  if (files_.contains(real) || folders_.contains(real)) return real;
  // A recording of a few files names drivers by links that lead to nothing.
  return links_.contains(place_of(path)) && !links_.contains(real) ? real : std::string();
}

Access Tree::access(const std::string& path) const {
  const std::string real = follow(path);
  if (denied_.contains(real) || denied_.contains(path)) return Access::kDenied;
  return files_.contains(real) ? Access::kGranted : Access::kMissing;
}

ProgramResult Tree::run(const std::vector<std::string>& argv) const {
  std::string command;
  for (const std::string& word : argv) command += (command.empty() ? "" : " ") + word;
  auto it = programs_.find(command);
  if (it == programs_.end()) it = programs_.find(argv.front());
  return it == programs_.end() ? ProgramResult{} : it->second;
}

std::string join_link(const std::string& link, const std::string& target) {
  const std::string whole =
      target.starts_with('/') ? target : link.substr(0, link.rfind('/') + 1) + target;
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at < whole.size()) {
    const std::size_t end = std::min(whole.find('/', at), whole.size());
    const std::string part = whole.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (parts.empty()) {
      return {};
    } else {
      parts.pop_back();
    }
  }
  std::string joined;
  for (const std::string& part : parts) joined += "/" + part;
  return joined;
}

void add_recorded_entry(Tree& tree, const std::string& name, std::string text) {
  using End = ProgramResult::End;
  constexpr std::string_view kCommands = "commands/";
  if (name == "gdrperf-recording") {
    for (const std::string_view line : lines_of(text)) {
      if (const auto path = value_after(line, "denied ")) tree.deny(std::string(*path));
      if (const auto command = value_after(line, "hung ")) {
        tree.add_program(std::string(*command), {End::kTimedOut, 0, {}});
      }
      if (const auto damage = value_after(line, "lacks ")) tree.add_damage(std::string(*damage));
    }
    return;
  }
  if (!name.starts_with(kCommands)) {
    tree.add_file("/" + name, std::move(text));
    return;
  }
  // "lspci_-D_-vvv", "lspci.txt", "nvidia-smi_-L.exit9"
  std::string command = name.substr(kCommands.size());
  std::replace(command.begin(), command.end(), '_', ' ');
  std::replace(command.begin(), command.end(), '%', '/');
  int status = 0;
  if (const std::size_t dot = command.rfind(".exit"); dot != std::string::npos) {
    status = leading_int(std::string_view(command).substr(dot + 5));
    command.resize(dot);
  }
  if (command.ends_with(".txt")) command.resize(command.size() - 4);
  tree.add_program(command, {End::kExited, status, std::move(text)});
}

}  // namespace gdrperf::doctor
