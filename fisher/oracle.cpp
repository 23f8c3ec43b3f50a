#include "fisher/oracle.hpp"

#include <chrono>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "fisher/evidence.hpp"
#include "graph/flops.hpp"
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
        if (found != by_name.end() && found->second->attrs == node.attrs && found->second->domain == node.domain && found->second->input_shapes == node.input_shapes) continue;
        std::string what = node.domain.whole() ? "" : to_string(node.domain);
        if (node.op == "conv2d" && (found == by_name.end() || found->second->integer("groups") != node.integer("groups"))) what = fmt::format("groups {}", node.integer("groups")) + (what.empty() ? "" : ", " + what);
        if (what.empty()) what = "weight " + to_string(parameters_of(node).empty() ? node.shape : parameters_of(node)[0].shape);
        changed[node.name] = what;
    }
    return changed;
}

// parameters(node) visits every weight of a restricted node; candidates share most of theirs.
std::int64_t counted_parameters(const Graph& graph) {
    static std::map<std::string, std::int64_t> known;
    if (known.size() > 100000) known.clear();
    std::int64_t count = 0;
    for (const Node& node : graph.nodes) {
        if (node.domain.whole()) {
            count += parameters(node);
            continue;
        }
        std::string key = node.op + to_string(node.domain) + to_string(node.shape);
        for (const Parameter& p : parameters_of(node)) key += "," + to_string(p.shape);
        auto [place, fresh] = known.try_emplace(std::move(key), 0);
        if (fresh) place->second = parameters(node);
        count += place->second;
    }
    return count;
}

class GuardOracle final : public Oracle {
public:
    explicit GuardOracle(OracleOptions options)
        : options_(std::move(options)), guard_(find_guard(options_.guard)), capacity_(options_.capacity.value_or(guard_.capacity)), store_(options_.store) {
        if (options_.seeds < 1) throw UsageError("--seeds must be at least 1");
        if (options_.batch < 1) throw UserError("an empty batch scores nothing: give at least one image");
        if (!std::isfinite(capacity_)) throw UsageError("--capacity must be a finite number");
    }

    std::vector<Verdict> judge(const Graph& original, std::span<const Graph> variants) override {
        auto began = Clock::now();
        prepare(original);
        std::vector<Verdict> verdicts;
        std::vector<std::pair<Hash128, nlohmann::json>> fresh;
        auto flush = [&] { store_.append(fresh), fresh.clear(); };
        for (const Graph& variant : variants) {
            Hash128 key = Hasher().add(base_key_).add(graph_key(variant)).finish();
            auto known = store_.find(key);
            if (known) ++counts_.from_store;
            nlohmann::json evidence = known ? *known : judge_one(original, variant);
            if (!known) {
                fresh.emplace_back(key, evidence);
                if (fresh.size() >= 16) flush();   // what was judged survives an interruption
            }
            verdicts.push_back({evidence.at("allowed").get<bool>(), evidence.at("why").get<std::string>(), std::move(evidence)});
            ++counts_.asked;
            counts_.allowed += verdicts.back().allowed;
            if (options_.progress) options_.progress(static_cast<std::int64_t>(verdicts.size()), static_cast<std::int64_t>(variants.size()));
        }
        flush();
        counts_.seconds += seconds_since(began);
        return verdicts;
    }

