#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gdrperf/doctor/doctor.h"

namespace gdrperf::doctor {

using Findings = std::vector<Finding>;

/// What a finding is about: text of ours, or a name.
struct Subject {
  Subject(const char* ours) : text(ours) {}
  Subject(std::string ours) : text(std::move(ours)) {}
  Subject(const Outside& name) : text(printable(name)) {}
  std::string text;
};

/// The finding just added, to say more about: check.warn(...).for_good(...).
class Note {
 public:
  Note(Findings& findings, std::size_t index) : findings_(findings), index_(index) {}
  const Note& for_good(const std::string& text) const;
  const Note& undo(const std::string& text) const;
  const Note& why(const std::string& text) const;
  /// "WHERE: VALUE"; nothing without a value.
  const Note& saw(const std::string& where, const std::string& value) const;

 private:
  Finding& finding() const { return findings_[index_]; }
  Findings& findings_;
  std::size_t index_;
};

/// One check on its way: adds findings under its name and its reason to
/// `findings`, which it borrows.
class Check {
 public:
  Check(Findings& findings, std::string name, std::string why)
      : findings_(findings), name_(std::move(name)), why_(std::move(why)) {}

  Note ok(Subject subject, std::string found) const {
    return add(Verdict::kOk, std::move(subject), std::move(found), {});
  }
  Note warn(Subject subject, std::string found, std::string fix) const {
    return add(Verdict::kWarn, std::move(subject), std::move(found), std::move(fix));
  }
  Note fail(Subject subject, std::string found, std::string fix) const {
    return add(Verdict::kFail, std::move(subject), std::move(found), std::move(fix));
  }
  Note skip(Subject subject, std::string found, std::string fix = {}) const {
    return add(Verdict::kSkip, std::move(subject), std::move(found), std::move(fix));
  }
  Note add(Verdict verdict, Subject subject, std::string found, std::string fix) const;

 private:
  Findings& findings_;
  std::string name_;
  std::string why_;
};

}  // namespace gdrperf::doctor
