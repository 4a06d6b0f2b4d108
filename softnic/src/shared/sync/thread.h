#pragma once

#include <functional>

namespace gdrperf::softnic {

/// Starts a detached thread that gets none of the program's signals. 0, or an
/// errno.
int start_thread(const char* name, std::function<void()> body);

/// Lets others run on this CPU, for a thread that waits for one of them. Yielding to a program that computes takes
/// milliseconds, until that has used up its time: where this was seen, the thread sleeps for some microseconds instead,
/// after which it comes first.
void give_cpu_away() noexcept;

}  // namespace gdrperf::softnic
