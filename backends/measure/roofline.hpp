// Estimates, by the data sheet, what a nest costs on a machine that cannot be asked. The estimate for processors is a roofline. The one for graphics
// processors is that by which their schedules are chosen. The result is always marked as an estimate.
#pragma once
#include "backends/target/target.hpp"
#include "base/term.hpp"
#include "extract/measurer.hpp"

namespace loopegg {

// Estimates one nest as its schedule would run. Latency::measured is false and n is 0.
Latency estimate_latency(const Term& nest, const Target& target);

}  // namespace loopegg
