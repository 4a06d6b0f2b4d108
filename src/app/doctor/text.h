#pragma once

#include <iosfwd>
#include <vector>

#include "gdrperf/doctor/doctor.h"
#include "gdrperf/doctor/words.h"

namespace gdrperf::app {

/// Level of detail of an examination's text.
enum class Detail { kBrief, kAll };

/// Findings by subject, the worst group first and the worst of each first;
/// equal ones of several devices in one row, what is fine in one line. With
/// kAll every finding, its evidence, and every pair.
void print_examination(const doctor::Examination& examination, Detail detail, std::ostream& out);

/// On a machine with neither NIC nor GPU: what can be done there.
void print_nothing_here(std::ostream& out);

/// All checks: id, what each looks at, when it complains.
void print_check_list(std::ostream& out);
void print_check_list_json(std::ostream& out);

/// Sources of known messages, with the number known of each.
void print_word_list(const doctor::Words& words, std::ostream& out);
void print_word_list_json(const doctor::Words& words, std::ostream& out);

/// Machine-readable, all of it.
void print_examination_json(const doctor::Examination& examination, std::ostream& out);

/// Number of findings with that verdict.
std::ptrdiff_t count_of(const std::vector<doctor::Finding>& findings, doctor::Verdict verdict);

}  // namespace gdrperf::app
