// 'loopegg rules check|list': says what is wrong with rule files, and what they and the languages hold.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/places.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "rules/expressions.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace cmd_rules {

struct Arguments {
    std::vector<std::string> files;
    std::string listed;
    bool check = false, deep = false;
};

const char* text_of(Arrow arrow) { return arrow == Arrow::both ? "<=>" : arrow == Arrow::neural ? "~>" : "=>"; }

nlohmann::json as_json(const RuleMistake& m) {
    nlohmann::json e{{"file", nullptr}, {"line", nullptr}, {"column", nullptr}, {"rule", nullptr}, {"message", m.what.message}};
    if (m.what.where.known()) e["file"] = m.what.where.source->name, e["line"] = m.what.where.line(), e["column"] = m.what.where.column();
    if (!m.rule.empty()) e["rule"] = m.rule;
    if (!m.what.hint.empty()) e["hint"] = m.what.hint;
    return e;
}

nlohmann::json as_json(const Rule& rule) {
    nlohmann::json v{{"rule", rule.name}, {"set", rule.set}, {"file", rule.where.source->name}, {"line", rule.where.line()}, {"arrow", text_of(rule.arrow)}};
    if (!rule.verdict) {
        v["proof"] = "not judged";
        return v;
    }
    const RuleVerdict& verdict = *rule.verdict;
    v["proof"] = to_string(verdict.proof), v["words"] = in_words(verdict);
    v["reorders_sums"] = verdict.reorders_sums, v["rounds_operands"] = !verdict.roundings.empty();
    v["factors"] = nlohmann::json::object();
    for (const auto& [variable, most] : verdict.most) v["factors"][variable] = most;
    if (!verdict.why.empty()) v["why"] = verdict.why;
    if (!verdict.counterexample.empty()) v["counterexample"] = verdict.counterexample;
    return v;
}

void print_verdicts(const RuleBook& book) {
    std::size_t longest = 0;
    for (const Rule* rule : book.rules()) longest = std::max(longest, rule->name.size());
    for (const Rule* rule : book.rules())
        fmt::print("  {:<{}}  {}\n", rule->name, longest,
                   rule->verdict ? in_words(*rule->verdict) : fmt::format("not judged: the language {} gives terms no meaning", book.language->name));
}

int check(const std::vector<std::string>& files, bool deep, Session& session) {
    nlohmann::json errors = nlohmann::json::array(), verdicts = nlohmann::json::array();
    std::size_t rules = 0;
    for (const std::string& file : files) {
        session.progress.stage(fmt::format("check {}", file));
        Loaded loaded;
        try {
            loaded = check_rules(std::filesystem::path(file), {.judge = true, .deep = deep, .again = true});
        } catch (const UserError& e) {  // the file itself cannot be read: the others are still checked
            for (const Diagnostic& d : e.diagnostics()) loaded.mistakes.push_back({d, ""});
        }
        session.progress.finish(loaded.mistakes.empty() ? fmt::format("{} rules", loaded.book.rule_count())
                                                        : fmt::format("{} mistakes", loaded.mistakes.size()));
        rules += loaded.book.rule_count();
        for (const Rule* rule : loaded.book.rules()) verdicts.push_back(as_json(*rule));
        for (const RuleMistake& m : loaded.mistakes) {
            if (!session.json) fmt::print(stderr, "{}\n", describe(m.what));
            errors.push_back(as_json(m));
        }
        if (loaded.mistakes.empty() && !session.json)
            fmt::print("{}: {} rules in {} sets, {} phases, language {}: no mistakes\n", file, loaded.book.rule_count(), loaded.book.sets.size(),
                       loaded.book.phases.size(), loaded.book.language->name);
        if (!session.json) print_verdicts(loaded.book);
    }
    const bool ok = errors.empty();
    if (session.json) session.answer({{"ok", ok}, {"rules", rules}, {"errors", std::move(errors)}, {"verdicts", std::move(verdicts)}});
    return static_cast<int>(ok ? ExitCode::done : ExitCode::failed);
}

// The phases that commands ask a rule file for.
struct PhaseUse {
    const char* phase;
    std::vector<std::string> commands;
    const char* what;
};
const std::vector<PhaseUse>& phase_uses() {
    static const std::vector<PhaseUse> all{
        {"networks", {"optimize"}, "networks that are faster and may lose accuracy"},
        {"layers", {"optimize"}, "the same networks with restricted nests of single layers"},
        {"sites", {"saturate"}, "variants of the nest of one site"},
        {"algorithms", {"optimize"}, "convolutions as rows of other nests"},
        {"layouts", {"optimize"}, "values between sites in blocks of channels"},
        {"schedule", {"optimize", "compile", "measure", "bundle"}, "schedules of a nest as a whole"},
        {"refine", {"optimize", "compile", "measure", "bundle"}, "what else these schedules may do"},
        {"vary", {"optimize"}, "schedules near one that was measured"},
        {"fuse", {"optimize", "compile", "measure", "bundle"}, "sites in a row as one nest"},
        {"stream", {"optimize", "compile"}, "sites in a row computed block by block"},
    };
    return all;
}

