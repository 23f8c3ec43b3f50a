// How figures are put into words and into HTML, the same way on every page and in every table.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "extract/measurer.hpp"

namespace loopegg {

std::string escape_html(std::string_view text);  // safe in content and in quoted attributes
std::string escape_csv(std::string_view text);   // quoted when it must be

std::string human_ms(double ms);                                                           // "4.93 ms", "812 µs", "1.20 s"
std::string human_count(double value);                                                     // "21.3 M", "512"
std::string human_percent(double share);                                                   // 0.253 -> "25%", 0.004 -> "0.4%"
std::string times(double ratio);                                                           // "1.52×"
std::string human_change(double after, double before);                                     // "38% fewer", "the same", "4% more"
std::string human_shape(const std::vector<std::int64_t>& shape);                           // "1×64×32×32"
std::string plural(std::int64_t count, std::string_view one, std::string_view many = {});  // "1 site", "3 sites"

// "8.03 ms ± 0.21 (n = 25)", "8.03 ms (estimated)", with "disturbed" where that is so.
std::string describe(const Latency& latency);

}  // namespace loopegg
