#include "extract/mip.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <highs_c_api.h>

#include "base/error.hpp"

namespace loopegg {

struct Mip::Solver {
    void* highs = Highs_create();
    std::size_t rows_given = 0;

    Solver() {
        require(highs != nullptr, "HiGHS could not be started");
        Highs_setBoolOptionValue(highs, "output_flag", 0);
        Highs_setIntOptionValue(highs, "threads", 1);  // the same answer on every machine
        Highs_setStringOptionValue(highs, "parallel", "off");
        Highs_setDoubleOptionValue(highs, "mip_rel_gap", 0);  // 'optimal' must be exact, unless solve() allows a gap
        Highs_setDoubleOptionValue(highs, "mip_abs_gap", 1e-10);
    }
    ~Solver() { Highs_destroy(highs); }
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    void pass(const std::vector<MipColumn>& columns, const std::vector<MipRow>& rows, bool integers) {
        std::vector<double> cost, lower, upper, row_lower, row_upper, value;
        std::vector<HighsInt> start, index, kind;
        for (const MipColumn& c : columns) {
            cost.push_back(c.cost), lower.push_back(c.lower), upper.push_back(c.upper);
            kind.push_back(integers && c.integer ? kHighsVarTypeInteger : kHighsVarTypeContinuous);
        }
        for (const MipRow& r : rows) {
            row_lower.push_back(r.lower), row_upper.push_back(r.upper);
            start.push_back(static_cast<HighsInt>(index.size()));
            for (const auto& [column, coefficient] : r.terms) index.push_back(column), value.push_back(coefficient);
        }
        const auto status = Highs_passMip(highs, static_cast<HighsInt>(columns.size()), static_cast<HighsInt>(rows.size()), static_cast<HighsInt>(index.size()),
                                          kHighsMatrixFormatRowwise, kHighsObjSenseMinimize, 0, cost.data(), lower.data(), upper.data(), row_lower.data(),
                                          row_upper.data(), start.data(), index.data(), value.data(), kind.data());
        require(status != kHighsStatusError, "HiGHS refused a model");
        rows_given = rows.size();
    }

    void add(const MipRow& row) {
        std::vector<HighsInt> index;
        std::vector<double> value;
        for (const auto& [column, coefficient] : row.terms) index.push_back(column), value.push_back(coefficient);
        require(Highs_addRow(highs, row.lower, row.upper, static_cast<HighsInt>(index.size()), index.data(), value.data()) != kHighsStatusError,
                "HiGHS refused a row");
        ++rows_given;
    }

    // HiGHS counts its time from the creation of an instance or the last reset, over all runs.
    MipAnswer run(std::size_t columns, double seconds, bool integers) {
        Highs_zeroAllClocks(highs);
        Highs_setDoubleOptionValue(highs, "time_limit", std::max(0.01, seconds));
        MipAnswer answer;
        answer.bound = -std::numeric_limits<double>::infinity();
        if (Highs_run(highs) == kHighsStatusError) return answer;
        const HighsInt status = Highs_getModelStatus(highs);
        if (status == kHighsModelStatusInfeasible) {
            answer.status = MipAnswer::Status::infeasible;
            return answer;
        }
        HighsInt primal = 0;
        Highs_getIntInfoValue(highs, "primal_solution_status", &primal);
        const bool done = status == kHighsModelStatusOptimal;
        if (integers) Highs_getDoubleInfoValue(highs, "mip_dual_bound", &answer.bound);
        if (primal != kHighsSolutionStatusFeasible) return answer;
        answer.values.resize(columns);
        Highs_getSolution(highs, answer.values.data(), nullptr, nullptr, nullptr);
        answer.objective = Highs_getObjectiveValue(highs);
        if (!integers && done) answer.bound = answer.objective;
        answer.status = done ? MipAnswer::Status::optimal : MipAnswer::Status::feasible;
        return answer;
    }
};

Mip::Mip() = default;
Mip::~Mip() = default;

double Mip::unbounded() { return std::numeric_limits<double>::infinity(); }

int Mip::add_column(const MipColumn& column) {
    relaxed_.reset();
    columns_.push_back(column);
    return static_cast<int>(columns_.size() - 1);
}

void Mip::add_row(MipRow row) { rows_.push_back(std::move(row)); }

MipAnswer Mip::solve_relaxed(double seconds) {
    if (!relaxed_) {
        relaxed_ = std::make_unique<Solver>();
        relaxed_->pass(columns_, rows_, false);
    }
    while (relaxed_->rows_given < rows_.size()) relaxed_->add(rows_[relaxed_->rows_given]);
    return relaxed_->run(columns_.size(), seconds, false);
}

MipAnswer Mip::solve(double seconds, std::span<const double> start, double gap) {
    Solver solver;
    Highs_setDoubleOptionValue(solver.highs, "mip_rel_gap", gap);
    if (gap > 0)  // the caller wants many rough answers: methods that pay only in long searches are left out
        for (const char* option : {"mip_heuristic_run_feasibility_jump", "mip_heuristic_run_rens", "mip_heuristic_run_rins", "mip_allow_restart"})
            Highs_setBoolOptionValue(solver.highs, option, 0);
    solver.pass(columns_, rows_, true);
    if (!start.empty()) Highs_setSolution(solver.highs, start.data(), nullptr, nullptr, nullptr);
    return solver.run(columns_.size(), seconds, true);
}

}  // namespace loopegg
