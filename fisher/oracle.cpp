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
#include "base/text.hpp"
#include "fisher/evidence.hpp"
#include "graph/flops.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/model_json.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

bool same(const MeasureSet& a, const MeasureSet& b) { return a.fisher == b.fisher && a.codes == b.codes && a.weights == b.weights && a.synflow == b.synflow; }

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

class MeasureOracle final : public Oracle {
public:
    explicit MeasureOracle(OracleOptions options) : options_(std::move(options)), store_(options_.store) {
        if (options_.seeds < 1) throw UsageError("--seeds must be at least 1");
        if (options_.batch < 1) throw UserError("--batch: expected at least 1 image, because an empty batch scores nothing");
        for (const MeasureCondition& c : options_.conditions)
            if (!std::isfinite(c.threshold)) throw UsageError(fmt::format("the threshold of {} must be a finite number", c.measure));
        if (options_.calibration) require_loss_condition();
    }

    void calibrate(std::shared_ptr<const CalibratedLoss> calibration) override {
        options_.calibration = std::move(calibration);
        if (options_.calibration) require_loss_condition();
        base_key_ = key_with_calibration();
        asked_.clear(), known_.clear();
    }

    std::vector<Verdict> judge(const Graph& original, std::span<const Graph> variants) override { return judge(original, variants, options_.conditions); }

