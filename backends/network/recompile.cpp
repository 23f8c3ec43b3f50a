#include "backends/network/recompile.hpp"

#include <fmt/format.h>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/network/network_source.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"

namespace loopegg {
namespace fs = std::filesystem;

CompiledNetwork recompile(const fs::path& from, const Graph& graph, const Weights& weights, const fs::path& to, Progress* progress) {
    const JsonView manifest = read_json(read_source(from / "network.json", 1 << 30));
    const auto said = manifest.find("schedules");
    if (!said)
        throw UserError(Diagnostic{from.string() + " does not hold the schedules of its network", {}, "run 'loopegg optimize' or 'loopegg compile' anew"});
    Schedules schedules;
    for (const auto& [site, schedule] : said->members()) schedules[site] = parse_term(schedule.text());
    const Target target = find_target(manifest.at("target").text());

    ScratchFile name(".kernels");
    const ScratchFolder shelf(name.path());
    fs::create_directories(shelf.path());
    const KernelShelf kernels(shelf.path());
    std::size_t index = 0;
    for (const JsonView& kernel : manifest.at("kernels").items()) {
        const fs::path code = from / kernel_file(index++, target);
        if (fs::exists(code)) kernels.put(parse_term(kernel.at("nest").text()), target, read_file(code));
    }
    KernelCache cache{kernels};
    CompiledNetwork made = compile_network({graph, weights, schedules}, target, to, progress, &cache);
    const JsonView fresh = read_json(read_source(to / "network.json", 1 << 30));
    if (fresh.at("steps").value() != manifest.at("steps").value() || fresh.at("kernels").value() != manifest.at("kernels").value())
        throw UserError(Diagnostic{
            from.string() + " was compiled by another version of loopegg, which makes other steps of this network", {}, "run 'loopegg optimize' anew"});
    return made;
}

}  // namespace loopegg
