#include "fisher/oracle.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/fault.hpp"
#include "fisher/evidence.hpp"
#include "graph/flops.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/model_json.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

// The sites that differ, and how.
nlohmann::json changes(const Graph& original, const Graph& variant) {
    std::map<std::string, const Node*> by_name;
    for (const Node& node : original.nodes) by_name[node.name] = &node;
    nlohmann::json changed = nlohmann::json::object();
    for (const Node& node : variant.nodes) {
        if (!is_site(node)) continue;
        auto found = by_name.find(node.name);
        if (found != by_name.end() && found->second->attrs == node.attrs && found->second->domain == node.domain &&
            found->second->input_shapes == node.input_shapes)
            continue;
        std::string what = node.domain.whole() ? "" : to_string(node.domain);
        if (node.op == "conv2d" && (found == by_name.end() || found->second->integer("groups") != node.integer("groups")))
            what = fmt::format("groups {}", node.integer("groups")) + (what.empty() ? "" : ", " + what);
        if (what.empty()) what = "weight " + to_string(parameters_of(node).empty() ? node.shape : parameters_of(node)[0].shape);
        changed[node.name] = what;
    }
    return changed;
}

class GuardOracle final : public Oracle {
public:
    explicit GuardOracle(OracleOptions options)
        : options_(std::move(options)), guard_(find_guard(options_.guard)), capacity_(options_.capacity.value_or(guard_.capacity)), store_(options_.store) {
        if (options_.seeds < 1) throw UsageError("--seeds must be at least 1");
        if (options_.batch < 1) throw UserError("--batch: expected at least 1 image, because an empty batch scores nothing");
        if (!std::isfinite(capacity_)) throw UsageError("--capacity must be a finite number");
        if (options_.taught && !guard_.loss_by_size)
            throw UsageError(
                fmt::format("--trainings: the guard '{}' does not predict points of accuracy, so it cannot be calibrated by training runs", guard_.name));
    }

    // Outputs that nobody reads are no capacity, whether they are computed or not. So networks are judged without them.
    std::vector<Verdict> judge(const Graph& given, std::span<const Graph> variants) override {
        auto began = Clock::now();
        const Graph original = without_unread_outputs(given);
        prepare(original);
        std::vector<Verdict> verdicts;
        for (std::size_t first = 0; first < variants.size(); first += together) {
            std::vector<Graph> some;
            for (const Graph& v : variants.subspan(first, std::min(together, variants.size() - first))) some.push_back(without_unread_outputs(v));
            for (Verdict& v : judge_some(original, some)) {
                ++counts_.asked;
                counts_.allowed += v.allowed;
                verdicts.push_back(std::move(v));
            }
            if (options_.progress) options_.progress(static_cast<std::int64_t>(verdicts.size()), static_cast<std::int64_t>(variants.size()));
        }
        counts_.seconds += seconds_since(began);
        return verdicts;
    }

    std::vector<double> kept_by_size(const Graph& original, std::span<const Graph> variants) override {
        std::vector<double> kept;
        if (!guard_.kept_by_size) return kept;
        const MeasureInput whole = sizes_of(without_unread_outputs(original));
        for (const Graph& v : variants) kept.push_back(kept_by_sizes(whole, sizes_of(without_unread_outputs(v))));
        return kept;
    }

    OracleCounts counts() const override { return counts_; }
    std::vector<nlohmann::json> evidence() override {
        std::vector<nlohmann::json> all;
        for (const Hash128& key : asked_)
            if (auto row = store_.find(key)) all.push_back(std::move(*row));
        return all;
    }

private:
    // What the guard says, as trainings have taught it.
    double kept_by_sizes(const MeasureInput& original, const MeasureInput& variant) const {
        return options_.taught ? kept_at_loss(options_.taught->loss(variant).points) : guard_.kept_by_size(original, variant);
    }
    std::optional<ExpectedLoss> loss_by_sizes(const MeasureInput& original, const MeasureInput& variant) const {
        if (!guard_.loss_by_size) return std::nullopt;
        return options_.taught ? options_.taught->loss(variant) : guard_.loss_by_size(original, variant);
    }
    Kept kept_by_scores(std::span<const ScoredPair> seeds) const {
        Kept kept = guard_.kept(seeds);
        if (!options_.taught) return kept;
        kept.parts["untaught"] = kept.loss->points;
        kept.loss = options_.taught->loss(seeds[0].variant);
        if (std::isfinite(kept.value)) kept.value = kept_at_loss(kept.loss->points);
        return kept;
    }

