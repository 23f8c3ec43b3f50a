// The forms at the top of a rule file, and the files that it includes.
#include "rules/load.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/sexpr.hpp"
#include "base/text.hpp"
#include "rules/complaints.hpp"
#include "rules/expressions.hpp"
#include "rules/judged.hpp"
#include "rules/read_bilinear.hpp"
#include "rules/read_rule.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;
constexpr std::array<std::string_view, 6> forms{"language", "include", "bilinear", "ruleset", "rule", "phase"};
const std::string main_set = "main";

class Loader {
public:
    explicit Loader(const LoadOptions& options) : options_(options) {}

    Loaded load(const SourcePtr& source) {
        book_.language = options_.language ? options_.language : &free_language();
        read_file_of(source, true);
        check_phases();
        if (complaints_.count() == 0 && options_.judge && book_.language->judge) judge();
        return {std::move(book_), std::move(algorithms_), in_order(complaints_.take())};
    }

private:
    // Sorts mistakes by file in the order of reading, and within a file by place.
    std::vector<RuleMistake> in_order(std::vector<RuleMistake> mistakes) const {
        auto key = [&](const RuleMistake& m) {
            const auto file = std::find(files_.begin(), files_.end(), m.what.where.source);
            return std::make_pair(file - files_.begin(), m.what.where.offset);
        };
        std::stable_sort(mistakes.begin(), mistakes.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
        return mistakes;
    }

    static std::string place(const Position& where) { return fmt::format("{}:{}", where.source->name, where.line()); }

    void read_file_of(const SourcePtr& source, bool outermost) {
        book_.files.push_back(source), files_.push_back(source);
        std::vector<SExpr> all;
        try {
            all = read_sexprs(source);
        } catch (const UserError& e) {
            for (const Diagnostic& d : e.diagnostics()) complaints_.say(d.where, d.message, d.hint);
            return;
        }
        read_language(all, outermost);
        for (const SExpr& form : all)
            if (form.is_form("bilinear")) read_algorithm(form);
        std::map<std::string, Position> included;
        for (const SExpr& form : all) read_form(form, source, included);
    }

    // The language must be known before anything else is read, so its line is looked for first wherever it is.
    void read_language(const std::vector<SExpr>& all, bool outermost) {
        const SExpr* first = nullptr;
        for (const SExpr& form : all) {
            if (!form.is_form("language")) continue;
            if (first) {
                complaints_.say(form.where, fmt::format("the language of this file is given already, in line {}", first->where.line()));
                continue;
            }
            first = &form;
            if (&form != &all.front()) complaints_.say(form.where, "the language must be the first thing in a file");
            if (form.items.size() != 2 || form.items[1].is_list) {
                complaints_.say(form.where, "a language line names one language, as in '(language nest)'");
                continue;
            }
            const std::string& name = form.items[1].atom;
            const Language* language = find_language(name);
            if (!language) {
                std::vector<std::string> known;
                for (const Language* l : languages()) known.push_back(l->name);
                complaints_.say(form.items[1].where, fmt::format("there is no language '{}'", name), did_you_mean(name, known));
            } else if (outermost)
                book_.language = language;
            else if (language != book_.language)
                complaints_.say(form.where, fmt::format("this file is in language {}, but the file that includes it is in {}", name, book_.language->name));
        }
    }

    void read_form(const SExpr& form, const SourcePtr& source, std::map<std::string, Position>& included) {
        if (!form.is_list)
            return complaints_.say(form.where, fmt::format("'{}' is outside of any form", form.atom),
                                   "a file holds (language ...), (include ...), (bilinear ...), (ruleset ...), (rule ...) and (phase ...)");
        if (form.items.empty()) return complaints_.say(form.where, "'()' says nothing");
        if (form.is_form("language") || form.is_form("bilinear")) return;  // read already
        if (form.is_form("include")) return include(form, source, included);
        if (form.is_form("ruleset")) return read_set(form);
        if (form.is_form("rule")) return add_rule(form, implicit_set(form.where));
        if (form.is_form("phase")) return read_phase_form(form);
        const std::string head = to_string(form.items[0]);
        complaints_.say(form.items[0].where, fmt::format("a rule file knows no '({} ...)'", head),
                        did_you_mean(head, std::span<const std::string_view>(forms)));
    }

    void include(const SExpr& form, const SourcePtr& source, std::map<std::string, Position>& included) {
        if (form.items.size() != 2 || form.items[1].is_list || form.items[1].atom.empty())
            return complaints_.say(form.where, "an include names one file, as in '(include \"structure.rules\")'");
        const SExpr& name = form.items[1];
        std::error_code ignored;
        const fs::path path = (fs::path(source->name).parent_path() / name.atom).lexically_normal();
        const fs::path real = fs::weakly_canonical(path, ignored);
        if (auto [it, fresh] = included.try_emplace(real.string(), name.where); !fresh)
            return complaints_.say(name.where, fmt::format("'{}' is included already, in line {}", name.atom, it->second.line()));
        const fs::path self = fs::weakly_canonical(source->name, ignored);
        if (open_.empty()) open_.push_back(self.string());
        if (std::find(open_.begin(), open_.end(), real.string()) != open_.end()) {
            std::string way;
            for (auto it = std::find(open_.begin(), open_.end(), real.string()); it != open_.end(); ++it) way += fs::path(*it).filename().string() + " -> ";
            return complaints_.say(name.where, fmt::format("the files include each other in a circle: {}{}", way, real.filename().string()));
        }
        if (!read_.insert(real.string()).second) return;  // a file that is included twice is read once
        if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
            return complaints_.say(name.where, fmt::format("cannot include '{}': it is no file", name.atom));
        // What is wrong with a file is reported with a line of it: no rule file of a stranger may name a file that is none and have it shown.
        if (path.extension() != ".rules" || real.extension() != ".rules")
            return complaints_.say(name.where, fmt::format("cannot include '{}': the name of a rule file ends in '.rules'", name.atom));
        SourcePtr inner;
        try {
            inner = read_source(path, std::uintmax_t{1} << 26);
        } catch (const UserError& e) {
            return complaints_.say(name.where, fmt::format("cannot include '{}': {}", name.atom, e.diagnostics().front().message), near_file(path));
        }
        open_.push_back(real.string());
        read_file_of(inner, false);
        open_.pop_back();
    }

    static std::string near_file(const fs::path& path) {
        std::vector<std::string> names;
        std::error_code ignored;
        const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
        for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end && names.size() < 1000; it.increment(ignored))
            if (it->path().extension() == ".rules") names.push_back(it->path().filename().string());
        std::sort(names.begin(), names.end());
        return did_you_mean(path.filename().string(), names);
    }