    // Outputs that nobody reads are no capacity, whether they are computed or not. So networks are judged without them.
    std::vector<Verdict> judge(const Graph& given, std::span<const Graph> variants, std::span<const MeasureCondition> conditions) override {
        auto began = Clock::now();
        const Graph original = without_unread_outputs(given);
        prepare(original);
        take(conditions);
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

    std::vector<Verdict> judge_by_size(const Graph& original, std::span<const Graph> variants, std::span<const MeasureCondition> conditions) override {
        std::vector<Verdict> verdicts;
        const MeasureInput whole = sizes_of(without_unread_outputs(original));
        for (const Graph& v : variants) verdicts.push_back(verdict_by_size(whole, sizes_of(without_unread_outputs(v)), conditions));
        return verdicts;
    }

    std::vector<ExpectedLoss> losses(const Graph& original, std::span<const Graph> variants) override {
        std::vector<ExpectedLoss> all;
        const MeasureInput whole = sizes_of(without_unread_outputs(original));
        for (const Graph& v : variants) all.push_back(loss_of(whole, sizes_of(without_unread_outputs(v))));
        return all;
    }

    OracleCounts counts() const override { return counts_; }
    std::vector<nlohmann::json> evidence() override {
        std::vector<nlohmann::json> all;
        for (const Hash128& key : asked_)
            if (auto row = store_.find(key)) all.push_back(std::move(*row));
        return all;
    }

private:
    void require_loss_condition() const {
        if (!points_asked(options_.conditions))
            throw UsageError(fmt::format("training runs calibrate the expected loss, and no condition in {} uses it", to_string(options_.conditions)));
    }
    Hash128 key_with_calibration() const {
        return options_.calibration ? Hasher().add(uncalibrated_key_).add(options_.calibration->key()).finish() : uncalibrated_key_;
    }

    // A condition while it is asked about.
    struct Asked {
        MeasureCondition condition;
        const ComparedMeasure* measure;
    };

    void take(std::span<const MeasureCondition> conditions) {
        asked_conditions_.clear();
        wanted_ = {false, false, false, false};
        for (const MeasureCondition& c : conditions) {
            asked_conditions_.push_back({c, &compared_measure(c.measure)});
            wanted_ = wanted_ | asked_conditions_.back().measure->wanted;
        }
        Hasher key;
        key.add(base_key_).add(to_string(conditions));
        conditions_key_ = key.finish();
    }
    bool runs_networks() const { return wanted_.fisher || wanted_.codes || wanted_.weights || wanted_.synflow; }

    // What the fit predicts, calibrated on training runs where there are any.
    ExpectedLoss loss_of(const MeasureInput& original, const MeasureInput& variant) const {
        return options_.calibration ? options_.calibration->loss(variant) : expected_loss(original, loss_parts(original, variant));
    }
    std::optional<double> by_size(const Asked& a, const MeasureInput& original, const MeasureInput& variant) const {
        if (a.condition.kind().is_loss) return loss_of(original, variant).points;
        return a.measure->by_size ? std::optional(a.measure->by_size(original, variant)) : std::nullopt;
    }
    Compared by_scores(const Asked& a, std::span<const ScoredPair> seeds) const {
        Compared compared = a.measure->compare(seeds);
        if (!options_.calibration || !a.condition.kind().is_loss) return compared;
        compared.parts["uncalibrated"] = compared.value;
        if (std::isfinite(compared.value)) compared.value = options_.calibration->loss(seeds[0].variant).points;
        return compared;
    }

    nlohmann::json row_of(const MeasureCondition& c, const char* by, double value, const ExpectedLoss& loss) const {
        nlohmann::json row = to_json(c);
        row["by"] = by, row["holds"] = c.holds(value);
        if (std::isfinite(value)) row["value"] = value, row["why"] = in_words(c, value, loss);
        return row;
    }

    // What became of a condition, in words.
    std::string in_words(const MeasureCondition& c, double value, const ExpectedLoss& loss) const {
        if (c.kind().is_loss) {
            const std::string calibrated = options_.calibration ? fmt::format(", calibrated on {} trained networks", options_.calibration->networks()) : "";
            return fmt::format("the network is expected to lose {:.2f} points ({:.2f} to {:.2f}){}, and may lose {:.2f}", loss.points, loss.low, loss.high,
                               calibrated, c.threshold);
        }
        return fmt::format("{} is {:.3f}, and must be {} {:.3f}", c.measure, value, c.at_least ? "at least" : "at most", c.threshold);
    }

    Verdict verdict_by_size(const MeasureInput& original, const MeasureInput& variant, std::span<const MeasureCondition> conditions) const {
        const ExpectedLoss loss = loss_of(original, variant);
        const double points = loss.points;
        Verdict verdict{true,
                        "",
                        {{"by", "sizes"},
                         {"kept", kept_at_loss(points)},
                         {"loss", {{"points", points}, {"low", loss.low}, {"high", loss.high}}},
                         {"measures", nlohmann::json::array()}}};
        for (const MeasureCondition& c : conditions) {
            if (!c.kind().of_sizes) continue;
            const double value = *by_size({c, &compared_measure(c.measure)}, original, variant);
            verdict.allowed &= c.holds(value);
            nlohmann::json row = row_of(c, "sizes", value, {});
            if (c.kind().is_loss) row["why"] = fmt::format("by its sizes it is expected to lose {:.2f} points, and {:.2f} are allowed", points, c.threshold);
            verdict.why += (verdict.why.empty() ? "" : "; ") + row.at("why").get<std::string>();
            verdict.evidence["measures"].push_back(std::move(row));
        }
        if (const auto asked = points_asked(conditions)) verdict.evidence["capacity"] = kept_at_loss(*asked);
        return verdict;
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
            .add(key)
            .add(data_key_)
            .add(options_.seeds)
            .add(options_.seed)
            .add(static_cast<int>(options_.early_stop))
            .add(static_cast<int>(options_.double_precision));
        if (options_.trained)
            for (const auto& [name, tensor] : *options_.trained)
                base.add(name).add(std::string_view(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float)));
        uncalibrated_key_ = base.finish(), base_key_ = key_with_calibration();
        scorer_ = options_.scorer
                      ? options_.scorer
                      : torch_runtime().scorer(original, options_.trained, std::move(data.batches), {options_.threads, options_.double_precision, false});
        original_key_ = key;
        originals_.clear();
        size_ = sizes_of(original);
    }