    void prepare(const Graph& original) {
        Hash128 key = graph_key(original);
        if (scorer_ && key == original_key_) return;
        bool trainable = false;
        for (const Node& node : original.nodes) trainable |= node.op == "conv2d" || node.op == "linear";
        if (!trainable)
            throw UserError(Diagnostic{fmt::format("'{}' has no conv2d and no linear layer, so there is no capacity to measure", original.name),
                                       {},
                                       "'--rules exact' makes a network faster without a guard"});
        BatchSet data = load_batches(options_.data, original, options_.batch, options_.seeds, options_.seed);
        source_ = data.source;
        Hasher images;
        for (const Batch& b : data.batches) {
            images.add(std::string_view(reinterpret_cast<const char*>(b.images.data()), b.images.size() * sizeof(float)));
            for (std::int64_t label : b.labels) images.add(label);
        }
        data_key_ = images.finish();
        Hasher base;
        base.add(oracle_version)
            .add(guard_.name)
            .add(capacity_)
            .add(key)
            .add(data_key_)
            .add(options_.seeds)
            .add(options_.seed)
            .add(static_cast<int>(options_.early_stop))
            .add(static_cast<int>(options_.double_precision));
        if (options_.taught) base.add(options_.taught->key());
        if (options_.trained)
            for (const auto& [name, tensor] : *options_.trained)
                base.add(name).add(std::string_view(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float)));
        base_key_ = base.finish();
        scorer_ = options_.scorer
                      ? options_.scorer
                      : torch_room().scorer(original, options_.trained, std::move(data.batches), {options_.threads, options_.double_precision, false});
        original_key_ = key;
        originals_.clear();
        size_ = sizes_of(original);
    }

    const MeasureInput& original_on(const Graph& original, int k) {
        while (originals_.size() <= static_cast<std::size_t>(k)) {
            MeasureInput m = size_;
            m.raw = scorer_->score(original, options_.seed + originals_.size(), guard_.wanted);
            if (guard_.wanted.fisher && !(fisher_total(m.raw) > 0 && std::isfinite(fisher_total(m.raw))))
                throw UserError(Diagnostic{
                    fmt::format("the original network '{}' scores {} on this data: nothing can be compared with it", original.name, fisher_total(m.raw)),
                    {},
                    "'--rules exact' makes a network faster without a guard"});
            originals_.push_back(std::move(m));
        }
        return originals_[static_cast<std::size_t>(k)];
    }

    // One variant while it is asked about.
    struct AskedVariant {
        const Graph* variant;
        Hash128 key, variant_key;
        MeasureInput size{};
        std::vector<ScoredPair> seen{};  // by seed
        Kept kept{};                     // from all seeds
        std::string broken{};
        bool open = true;
        std::optional<double> by_size{};  // an upper bound of what is kept, where the guard can tell one from sizes
    };

    // So many variants are scored together, seed by seed, and stored together, so that verdicts survive an interruption.
    static constexpr std::size_t together = 32;

    std::vector<Verdict> judge_some(const Graph& original, std::span<const Graph> variants) {
        auto began = Clock::now();
        std::vector<nlohmann::json> evidence(variants.size());
        std::vector<AskedVariant> cases;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < variants.size(); ++i) {
            Hash128 own = graph_key(variants[i]), key = Hasher().add(base_key_).add(own).finish();
            if (known_.insert(key.hex()).second) asked_.push_back(key);
            if (auto known = store_.find(key)) {
                ++counts_.from_store;
                evidence[i] = std::move(*known);
                continue;
            }
            auto twin = std::find_if(cases.begin(), cases.end(), [&](const AskedVariant& c) { return c.key == key; });
            places.resize(variants.size(), 0);
            places[i] = static_cast<std::size_t>(twin - cases.begin());
            if (twin != cases.end()) continue;
            cases.push_back({&variants[i], key, own});
            weigh(cases.back());
        }
        for (int k = 0; k < options_.seeds; ++k) ask(original, cases, k);
        std::vector<std::pair<Hash128, nlohmann::json>> fresh;
        double seconds = seconds_since(began) / static_cast<double>(std::max<std::size_t>(1, cases.size()));
        for (const AskedVariant& c : cases) {
            fresh.emplace_back(c.key, evidence_of(original, c));
            fresh.back().second["seconds"] = seconds;  // the variant's share of the time of all that were asked together
        }
        store_.append(fresh);
        std::vector<Verdict> verdicts;
        for (std::size_t i = 0; i < variants.size(); ++i) {
            if (evidence[i].is_null()) evidence[i] = fresh[places[i]].second;
            verdicts.push_back({evidence[i].at("allowed").get<bool>(), evidence[i].at("why").get<std::string>(), std::move(evidence[i])});
        }
        return verdicts;
    }

    // A variant that sizes alone refuse needs no run.
    void weigh(AskedVariant& c) const {
        c.size = sizes_of(*c.variant);
        if (guard_.kept_by_size) c.by_size = kept_by_sizes(size_, c.size);
        c.open = !options_.early_stop || !c.by_size || *c.by_size >= capacity_;
    }

    // Asks one more seed for every case that is still open.
    void ask(const Graph& original, std::vector<AskedVariant>& cases, int k) {
        std::vector<ScoreQuestion> questions;
        std::vector<AskedVariant*> asked;
        for (AskedVariant& c : cases)
            if (c.open) questions.push_back({c.variant, options_.seed + static_cast<std::uint64_t>(k)}), asked.push_back(&c);
        if (asked.empty()) return;
        if (fault_here(FaultPlace::guard)) throw UserError("the guard cannot score: out of memory");
        const MeasureInput& base = original_on(original, k);
        std::vector<RawScores> scores = scorer_->score(questions, guard_.wanted);
        counts_.passes += static_cast<std::int64_t>(scores.size());
        for (std::size_t i = 0; i < asked.size(); ++i) {
            AskedVariant& c = *asked[i];
            c.seen.push_back({base, c.size});
            c.seen.back().variant.raw = std::move(scores[i]);
            c.kept = kept_by_scores(c.seen);
            if (!std::isfinite(c.kept.value) || !std::isfinite(fisher_total(c.seen.back().variant.raw)))
                c.broken = fmt::format("seed {} gives no finite score", k);
            c.open = c.broken.empty() && !(options_.early_stop && decided(c.kept.value, c.seen.size()));
        }
    }

    // The interval of `kept` by leaving one seed out at a time (Student's t, 90%).
    double half_width(const AskedVariant& c) const {
        std::size_t n = c.seen.size();
        if (n < 2) return std::numeric_limits<double>::infinity();
        std::vector<double> without;
        for (std::size_t i = 0; i < n; ++i) {
            std::vector<ScoredPair> rest = c.seen;
            rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
            without.push_back(kept_by_scores(rest).value);
        }
        return interval_of(without).half * static_cast<double>(n - 1);  // each value leaves out one seed, so the interval is n - 1 times too small
    }

    nlohmann::json evidence_of(const Graph& original, const AskedVariant& c) const {
        nlohmann::json seeds = nlohmann::json::array();
        for (const ScoredPair& pair : c.seen) {
            Kept one = kept_by_scores({&pair, 1});
            seeds.push_back(std::move(one.parts));
            if (std::isfinite(one.value)) seeds.back()["kept"] = one.value;
        }
        nlohmann::json evidence{{"oracle", guard_.name},
                                {"version", oracle_version},
                                {"network", original.name},
                                {"network_key", original_key_.hex()},
                                {"variant_key", c.variant_key.hex()},
                                {"sites", changes(original, *c.variant)},
                                {"data", source_},
                                {"data_key", data_key_.hex()},
                                {"batch", options_.batch},
                                {"seed", options_.seed},
                                {"precision", options_.double_precision ? "double" : "single"},
                                {"seeds", seeds},
                                {"parts", c.kept.parts},
                                {"capacity", capacity_},
                                {"parameters", c.size.params},
                                {"macs", c.size.macs}};
        if (!c.broken.empty()) {
            evidence["allowed"] = false;
            evidence["why"] = c.broken + ": never admitted";
            return evidence;
        }
        const bool run = !c.seen.empty();
        const double kept = run ? c.kept.value : *c.by_size, half = half_width(c);
        const bool allowed = kept >= capacity_;
        evidence["kept"] = kept;
        if (c.by_size) evidence["kept_by_size"] = *c.by_size;
        if (std::isfinite(half)) evidence["low"] = kept - half, evidence["high"] = kept + half;
        evidence["margin"] = kept - capacity_;
        evidence["allowed"] = allowed;
        evidence["why"] =
            fmt::format("the network keeps {}{:.3f} of the capacity, and {:.3f} must be kept", run ? "" : "by its sizes no more than ", kept, capacity_);
        if (options_.taught) evidence["taught"] = {{"networks", options_.taught->networks()}, {"key", options_.taught->key().hex()}};
        if (const std::optional<ExpectedLoss> loss = run ? c.kept.loss : loss_by_sizes(size_, c.size)) {
            evidence["loss"] = {{"points", loss->points}, {"low", loss->low}, {"high", loss->high}};
            if (!loss->unlike.empty()) evidence["loss"]["unlike"] = loss->unlike;
            const std::string taught = options_.taught ? fmt::format(", calibrated on {} trained networks", options_.taught->networks()) : "";
            evidence["why"] = fmt::format("the network is expected to lose {:.2f} points ({:.2f} to {:.2f}){}, and may lose {:.2f}", loss->points, loss->low,
                                          loss->high, taught, loss_at_kept(capacity_));
        }
        return evidence;
    }

    // Whether more seeds are not worth their time: `kept` is further from the threshold than seeds are known to spread (80%).
    bool decided(double kept, std::size_t seeds) const {
        return std::abs(kept - capacity_) > 1.282 * guard_.spread * std::max(0.5, std::abs(kept)) / std::sqrt(static_cast<double>(seeds));
    }

    OracleOptions options_;
    const CapacityGuard& guard_;
    double capacity_;
    EvidenceStore store_;
    std::vector<Hash128> asked_;             // keys, in order
    std::unordered_set<std::string> known_;  // the same keys
    std::shared_ptr<Scorer> scorer_;
    std::string source_;
    Hash128 original_key_{}, data_key_{}, base_key_{};
    std::vector<MeasureInput> originals_;  // by seed
    MeasureInput size_;
    OracleCounts counts_;
};

}  // namespace

Hash128 graph_key(const Graph& graph) {
    Graph plain = graph;
    plain.name.clear(), plain.weights_file.clear();
    return hash_of(write_model(plain));
}

std::unique_ptr<Oracle> make_oracle(OracleOptions options) { return std::make_unique<GuardOracle>(std::move(options)); }

}  // namespace loopegg
