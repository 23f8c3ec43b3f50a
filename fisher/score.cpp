#include "fisher/score.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/flops.hpp"

namespace loopegg {
namespace {

class RememberingScorer final : public Scorer {
public:
    explicit RememberingScorer(std::shared_ptr<Scorer> inner) : inner_(std::move(inner)) {}

    std::vector<RawScores> score(std::span<const ScoreQuestion> questions, const MeasureSet& wanted) override {
        std::vector<Known*> places;
        std::vector<ScoreQuestion> asked;
        std::vector<Known*> open;
        for (const ScoreQuestion& q : questions) {
            Known& known = known_[{graph_key(*q.graph), q.seed}];
            places.push_back(&known);
            if (covers(known.have, wanted) || std::find(open.begin(), open.end(), &known) != open.end()) continue;
            asked.push_back(q), open.push_back(&known);
        }
        // No pass is done twice. A part that is known for all questions is not asked for again.
        MeasureSet missing{false, false, false, false};
        for (const Known* k : open)
            missing = missing | MeasureSet{wanted.fisher && !k->have.fisher, wanted.codes && !k->have.codes, wanted.weights && !k->have.weights,
                                           wanted.synflow && !k->have.synflow};
        if (!asked.empty()) {
            std::vector<RawScores> more = inner_->score(asked, missing);
            for (std::size_t i = 0; i < more.size(); ++i) {
                RawScores& raw = open[i]->raw;
                if (missing.fisher) raw.fisher = std::move(more[i].fisher), raw.loss = more[i].loss;
                raw.images = more[i].images;
                if (missing.codes) raw.naswot = more[i].naswot, raw.code_spread = more[i].code_spread, raw.codes = std::move(more[i].codes);
                if (missing.weights) raw.snip = more[i].snip, raw.grad_norm = more[i].grad_norm, raw.gradients = std::move(more[i].gradients);
                if (missing.synflow) raw.synflow = more[i].synflow;
                open[i]->have = open[i]->have | wanted;
            }
        }
        std::vector<RawScores> answers;
        for (const Known* k : places) answers.push_back(k->raw);
        return answers;
    }

private:
    struct Known {
        MeasureSet have{false, false, false, false};
        RawScores raw;
    };
    static bool covers(const MeasureSet& have, const MeasureSet& wanted) {
        return (have.fisher || !wanted.fisher) && (have.codes || !wanted.codes) && (have.weights || !wanted.weights) && (have.synflow || !wanted.synflow);
    }

    std::shared_ptr<Scorer> inner_;
    std::map<std::pair<Hash128, std::uint64_t>, Known> known_ = {};
};

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

nlohmann::json by_name(const std::vector<std::pair<std::string, double>>& values) {
    nlohmann::json all = nlohmann::json::object();
    for (const auto& [name, value] : values) all[name] = number(value);
    return all;
}

std::vector<const Measure*> chosen_measures(const ScoreOptions& options) {
    std::vector<const Measure*> chosen;
    for (const std::string& name : options.measures.empty() ? std::vector<std::string>{"fisher", "fisher-layer", "naswot", "params", "macs"} : options.measures)
        if (name == "all")
            for (const Measure& m : measures()) chosen.push_back(&m);
        else if (name != "rank-sum")
            chosen.push_back(&find_measure(name));
    return chosen;
}

// Each set of conditions that is asked.
std::vector<std::vector<MeasureCondition>> asked_of(const ScoreOptions& options) {
    std::vector<std::vector<MeasureCondition>> all{options.oracle.conditions};
    for (const auto& conditions : options.also)
        if (std::find(all.begin(), all.end(), conditions) == all.end()) all.push_back(conditions);
    return all;
}

// The names of their measures, or the conditions themselves where others have the same measures.
std::vector<std::string> names_of(const std::vector<std::vector<MeasureCondition>>& asked) {
    std::vector<std::string> names;
    for (const auto& conditions : asked) {
        const std::string name = measures_named(conditions);
        names.push_back(std::find(names.begin(), names.end(), name) == names.end() ? name : to_string(conditions));
    }
    return names;
}

class Scoring {
public:
    Scoring(const Graph& original, const ScoreOptions& options) : original_(original), options_(options), chosen_(chosen_measures(options)) {
        for (const Measure* m : chosen_) wanted_ = wanted_ | m->wanted;
        for (const auto& conditions : asked_of(options))
            for (const MeasureCondition& c : conditions) wanted_ = wanted_ | compared_measure(c.measure).wanted;
        BatchSet data = load_batches(options.oracle.data, original, options.oracle.batch, options.oracle.seeds, options.oracle.seed);
        source_ = data.source;
        scorer_ = remembering(
            torch_runtime().scorer(original, options.oracle.trained, data.batches, {options.oracle.threads, options.oracle.double_precision, false}));
        NamedVariant self{"", original};
        pass({&self, 1});
        for (int k = 0; k < options.oracle.seeds; ++k) base_.push_back(measure(original, k));
    }

