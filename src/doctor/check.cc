#include "doctor/check.h"

#include "doctor/text.h"

namespace gdrperf::doctor {

// Names and outputs of programs are quoted in findings: one line they stay.
Note Check::add(Verdict verdict, std::string subject, std::string found, std::string fix) const {
  Finding finding;
  finding.verdict = verdict;
  finding.check = name_;
  finding.subject = one_line(subject);
  finding.found = one_line(found);
  finding.why = why_;
  finding.fix = one_line(fix);
  findings_.push_back(std::move(finding));
  return {findings_, findings_.size() - 1};
}

const Note& Note::for_good(const std::string& text) const {
  finding().for_good = one_line(text);
  return *this;
}

const Note& Note::undo(const std::string& text) const {
  finding().undo = one_line(text);
  return *this;
}

const Note& Note::why(const std::string& text) const {
  finding().why = one_line(text);
  return *this;
}

const Note& Note::saw(const std::string& where, const std::string& value) const {
  if (!value.empty()) finding().evidence.push_back(where + ": " + one_line(value).substr(0, 300));
  return *this;
}

}  // namespace gdrperf::doctor
