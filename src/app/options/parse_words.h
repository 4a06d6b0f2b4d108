#pragma once

#include <CLI/CLI.hpp>

#include "gdrperf/base/error.h"

namespace gdrperf::app {

/// A refusal of the parser in this program's words: which option, what it
/// needs, what to type. Call it with the arguments as they were parsed.
Error parse_failure(const CLI::App& app, const CLI::ParseError& error);

/// Throws usage_error for the first word that no command of `app` knows, and
/// for a flag that was given a value ("--local=3").
void refuse_unknown(const CLI::App& app);

/// Accepted, and not in help, manual page or completion.
bool hidden(const CLI::Option& option);

/// "-s", or "--json" where there is no short name, or "HOST".
std::string flag_of(const CLI::Option& option);

}  // namespace gdrperf::app