const PhaseUse* use_of(const std::string& phase) {
    for (const PhaseUse& use : phase_uses())
        if (phase == use.phase) return &use;
    return nullptr;
}

std::vector<std::string> phases_with(const RuleBook& book, const RuleSet& set) {
    std::vector<std::string> all;
    for (const Phase& p : book.phases)
        if (std::find(p.sets.begin(), p.sets.end(), set.name) != p.sets.end()) all.push_back(p.name);
    return all;
}

// A phase that uses a set: of the listed file ("" for its name), or of a shipped one that includes the file of the set.
struct SetUse {
    std::string file, phase;
    std::vector<std::string> commands;
};

std::vector<std::pair<std::string, RuleBook>> shipped_books() {
    std::vector<std::pair<std::string, RuleBook>> all;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(shipped("rules"), ignored))
        if (entry.path().extension() == ".rules") all.emplace_back(entry.path().filename().string(), load_rules(entry.path(), {.judge = false, .deep = false}));
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return all;
}

bool same_file(const std::string& a, const std::string& b) {
    std::error_code ignored;
    return std::filesystem::weakly_canonical(a, ignored) == std::filesystem::weakly_canonical(b, ignored);
}

std::vector<SetUse> uses_of(const RuleBook& book, const RuleSet& set, const std::vector<std::pair<std::string, RuleBook>>& books) {
    std::vector<SetUse> all;
    const auto add = [&](const std::string& file, const RuleBook& of) {
        for (const std::string& phase : phases_with(of, set)) {
            const PhaseUse* use = use_of(phase);
            all.push_back({file, phase, use ? use->commands : std::vector<std::string>{}});
        }
    };
    add("", book);
    for (const auto& [name, other] : books) {
        const RuleSet* same = other.find_set(set.name);
        if (same && same->where.source && set.where.source && same_file(same->where.source->name, set.where.source->name) &&
            !same_file(other.files.front()->name, book.files.front()->name))
            add(name, other);
    }
    return all;
}

// "schedule (optimize, compile), own-phase (no command), networks of discover.rules (optimize)".
std::string users(const std::vector<SetUse>& uses) {
    std::vector<std::string> all;
    for (const SetUse& u : uses)
        all.push_back(fmt::format("{}{} ({})", u.phase, u.file.empty() ? "" : " of " + u.file, u.commands.empty() ? "no command" : join(u.commands, ", ")));
    return all.empty() ? "no phase" : join(all, ", ");
}

int list_file(const std::string& file, Session& session) {
    const RuleBook book = load_rules(std::filesystem::path(file), {.judge = false, .deep = false});
    const auto books = shipped_books();
    if (session.json) {
        nlohmann::json sets = nlohmann::json::array(), phases = nlohmann::json::array();
        for (const RuleSet& set : book.sets) {
            nlohmann::json rules = nlohmann::json::array();
            for (const Rule& r : set.rules)
                rules.push_back({{"name", r.name},
                                 {"arrow", text_of(r.arrow)},
                                 {"file", r.where.source->name},
                                 {"line", r.where.line()},
                                 {"phases", phases_with(book, set)},
                                 {"text", r.text}});
            nlohmann::json used_by = nlohmann::json::array();
            for (const SetUse& u : uses_of(book, set, books))
                used_by.push_back({{"file", u.file.empty() ? nlohmann::json() : nlohmann::json(u.file)}, {"phase", u.phase}, {"commands", u.commands}});
            sets.push_back(
                {{"name", set.name}, {"tags", set.tags}, {"phases", phases_with(book, set)}, {"used_by", std::move(used_by)}, {"rules", std::move(rules)}});
        }
        for (const Phase& p : book.phases) {
            nlohmann::json phase{{"name", p.name}, {"sets", p.sets}, {"commands", nlohmann::json::array()}};
            if (const PhaseUse* use = use_of(p.name)) phase["commands"] = use->commands;
            if (p.iterations) phase["iterations"] = *p.iterations;
            if (p.nodes) phase["nodes"] = *p.nodes;
            if (p.seconds) phase["seconds"] = *p.seconds;
            if (!p.scheduler.empty()) phase["scheduler"] = p.scheduler;
            phases.push_back(std::move(phase));
        }
        session.answer({{"language", book.language->name}, {"sets", std::move(sets)}, {"phases", std::move(phases)}});
        return 0;
    }
    for (const RuleSet& set : book.sets) {
        fmt::print("{}{}, in {}\n", set.name, set.tags.empty() ? "" : " [" + join(set.tags, ", ") + "]", users(uses_of(book, set, books)));
        for (const Rule& r : set.rules) fmt::print("  {}\n", r.text);
    }
    for (const Phase& p : book.phases) {
        const PhaseUse* use = use_of(p.name);
        fmt::print("phase {}: {}{}\n", p.name, join(p.sets, ", "), use ? fmt::format(" ({}: {})", join(use->commands, ", "), use->what) : "");
    }
    return 0;
}

