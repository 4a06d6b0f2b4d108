#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/options/options.h"

namespace gdrperf::app {

/// Whether an option, named by any of its spellings, was typed.
using Typed = std::function<bool(const std::string&)>;

/// Options typed for a command.
Typed typed_on(const CLI::App& command);

/// A sentence for each option that was typed and changes nothing about `tests`
/// with these options: "--chunk: ...". `gpu`: some end is in GPU memory.
std::vector<std::string> without_effect(const ClientOptions& options, const std::vector<Test>& tests, bool gpu,
                                        const Typed& typed);

/// Says them on standard error.
void note_without_effect(const std::vector<std::string>& sentences);

}  // namespace gdrperf::app