    RuleSet& implicit_set(const Position& where) {
        for (RuleSet& set : book_.sets)
            if (set.name == main_set) return set;
        book_.sets.push_back({main_set, {}, {}, where});
        set_places_.try_emplace(main_set, where);
        return book_.sets.back();
    }

    void read_set(const SExpr& form) {
        RuleSet set;
        set.name = read_name(form, "ruleset", complaints_);
        set.where = form.where;
        if (!set.name.empty())
            if (auto [it, fresh] = set_places_.try_emplace(set.name, form.where); !fresh)
                complaints_.say(form.items[1].where, fmt::format("ruleset '{}' is there already, at {}", set.name, place(it->second)));
        bool any = false;
        for (std::size_t i = 2; i < form.items.size(); ++i) {
            const SExpr& item = form.items[i];
            if (item.is_form("rule"))
                add_rule(item, set), any = true;
            else if (item.is_atom(":tags"))
                i = read_tags(form, i, set);
            else if (!item.is_list)
                complaints_.say(item.where, fmt::format("a ruleset holds ':tags' and rules, and '{}' is neither", item.atom),
                                did_you_mean(item.atom, std::span<const std::string_view>(set_words)));
            else
                complaints_.say(item.where, "a ruleset holds rules: (rule NAME LEFT => RIGHT)",
                                item.items.empty() ? "" : did_you_mean(to_string(item.items[0]), std::span<const std::string_view>(set_words)));
        }
        if (!any && form.items.size() >= 2) complaints_.say(form.where, fmt::format("ruleset '{}' has no rules", set.name));
        book_.sets.push_back(std::move(set));
    }
    static constexpr std::array<std::string_view, 2> set_words{":tags", "rule"};

