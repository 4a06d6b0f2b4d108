#pragma once

#include <span>
#include <string>
#include <string_view>

#include "doctor/check.h"

namespace gdrperf::doctor {

/// Meaning of another program's words: a line that has all of `line` in it, in a
/// text that has `text` and not `without` (nullptr: any). They are written in lower
/// case, and match upper case too; '|' stands between spellings, any of which will do.
/// The first rule that matches a line has it; a rule speaks once.
struct WordRule {
  const char* check;  ///< of the finding
  Verdict verdict;
  const char* line[3];
  const char* text;
  const char* without;
  const char* found;
  const char* why;
  const char* fix;
  const char* for_good = "";
};

std::span<const WordRule> nccl_words();
std::span<const WordRule> ucx_words();
std::span<const WordRule> nvshmem_words();
std::span<const WordRule> perftest_words();
std::span<const WordRule> system_words();
/// Of the kernel's log, pasted or read here.
std::span<const WordRule> kernel_words();

/// Adds a finding for each rule that `text` matches, with the line as evidence.
/// True when there was one.
bool read_words(std::string_view text, std::span<const WordRule> rules, const std::string& source,
                Findings& findings);

}  // namespace gdrperf::doctor
