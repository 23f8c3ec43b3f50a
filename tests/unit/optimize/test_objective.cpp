// What a run may be asked to make better.
#include <catch2/catch.hpp>

#include "backends/measure/sensors.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "optimize/run/objective.hpp"

using namespace loopegg;

TEST_CASE("an objective that nothing here measures is refused with a reason", "[unit][optimize]") {
    const Target host = find_target("host"), nano = find_target("nano");
    CHECK(objective_for("p99", host) == Objective::p99);
    CHECK(objective_for("memory", nano) == Objective::memory);
    CHECK_THROWS_WITH(objective_for("p99", nano), Catch::Contains("needs a target that runs on this machine"));
    CHECK_THROWS_WITH(objective_for("latecny", host), Catch::Contains("did you mean 'latency'"));
    if (Sensors{}.energy().empty()) CHECK_THROWS_WITH(objective_for("energy", host), Catch::Contains("this machine reports no energy"));
}

TEST_CASE("each objective looks at its own figure", "[unit][optimize]") {
    NetworkRecord n;
    n.files.arena_bytes = 1'000'000, n.files.weight_bytes = 2'000'000, n.files.seconds = 4;
    CHECK_FALSE(figure_of(Objective::latency, n));
    CHECK(figure_words(Objective::latency, n) == "no figure");
    n.time.latency = Latency{3, 0.1, 9, "host", true, false};
    n.profile = NetworkProfile{2.5, 9, 100, 400, 50, {}, {}};
    CHECK(figure_of(Objective::latency, n) == 3);
    CHECK(figure_of(Objective::p99, n) == 9);
    CHECK(figure_of(Objective::throughput, n) == -400);
    CHECK_FALSE(figure_of(Objective::energy, n));
    CHECK(figure_words(Objective::memory, n) == "3.00 MB of weights and activations");
    CHECK(figure_of(Objective::compile, n) == 4);
}

TEST_CASE("energy and temperature are read where a machine tells them", "[unit][optimize]") {
    const std::filesystem::path root = std::filesystem::temp_directory_path() / "loopegg-sensors";
    std::filesystem::remove_all(root);
    auto put = [&](const std::string& name, const std::string& text) {
        std::filesystem::create_directories((root / name).parent_path());
        write_file(root / name, text);
    };
    const Sensors sensors{root / "powercap", root / "hwmon", root / "thermal"};
    CHECK(sensors.energy().empty());
    CHECK_FALSE(sensors.temperature());
    CHECK_FALSE(sensors.joules({}, {}));
    put("powercap/intel-rapl:0/energy_uj", "9000000\n"), put("powercap/intel-rapl:0/max_energy_range_uj", "10000000\n"),
        put("powercap/intel-rapl:0/name", "package-0\n");
    put("powercap/intel-rapl:0:0/energy_uj", "5\n"), put("powercap/intel-rapl:0:0/name", "core\n");
    put("powercap/intel-rapl:0:1/energy_uj", "2000000\n"), put("powercap/intel-rapl:0:1/name", "dram\n");
    put("hwmon/hwmon0/name", "coretemp\n"), put("hwmon/hwmon0/temp1_input", "47000\n"), put("hwmon/hwmon0/temp2_input", "51000\n");
    put("hwmon/hwmon1/name", "nvme\n"), put("hwmon/hwmon1/temp1_input", "80000\n");
    const auto before = sensors.energy();
    REQUIRE(before.size() == 2);
    put("powercap/intel-rapl:0/energy_uj", "1000000\n"), put("powercap/intel-rapl:0:1/energy_uj", "2500000\n");
    CHECK(*sensors.joules(before, sensors.energy()) == Approx(2.5));  // 2 J around the counter's end, and half a joule of memory
    CHECK(*sensors.temperature() == 51);
    std::filesystem::remove_all(root);
}
