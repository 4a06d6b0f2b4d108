// Records what the checks look at while they look.

#include <zlib.h>

#include <cerrno>
#include <map>

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/topo/data_direct.h"
#include "gdrperf/doctor/doctor.h"
#include "doctor/recording/mask.h"
#include "doctor/survey/programs.h"
#include "doctor/recording/tree.h"

namespace gdrperf::doctor {
namespace {

class RecordingMachine : public Machine {
 public:
  explicit RecordingMachine(const Machine& machine) : machine_(machine) {}

  FileText read(const std::string& path) const override {
    FileText file = machine_.read(path);
    const std::string real = place(path);
    if (file.access == Access::kGranted) files_[real] = kept(real, file.text);
    if (file.access == Access::kDenied) denied_.insert(real);
    return file;
  }
  std::vector<std::string> list(const std::string& path) const override {
    std::vector<std::string> names = machine_.list(path);
    const std::string real = place(path);
    for (const std::string& name : names) {
      std::string entry = real;
      entry += '/';
      entry += name;
      place(entry);
      listed_.insert(entry);
    }
    return names;
  }
  std::string resolve(const std::string& path) const override { return place(path, kFollowed); }
  Access read_write(const std::string& path) const override {
    const Access access = machine_.read_write(path);
    if (access == Access::kGranted) files_.try_emplace(path, "");
    if (access == Access::kDenied) denied_.insert(path);
    return access;
  }
  ProgramResult run(const std::vector<std::string>& argv) const override {
    ProgramResult result = machine_.run(argv);
    std::string command;
    for (const std::string& word : argv) command += (command.empty() ? "" : " ") + word;
    const MutexLock lock(mutex_);
    programs_[command] = result;
    return result;
  }
  MemlockLimit memlock() const override { return machine_.memlock(); }
  std::optional<std::vector<verbs::DeviceInfo>> rdma_devices() const override {
    return machine_.rdma_devices();
  }
  std::string libibverbs_error() const override { return machine_.libibverbs_error(); }

  Tree tree() const {
    Tree tree;
    for (const auto& [from, to] : links_) tree.add_link(from, to);
    for (const auto& [path, text] : files_) {
      if (text.size() >= kMostEntryBytes) tree.add_damage(path + " was cut at 4 MiB");
      tree.add_file(path, text);
    }
    for (const std::string& path : denied_) tree.deny(path);
    // A path that was only listed has just its name: as a folder, which it mostly is.
    for (const std::string& path : listed_) {
      if (!files_.contains(path) && !links_.contains(path)) tree.add_folder(path);
    }
    const MutexLock lock(mutex_);
    for (const auto& [command, result] : programs_) {
      if (result.end != ProgramResult::End::kNotInstalled) tree.add_program(command, result);
    }
    return tree;
  }

 private:
  static constexpr bool kFollowed = true;

  /// Without serial numbers: those of vital product data, and those in extended configuration space.
  static std::string kept(const std::string& path, const std::string& text) {
    constexpr std::size_t kPlainConfig = 256;
    if (!path.starts_with("/sys/devices/")) return text;
    if (path.ends_with("/vpd")) return topo::vpd_for_recording(text);
    return path.ends_with("/config") ? text.substr(0, kPlainConfig) : text;
  }

  /// Target of a path once all links on the way are followed, which are noted;
  /// for one that leads nowhere, the path, or "" where that is `kFollowed`.
  std::string place(const std::string& path, bool followed = false) const {
    std::string own = path;
    while (own.size() > 1 && own.ends_with('/')) own.pop_back();
    const auto known = places_.find(own);
    const std::string target = known != places_.end() ? known->second : note_links(own);
    return target.empty() && !followed ? own : target;
  }

  std::string note_links(const std::string& own) const {
    const std::string target = machine_.resolve(own);
    const std::size_t slash = own.rfind('/');
    if (!target.empty() && slash != std::string::npos && own.size() > 1) {
      const std::string above = slash == 0 ? "" : place(own.substr(0, slash));
      const std::string here = above + own.substr(slash);
      if (here != target) links_[here] = target;
    }
    places_[own] = target;
    return target;
  }

  const Machine& machine_;
  mutable std::map<std::string, std::string> files_;
  mutable std::map<std::string, std::string> links_;
  mutable std::set<std::string> listed_;
  mutable std::set<std::string> denied_;
  mutable std::map<std::string, std::string> places_;
  mutable Mutex mutex_;  ///< programs run beside each other; all else is looked at by one thread
  mutable std::map<std::string, ProgramResult> programs_ GUARDED_BY(mutex_);
};

void write_gzip(const std::string& path, const std::string& content) {
  z_stream stream{};
  // 16 asks for a gzip header, 15 is the largest window.
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw call_error("deflateInit2", ENOMEM);
  }
  std::string packed(::deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (status != Z_STREAM_END) throw call_error("deflate", EIO);
  write_file_atomic(path, packed);
}

}  // namespace

void record(const Machine& machine, const std::string& path, Masking masking) {
  const RecordingMachine recording(machine);
  // A later version may ask for more of what is always of use.
  for (const auto& argv : programs_worth_recording()) recording.run(argv);
  for (const char* file : {"/proc/self/limits", "/proc/cpuinfo", "/proc/meminfo", "/proc/version"}) {
    recording.read(file);
  }
  examine(recording, {});
  const Tree tree = recording.tree();
  write_gzip(path, tree_as_tar(masking == Masking::kOn ? masked(tree) : tree));
}

}  // namespace gdrperf::doctor
