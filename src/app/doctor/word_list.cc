// The sources of known messages, as text and as JSON.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "app/doctor/text.h"

namespace gdrperf::app {

void print_word_list(const doctor::Words& words, std::ostream& out) {
  int rules = 0;
  int messages = 0;
  out << "messages  rules  class, and where its messages were read\n";
  for (const doctor::WordClass& each : words.classes) {
    out << fmt::format("{:>8}  {:>5}  {}\n{:>17}{}\n", each.messages, each.rules, each.name, "", each.source);
    rules += each.rules;
    messages += each.messages;
  }
  out << fmt::format("{:>8}  {:>5}  all {} classes\n", messages, rules, words.classes.size());
}

void print_word_list_json(const doctor::Words& words, std::ostream& out) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (const doctor::WordClass& each : words.classes) {
    classes.push_back(
        {{"class", each.name}, {"messages", each.messages}, {"rules", each.rules}, {"source", each.source}});
  }
  out << classes.dump(2) << '\n';
}

}  // namespace gdrperf::app
