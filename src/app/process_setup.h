#pragma once

namespace gdrperf::app {

/// Prepares this process: a reader that has gone and
/// a limit on the size of files are errors of the write and no signals, and the
/// stack is large enough. Throws Error(kEnvironment).
void set_up_process();

/// Ends the process as any filter does (SIGPIPE, exit code 141 in a shell) when
/// standard output is a pipe that nobody reads any more: for where writing to it
/// failed, after what goes to files has been written.
void end_if_reader_gone();

/// Since this process was started, in seconds; 0 where the kernel does not tell.
double process_age_s();

}  // namespace gdrperf::app