    const MeasureInput& original_on(const Graph& original, int k) {
        if (!same(wanted_, originals_wanted_)) originals_.clear(), originals_wanted_ = wanted_;
        while (originals_.size() <= static_cast<std::size_t>(k)) {
            MeasureInput m = size_;
            m.raw = scorer_->score(original, options_.seed + originals_.size(), wanted_);
            if (wanted_.fisher && !(fisher_total(m.raw) > 0 && std::isfinite(fisher_total(m.raw))))
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
        std::vector<Compared> said{};    // from all seeds, by condition
        std::string broken{};
        bool open = true;
        std::vector<std::optional<double>> sizes{};  // what sizes say, by condition: the value, or what it never exceeds
    };

    // So many variants are scored together, seed by seed, and stored together, so that verdicts survive an interruption.
    static constexpr std::size_t together = 32;

    std::vector<Verdict> judge_some(const Graph& original, std::span<const Graph> variants) {
        auto began = Clock::now();
        std::vector<nlohmann::json> evidence(variants.size());
        std::vector<AskedVariant> cases;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < variants.size(); ++i) {
            Hash128 own = graph_key(variants[i]), key = Hasher().add(conditions_key_).add(own).finish();
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
        for (int k = 0; k < options_.seeds && runs_networks(); ++k) ask(original, cases, k);
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
        for (const Asked& a : asked_conditions_) {
            c.sizes.push_back(by_size(a, size_, c.size));
            const std::optional<double>& said = c.sizes.back();
            if (options_.early_stop && said && (a.condition.kind().of_sizes || a.condition.at_least) && !a.condition.holds(*said)) c.open = false;
        }
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
        std::vector<RawScores> scores = scorer_->score(questions, wanted_);
        counts_.passes += static_cast<std::int64_t>(scores.size());
        for (std::size_t i = 0; i < asked.size(); ++i) {
            AskedVariant& c = *asked[i];
            c.seen.push_back({base, c.size});
            c.seen.back().variant.raw = std::move(scores[i]);
            compare(c, k);
        }
    }

    void compare(AskedVariant& c, int k) const {
        c.said.clear();
        for (const Asked& a : asked_conditions_) c.said.push_back(by_scores(a, c.seen));
        bool finite = std::isfinite(fisher_total(c.seen.back().variant.raw));
        for (const Compared& said : c.said) finite &= std::isfinite(said.value);
        if (!finite) c.broken = fmt::format("seed {} gives no finite score", k);
        c.open = finite && !(options_.early_stop && decided(c));
    }

    // The interval of a value by leaving one seed out at a time (Student's t, 90%).
    double half_width(const AskedVariant& c, const Asked& a) const {
        std::size_t n = c.seen.size();
        if (n < 2) return std::numeric_limits<double>::infinity();
        std::vector<double> without;
        for (std::size_t i = 0; i < n; ++i) {
            std::vector<ScoredPair> rest = c.seen;
            rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
            without.push_back(by_scores(a, rest).value);
        }
        return interval_of(without).half * static_cast<double>(n - 1);  // each value leaves out one seed, so the interval is n - 1 times too small
    }

    // Each seed by itself: what every value was computed from.
    nlohmann::json seeds_of(const AskedVariant& c) const {
        nlohmann::json seeds = nlohmann::json::array();
        for (const ScoredPair& pair : c.seen) {
            nlohmann::json one = nlohmann::json::object();
            for (const Asked& a : asked_conditions_) {
                Compared said = by_scores(a, {&pair, 1});
                one.update(said.parts);
                if (std::isfinite(said.value)) one[a.condition.measure] = said.value;
            }
            seeds.push_back(std::move(one));
        }
        return seeds;
    }

    // The row of a condition: of its measure's value, where it comes from, and what it is compared with.
    nlohmann::json measure_row(const AskedVariant& c, std::size_t i, const ExpectedLoss& loss) const {
        const Asked& a = asked_conditions_[i];
        const bool run = !c.said.empty() && !a.condition.kind().of_sizes;
        const double value = run ? c.said[i].value : c.sizes[i].value_or(std::numeric_limits<double>::quiet_NaN());
        nlohmann::json row = row_of(a.condition, run ? "scores" : std::isfinite(value) ? "sizes" : "not evaluated", value, loss);
        if (const double half = run ? half_width(c, a) : std::numeric_limits<double>::infinity(); std::isfinite(half))
            row["low"] = value - half, row["high"] = value + half;
        return row;
    }

    nlohmann::json evidence_of(const Graph& original, const AskedVariant& c) const {
        const ExpectedLoss loss = loss_of(size_, c.size);
        nlohmann::json evidence{{"oracle", measures_asked()},
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
                                {"seeds", seeds_of(c)},
                                {"parts", nlohmann::json::object()},
                                {"measures", nlohmann::json::array()},
                                {"parameters", c.size.params},
                                {"macs", c.size.macs},
                                {"kept", kept_at_loss(loss.points)},
                                {"loss", {{"points", loss.points}, {"low", loss.low}, {"high", loss.high}}}};
        if (!loss.unlike.empty()) evidence["unlike"] = loss.unlike;
        if (options_.calibration) evidence["calibrated"] = {{"networks", options_.calibration->networks()}, {"key", options_.calibration->key().hex()}};
        for (const Compared& said : c.said) evidence["parts"].update(said.parts);
        return with_answer(std::move(evidence), c, loss);
    }

    // Whether all conditions hold, and which of them do not.
    nlohmann::json with_answer(nlohmann::json evidence, const AskedVariant& c, const ExpectedLoss& loss) const {
        std::vector<std::string> words, unmet;
        for (std::size_t i = 0; i < asked_conditions_.size(); ++i) {
            const nlohmann::json& row = evidence["measures"].emplace_back(measure_row(c, i, loss));
            const MeasureCondition& condition = asked_conditions_[i].condition;
            if (condition.kind().is_loss) evidence["capacity"] = kept_at_loss(condition.threshold);
            if (!row.contains("value")) continue;  // it was not asked, because another condition does not hold
            words.push_back(row.at("why"));
            if (!row.at("holds").get<bool>()) unmet.push_back(words.back());
        }
        evidence["allowed"] = c.broken.empty() && std::all_of(evidence["measures"].begin(), evidence["measures"].end(),
                                                              [](const nlohmann::json& row) { return row.at("holds").get<bool>(); });
        evidence["why"] = c.broken.empty() ? join(unmet.empty() ? words : unmet, "; ") : c.broken + ": never admitted";
        return evidence;
    }

    std::string measures_asked() const {
        std::vector<MeasureCondition> all;
        for (const Asked& a : asked_conditions_) all.push_back(a.condition);
        return measures_named(all);
    }

    // Whether more seeds are not worth their time: a value is further from its threshold than seeds are known to spread (80%). One condition that does not hold
    // decides the answer.
    bool decided(const AskedVariant& c) const {
        bool all = true;
        for (std::size_t i = 0; i < asked_conditions_.size(); ++i) {
            const auto& [condition, measure] = asked_conditions_[i];
            const double value = c.said[i].value, seeds = static_cast<double>(c.seen.size());
            const bool clear = std::abs(value - condition.threshold) > 1.282 * measure->spread * std::max(0.5, std::abs(value)) / std::sqrt(seeds);
            if (clear && !condition.holds(value)) return true;
            all &= clear;
        }
        return all;
    }

    OracleOptions options_;
    std::vector<Asked> asked_conditions_;
    MeasureSet wanted_{false, false, false, false}, originals_wanted_ = wanted_;
    EvidenceStore store_;
    std::vector<Hash128> asked_;             // keys, in order
    std::unordered_set<std::string> known_;  // the same keys
    std::shared_ptr<Scorer> scorer_;
    std::string source_;
    Hash128 original_key_{}, data_key_{}, uncalibrated_key_{}, base_key_{}, conditions_key_{};
    std::vector<MeasureInput> originals_;  // by seed
    MeasureInput size_;
    OracleCounts counts_;
};

}  // namespace

bool says_the_same(const Verdict& a, const Verdict& b, double tolerance) {
    const nlohmann::json rows = a.evidence.value("measures", nlohmann::json::array()), others = b.evidence.value("measures", nlohmann::json::array());
    bool same = a.allowed == b.allowed && rows.size() == others.size();
    for (std::size_t i = 0; same && i < rows.size(); ++i) {
        const nlohmann::json &row = rows[i], &other = others[i];
        same = condition_of(row) == condition_of(other) && row.contains("value") == other.contains("value");
        if (!same || !row.contains("value")) continue;
        const double value = row.at("value");
        same = std::abs(value - other.at("value").get<double>()) <= tolerance * std::max(1.0, std::abs(value));
    }
    return same;
}

Hash128 graph_key(const Graph& graph) {
    Graph plain = graph;
    plain.name.clear(), plain.weights_file.clear();
    return hash_of(write_model(plain));
}

std::unique_ptr<Oracle> make_oracle(OracleOptions options) { return std::make_unique<MeasureOracle>(std::move(options)); }

}  // namespace loopegg
