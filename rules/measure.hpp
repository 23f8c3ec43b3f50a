// The measures that a rule or a phase may name, and its conditions on them: (fisher >= 0.9), (expected-loss <= 0.5).
//
// A measure compares a changed network with the original. What is compared is a share of the original's value, or the points of accuracy that are expected to
// be lost. The rule language knows measures by this table alone; fisher/conditions.hpp computes them.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sexpr.hpp"

namespace loopegg {

class Complaints;

struct MeasureKind {
    std::string_view name;
    std::string_view unit;     // of the value and the threshold: "share of the original", "points"
    std::string_view summary;  // one line for `loopegg rules list`
    double most;               // thresholds are above 0 (of points: from 0 on) and no larger than this
    bool of_sizes = false;     // a formula of the sizes of both networks: nothing is run, and anybody can compute it again
    bool is_loss = false;      // smaller is better, so only '<=' says something
};

std::span<const MeasureKind> measure_kinds();
const MeasureKind* find_measure_kind(std::string_view name);

struct MeasureCondition {
    std::string measure;
    bool at_least = false;  // '>=', else '<='
    double threshold = 0;

    bool holds(double value) const { return at_least ? value >= threshold : value <= threshold; }  // never for what is no number
    const MeasureKind& kind() const;
    friend bool operator==(const MeasureCondition&, const MeasureCondition&) = default;
};

std::string to_string(const MeasureCondition& condition);                  // "(fisher >= 0.9)"
std::string to_string(std::span<const MeasureCondition> conditions);       // with blanks between them
std::string measures_named(std::span<const MeasureCondition> conditions);  // "fisher, params": each once

// Whether the text of a guard asks how much the network keeps: (capacity), or a condition on a measure.
bool asks_measure(std::string_view guard);

// Whether a form begins with the name of a measure. Else it may be a guard.
bool names_measure(const SExpr& form);
// Says what is wrong with it, and then gives none.
std::optional<MeasureCondition> read_measure(const SExpr& form, Complaints& complaints);
// Complains about a condition that is given twice, and about two that no network can meet. `where`: the place of each condition.
void check_measures(std::span<const MeasureCondition> conditions, std::span<const Position> where, Complaints& complaints);
// The conditions in a text: "(fisher >= 0.9) (params <= 0.5)". Throws UsageError that points into the text, which messages call `name`.
std::vector<MeasureCondition> measure_conditions(std::string_view text, std::string name);

}  // namespace loopegg
