#include "optimize/run/rounds.hpp"

#include <fmt/format.h>

#include "backends/network/bundle.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

// All rounds of a folder belong to one model and one target, because times of another network would be taken for its times.
void require_same(const fs::path& file, const std::string& model, const std::string& target) {
    const JsonView known = read_json(read_source(file));
    const std::string of = known.at("model").text(), on = known.at("target").text();
    if (of == model && on == target) return;
    throw UserError(Diagnostic{
        fmt::format("the rounds in '{}' are of a search for {} on {}, and this one is for {} on {}", file.parent_path().string(), of, on, model, target),
        {},
        "choose another --out, or remove that folder: times that came back stay in the store"});
}

fs::path round(const fs::path& folder, int number) { return folder / std::to_string(number); }

int rounds_in(const fs::path& folder) {
    std::error_code none;
    int all = 0;
    while (fs::exists(round(folder, all + 1) / "index.json", none)) ++all;
    return all;
}

std::size_t programs_of(const fs::path& bundle) { return read_json(read_source(bundle / "index.json")).at("programs").items().size(); }

}  // namespace

Rounds::Rounds(fs::path folder, std::string model, Target target, RoundLimits limits)
    : folder_(std::move(folder)), model_(std::move(model)), target_(std::move(target)), limits_(limits) {
    std::error_code none;
    fs::remove_all(folder_ / ".writing", none);  // what a killed run left
    if (const fs::path file = folder_ / "search.json"; fs::exists(file, none)) require_same(file, model_, target_.name);
    written_ = rounds_in(folder_);
}

void Rounds::take_in(const StoreAddress& store) {
    std::error_code none;
    failed_.clear(), done_ = 0;
    for (int i = 1; i <= written_; ++i) {
        if (!fs::exists(round(folder_, i) / "results.txt", none)) continue;
        done_ = i;
        for (const BundleResult& r : import_bundle(round(folder_, i), store))
            if (!r.right) failed_[r.key] = r.measured.why;
    }
}

std::optional<fs::path> unanswered_round(const fs::path& folder) {
    std::error_code none;
    const int last = rounds_in(folder);
    if (last == 0) return {};
    const fs::path bundle = round(folder, last);
    if (fs::exists(bundle / "results.txt", none) && read_results(bundle).size() == programs_of(bundle)) return {};
    return bundle;
}

nlohmann::json Rounds::next(const RoundMeasurer& measurer, Progress& progress) {
    nlohmann::json status{{"done", done_},
                          {"max", limits_.rounds},
                          {"measured", measurer.counts().measured},
                          {"estimated", measurer.counts().estimated},
                          {"failed", measurer.counts().failed},
                          {"waiting", nullptr}};
    const auto waiting = [&](int number) {
        status["waiting"] = {{"round", number}, {"folder", round(folder_, number).string()}, {"programs", programs_of(round(folder_, number))}};
        return status;
    };
    if (written_ > done_) return waiting(written_);
    if (written_ >= limits_.rounds) return status;
    const bool last = written_ + 1 == limits_.rounds;
    RoundMeasurer::Pending wanted = measurer.wanted(last ? 0 : static_cast<std::size_t>(limits_.programs));
    if (last) std::erase_if(wanted.networks, [](const RoundMeasurer::WantedNetwork& n) { return n.use != RoundMeasurer::Use::last; });
    if (wanted.empty()) return status;
    std::vector<ScheduledNetwork> networks;
    for (const RoundMeasurer::WantedNetwork& n : wanted.networks) networks.push_back({n.graph, n.weights, n.schedules});
    const fs::path writing = folder_ / ".writing";
    BundleOptions options;
    options.sources = false;
    options.progress = [&](std::size_t done, std::size_t all) {
        progress.advance(static_cast<std::int64_t>(done), fmt::format("compiling {} programs of round {}", all, written_ + 1));
    };
    fs::create_directories(folder_);
    write_file(folder_ / "search.json", nlohmann::json{{"model", model_}, {"target", target_.name}}.dump(1) + "\n");
    const BundleReport report = write_bundle(wanted.nests, networks, target_, writing, options);
    for (const std::string& why : report.left_out) progress.note("left out: " + why.substr(0, 300));
    if (report.programs == 0) {
        fs::remove_all(writing);
        return status;
    }
    fs::rename(writing, round(folder_, written_ + 1));  // a round is there whole, or not at all
    return waiting(++written_);
}

}  // namespace loopegg
