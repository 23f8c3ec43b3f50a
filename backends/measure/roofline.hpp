// What a nest would cost on a machine that cannot be asked, by its data sheet. For processors it is a roofline, and for graphics processors the estimate
// that their schedules are chosen by. The result is always marked as an estimate.
#pragma once
#include "backends/target/target.hpp"
#include "base/term.hpp"
#include "extract/measurer.hpp"

namespace loopegg {

// Estimates one nest as its schedule would run. Latency::measured is false and n is 0.
Latency estimate_latency(const Term& nest, const Target& target);

}  // namespace loopegg
