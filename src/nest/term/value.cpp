#include "nest/term/value.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/term/bilinear.hpp"

namespace loopegg {
namespace {

std::vector<Buffer> inputs_of(const Statement& s) {
    std::vector<Buffer> all;
    for (const Buffer& b : s.buffers)
        if (b.kind != BufferKind::output) all.push_back(b);
    return all;
}

// The place of a constant of a statement's first epilogue among the operands: "E0scale" for the suffix "scale".
std::size_t epilogue_operand(const std::vector<Buffer>& operands, std::string_view suffix, const Term& value) {
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i].name[0] == 'E') {
            if (operands[i].name.ends_with(suffix)) return i;
            break;
        }
    throw UserError("nothing to prepare in " + to_string(value) + ": its first epilogue has no " + std::string(suffix));
}

std::size_t weights_of(const std::vector<Buffer>& operands, const Term& value) {
    auto w = std::find_if(operands.begin(), operands.end(), [](const Buffer& b) { return b.name == "W"; });
    if (w == operands.end()) throw UserError("nothing to prepare in " + to_string(value) + ": it has no weights");
    return static_cast<std::size_t>(w - operands.begin());
}

[[noreturn]] void unknown(const Term& value) {
    throw UserError("'" + to_string(value) + "' is no value: expected site, then, feed, with, both, sums, columns, blocks or prepare");
}

const std::string& how_of(const Term& value) { return value[0].op().text(); }

bool is_pair(const Term& value) { return value.is("both", 3) || value.is("sums", 3); }

// How many values a nest that comes next may read in addition to I: as J, and as K.
std::size_t others_of(const Term& value) {
    if (value.is("with", 2)) return others_of(value[0]) + 1;
    return is_pair(value) ? 1 : value.is("blocks", 2) || value.is("prepare", 2) ? others_of(value[1]) : 0;
}

// The buffers that a nest after `value` reads of operands of its own.
std::vector<Buffer> own_inputs(const Term& nest, std::size_t others) {
    std::vector<Buffer> all = inputs_of(statement_in(nest));
    std::erase_if(all, [&](const Buffer& b) { return b.name == "I" || (b.name == "J" && others > 0) || (b.name == "K" && others > 1); });
    return all;
}

void append(std::vector<Buffer>& all, std::vector<Buffer> more) {
    for (Buffer& b : more) all.push_back(std::move(b));
}

}  // namespace

bool is_value(const Term& t) {
    return t.is("site", 1) || t.is("then", 2) || t.is("feed", 3) || t.is("prepare", 2) || t.is("with", 2) || is_pair(t) || t.is("columns", 2) ||
           t.is("blocks", 2);
}

std::vector<Buffer> operands_of(const Term& value) {
    if (value.is("site", 1)) return inputs_of(statement_in(value[0]));
    if (value.is("columns", 2)) return inputs_of(statement_in(value[1]));
    if (value.is("blocks", 2)) return operands_of(value[1]);
    if (value.is("then", 2) || value.is("with", 2) || is_pair(value)) {
        std::vector<Buffer> all = operands_of(value[0]);
        for (std::size_t i = 1; i < value.size(); ++i) append(all, own_inputs(value[i], others_of(value[0])));
        return all;
    }
    if (value.is("feed", 3)) {
        std::vector<Buffer> all;
        for (Buffer& b : inputs_of(statement_in(value[2]))) {
            if (b.name != how_of(value)) {
                all.push_back(std::move(b));
                continue;
            }
            for (Buffer& inner : operands_of(value[1])) all.push_back(std::move(inner));
        }
        return all;
    }
    if (!value.is("prepare", 2)) unknown(value);
    std::vector<Buffer> all = operands_of(value[1]);
    auto insert = [&](std::size_t at, Buffer b) { all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), std::move(b)); };
    if (how_of(value) == "fold-bias") {
        std::size_t scale = epilogue_operand(all, "scale", value);
        Buffer bias = all[scale];
        bias.name = "E0bias";
        insert(scale, bias);
    } else if (how_of(value) == "fold-scale") {
        weights_of(all, value);
        std::size_t shift = epilogue_operand(all, "bias", value);
        Buffer scale = all[shift];
        scale.name = "E0scale", all[shift].name = "E1shift";
        insert(shift, scale);
    } else if (const auto pair = bilinear_pair(value[0])) {
        const std::int64_t products = pair->products();
        const std::size_t at = weights_of(all, value);
        Buffer weights = all[at];
        if (at == 0 || weights.shape.size() != 4 || weights.shape[0] % products != 0)
            throw UserError("nothing to prepare in " + to_string(value) + ": its weights are not transformed");
        weights.shape = {weights.shape[0] / products, weights.shape[1], pair->down.taps(), pair->along.taps()};
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
        insert(0, std::move(weights));
    } else {
        unknown(value);
    }
    return all;
}

