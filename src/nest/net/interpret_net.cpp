#include "nest/net/interpret_net.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "nest/net/net_walk.hpp"
#include "nest/net/resize.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

// Channels of a value of the whole network that are there: their numbers, and what they hold.
struct Present {
    std::vector<std::int64_t> numbers;
    std::int64_t of = 0;  // channels of the value in the whole network
    std::vector<float> values;
    std::size_t places() const { return numbers.empty() ? 0 : values.size() / numbers.size(); }
};

std::vector<std::int64_t> first(std::int64_t count) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

class NetRun final : public NetVisitor {
public:
    NetRun(const NetImage& input, const NetWeights& weights, NetMemory& memory) : weights_(weights), memory_(memory) {
        values_[""] = {first(input.channels), input.channels, input.values};
    }

    std::string layer(const NetSite& site, const Term& nest, const NetValue& in) override {
        const auto whole = weights_.whole.find(site.name);
        if (whole == weights_.whole.end()) throw UserError("no site is named '" + site.name + "'");
        const Statement s = statement_in(nest), original = statement_in(whole->second);
        const Present& read = values_.at(in.name);
        const bool depthwise = is_depthwise(s);
        if (static_cast<std::int64_t>(read.numbers.size()) != input_channels(s))
            throw UserError(fmt::format("'{}' reads {} channels, and {} come in", site.name, input_channels(s), read.numbers.size()));
        Present out{depthwise ? read.numbers : first(output_channels(s)), output_channels(original), {}};
        auto [known, fresh] = memory_[Term(net_name(site.name).op(), {nest})].try_emplace({read.numbers, read.values});
        if (fresh) {
            Buffers buffers;
            buffers["I"] = read.values;
            buffers["W"] = slice(weights_.of(site.name, whole->second), original, out.numbers, depthwise ? first(1) : read.numbers);
            known->second = interpret(nest, buffers);
        }
        out.values = known->second;
        return keep(site.name, std::move(out));
    }
    std::string each(const std::string& node, const NetValue& in) override {
        Present out = values_.at(in.name);
        for (float& v : out.values) v = std::max(v, 0.0f);
        return keep(node, std::move(out));
    }
    std::string add(const std::string& node, const std::vector<NetValue>& operands) override {
        Present out = values_.at(operands.front().name);
        for (std::size_t i = 1; i < operands.size(); ++i) {
            const Present& next = values_.at(operands[i].name);
            if (next.numbers != out.numbers) throw UserError("'" + node + "' adds channels that do not match");
            for (std::size_t v = 0; v < out.values.size(); ++v) out.values[v] += next.values[v];
        }
        return keep(node, std::move(out));
    }
    std::string concat(const std::string& node, const std::vector<NetValue>& operands) override {
        Present out;
        for (const NetValue& operand : operands) {
            const Present& next = values_.at(operand.name);
            for (std::int64_t n : next.numbers) out.numbers.push_back(out.of + n);
            out.of += next.of;
            out.values.insert(out.values.end(), next.values.begin(), next.values.end());
        }
        return keep(node, std::move(out));
    }
    std::string tangle(const std::string&, const std::string&, const std::vector<NetLayer>&, const NetValue&) override {
        throw UserError("a tangle cannot be run");
    }

    const Present& value(const std::string& name) const { return values_.at(name); }

private:
    // Of weights of outputs by inputs by taps, those between the channels that are there.
    static std::vector<float> slice(const std::vector<float>& whole, const Statement& s, const std::vector<std::int64_t>& outputs,
                                    const std::vector<std::int64_t>& inputs) {
        const std::size_t columns = is_depthwise(s) ? 1 : static_cast<std::size_t>(input_channels(s));
        const std::size_t taps = whole.size() / static_cast<std::size_t>(output_channels(s)) / columns;
        std::vector<float> out;
        for (std::int64_t o : outputs)
            for (std::int64_t i : inputs) {
                const auto from = whole.begin() + static_cast<std::ptrdiff_t>((static_cast<std::size_t>(o) * columns + static_cast<std::size_t>(i)) * taps);
                out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(taps));
            }
        return out;
    }

    std::string keep(const std::string& name, Present value) {
        values_[name] = std::move(value);
        return name;
    }

    const NetWeights& weights_;
    NetMemory& memory_;
    std::map<std::string, Present> values_;
};

}  // namespace

NetImage interpret_net(const Term& net, const NetImage& input, const NetWeights& weights, NetMemory& memory) {
    NetRun run(input, weights, memory);
    const Present& out = run.value(walk_net(net, {"", input.channels}, run).name);
    return {static_cast<std::int64_t>(out.numbers.size()), out.values};
}

}  // namespace loopegg
