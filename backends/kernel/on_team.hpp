// While it lives, the parallel loops of kernels that this thread calls run on this process's team of threads.
#pragma once
#include <cstdint>

namespace loopegg {

class OnTeam {
public:
    explicit OnTeam(std::int64_t turns = 0);  // of the kernel's parallel loops; 0: not known
    ~OnTeam();
    OnTeam(const OnTeam&) = delete;
    OnTeam& operator=(const OnTeam&) = delete;

private:
    bool inside_ = false;  // false: another thread has the team, and loops run on this thread alone
};

}  // namespace loopegg
