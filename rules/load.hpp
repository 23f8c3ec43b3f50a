// Reads .rules files and checks all that can be checked without running a rule. The reader reports every mistake, not only the first.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "nest/term/bilinear.hpp"
#include "rules/judged.hpp"
#include "rules/rule.hpp"

namespace loopegg {

struct RuleMistake {
    Diagnostic what;
    std::string rule;  // the rule that the mistake is in; empty outside of rules
};

struct LoadOptions {
    bool judge = true;                   // judge every rule (Language::judge)
    bool deep = false;                   // try every rule on many more instances
    bool again = false;                  // judge the rules of rules/judged.txt, too
    bool unproved = admits_unproved();   // use rules that are neither proved nor refuted
    const Language* language = nullptr;  // of a file that names none; null: the language `free`
};

// A bilinear algorithm that a file states by its matrices, proved as it was read.
struct NamedAlgorithm {
    std::string name;
    BilinearForm form;
    Position where;
};

struct Loaded {
    RuleBook book;                           // the rules that have no mistake; sound only when `mistakes` is empty
    std::vector<NamedAlgorithm> algorithms;  // rules that name one hold its matrices
    std::vector<RuleMistake> mistakes;       // by file, in the order of the text

    const BilinearForm* find_algorithm(std::string_view name) const;
};

// Throws only when the file itself cannot be read.
Loaded check_rules(const std::filesystem::path& file, const LoadOptions& options = {});
Loaded check_rules(const SourcePtr& source, const LoadOptions& options = {});  // includes are looked for next to source->name

// The same, but throws a UserError with all mistakes where there are any.
RuleBook load_rules(const std::filesystem::path& file, const LoadOptions& options = {});
RuleBook load_rules(const SourcePtr& source, const LoadOptions& options = {});

}  // namespace loopegg
