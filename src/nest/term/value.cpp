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

[[noreturn]] void unknown(const Term& value) { throw UserError("'" + to_string(value) + "' is no value: expected site, then, feed or prepare"); }

const std::string& how_of(const Term& value) { return value[0].op().text(); }

}  // namespace

std::vector<Buffer> operands_of(const Term& value) {
    if (value.is("site", 1)) return inputs_of(statement_in(value[0]));
    if (value.is("then", 2)) {
        std::vector<Buffer> all = operands_of(value[0]);
        for (Buffer& b : inputs_of(statement_in(value[1])))
            if (b.name != "I") all.push_back(std::move(b));
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

std::vector<float> interpret_value(const Term& value, const Operands& operands) {
    if (value.is("prepare", 2)) return interpret_value(value[1], prepared(value[0], operands_of(value[1]), operands));
    if (!value.is("site", 1) && !value.is("then", 2) && !value.is("feed", 3)) unknown(value);
    const Term& nest = value[value.size() - 1];
    Buffers buffers;
    std::size_t next = 0;
    if (value.is("then", 2)) {
        next = operands_of(value[0]).size();
        buffers["I"] = interpret_value(value[0], Operands(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(next)));
    }
    for (const Buffer& b : inputs_of(statement_in(nest))) {
        if (value.is("feed", 3) && b.name == how_of(value)) {
            const auto first = operands.begin() + static_cast<std::ptrdiff_t>(next);
            next += operands_of(value[1]).size();
            buffers[b.name] = interpret_value(value[1], Operands(first, operands.begin() + static_cast<std::ptrdiff_t>(next)));
        } else if (!buffers.contains(b.name)) {
            buffers[b.name] = operands.at(next++);
        }
    }
    return interpret(nest, buffers);
}

}  // namespace loopegg
