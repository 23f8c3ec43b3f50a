#include "rules/judge/row_proof.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "base/sexpr.hpp"
#include "egraph/rewrite.hpp"
#include "rules/judge/polynomial.hpp"

namespace loopegg {
namespace {

struct NoRowForm : std::runtime_error {
    using std::runtime_error::runtime_error;
};

bool is_name(const Term& t) { return t.size() == 0 && is_variable(t.op()); }

// above / below, which is not zero.
struct Quotient {
    Polynomial above, below = Polynomial(1L);
};
Quotient operator*(const Quotient& a, const Quotient& b) { return {a.above * b.above, a.below * b.below}; }
Quotient operator/(const Quotient& a, const Quotient& b) { return {a.above * b.below, a.below * b.above}; }
Quotient operator-(const Quotient& a, const Quotient& b) { return {a.above * b.below - b.above * a.below, a.below * b.below}; }
bool same(const Quotient& a, const Quotient& b) { return a.above * b.below == b.above * a.below; }
std::string text(const Quotient& q) { return fmt::format("({})/({})", to_string(q.above), to_string(q.below)); }

// An element of a value at a row and a column.
struct Rows {
    Quotient element;
    std::string rows, columns;  // how many, as the rule names them; "": not known; columns "1" for a number of each row
    std::string name{};         // of a value whose sizes the nests that read it tell
};

// Reads the values of one side. Symbols mean the same on both sides, so both are read by one reader.
class RowReader {
public:
    explicit RowReader(const Rule& rule) : rule_(rule) {}

    struct Side {
        std::vector<Rows> values;
        std::vector<std::string> operands;  // in the order in which the value takes them
    };

    Side side(const Term& value) {
        operands_.clear();
        std::vector<Rows> values = read(value);
        on_right_ = true;
        return {std::move(values), operands_};
    }

private:
    std::vector<Rows> read(const Term& v) {
        if (is_name(v)) return {operand(to_string(v))};
        if (v.is("site", 1)) return {nest(v[0], {})};
        if (v.is("columns", 2)) return {nest(v[1], {})};
        if (v.is("blocks", 2)) return read(v[1]);
        if (v.is("feed", 3)) {
            if (to_string(v[0]) != "I") throw NoRowForm("a value is fed into another buffer than I");
            return {nest(v[2], {read(v[1]).front()})};
        }
        const bool with = v.is("with", 2);
        if (!v.is("then", 2) && !with && !v.is("both", 3) && !v.is("sums", 3))
            throw NoRowForm(fmt::format("'{}' is no value that the judge knows", to_string(v)));
        std::vector<Rows> all = read(v[0]), made;
        for (std::size_t i = 1; i < v.size(); ++i) made.push_back(nest(v[i], all));
        if (!with) return made;
        all.push_back(made.front());
        return all;
    }

    Rows operand(const std::string& name) {
        operands_.push_back("operands of " + name);
        return symbol("an element of " + name, "", "");
    }
    Rows symbol(const std::string& name, const std::string& rows, const std::string& columns) {
        if (columns != "1") by_column_.insert(name);
        return {{Polynomial::of(name)}, rows, columns, columns.empty() ? name : std::string()};
    }

    // A schedule is a list of loops over the axes of one statement, so it is used again for the same axes alone, or made for them.
    void check_schedule(const Term& n) {
        std::string axes = to_string(n[0]);
        static const std::set<std::string> along{"row_max", "row_sum", "row_exp_sum"}, across{"row_softmax", "row_exp", "row_divide", "wide_exp"};
        const std::string& op = n[0].op().text();
        if (along.contains(op) || across.contains(op))
            axes = fmt::format("{} {} {}", along.contains(op) ? "along" : "across", to_string(n[0][0]), to_string(n[0][1]));
        const auto made = std::find_if(rule_.choices.begin(), rule_.choices.end(), [&](const ChoiceCall& c) { return c.variable == n[1].op(); });
        if (made != rule_.choices.end()) {
            const bool loops = made->list && made->list->name == "row-loops" && made->arguments.size() == 2;
            if (!loops || axes != fmt::format("across {} {}", made->arguments[0].text, made->arguments[1].text))
                throw NoRowForm(fmt::format("'{}' is no schedule of {}", to_string(n[1]), to_string(n[0])));
            return;
        }
        const auto known = schedules_.find(to_string(n[1]));
        if (known == schedules_.end() && !on_right_)
            schedules_.emplace(to_string(n[1]), axes);
        else if (known == schedules_.end() || known->second != axes)
            throw NoRowForm(fmt::format("'{}' is no schedule of {}", to_string(n[1]), to_string(n[0])));
    }

    // A nest of which the judge knows only what it reads.
    Rows unknown_nest(const Term& n, const std::vector<Rows>& inputs) {
        std::string name = to_string(n);
        for (const Rows& in : inputs) name += " of " + text(in.element);
        operands_.push_back("operands of " + to_string(n));
        return symbol(name, "", "");
    }

