#include <zlib.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "doctor/recording/capture_parse.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/doctor/machine.h"
#include "doctor/text.h"
#include "doctor/recording/tree.h"

namespace gdrperf::doctor {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";

class RecordedMachine : public Machine {
 public:
  explicit RecordedMachine(Tree tree) : tree_(std::move(tree)) {}

  FileText read(const std::string& path) const override { return tree_.read(path); }
  std::vector<std::string> list(const std::string& path) const override {
    return tree_.list(path);
  }
  std::string resolve(const std::string& path) const override { return tree_.resolve(path); }
  Access read_write(const std::string& path) const override { return tree_.access(path); }
  ProgramResult run(const std::vector<std::string>& argv) const override {
    return tree_.run(argv);
  }
  MemlockLimit memlock() const override {
    return memlock_of(tree_.read("/proc/self/limits").text);
  }
  std::optional<std::vector<verbs::DeviceInfo>> rdma_devices() const override {
    const ProgramResult devinfo = tree_.run({"ibv_devinfo", "-v"});
    if (!devinfo.ok()) return std::nullopt;
    return devices_of_ibv_devinfo(devinfo.output);
  }
  bool recorded() const override { return true; }
  std::vector<std::string> damage() const override {
    std::vector<std::string> damage = tree_.damage();
    if (tree_.empty()) {
      damage.emplace_back("the recording holds nothing");
    } else if (tree_.list("/sys").empty()) {
      damage.emplace_back("the recording holds no /sys: devices are not known");
    }
    return damage;
  }

 private:
  Tree tree_;
};

/// Unpacks a gzip file; what is cut off or too large is said in `damage`.
std::string unpacked(const std::string& path, std::vector<std::string>& damage) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"), ::gzclose);
  std::string text;
  if (!file) return text;
  std::string block(1u << 16, '\0');
  while (text.size() < kMostTreeBytes) {
    const int got = ::gzread(file.get(), block.data(), static_cast<unsigned>(block.size()));
    if (got < 0) {
      damage.emplace_back("the archive is cut off or damaged: it does not unpack to its end");
      return text;
    }
    if (got == 0) return text;
    text.append(block, 0, static_cast<std::size_t>(got));
  }
  damage.emplace_back("the archive unpacks to more than 256 MiB: the rest was left out");
  return text;
}

Tree read_tree(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return read_tree_folder(path);
  std::string text = read_file(path, kMostTreeBytes);
  std::vector<std::string> damage;
  if (text.starts_with(kGzip)) text = unpacked(path, damage);
  Tree tree;
  if (looks_like_tree_text(text)) {
    tree = parse_tree_text(text);
  } else if (text.size() >= 512 && text.substr(257, 5) == "ustar") {
    tree = parse_tree_tar(text);
  } else if (damage.empty()) {
    throw usage_error("--root " + path + ": neither a folder, a tar file nor a text recording",
                      "'gdrperf doctor --record FILE.tar.gz' writes one; pasted text goes to --read");
  }
  for (std::string& sentence : damage) tree.add_damage(std::move(sentence));
  return tree;
}

}  // namespace

std::unique_ptr<Machine> recorded_machine(const std::string& path) {
  return std::make_unique<RecordedMachine>(read_tree(path));
}

}  // namespace gdrperf::doctor
