#pragma once

#include <span>

#include "doctor/checks/checks.h"

namespace gdrperf::doctor {

/// One check: its words for --list and docs/how-to/doctor.md, and what runs it. Checks
/// that look at the same thing share a function, which runs once.
struct CheckEntry {
  const char* id;
  const char* group;
  const char* looks_at;
  const char* bad_when;
  void (*run)(const Survey& survey, const Settings& settings, Findings& findings);
};

std::span<const CheckEntry> check_table();

}  // namespace gdrperf::doctor