    Rows nest(const Term& n, const std::vector<Rows>& inputs) {
        if (!n.is("nest", 2) || !is_name(n[1])) throw NoRowForm(fmt::format("'{}' is no nest that the judge knows", to_string(n)));
        check_schedule(n);
        if (is_name(n[0])) return unknown_nest(n, inputs);
        const std::string& op = n[0].op().text();
        Term inner = n[0];
        while (inner.is("order", 3) && to_string(inner[0]) == "J") inner = Term(inner[2]);  // J in another order is another operand
        if (inner.is("matmul", 4)) return product(n, inner, input(inputs, 0));
        const std::size_t sizes = op == "row_max" || op == "row_sum" || op == "row_exp_sum" || op == "row_softmax" ? 3 : 2;
        if (n[0].size() != sizes || (sizes == 3 && n[0][2].integer() != 1))
            throw NoRowForm(fmt::format("'{}' is no function of rows that the judge knows", to_string(n[0])));
        const Rows x = input(inputs, 0);
        fits(x, to_string(n[0][0]), to_string(n[0][1]));
        return function_of_rows(n[0], x, inputs);
    }

    Rows function_of_rows(const Term& s, const Rows& x, const std::vector<Rows>& inputs) {
        const std::string &op = s.op().text(), rows = to_string(s[0]), columns = to_string(s[1]);
        const auto by_row = [&](std::size_t i) {
            const Rows y = input(inputs, i);
            fits(y, rows, "1");
            return y.element;
        };
        if (op == "row_max") return symbol("the maximum of " + text(x.element), rows, "1");
        if (op == "row_sum") return {sum(x.element), rows, "1"};
        if (op == "row_exp_sum") return {sum(exponential(x.element - by_row(1))), rows, "1"};
        if (op == "row_softmax") return {exponential(x.element - by_row(1)) / by_row(2), rows, columns};
        if (op == "row_exp") return {exponential(x.element - by_row(1)), rows, columns};
        if (op == "row_divide") return {x.element / by_row(1), rows, columns};
        if (op == "wide_exp") return {exponential(x.element), rows, columns};
        throw NoRowForm(fmt::format("'{}' is no function of rows that the judge knows", op));
    }

    // Each row of the input times a matrix, whose elements the columns of the output tell apart.
    Rows product(const Term& n, const Term& matmul, const Rows& x) {
        fits(x, "", to_string(matmul[3]));
        const auto sizes = sizes_.find(x.name);
        const std::string name = fmt::format("J of {}", to_string(n));
        operands_.push_back(name);
        const Rows y = symbol(name, "", "");
        Quotient all = sum(x.element * y.element);
        for (const std::string& s : all.above.symbols())
            if (s.find(name) != s.npos) by_column_.insert(s);
        return {all, sizes == sizes_.end() ? x.rows : sizes->second.first, to_string(matmul[2])};
    }

    static const Rows& input(const std::vector<Rows>& inputs, std::size_t i) {
        if (i >= inputs.size()) throw NoRowForm("a nest reads a value that nothing before it computes");
        return inputs[i];
    }
    // What reads a value of unknown sizes first says what they are.
    void fits(Rows x, const std::string& rows, const std::string& columns) {
        if (!x.name.empty()) {
            auto& [known_rows, known_columns] = sizes_[x.name];
            if (known_rows.empty()) known_rows = rows;
            if (known_columns.empty()) known_columns = columns;
            x.rows = known_rows, x.columns = known_columns;
        }
        const bool wrong_rows = !rows.empty() && !x.rows.empty() && rows != x.rows, wrong_columns = !x.columns.empty() && columns != x.columns;
        if (wrong_rows) throw NoRowForm(fmt::format("a nest with {} rows reads a value with {}", rows, x.rows));
        if (wrong_columns) throw NoRowForm(fmt::format("a nest with {} columns reads a value with {}", columns, x.columns));
    }

    // e to the power of a sum of symbols is a product, and quotient, of powers of e.
    Quotient exponential(const Quotient& x) {
        Quotient all{Polynomial(1L)};
        const auto whole = x.below.constant();
        if (!whole || *whole != 1) throw NoRowForm("an exponent is no sum of values");
        for (const auto& [monomial, coefficient] : x.above.terms()) {
            if (monomial.size() != 1 || monomial.begin()->second != 1 || abs(coefficient) != 1) throw NoRowForm("an exponent is no sum of values");
            const std::string name = "exp(" + monomial.begin()->first + ")";
            if (by_column_.contains(monomial.begin()->first)) by_column_.insert(name);
            (coefficient > 0 ? all.above : all.below) = (coefficient > 0 ? all.above : all.below) * Polynomial::of(name);
        }
        return all;
    }

