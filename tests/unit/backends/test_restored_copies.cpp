#include <catch2/catch.hpp>

#include <map>

#include "backends/lower/restored_copies.hpp"
#include "graph/domain_sets.hpp"

using namespace loopegg;

namespace {

const std::vector<Axis> axes{{"co", 12, false}, {"oh", 6, false}, {"ci", 4, true}};

Domain domain(const std::vector<std::vector<std::string>>& parts) {
    Domain d;
    d.restore = Restore::repeat;
    for (const auto& conditions : parts) {
        d.parts.emplace_back();
        for (const std::string& c : conditions) REQUIRE(add_condition(d.parts.back(), c) == "");
    }
    return d;
}

// Every output is written once, and from where output_sources says; elements that nothing computes write nothing.
void check(const Domain& d) {
    CAPTURE(to_string(d));
    const std::vector<std::int64_t> sources = output_sources(d, axes);
    const RestoredCopies r = restored_copies(d, axes);
    std::map<std::int64_t, int> written;
    for (std::int64_t co = 0; co < 12; ++co)
        for (std::int64_t oh = 0; oh < 6; ++oh) {
            const std::int64_t element = co * 6 + oh;
            const bool computed = sources[static_cast<std::size_t>(element)] == element;
            const std::map<std::string, std::int64_t> value{{"co", co}, {"oh", oh}};
            for (const RestoredCopy& c : r.copies) {
                bool holds = true;
                for (const DigitRange& w : c.when) {
                    const std::int64_t digit = w.digit.of(value.at(w.digit.axis));
                    holds = holds && w.lo <= digit && digit < w.hi;
                }
                CHECK((computed || !holds));
                if (c.always) CHECK(holds == computed);
                if (!holds) continue;
                for (std::int64_t k = 0; k < c.count; ++k) {
                    std::map<std::string, std::int64_t> to = value;
                    for (std::size_t a = 0; a < r.axes.size(); ++a) to[r.axes[a].name] += c.offset[a] + k * c.step[a];
                    const std::int64_t at = to["co"] * 6 + to["oh"];
                    REQUIRE((at >= 0 && at < 72));
                    CHECK(sources[static_cast<std::size_t>(at)] == element);
                    ++written[at];
                }
            }
        }
    CHECK(written.size() == 72);
    for (const auto& [at, times] : written) CHECK(times == 1);
}

}  // namespace

TEST_CASE("copies of computed outputs are output_sources turned round", "[unit]") {
    check(domain({{"0 <= co%12 < 6"}}));
    check(domain({{"0 <= co%12 < 1"}}));
    check(domain({{"2 <= co%12 < 7"}}));
    check(domain({{"0 <= oh%2 < 1"}}));
    check(domain({{"0 <= oh%2 < 1", "0 <= co%12 < 4"}}));
    check(domain({{"1 <= co/3%4 < 3", "0 <= ci%4 < 2"}}));
    check(domain({{"0 <= co%12 < 3"}, {"6 <= co%12 < 12"}}));
    check(domain({{"0 <= co%12 < 3", "0 <= oh%2 < 1"}, {"6 <= co%12 < 12"}}));
    CHECK(restored_copies(domain({{"0 <= co%12 < 1"}}), axes).copies.size() == 2);  // itself, and eleven neighbours in one
}
