#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Entry point that a fuzz target defines; fuzz_driver.cc runs it without a fuzzing engine
/// (deterministic mutations of the seeds), libFuzzer with one:
///   clang++ -fsanitize=fuzzer,address ... proto_message_fuzz.cc
/// A finding is a crash, a sanitizer report or an abort().
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Good inputs to start from.
std::vector<std::string> fuzz_seeds();