    OracleCounts counts() const override { return counts_; }
    std::vector<nlohmann::json> evidence() override { return store_.all(); }

private:
    void prepare(const Graph& original) {
        Hash128 key = graph_key(original);
        if (scorer_ && key == original_key_) return;
        bool trainable = false;
        for (const Node& node : original.nodes) trainable |= node.op == "conv2d" || node.op == "linear";
        if (!trainable) throw UserError(fmt::format("'{}' has no trainable site (no conv2d, no linear): there is no capacity to measure", original.name));
        BatchSet data = load_batches(options_.data, original, options_.batch, options_.seeds, options_.seed);
        source_ = data.source;
        Hasher images;
        for (const Batch& b : data.batches) {
            images.add(std::string_view(reinterpret_cast<const char*>(b.images.data()), b.images.size() * sizeof(float)));
            for (std::int64_t label : b.labels) images.add(label);
        }
        data_key_ = images.finish();
        Hasher base;
        base.add(oracle_version).add(guard_.name).add(capacity_).add(key).add(data_key_).add(options_.seeds).add(options_.seed).add(static_cast<int>(options_.early_stop));
        if (options_.trained)
            for (const auto& [name, tensor] : *options_.trained) base.add(name).add(std::string_view(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float)));
        base_key_ = base.finish();
        scorer_ = options_.scorer ? options_.scorer : torch_room().scorer(original, options_.trained, std::move(data.batches), {options_.threads, false, false});
        original_key_ = key;
        originals_.clear();
        size_ = {{}, static_cast<double>(parameters(original)), static_cast<double>(macs(original))};
    }

    const Measurement& original_on(const Graph& original, int k) {
        while (originals_.size() <= static_cast<std::size_t>(k)) {
            Measurement m = size_;
            m.raw = scorer_->score(original, options_.seed + originals_.size(), guard_.wanted);
            if (guard_.wanted.fisher && !(fisher_total(m.raw) > 0 && std::isfinite(fisher_total(m.raw))))
                throw UserError(fmt::format("the original network '{}' scores {} on this data: nothing can be compared with it", original.name, fisher_total(m.raw)));
            originals_.push_back(std::move(m));
        }
        return originals_[static_cast<std::size_t>(k)];
    }

    nlohmann::json judge_one(const Graph& original, const Graph& variant) {
        auto began = Clock::now();
        std::vector<double> kept;
        nlohmann::json seeds = nlohmann::json::array();
        ScoredPair pair{{}, {{}, static_cast<double>(counted_parameters(variant)), static_cast<double>(macs(variant))}};
        std::string broken;
        for (int k = 0; k < options_.seeds && broken.empty(); ++k) {
            pair.original = original_on(original, k);
            pair.variant.raw = scorer_->score(variant, options_.seed + static_cast<std::uint64_t>(k), guard_.wanted);
            ++counts_.passes;
            Kept value = guard_.kept(pair);
            nlohmann::json parts = value.parts;
            if (!std::isfinite(value.value) || !std::isfinite(fisher_total(pair.variant.raw))) broken = fmt::format("seed {} gives no finite score", k);
            else kept.push_back(value.value), parts["kept"] = value.value;
            seeds.push_back(std::move(parts));
            if (options_.early_stop && decided(kept)) break;
        }
        nlohmann::json evidence{{"oracle", guard_.name}, {"version", oracle_version}, {"network", original.name}, {"network_key", original_key_.hex()}, {"variant_key", graph_key(variant).hex()},
                                {"sites", changes(original, variant)}, {"data", source_}, {"data_key", data_key_.hex()}, {"batch", options_.batch}, {"seed", options_.seed},
                                {"seeds", seeds}, {"capacity", capacity_}, {"parameters", pair.variant.params}, {"macs", pair.variant.macs}};
        if (!broken.empty()) {
            evidence["allowed"] = false;
            evidence["why"] = broken + ": never admitted";
        } else {
            Interval interval = interval_of(kept);
            bool allowed = interval.mean >= capacity_;
            evidence["kept"] = interval.mean;
            if (std::isfinite(interval.half)) evidence["low"] = interval.low(), evidence["high"] = interval.high();
            evidence["margin"] = interval.mean - capacity_;
            evidence["allowed"] = allowed;
            evidence["why"] = fmt::format("keeps {:.3f} of the capacity, {} {:.3f}", interval.mean, allowed ? "at least" : "below", capacity_);
        }
        evidence["seconds"] = seconds_since(began);
        return evidence;
    }

    // More seeds are not worth their time: the mean is further from the threshold than seeds are seen to spread (80%).
    bool decided(const std::vector<double>& kept) const {
        if (kept.empty()) return false;
        double mean = interval_of(kept).mean;
        return std::abs(mean - capacity_) > 1.282 * guard_.spread * std::max(0.5, std::abs(mean)) / std::sqrt(static_cast<double>(kept.size()));
    }

    OracleOptions options_;
    const CapacityGuard& guard_;
    double capacity_;
    EvidenceStore store_;
    std::shared_ptr<Scorer> scorer_;
    std::string source_;
    Hash128 original_key_{}, data_key_{}, base_key_{};
    std::vector<Measurement> originals_;   // by seed
    Measurement size_;
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
