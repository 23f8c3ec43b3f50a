// Work that several threads share, on a system that may have no more threads.
//
//   std::atomic<std::size_t> next{0};
//   run_together(4, [&](std::size_t) {
//       for (std::size_t i; (i = next++) < files.size();) read(files[i]);
//   });
#pragma once
#include <cstddef>
#include <functional>

namespace loopegg {

// Calls work(0) to work(members - 1) side by side, work(0) in the calling thread. Where the system refuses a thread, the calling thread does that member's
// work afterwards. Returns when all have ended, and throws again what the first of them threw.
void run_together(std::size_t members, const std::function<void(std::size_t)>& work);

std::size_t processors();  // as many members as this machine can run at once, at least 1

}  // namespace loopegg