    // The words after :tags; gives the index of the last one.
    std::size_t read_tags(const SExpr& form, std::size_t at, RuleSet& set) {
        const SExpr& key = form.items[at];
        if (!set.tags.empty()) complaints_.say(key.where, "':tags' is given twice");
        std::size_t last = at;
        while (last + 1 < form.items.size() && !form.items[last + 1].is_list && form.items[last + 1].atom[0] != ':') {
            const SExpr& tag = form.items[++last];
            if (std::find(set.tags.begin(), set.tags.end(), tag.atom) != set.tags.end())
                complaints_.say(tag.where, fmt::format("tag '{}' is given twice", tag.atom));
            else
                set.tags.push_back(tag.atom);
        }
        if (last == at) complaints_.say(key.where, "':tags' is followed by no tag");
        return last;
    }

    // Algorithms are read before the rules of their file, which name them.
    void read_algorithm(const SExpr& form) {
        auto read = read_bilinear(form, *book_.language, complaints_);
        if (!read) return;
        for (const NamedAlgorithm& a : algorithms_)
            if (a.name == read->name)
                return complaints_.say(read->where, fmt::format("bilinear algorithm '{}' is there already, at {}", a.name, place(a.where)));
        algorithms_.push_back(std::move(*read));
    }

    void add_rule(const SExpr& form, RuleSet& set) {
        auto rule = read_rule(with_algorithms(form, algorithms_), *book_.language, set.name, complaints_);
        if (rule) rule->text = to_string(form), check_algorithms(*rule, algorithms_, complaints_);
        if (form.items.size() >= 2 && !form.items[1].is_list)
            if (auto [it, fresh] = rule_places_.try_emplace(form.items[1].atom, form.where); !fresh) {
                complaints_.enter_rule(form.items[1].atom);
                complaints_.say(form.items[1].where, fmt::format("rule '{}' is there already, at {}", form.items[1].atom, place(it->second)));
                complaints_.leave_rule();
                return;
            }
        if (rule) set.rules.push_back(std::move(*rule));
    }

    void read_phase_form(const SExpr& form) {
        auto phase = read_phase(form, complaints_);
        if (!phase) return;
        const auto other = std::find_if(book_.phases.begin(), book_.phases.end(), [&](const Phase& p) { return p.name == phase->name; });
        const std::size_t depth = std::max<std::size_t>(1, open_.size());
        if (other != book_.phases.end()) {
            const std::size_t depth_of_other = phase_depths_.at(phase->name);
            if (depth == depth_of_other)
                return complaints_.say(form.items[1].where, fmt::format("phase '{}' is there already, at {}", phase->name, place(other->where)));
            if (depth > depth_of_other) return;  // the phase of the including file counts
            book_.phases.erase(other);
        }
        auto& words = phase_words_[phase->name];
        words.clear();
        for (const SExpr& item : form.items)
            if (!item.is_list) words.try_emplace(item.atom, item.where);
        phase_depths_[phase->name] = depth;
        book_.phases.push_back(std::move(*phase));
    }

    // A phase may name sets of files that are included after it.
    void check_phases() {
        std::vector<std::string> known;
        for (const auto& entry : set_places_) known.push_back(entry.first);
        for (const Phase& phase : book_.phases)
            for (const std::string& set : phase.sets)
                if (!set_places_.contains(set))
                    complaints_.say(phase_words_[phase.name].at(set), fmt::format("phase '{}' names the ruleset '{}', which is not there", phase.name, set),
                                    did_you_mean(set, known));
    }

    void judge() {
        for (RuleSet& set : book_.sets)
            for (Rule& rule : set.rules) judge(rule);
    }

    void judge(Rule& rule) {
        const Language& language = *book_.language;
        const bool known = !options_.again && !options_.deep;
        if (known) rule.verdict = judged_before(rule);
        if (!rule.verdict) rule.verdict = language.judge(language, rule, options_.deep);
        const RuleVerdict& verdict = *rule.verdict;
        if (verdict.proof == RuleVerdict::Proof::unproved && options_.unproved)
            note_unproved_rule(rule.name);
        else if (!verdict.accepted())
            refuse(rule, verdict);
        add_implied_guards(rule);
    }

