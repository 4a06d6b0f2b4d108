#pragma once

#include <optional>
#include <string>

namespace gdrperf::app {

/// Destination of output: a file that is replaced as a whole, or a stream (a pipe, a
/// device, standard output by any of its names) that takes each byte once.
class Sink {
 public:
  Sink() = default;
  /// "-" or any name of standard output, such as /dev/stdout, is standard output.
  explicit Sink(const std::string& path);

  bool given() const { return !name_.empty(); }
  bool is_stdout() const { return stdout_; }
  bool is_stream() const { return stdout_ || !file_; }
  /// Both lead to one place.
  bool same_as(const Sink& other) const;
  const std::string& name() const { return name_; }

  /// Better now than after an hour of measuring: throws usage_error for a folder,
  /// Error(kEnvironment) naming `flag` where no file can be made.
  void check(const char* flag) const;
  /// Replaces the file (what symbolic links lead to, not the link) by writing beside
  /// it and renaming, or writes to the stream. Throws Error(kEnvironment).
  void write(const std::string& content) const;

 private:
  std::string name_;                ///< as it was typed
  std::optional<std::string> file_;  ///< behind all links; nullopt: a stream
  bool stdout_ = false;
};

}  // namespace gdrperf::app
