#include "base/fault.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <vector>

#include "base/text.hpp"

namespace loopegg {
namespace {

struct Order {
    long at = 0;  // 0: no fault
    FaultHow how = FaultHow::none;
    std::string flag;
    std::string command;
    std::string log;
};

std::atomic<const Order*> order{nullptr};
std::atomic<long> places{0};

const char* word(FaultPlace place) {
    switch (place) {
        case FaultPlace::write: return "write";
        case FaultPlace::store: return "store";
        case FaultPlace::worker: return "worker";
        case FaultPlace::compile: return "compile";
        case FaultPlace::measure: return "measure";
        case FaultPlace::guard: return "guard";
    }
    return "";
}

void note(const Order& o, FaultPlace place) {
    const int file = ::open(o.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) return;
    const std::string line = o.command + " " + word(place) + " " + std::to_string(::getpid()) + "\n";
    if (::write(file, line.data(), line.size()) < 0) {
    }  // a log of a test: no message is needed
    ::close(file);
}

bool first_time(const Order& o) {
    const int file = ::open(o.flag.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0) ::close(file);
    return file >= 0;
}

}  // namespace

void name_process_for_faults(const std::string& command) {
    if (!std::getenv("LOOPEGG_FAULTS")) return;
    auto* o = new Order;  // lives as long as the process: threads may come to a place at its very end
    o->command = command;
    if (const char* log = std::getenv("LOOPEGG_FAULT_LOG")) o->log = log;
    if (const char* text = std::getenv("LOOPEGG_FAULT")) {
        const std::vector<std::string> words = split(text, ':');
        if (words.size() == 4 && words[0] == command)
            o->at = std::atol(words[1].c_str()), o->how = words[2] == "cut" ? FaultHow::cut : FaultHow::fail, o->flag = words[3];
    }
    order = o;
}

FaultHow ask_fault(FaultPlace place) {
    const Order* o = order;
    if (!o) return FaultHow::none;
    const long number = ++places;
    if (!o->log.empty()) note(*o, place);
    return number == o->at && first_time(*o) ? o->how : FaultHow::none;
}

void cut_now() {
    ::raise(SIGKILL);
    ::_exit(137);
}

bool fault_here(FaultPlace place) {
    const FaultHow how = ask_fault(place);
    if (how == FaultHow::cut) cut_now();
    return how == FaultHow::fail;
}

}  // namespace loopegg
