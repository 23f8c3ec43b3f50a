#include "optimize/answer/about_run.hpp"

namespace loopegg {

std::map<std::string, std::string> about_run(const nlohmann::json& result, const std::string& plan) {
    std::map<std::string, std::string> about{{"loopegg.version", result.at("version").get<std::string>()},
                                             {"loopegg.target", result.at("target").get<std::string>()},
                                             {"loopegg.returned", result.at("returned").get<std::string>()},
                                             {"loopegg.original", result.at("original").dump()},
                                             {"loopegg.optimized", result.at("optimized").dump()},
                                             {"loopegg.loss", result.at("guard").at("loss").dump()},
                                             {"loopegg.plan", plan}};
    if (result.contains("speedup")) about["loopegg.speedup"] = result.at("speedup").dump();
    return about;
}

}  // namespace loopegg
