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
    int n = 0;               // how many repeats are behind the median
    std::string target;      // a row of the target table ("host", "h200")
    bool measured = false;   // false: no device here, estimated
    bool disturbed = false;  // the machine was busy with something else while this was timed
};

// One thing to time: a whole NEST term ((nest STMT SCHED) or (restore HOW NEST)) on a target by name.
struct Candidate {
    Term nest;
    std::string target;
};

// Either a latency, or why there is none: the candidate does not compile, crashed, ran past its limit, or has a wrong output.
struct Measured {
    std::optional<Latency> latency;
    std::string why;        // empty when there is a latency
    double seconds = 0;     // what measuring cost, also when the answer comes from the store, so that a repeated run spends its budget alike
    bool own = false;       // without a latency: the candidate is at fault (it does not compile, or its result is wrong); else the machine may be
    std::string machine{};  // the board that timed the candidate, if one did: "board pi@10.0.0.7, governor ondemand, 51.2 °C"
};

// Whether a clock can give these times. Code that reads strangers' files or stores checks this.
inline bool is_valid_latency(double ms, double spread, int repeats) { return ms > 0 && ms < 1e9 && spread >= 0 && spread < 1e9 && repeats >= 0; }

class Measurer {
public:
    virtual ~Measurer() = default;

    // Gives one answer for each candidate, in order. A candidate that fails does not affect the others. Throws UserError where nothing can be measured at
    // all (a full disk, no worker), because going on would only fail again.
    virtual std::vector<Measured> measure(std::span<const Candidate> candidates) = 0;
};

}  // namespace loopegg
