// Linear programs with whole-number variables, as data, and the solver behind them (HiGHS). No other file knows the solver.
#pragma once
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace loopegg {

using MipTerms = std::vector<std::pair<int, double>>;  // column and coefficient

struct MipColumn {
    double cost = 0, lower = 0, upper = 1;
    bool integer = true;
};

struct MipRow {
    double lower, upper;  // infinite where open: see Mip::unbounded
    MipTerms terms;
};

struct MipAnswer {
    enum class Status { optimal, feasible, infeasible, none };  // feasible: the values hold, the bound may be lower; none: time ran out first
    Status status = Status::none;
    std::vector<double> values;  // one per column when optimal or feasible
    double objective = 0;
    double bound = 0;  // valid in every case; minus infinity when nothing is known
};

// Minimises. Rows may be added after a solve; a relaxed solve then starts from where the last one ended.
class Mip {
public:
    static double unbounded();  // plus infinity for rows and columns

    Mip();
    ~Mip();
    Mip(const Mip&) = delete;
    Mip& operator=(const Mip&) = delete;

    int add_column(const MipColumn& column);
    void add_row(MipRow row);
    std::size_t columns() const { return columns_.size(); }
    std::size_t rows() const { return rows_.size(); }

    MipAnswer solve_relaxed(double seconds);  // variables may take any value between their bounds
    // `start`: a feasible point to begin from. `gap`: by what share of the best an answer may be worse and still count as optimal.
    MipAnswer solve(double seconds, std::span<const double> start = {}, double gap = 0);

private:
    struct Solver;
    std::vector<MipColumn> columns_;
    std::vector<MipRow> rows_;
    std::unique_ptr<Solver> relaxed_;  // kept between relaxed solves with its basis
};

}  // namespace loopegg