    // The sum along a row: factors that all columns share come before it.
    Quotient sum(const Quotient& x) {
        const auto differs = [&](const std::string& s) { return by_column_.contains(s); };
        const std::set<std::string> below = x.below.symbols();
        if (std::any_of(below.begin(), below.end(), differs)) throw NoRowForm("the terms of a sum have unlike divisors");
        Quotient all{Polynomial(0L), x.below};
        for (const auto& [monomial, coefficient] : x.above.terms()) {
            Monomial shared, summed;
            for (const auto& [s, power] : monomial) (differs(s) ? summed : shared)[s] = power;
            Polynomial term(coefficient);
            term = term * Polynomial::of(shared) * Polynomial::of("sum(" + to_string(Polynomial::of(summed)) + ")");
            all.above += term;
        }
        return all;
    }

    const Rule& rule_;
    bool on_right_ = false;
    std::set<std::string> by_column_;                                   // symbols that differ from column to column
    std::map<std::string, std::pair<std::string, std::string>> sizes_;  // rows and columns, by the name of a value
    std::map<std::string, std::string> schedules_;                      // of the left side: the axes that they walk
    std::vector<std::string> operands_;
};

bool has_rows(const Term& t) {
    return t.is("with", 2) || t.is("both", 3) || t.is("sums", 3) || t.is("blocks", 2) || t.is("columns", 2) ||
           std::any_of(t.children().begin(), t.children().end(), [](const Term& c) { return has_rows(c); });
}

bool asks(const Rule& rule, const char* guard) {
    return std::any_of(rule.guards.begin(), rule.guards.end(), [&](const GuardCall& g) { return g.guard->name == guard; });
}

bool asks_of(const Rule& rule, const char* guard, const Term& statement) {
    const std::string wanted = fmt::format("({} {})", guard, to_string(statement));
    return std::any_of(rule.guards.begin(), rule.guards.end(), [&](const GuardCall& g) { return g.text == wanted; });
}

// Why a value cannot come, or be read, in the blocks that a term says; empty where it can.
std::string wrong_blocks(const Rule& rule, const Term& t) {
    const auto statement = [](const Term& nest) { return nest.is("nest", 2) ? nest[0] : nest; };
    const auto unless = [&](bool right, const char* guard, const Term& nest, const char* other = "") {
        return right || asks_of(rule, guard, statement(nest)) || asks_of(rule, other, statement(nest))
                   ? std::string()
                   : fmt::format("nothing says that {} can go by blocks: ({} ...)", to_string(statement(nest)), guard);
    };
    if (t.is("with", 2) || t.is("both", 3) || t.is("feed", 3))
        for (const Term& child : t.children())
            if (child.is("blocks", 2) || child.is("columns", 2)) return fmt::format("'{}' reads a value in blocks", to_string(t));
    if (t.is("then", 2) && (t[0].is("blocks", 2) || t[0].is("columns", 2)))
        if (std::string why = unless(statement(t[1]).is("wide_exp", 2), "each-element", t[1], "each-pair"); !why.empty()) return why;
    if (t.is("columns", 2))
        if (std::string why = unless(statement(t[1]).is("matmul", 4), "separate-columns", t[1]); !why.empty()) return why;
    for (std::size_t i = 1; t.is("sums", 3) && i < 3; ++i)
        if (std::string why = unless(statement(t[i]).is("matmul", 4) || statement(t[i]).is("row_sum", 3), "sums-columns", t[i]); !why.empty()) return why;
    for (const Term& child : t.children())
        if (std::string why = wrong_blocks(rule, child); !why.empty()) return why;
    return {};
}

// Whether blocks that a value comes in are added up, moved or taken: the terms differ, but no number does.
bool same_numbers(const Rule& rule) {
    const Term &left = rule.left[0].term, &right = rule.right[0].term;
    return left.is("blocks", 2) && (right.is("columns", 2) || right.is("then", 2));
}

}  // namespace

bool is_row_rule(const Rule& rule) { return has_rows(rule.left[0].term) || has_rows(rule.right[0].term); }

RuleVerdict prove_row_rule(const Rule& rule) {
    RuleVerdict verdict;
    try {
        if (verdict.why = wrong_blocks(rule, rule.right[0].term); !verdict.why.empty()) return verdict;
        RowReader reader(rule);
        const RowReader::Side left = reader.side(rule.left[0].term), right = reader.side(rule.right[0].term);
        if (left.operands != right.operands) {
            verdict.why = "takes other operands on the right than on the left";
            return verdict;
        }
        const bool equal = std::equal(left.values.begin(), left.values.end(), right.values.begin(), right.values.end(),
                                      [](const Rows& a, const Rows& b) { return a.columns == b.columns && same(a.element, b.element); });
        if (!equal) {
            verdict.why = "both sides are not known to be equal over the real numbers";
            return verdict;
        }
        verdict.proof = RuleVerdict::Proof::all_sizes;
        verdict.reorders_sums = !same_numbers(rule) && !asks(rule, "allow-reassociation");
    } catch (const NoRowForm& none) {
        verdict.why = none.what();
    }
    return verdict;
}

}  // namespace loopegg