template <class Rows>
void print_rows(const char* what, const Rows& rows) {
    for (const auto& row : rows) {
        std::string call = "(" + row.name;
        for (const std::string& p : row.signature.parameters) call += " " + p;
        call += row.signature.more ? " ...)" : ")";
        fmt::print("  {:<9} {:<28} {}\n", what, call, row.summary);
    }
}

template <class Rows>
nlohmann::json rows_json(const Rows& rows) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& row : rows) all.push_back({{"name", row.name}, {"parameters", row.signature.parameters}, {"summary", row.summary}});
    return all;
}

int list_languages(Session& session) {
    if (session.json) {
        nlohmann::json all = nlohmann::json::array();
        for (const Language* l : languages()) {
            nlohmann::json operators = nlohmann::json::array();
            for (const OperatorKind& op : l->operators) operators.push_back({{"name", op.name}, {"kind", op.kind}, {"children", op.children}});
            all.push_back({{"name", l->name},
                           {"operators", std::move(operators)},
                           {"guards", rows_json(l->guards)},
                           {"lists", rows_json(l->lists)},
                           {"functions", rows_json(l->functions)}});
        }
        nlohmann::json measures = nlohmann::json::array();
        for (const MeasureKind& m : measure_kinds())
            measures.push_back({{"name", m.name}, {"unit", m.unit}, {"summary", m.summary}, {"most", m.most}, {"of_sizes", m.of_sizes}});
        session.answer(
            {{"languages", std::move(all)},
             {"measures", std::move(measures)},
             {"common", {{"guards", rows_json(common_guards())}, {"lists", rows_json(common_lists())}, {"functions", rows_json(common_functions())}}}});
        return 0;
    }
    for (const Language* l : languages()) {
        fmt::print("language {}{}\n", l->name, l->open ? ": any operator" : "");
        for (const OperatorKind& op : l->operators)
            fmt::print("  operator  {}\n", op.children.empty() ? op.name : "(" + op.name + " " + join(op.children, " ") + ")");
        print_rows("guard", l->guards);
        print_rows("list", l->lists);
        print_rows("function", l->functions);
    }
    fmt::print("every language\n");
    print_rows("guard", common_guards());
    print_rows("list", common_lists());
    print_rows("function", common_functions());
    fmt::print("measures of a changed network, for the conditions of neural rules and of phases: (NAME >= NUMBER), (NAME <= NUMBER)\n");
    for (const MeasureKind& m : measure_kinds())
        fmt::print("  {:<9} {:<28} {} ({}{})\n", "measure", m.name, m.summary, m.unit, m.of_sizes ? ", a formula of sizes" : "");
    return 0;
}

Action setup(CLI::App& app) {
    auto args = std::make_shared<Arguments>();
    app.require_subcommand(1);
    CLI::App* checking = app.add_subcommand("check", "report all mistakes in rule files")->fallthrough();
    checking->add_option("FILE", args->files, "rule files")->required();
    checking->add_flag("--deep", args->deep, "test each rule on many more instances");
    add_unproved_option(*checking);
    checking->callback([args] { args->check = true; });
    CLI::App* listing = app.add_subcommand("list", "print the rules of a file, or what the languages offer")->fallthrough();
    checking->footer("Example:\n  loopegg rules check rules/math.rules");
    listing->footer("Example:\n  loopegg rules list rules/neural.rules");
    listing->add_option("FILE", args->listed, "a rule file (default: list the languages)");
    return [args](Session& session) {
        if (args->check) return check(args->files, args->deep, session);
        return args->listed.empty() ? list_languages(session) : list_file(args->listed, session);
    };
}

}  // namespace cmd_rules

const Command rules_command{"rules", "check rule files, and list rules, operators and guards", "loopegg rules check rules/math.rules", cmd_rules::setup};

}  // namespace loopegg
