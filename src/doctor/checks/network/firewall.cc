// Whether this host's packet filter lets a run's packets in: firewalld, nftables, iptables, ufw.

#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

constexpr int kControlPort = 18515;
constexpr int kRocePort = 4791;

struct NeededPort {
  int number;
  const char* protocol;
  const char* used_by;
  std::string text() const { return fmt::format("{}/{}", number, protocol); }
};
constexpr NeededPort kControl{kControlPort, "tcp", "gdrperf serve"};
constexpr NeededPort kSoftRoce{kRocePort, "udp", "Soft-RoCE"};

Check firewall_check(Findings& findings) {
  return {findings, "firewall",
          "both hosts agree about a run over TCP; Soft-RoCE sends its data through UDP port 4791 of the kernel, a "
          "NIC's own RoCE does not"};
}

std::vector<NeededPort> needed_ports(bool soft_roce) {
  return soft_roce ? std::vector<NeededPort>{kControl, kSoftRoce} : std::vector<NeededPort>{kControl};
}

/// "22", "18000-19000" or "18000:19000".
bool in_range(std::string_view range, int port) {
  const int first = leading_int(range);
  const std::size_t dash = range.find_first_of("-:");
  const int last = dash == std::string_view::npos ? first : leading_int(range.substr(dash + 1));
  return first <= port && port <= last;
}

/// Any of the ports and ranges in `list`, which blanks, commas and braces separate.
bool names_port(std::string list, int port) {
  std::replace_if(list.begin(), list.end(), [](char c) { return c == ',' || c == '{' || c == '}' || c == ';'; }, ' ');
  const auto words = words_of(list);
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return !word.empty() && word[0] >= '0' && word[0] <= '9' && in_range(word, port);
  });
}

bool has_word(const std::vector<std::string_view>& words, std::string_view wanted) {
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

/// Action of one rule on the packet; nothing: it is about others.
std::optional<Filtering> rule_of_nft(std::string_view line, const NeededPort& port) {
  const auto words = words_of(line);
  const bool accepts = has_word(words, "accept");
  const bool refuses = has_word(words, "drop") || has_word(words, "reject");
  const bool leads_away = has_word(words, "jump") || has_word(words, "goto");
  if (!accepts && !refuses && !leads_away) return std::nullopt;
  const std::size_t dport = line.find("dport");
  const bool protocol =
      line.find(port.protocol) != std::string_view::npos || line.find("th dport") != std::string_view::npos;
  if (dport != std::string_view::npos) {
    std::string list(line.substr(dport + 5));
    list.resize(std::min(list.find(list.find('{') < list.size() ? '}' : '\0'), list.size()));
    const auto first = words_of(list);
    if (list.find('{') == std::string::npos) list = first.empty() ? "" : std::string(first[0]);
    if (!protocol || !names_port(list, port.number)) return std::nullopt;
    return accepts ? Filtering::kOpen : leads_away ? Filtering::kUnknown : Filtering::kClosed;
  }
  // Words that make no condition: what is left is a rule for every packet.
  const bool blanket = std::all_of(words.begin(), words.end(), [](std::string_view word) {
    return word == "counter" || word == "packets" || word == "bytes" || word == "accept" || word == "drop" ||
           word == "reject" || word == "with" || word.starts_with("icmp") || word == "type" ||
           word.find_first_not_of("0123456789") == std::string_view::npos || word == "admin-prohibited" ||
           word == "host-prohibited";
  });
  if (blanket) return accepts ? Filtering::kOpen : Filtering::kClosed;
  const bool of_others = line.find("ct state") != std::string_view::npos ||
                         line.find("\"lo\"") != std::string_view::npos || line.find("icmp") != std::string_view::npos ||
                         (accepts && refuses);
  return of_others || refuses ? std::nullopt : std::optional(Filtering::kUnknown);
}

std::string command_to_open(const Survey& survey, const NeededPort& port) {
  if (survey.machine.read("/etc/ufw/ufw.conf").text.find("ENABLED=yes") != std::string::npos) {
    return "sudo ufw allow " + port.text();
  }
  return fmt::format(
      "sudo nft insert rule inet filter input {} dport {} accept  # with the names of table and chain of 'sudo nft "
      "list "
      "ruleset'",
      port.protocol, port.number);
}

void judge_firewalld(const std::string& listed, bool soft_roce, Findings& findings) {
  const Check check = firewall_check(findings);
  std::string add;
  std::string remove;
  std::string missing;
  for (const NeededPort& port : needed_ports(soft_roce)) {
    const auto words = words_of(listed);
    const bool open = std::any_of(words.begin(), words.end(), [&](std::string_view word) {
      return word.ends_with(std::string("/") + port.protocol) && in_range(word, port.number);
    });
    if (open) continue;
    add += " --add-port=" + port.text();
    remove += " --remove-port=" + port.text();
    missing += (missing.empty() ? "" : " and ") + port.text();
  }
  if (missing.empty()) {
    check.ok("", "firewalld lets them through: " + listed);
    return;
  }
  check.warn("", fmt::format("firewalld runs, and does not open {}", missing), "sudo firewall-cmd" + add)
      .for_good("sudo firewall-cmd --permanent" + add)
      .undo("sudo firewall-cmd" + remove)
      .saw("firewall-cmd --list-ports", listed.empty() ? "(none)" : listed);
}

/// True when the rules could be read, and were judged.
bool judge_rules(const Survey& survey, const char* command, const std::string& rules,
                 Filtering (*filtering)(std::string_view, std::string_view, int), bool soft_roce, Findings& findings) {
  const Check check = firewall_check(findings);
  for (const NeededPort& port : needed_ports(soft_roce)) {
    const Filtering what = filtering(rules, port.protocol, port.number);
    if (what == Filtering::kClosed) {
      check
          .warn(port.text(), fmt::format("the packet filter refuses {} ({})", port.text(), port.used_by),
                command_to_open(survey, port))
          .for_good(
              "the same rule in /etc/nftables.conf, or in what writes the rules here (ufw, firewalld, a container "
              "network)")
          .saw(command, "input is refused unless a rule accepts it");
    } else if (what == Filtering::kUnknown) {
      check.ok(
          port.text(),
          fmt::format("the packet filter has rules by address or in other chains: whether {} passes depends on the "
                      "sender",
                      port.text()));
    } else {
      check.ok(port.text(), fmt::format("the packet filter lets {} in", port.text()));
    }
  }
  return true;
}

}  // namespace

