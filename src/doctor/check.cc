#include "doctor/check.h"

#include "doctor/text.h"
#include "gdrperf/base/printable.h"

namespace gdrperf::doctor {
namespace {

/// Names and outputs of programs are quoted in findings, which are made here alone: one printable line each.
std::string shown(std::string_view text) { return printable(one_line(text)); }

}  // namespace

Note Check::add(Verdict verdict, Subject subject, std::string found, std::string fix) const {
  Finding finding;
  finding.verdict = verdict;
  finding.check = name_;
  finding.subject = shown(subject.text);
  finding.found = shown(found);
  finding.why = why_;
  finding.fix = shown(fix);
  findings_.push_back(std::move(finding));
  return {findings_, findings_.size() - 1};
}

const Note& Note::for_good(const std::string& text) const {
  finding().for_good = shown(text);
  return *this;
}

const Note& Note::undo(const std::string& text) const {
  finding().undo = shown(text);
  return *this;
}

const Note& Note::why(const std::string& text) const {
  finding().why = shown(text);
  return *this;
}

const Note& Note::saw(const std::string& where, const std::string& value) const {
  if (!value.empty()) finding().evidence.push_back(shown(where + ": " + one_line(value).substr(0, 300)));
  return *this;
}

}  // namespace gdrperf::doctor