    // Does every pass that these networks need, side by side. All scores are looked up afterwards.
    void pass(std::span<const NamedVariant> variants) {
        std::vector<ScoreQuestion> questions;
        for (const NamedVariant& v : variants)
            for (int k = 0; k < options_.oracle.seeds; ++k) questions.push_back({&v.graph, options_.oracle.seed + static_cast<std::uint64_t>(k)});
        scorer_->score(questions, wanted_);
    }

    // The scores of each seed, for people who try formulas of their own.
    nlohmann::json raw_of(const Graph& graph) {
        nlohmann::json seeds = nlohmann::json::array();
        for (int k = 0; k < options_.oracle.seeds; ++k) {
            RawScores raw = measure(graph, k).raw;
            nlohmann::json row{{"loss", number(raw.loss)}, {"fisher", by_name(raw.fisher)}};
            if (wanted_.codes) row["naswot"] = number(raw.naswot), row["code_spread"] = number(raw.code_spread), row["codes"] = by_name(raw.codes);
            if (wanted_.weights) row["snip"] = number(raw.snip), row["grad-norm"] = number(raw.grad_norm), row["gradients"] = by_name(raw.gradients);
            if (wanted_.synflow) row["synflow"] = number(raw.synflow);
            seeds.push_back(std::move(row));
        }
        return seeds;
    }

    // {score, ratio, low, high} of each measure; low and high bound the ratio's mean over seeds.
    nlohmann::json measures_of(const Graph& graph) {
        nlohmann::json all = nlohmann::json::object();
        std::vector<MeasureInput> own;
        for (int k = 0; k < options_.oracle.seeds; ++k) own.push_back(measure(graph, k));
        for (const Measure* m : chosen_) {
            std::vector<double> values, ratios;
            for (std::size_t k = 0; k < own.size(); ++k) values.push_back(m->value(own[k])), ratios.push_back(ratio_of(*m, m->value(base_[k]), values.back()));
            Interval score = interval_of(values), ratio = interval_of(ratios);
            all[m->name] = {{"score", number(score.mean)}, {"ratio", number(ratio.mean)}, {"low", number(ratio.low())}, {"high", number(ratio.high())}};
        }
        return all;
    }

    // The null test: compares the original with itself under the weights of another seed, to show what chance alone does.
    nlohmann::json noise() {
        nlohmann::json all = nlohmann::json::object();
        for (const Measure* m : chosen_) {
            std::vector<double> logs;
            for (std::size_t a = 0; a < base_.size(); ++a)
                for (std::size_t b = 0; b < base_.size(); ++b)
                    if (a != b) logs.push_back(std::log(std::max(1e-300, std::abs(ratio_of(*m, m->value(base_[a]), m->value(base_[b]))))));
            double square = 0, worst = 0;
            for (double v : logs) square += v * v, worst = std::max(worst, std::abs(v));
            double spread = logs.empty() ? 0 : std::sqrt(square / static_cast<double>(logs.size()));
            all[m->name] = {{"spread", number(spread)}, {"low", number(std::exp(-worst))}, {"high", number(std::exp(worst))}, {"pairs", logs.size()}};
        }
        return all;
    }

    const std::shared_ptr<Scorer>& scorer() const { return scorer_; }
    const std::string& source() const { return source_; }

private:
    MeasureInput measure(const Graph& graph, int k) {
        MeasureInput m = sizes_of(graph);
        m.raw = scorer_->score(graph, options_.oracle.seed + static_cast<std::uint64_t>(k), wanted_);
        return m;
    }