Filtering nft_filtering(std::string_view ruleset, std::string_view protocol, int number) {
  const NeededPort port{number, protocol == "udp" ? "udp" : "tcp", ""};
  Filtering all = Filtering::kOpen;
  bool input = false;
  bool decided = false;
  bool drops = false;
  bool unsure = false;
  const auto leave_chain = [&] {
    if (input && !decided && drops) all = unsure ? std::max(all, Filtering::kUnknown) : Filtering::kClosed;
    input = decided = drops = unsure = false;
  };
  for (const std::string_view raw : lines_of(ruleset)) {
    const std::string_view line = trimmed(raw);
    if (line.starts_with("chain ") || line == "}") leave_chain();
    if (line.find("hook input") != std::string_view::npos) {
      input = true;
      drops = line.find("policy drop") != std::string_view::npos;
    } else if (input && !decided) {
      const auto rule = rule_of_nft(line, port);
      if (!rule) continue;
      if (*rule == Filtering::kUnknown) {
        unsure = true;
      } else {
        decided = true;
        if (*rule == Filtering::kClosed) all = unsure ? std::max(all, Filtering::kUnknown) : Filtering::kClosed;
      }
    }
  }
  leave_chain();
  return all;
}

Filtering iptables_filtering(std::string_view rules, std::string_view protocol, int number) {
  bool unsure = false;
  bool drops = false;
  const auto closed = [&] { return unsure ? Filtering::kUnknown : Filtering::kClosed; };
  for (const std::string_view line : lines_of(rules)) {
    const auto words = words_of(line);
    if (words.size() == 3 && words[0] == "-P" && words[1] == "INPUT") drops = words[2] == "DROP";
    if (words.size() < 4 || words[0] != "-A" || words[1] != "INPUT") continue;
    const auto value = [&](std::string_view option) {
      const auto it = std::find(words.begin(), words.end(), option);
      return it == words.end() || it + 1 == words.end() ? std::string() : std::string(*(it + 1));
    };
    const std::string target = value("-j");
    const std::string ports = value("--dport") + value("--dports");
    const bool ours = (value("-p").empty() || value("-p") == protocol) && (ports.empty() || names_port(ports, number));
    const bool of_others = !value("-i").empty() || !value("--ctstate").empty() || !value("--state").empty();
    if (!ours || of_others) continue;
    const bool any_sender = value("-s").empty();
    if (target == "ACCEPT" && any_sender) return Filtering::kOpen;
    if ((target == "DROP" || target == "REJECT") && any_sender) return closed();
    unsure = true;
  }
  return drops ? closed() : Filtering::kOpen;
}

void judge_pasted_filter(std::string_view text, Findings& findings) {
  const bool nft =
      text.find("hook input") != std::string_view::npos && text.find("type filter") != std::string_view::npos;
  const bool iptables = text.find("-P INPUT ") != std::string_view::npos;
  if (!nft && !iptables) return;
  for (const NeededPort& port : needed_ports(true)) {
    const Filtering what =
        nft ? nft_filtering(text, port.protocol, port.number) : iptables_filtering(text, port.protocol, port.number);
    const Check check = firewall_check(findings);
    if (what == Filtering::kClosed) {
      check.warn(port.text(), fmt::format("the packet filter refuses {} ({})", port.text(), port.used_by),
                 fmt::format("accept {} in the input chain", port.text()));
    } else {
      check.ok(port.text(), what == Filtering::kOpen ? "let in" : "depends on the sender");
    }
  }
}

void check_firewall(const Survey& survey, Findings& findings) {
  const bool soft_roce =
      std::any_of(survey.rdma.begin(), survey.rdma.end(), [](const auto& each) { return each.driver == "rdma_rxe"; });
  const ProgramResult firewalld = survey.machine.run({"firewall-cmd", "--list-ports"});
  if (firewalld.ok()) {
    judge_firewalld(one_line(firewalld.output), soft_roce, findings);
    return;
  }
  const ProgramResult nft = survey.machine.run({"nft", "list", "ruleset"});
  if (nft.ok() && judge_rules(survey, "nft list ruleset", nft.output, nft_filtering, soft_roce, findings)) return;
  const ProgramResult iptables = survey.machine.run({"iptables", "-S"});
  if (iptables.ok() && judge_rules(survey, "iptables -S", iptables.output, iptables_filtering, soft_roce, findings))
    return;
  const Check check = firewall_check(findings);
  if (survey.machine.read("/etc/ufw/ufw.conf").text.find("ENABLED=yes") != std::string::npos) {
    check.skip("", "ufw is on; only root can see which ports it opens",
               "sudo ufw status; sudo ufw allow " + kControl.text());
  } else {
    check.skip("", "only root can see whether packets are filtered", "sudo gdrperf doctor --only firewall");
  }
}

}  // namespace gdrperf::doctor
