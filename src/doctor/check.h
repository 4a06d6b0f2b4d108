#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gdrperf/doctor/doctor.h"

namespace gdrperf::doctor {

/// One check on its way: adds findings under its name and its reason to
/// `findings`, which it borrows.
class Check {
 public:
  Check(std::vector<Finding>& findings, std::string name, std::string why)
      : findings_(findings), name_(std::move(name)), why_(std::move(why)) {}

  void ok(std::string subject, std::string found) const {
    add(Verdict::kOk, std::move(subject), std::move(found), {});
  }
  void warn(std::string subject, std::string found, std::string fix) const {
    add(Verdict::kWarn, std::move(subject), std::move(found), std::move(fix));
  }
  void fail(std::string subject, std::string found, std::string fix) const {
    add(Verdict::kFail, std::move(subject), std::move(found), std::move(fix));
  }
  void skip(std::string subject, std::string found, std::string fix = {}) const {
    add(Verdict::kSkip, std::move(subject), std::move(found), std::move(fix));
  }
  void add(Verdict verdict, std::string subject, std::string found, std::string fix) const;

 private:
  std::vector<Finding>& findings_;
  std::string name_;
  std::string why_;
};

}  // namespace gdrperf::doctor
