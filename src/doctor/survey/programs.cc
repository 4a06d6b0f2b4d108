// The programs that checks ask, started at the same time: together they take as
// long as the slowest one.

#include "doctor/survey/programs.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/thread.h"

namespace gdrperf::doctor {
namespace {

constexpr std::size_t kMostAtOnce = 16;

/// A machine whose programs were run before.
class AskedAhead : public Machine {
 public:
  AskedAhead(const Machine& machine, std::map<Argv, ProgramResult> results)
      : machine_(machine), results_(std::move(results)) {}

  FileText read(const std::string& path) const override { return machine_.read(path); }
  std::vector<std::string> list(const std::string& path) const override {
    return machine_.list(path);
  }
  std::string resolve(const std::string& path) const override { return machine_.resolve(path); }
  Access read_write(const std::string& path) const override { return machine_.read_write(path); }
  ProgramResult run(const std::vector<std::string>& argv) const override {
    const auto it = results_.find(argv);
    return it == results_.end() ? machine_.run(argv) : it->second;
  }
  MemlockLimit memlock() const override { return machine_.memlock(); }
  std::optional<std::vector<verbs::DeviceInfo>> rdma_devices() const override {
    return machine_.rdma_devices();
  }
  std::string libibverbs_error() const override { return machine_.libibverbs_error(); }
  bool recorded() const override { return machine_.recorded(); }
  std::vector<std::string> damage() const override { return machine_.damage(); }

 private:
  const Machine& machine_;
  std::map<Argv, ProgramResult> results_;
};

}  // namespace

std::vector<Argv> programs_worth_recording() {
  return {{"lspci", "-D", "-vvv"}, {"dmesg"},           {"nvidia-smi", "-L"},        {"ibv_devinfo", "-v"},
          {"rdma", "system"},      {"ofed_info", "-s"}, {"nvidia-smi", "topo", "-m"}};
}

std::vector<Argv> programs_to_ask(const Machine& machine) {
  std::vector<Argv> wanted;
  const bool nvidia = !machine.list("/proc/driver/nvidia").empty();
  const auto devices = machine.list("/sys/class/infiniband");
  wanted.push_back({"dmesg"});
  wanted.push_back({"firewall-cmd", "--list-ports"});
  wanted.push_back({"nft", "list", "ruleset"});
  wanted.push_back({"iptables", "-S"});
  if (nvidia) {
    wanted.push_back({"nvidia-smi", "-L"});
    wanted.push_back({kGpuProbe});
  }
  if (devices.empty()) {
    wanted.push_back({"modinfo", "mlx5_core"});
    return wanted;
  }
  wanted.push_back({"rdma", "system"});
  wanted.push_back({"ofed_info", "-s"});
  wanted.push_back({"lspci", "-D", "-vvv"});
  wanted.push_back({"modinfo", "nvidia_peermem"});
  wanted.push_back({"modinfo", "mlx5_ib"});

  for (const std::string& device : devices) {
    const std::string folder = "/sys/class/infiniband/" + device + "/device";
    for (const std::string& netdev : machine.list(folder + "/net")) {
      for (Argv& argv : flow_control_programs(netdev)) wanted.push_back(std::move(argv));
    }
    const std::string address = machine.resolve(folder);
    if (!address.empty()) {
      wanted.push_back({"mlxconfig", "-d", address.substr(address.rfind('/') + 1), "query"});
    }
  }
  return wanted;
}

std::vector<Argv> flow_control_programs(const Outside& netdev) {
  return {{"ethtool", "-a", netdev.raw()},
          {"mlnx_qos", "-i", netdev.raw()},
          {"dcb", "pfc", "show", "dev", netdev.raw()},
          {"ethtool", "-S", netdev.raw()}};
}

std::unique_ptr<Machine> asked_ahead(const Machine& machine) { return asked_ahead(machine, programs_to_ask(machine)); }

std::unique_ptr<Machine> asked_ahead(const Machine& machine, const std::vector<Argv>& wanted) {
  std::vector<ProgramResult> results(wanted.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < wanted.size(); i = next++) results[i] = machine.run(wanted[i]);
  };
  Mutex failing;
  std::exception_ptr failure;
  const auto failed = [&](std::exception_ptr why) {
    const MutexLock lock(failing);
    failure = std::move(why);
  };
  {
    std::vector<std::jthread> threads;
    const std::size_t count = machine.recorded() ? 0 : std::min(kMostAtOnce, wanted.size());
    try {
      for (std::size_t i = 1; i < count; ++i) threads.push_back(start_thread("programs to ask", work, failed));
    } catch (const Error&) {  // fewer take longer
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
  std::map<Argv, ProgramResult> by_argv;
  for (std::size_t i = 0; i < wanted.size(); ++i) by_argv[wanted[i]] = std::move(results[i]);
  return std::make_unique<AskedAhead>(machine, std::move(by_argv));
}

}  // namespace gdrperf::doctor
