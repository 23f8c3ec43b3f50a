// The question that extraction asks of a machine: how long does this loop nest take?
//
// extract/ never sees a device, and knows this interface alone. backends/ answers it with TVM, and tests answer it with arithmetic.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/term.hpp"

namespace loopegg {

// A time with its spread. An estimate says so wherever it is shown.
struct Latency {
    double median_ms = 0;
    double iqr_ms = 0;       // the distance between the quartiles
    int n = 0;               // how many repeats stand behind the median
    std::string target;      // a row of the target table ("host", "h200")
    bool measured = false;   // false: no device here, estimated
    bool disturbed = false;  // the machine was busy with something else while this was timed
};

// One thing to time: a whole NEST term (design: (nest STMT SCHED) or (restore HOW NEST)) on a target by name.
struct Candidate {
    Term nest;
    std::string target;
};

// Either a latency, or why there is none: does not compile, crashed, ran past its limit, wrong output.
struct Measured {
    std::optional<Latency> latency;
    std::string why;        // empty when there is a latency
    double seconds = 0;     // what asking the machine cost, also when the answer is remembered, so that budgets end where they ended before
    bool own = false;       // without a latency: the compiler refuses it or its result is wrong, today and always; else the machine may be at fault
    std::string machine{};  // where it was timed, when that was a board: "board pi@10.0.0.7, governor ondemand, 51.2 °C"
};

// Whether a clock can give these times. Readers of strangers' files and of stores ask this.
inline bool is_a_time(double ms, double spread, int repeats) { return ms > 0 && ms < 1e9 && spread >= 0 && spread < 1e9 && repeats >= 0; }

class Measurer {
public:
    virtual ~Measurer() = default;

    // Gives one answer for each candidate, in order. A candidate that fails costs itself alone. Throws UserError where nothing can be measured at
    // all (a full disk, no worker), because going on would only fail again.
    virtual std::vector<Measured> measure(std::span<const Candidate> candidates) = 0;
};

}  // namespace loopegg
