#include "optimize/dropped_site.hpp"

namespace loopegg {

nlohmann::json dropped_site(const Site& site) {
    const nlohmann::json none{{"median_ms", 0.0}, {"iqr_ms", 0.0}, {"n", 0}, {"target", ""}, {"measured", true}, {"disturbed", false}};
    return {{"name", site.name},
            {"op", site.op},
            {"shape", site.shape},
            {"statement", to_string(site.statement)},
            {"variant", "dropped"},
            {"effect", "not computed: its branch was dropped"},
            {"sequence", "drop-branch"},
            {"steps", {"drop-branch"}},
            {"original_latency", none},
            {"latency", none},
            {"original_macs", site.macs},
            {"macs", 0},
            {"original_parameters", site.parameters},
            {"parameters", 0}};
}

}  // namespace loopegg
