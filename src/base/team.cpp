#include "base/team.hpp"

#include <algorithm>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace loopegg {

std::size_t processors() { return std::max(1u, std::thread::hardware_concurrency()); }

void run_together(std::size_t members, const std::function<void(std::size_t)>& work) {
    if (members == 0) return;
    std::vector<std::exception_ptr> thrown(members);
    const auto member = [&](std::size_t m) {
        try {
            work(m);
        } catch (...) {
            thrown[m] = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> threads;  // joined however this block is left
        threads.reserve(members - 1);
        try {
            while (threads.size() + 1 < members) threads.emplace_back(member, threads.size() + 1);
        } catch (const std::system_error&) {  // a limit of processes, or no memory for a stack
        }
        member(0);
        for (std::size_t m = threads.size() + 1; m < members; ++m) member(m);
    }
    for (const std::exception_ptr& e : thrown)
        if (e) std::rethrow_exception(e);
}

}  // namespace loopegg