    const Graph& original_;
    const ScoreOptions& options_;
    std::vector<const Measure*> chosen_;
    MeasureSet wanted_{false, false, false, false};
    std::string source_;
    std::shared_ptr<Scorer> scorer_;
    std::vector<MeasureInput> base_;  // by seed
};

// The mean rank over all measures that were asked for, among these variants.
void add_rank_sums(nlohmann::json& variants) {
    if (variants.size() < 2) return;
    std::vector<double> sum(variants.size(), 0.0);
    std::size_t count = 0;
    for (const auto& [name, ignored] : variants[0]["measures"].items()) {
        std::vector<double> values;
        for (const auto& v : variants) values.push_back(v["measures"][name]["score"].is_number() ? v["measures"][name]["score"].get<double>() : -INFINITY);
        std::vector<double> rank = ranks(values);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rank[i];
        ++count;
    }
    for (std::size_t i = 0; i < sum.size(); ++i)
        variants[i]["measures"]["rank-sum"] = {{"score", sum[i] / static_cast<double>(count)}, {"ratio", nullptr}, {"low", nullptr}, {"high", nullptr}};
}

}  // namespace

std::shared_ptr<Scorer> remembering(std::shared_ptr<Scorer> scorer) { return std::make_shared<RememberingScorer>(std::move(scorer)); }

nlohmann::json score_variants(const Graph& original, const std::vector<NamedVariant>& variants, const ScoreOptions& options,
                              const std::function<void(std::int64_t done, std::int64_t all, const std::string& what)>& progress) {
    auto began = std::chrono::steady_clock::now();
    const std::vector<std::vector<MeasureCondition>> asked = asked_of(options);
    const std::vector<std::string> names = names_of(asked);
    Scoring scoring(original, options);
    nlohmann::json answer{
        {"original", {{"name", original.name}, {"parameters", parameters(original)}, {"macs", macs(original)}, {"measures", scoring.measures_of(original)}}},
        {"data", scoring.source()},
        {"batch", options.oracle.batch},
        {"seeds", options.oracle.seeds},
        {"precision", options.oracle.double_precision ? "double" : "single"},
        {"engine", torch_runtime().describe()}};
    if (options.raw) answer["original"]["raw"] = scoring.raw_of(original);
    std::vector<std::unique_ptr<Oracle>> oracles, fresh;
    for (const auto& conditions : asked) {
        OracleOptions own = options.oracle;
        own.scorer = scoring.scorer();
        own.conditions = conditions;
        if (!points_asked(conditions)) own.calibration.reset();  // training runs calibrate the expected loss alone
        oracles.push_back(make_oracle(own));
        if (options.recheck) own.store = {}, fresh.push_back(make_oracle(own));
    }
    nlohmann::json rows = nlohmann::json::array(), differ = nlohmann::json::array();
    std::int64_t done = 0, all = static_cast<std::int64_t>(variants.size()), agree = 0;
    constexpr std::int64_t together = 16;
    for (const NamedVariant& v : variants) {
        if (progress) progress(done, all, v.plan);
        if (done % together == 0)
            scoring.pass(std::span(variants).subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(std::min(together, all - done))));
        nlohmann::json row{{"plan", v.plan},
                           {"parameters", parameters(v.graph)},
                           {"macs", macs(v.graph)},
                           {"measures", scoring.measures_of(v.graph)},
                           {"guards", nlohmann::json::object()}};
        for (std::size_t g = 0; g < oracles.size(); ++g) {
            Verdict verdict = oracles[g]->judge(original, {&v.graph, 1})[0];
            row["guards"][names[g]] = {{"conditions", to_string(asked[g])},           {"allowed", verdict.allowed},          {"why", verdict.why},
                                       {"measures", verdict.evidence.at("measures")}, {"loss", verdict.evidence.at("loss")}, {"evidence", verdict.evidence}};
            if (!options.recheck) continue;
            Verdict again = fresh[g]->judge(original, {&v.graph, 1})[0];
            const bool same = says_the_same(verdict, again, 1e-6);
            if (same)
                ++agree;
            else
                differ.push_back({{"plan", v.plan}, {"guard", names[g]}, {"kept", verdict.evidence}, {"again", again.evidence}});
        }
        if (options.raw) row["raw"] = scoring.raw_of(v.graph);
        rows.push_back(std::move(row));
        ++done;
    }
    add_rank_sums(rows);
    answer["variants"] = std::move(rows);
    if (options.noise) answer["noise"] = scoring.noise();
    if (options.recheck) answer["recheck"] = {{"agree", agree}, {"differ", differ}};
    answer["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return answer;
}

}  // namespace loopegg
