#include "base/sexpr.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

constexpr int max_parentheses = 2000;

class Reader {
public:
    explicit Reader(SourcePtr source) : source_(std::move(source)), text_(source_->text) {}

    std::vector<SExpr> all() {
        if (auto bad = first_invalid_utf8(text_)) fail("this byte is not valid UTF-8", *bad);
        // An explicit stack of open lists: hostile nesting must not use up the call stack.
        std::vector<SExpr> open(1);
        while (skip_blanks()) {
            std::size_t start = at_;
            if (text_[at_] == '(') {
                ++at_;
                if (open.size() > max_parentheses) fail("nested deeper than 2000 parentheses", start);
                open.push_back(SExpr{{source_, start}, true, false, {}, {}});
            } else if (text_[at_] == ')') {
                ++at_;
                if (open.size() == 1) fail("this ')' closes nothing", start);
                SExpr done = std::move(open.back());
                open.pop_back();
                open.back().items.push_back(std::move(done));
            } else {
                open.back().items.push_back(atom());
            }
        }
        if (open.size() > 1) fail("this '(' is never closed", open.back().where.offset);
        return std::move(open.front().items);
    }

private:
    [[noreturn]] void fail(std::string message, std::size_t offset) const { throw UserError(Diagnostic{std::move(message), {source_, offset}}); }

    bool skip_blanks() {
        while (at_ < text_.size()) {
            char c = text_[at_];
            if (c == ';') {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
                ++at_;
            } else {
                return true;
            }
        }
        return false;
    }

    SExpr atom() {
        SExpr e{{source_, at_}, false, false, {}, {}};
        if (text_[at_] == '"') {
            e.quoted = true;
            e.atom = quoted();
            return e;
        }
        std::size_t start = at_;
        while (at_ < text_.size() && std::string_view(" \t\r\n();\"").find(text_[at_]) == std::string_view::npos) {
            if (static_cast<unsigned char>(text_[at_]) < 0x20) fail("control character in a name", at_);
            ++at_;
        }
        e.atom = text_.substr(start, at_ - start);
        return e;
    }

    std::string quoted() {
        std::size_t start = at_++;
        std::string out;
        for (; at_ < text_.size(); ++at_) {
            char c = text_[at_];
            if (c == '"') {
                ++at_;
                return out;
            }
            if (c != '\\') {
                out += c;
                continue;
            }
            if (++at_ == text_.size()) break;
            switch (text_[at_]) {
                case 'n': out += '\n'; break;
                case 't': out += '\t'; break;
                case '"':
                case '\\': out += text_[at_]; break;
                default: fail("unknown escape in a string: expected \\n, \\t, \\\" or \\\\", at_ - 1);
            }
        }
        fail("this string is never closed", start);
    }

    SourcePtr source_;
    const std::string& text_;
    std::size_t at_ = 0;
};

}  // namespace

std::vector<SExpr> read_sexprs(const SourcePtr& source) { return Reader(source).all(); }

Term to_term(const SExpr& e) {
    if (!e.is_list) {
        if (e.atom.empty()) throw UserError(Diagnostic{"an empty name is no term", e.where});
        // A quoted name that would not read back as one atom keeps its quotes, so that printing stays readable.
        bool plain = !e.quoted || e.atom.find_first_of(" \t\r\n();\"\\") == std::string::npos;
        return Term(Symbol(plain ? e.atom : to_string(e)));
    }
    if (e.items.empty()) throw UserError(Diagnostic{"'()' is no term: expected an operator", e.where});
    if (e.items[0].is_list) throw UserError(Diagnostic{"a term's operator must be a name", e.items[0].where});
    std::vector<Term> children;
    for (std::size_t i = 1; i < e.items.size(); ++i) children.push_back(to_term(e.items[i]));
    return Term(to_term(e.items[0]).op(), std::move(children));
}

Term parse_term(std::string_view text, std::string name) {
    SourcePtr source = make_source(std::move(name), std::string(text));
    auto all = read_sexprs(source);
    if (all.size() != 1) throw UserError(Diagnostic{"expected one term, found " + std::to_string(all.size()), {source, all.empty() ? 0 : all[1].where.offset}});
    return to_term(all[0]);
}

std::string to_string(const SExpr& e) {
    if (e.is_list) {
        std::string out = "(";
        for (std::size_t i = 0; i < e.items.size(); ++i) out += (i ? " " : "") + to_string(e.items[i]);
        return out + ")";
    }
    if (!e.quoted) return e.atom;
    std::string out = "\"";
    for (char c : e.atom) {
        if (c == '"' || c == '\\')
            out += '\\', out += c;
        else if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else
            out += c;
    }
    return out + "\"";
}

}  // namespace loopegg