    void refuse(const Rule& rule, const RuleVerdict& verdict) {
        complaints_.enter_rule(rule.name);
        const bool refuted = verdict.proof == RuleVerdict::Proof::refuted;
        const std::string message = fmt::format("rule '{}' is {}: {}", rule.name, refuted ? "unsound" : "not proved", verdict.why);
        std::string hint = verdict.counterexample.empty() ? "" : fmt::format("it {} {}", refuted ? "breaks" : "may break where", verdict.counterexample);
        if (!refuted) hint += std::string(hint.empty() ? "" : "; ") + "--unproved uses it all the same";
        complaints_.say(rule.where, message, hint);
        complaints_.leave_rule();
    }

    // What the verdict says of sums, roundings and factors holds wherever the rule is used, because the rule asks for it.
    void add_implied_guards(Rule& rule) {
        if (!book_.language->implied_guards) return;
        for (const std::string& text : book_.language->implied_guards(*rule.verdict)) {
            if (std::any_of(rule.guards.begin(), rule.guards.end(), [&](const GuardCall& g) { return g.text == text; })) continue;
            ExpressionReader reader(*book_.language, complaints_);
            auto guard = reader.guard(read_sexprs(make_source("<implied>", text)).front());
            require(guard.has_value(), "an implied guard is a guard of the language");
            guard->where = rule.where;
            rule.guards.push_back(std::move(*guard));
        }
    }

    LoadOptions options_;
    Complaints complaints_;
    RuleBook book_;
    std::vector<NamedAlgorithm> algorithms_;
    std::vector<SourcePtr> files_;
    std::map<std::string, Position> set_places_, rule_places_;
    std::map<std::string, std::map<std::string, Position>> phase_words_;
    std::map<std::string, std::size_t> phase_depths_;  // at which depth of includes a phase was read
    std::vector<std::string> open_;                    // the files being read, the outermost first
    std::set<std::string> read_;
};

UserError all_of(std::vector<RuleMistake> mistakes) {
    std::vector<Diagnostic> diagnostics;
    for (RuleMistake& m : mistakes) diagnostics.push_back(std::move(m.what));
    return UserError(std::move(diagnostics));
}

}  // namespace

const RuleSet* RuleBook::find_set(std::string_view name) const {
    const auto it = std::find_if(sets.begin(), sets.end(), [&](const RuleSet& s) { return s.name == name; });
    return it == sets.end() ? nullptr : &*it;
}

const Phase* RuleBook::find_phase(std::string_view name) const {
    const auto it = std::find_if(phases.begin(), phases.end(), [&](const Phase& p) { return p.name == name; });
    return it == phases.end() ? nullptr : &*it;
}

const BilinearForm* Loaded::find_algorithm(std::string_view name) const {
    const auto it = std::find_if(algorithms.begin(), algorithms.end(), [&](const NamedAlgorithm& a) { return a.name == name; });
    return it == algorithms.end() ? nullptr : &it->form;
}

const Rule* RuleBook::find_rule(std::string_view name) const {
    for (const RuleSet& set : sets)
        for (const Rule& rule : set.rules)
            if (rule.name == name) return &rule;
    return nullptr;
}

std::size_t RuleBook::rule_count() const {
    std::size_t count = 0;
    for (const RuleSet& set : sets) count += set.rules.size();
    return count;
}

std::vector<const Rule*> RuleBook::rules() const {
    std::vector<const Rule*> all;
    for (const RuleSet& set : sets)
        for (const Rule& rule : set.rules) all.push_back(&rule);
    return all;
}

std::vector<const Rule*> RuleBook::rules_of(const Phase& phase) const {
    std::vector<const Rule*> all;
    for (const std::string& name : phase.sets)
        if (const RuleSet* set = find_set(name))
            for (const Rule& rule : set->rules) all.push_back(&rule);
    return all;
}

Loaded check_rules(const SourcePtr& source, const LoadOptions& options) { return Loader(options).load(source); }
Loaded check_rules(const fs::path& file, const LoadOptions& options) { return check_rules(read_source(file, std::uintmax_t{1} << 26), options); }

RuleBook load_rules(const SourcePtr& source, const LoadOptions& options) {
    Loaded loaded = check_rules(source, options);
    if (!loaded.mistakes.empty()) throw all_of(std::move(loaded.mistakes));
    return std::move(loaded.book);
}
RuleBook load_rules(const fs::path& file, const LoadOptions& options) { return load_rules(read_source(file, std::uintmax_t{1} << 26), options); }

}  // namespace loopegg