Operands prepared(const Term& how, const std::vector<Buffer>& after, Operands operands) {
    const Term value("prepare", {how});
    if (const auto pair = bilinear_pair(how)) {
        std::rotate(operands.begin(), operands.begin() + 1, operands.begin() + static_cast<std::ptrdiff_t>(weights_of(after, value)) + 1);
        std::vector<float>& weights = operands[weights_of(after, value)];
        weights = bilinear_weights(*pair, weights);
        return operands;
    }
    if (how.op().text() == "fold-bias") {
        const std::size_t bias = epilogue_operand(after, "scale", value);
        const std::vector<float>& scale = operands[bias + 1];
        for (std::size_t c = 0; c < scale.size(); ++c) operands[bias + 2][c] += operands[bias][c] * scale[c];
        operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(bias));
        return operands;
    }
    const std::size_t at = epilogue_operand(after, "bias", value);
    std::vector<float>& weights = operands[weights_of(after, value)];
    const std::vector<float>& scale = operands[at];
    const std::size_t of_channel = scale.empty() ? 0 : weights.size() / scale.size();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= scale[i / of_channel];
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(at));
    return operands;
}

std::vector<Term> nests_of(const Term& value) {
    if (value.is("site", 1)) return {value[0]};
    if (!value.is("then", 2)) unknown(value);
    std::vector<Term> all = nests_of(value[0]);
    all.push_back(value[1]);
    return all;
}

namespace {

// What a nest may read by name: I, and J and K where there are such values.
using Values = std::vector<std::vector<float>>;

class Interpretation {
public:
    explicit Interpretation(const Operands& operands) : operands_(operands) {}

    Values values(const Term& value) {
        if (value.is("site", 1)) return {nest(value[0], {})};
        if (value.is("columns", 2)) return {nest(value[1], {})};
        if (value.is("blocks", 2)) return values(value[1]);
        if (value.is("feed", 3)) return {fed(value)};
        if (value.is("prepare", 2)) {
            const auto count = static_cast<std::ptrdiff_t>(operands_of(value).size());
            const auto first = operands_.begin() + static_cast<std::ptrdiff_t>(next_);
            next_ += static_cast<std::size_t>(count);
            return {interpret_value(value[1], prepared(value[0], operands_of(value[1]), Operands(first, first + count)))};
        }
        if (!value.is("then", 2) && !value.is("with", 2) && !is_pair(value)) unknown(value);
        Values all = values(value[0]), made;
        for (std::size_t i = 1; i < value.size(); ++i) made.push_back(nest(value[i], all));
        if (!value.is("with", 2)) return made;
        all.push_back(std::move(made[0]));
        return all;
    }

private:
    std::vector<float> nest(const Term& nest, const Values& before) {
        static constexpr const char* names[] = {"I", "J", "K"};
        Buffers buffers;
        for (std::size_t i = 0; i < before.size() && i < std::size(names); ++i) buffers[names[i]] = before[i];
        for (const Buffer& b : inputs_of(statement_in(nest)))
            if (!buffers.contains(b.name)) buffers[b.name] = operands_.at(next_++);
        return interpret(nest, buffers);
    }
    std::vector<float> fed(const Term& value) {
        Buffers buffers;
        for (const Buffer& b : inputs_of(statement_in(value[2]))) buffers[b.name] = b.name == how_of(value) ? values(value[1]).front() : operands_.at(next_++);
        return interpret(value[2], buffers);
    }

    const Operands& operands_;
    std::size_t next_ = 0;
};

}  // namespace

std::vector<float> interpret_value(const Term& value, const Operands& operands) { return Interpretation(operands).values(value).front(); }

}  // namespace loopegg
