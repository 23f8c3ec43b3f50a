// What one instance of a statement computes, and an output element's last step, in float32: shared by the interpreter and the reference.
#pragma once
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "graph/domain_sets.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/interpreter.hpp"

namespace loopegg {

// Row-major places in a shape.
inline std::size_t flat(const Shape& shape, std::span<const std::int64_t> index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
    return static_cast<std::size_t>(at);
}

inline bool inside(const Shape& shape, std::span<const std::int64_t> index) {
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (index[d] < 0 || index[d] >= shape[d]) return false;
    return true;
}

// A scalar term with its leaves looked up once: buffers become slots of an operand array.
class ScalarProgram {
public:
    ScalarProgram(const Term& term, const std::vector<std::string>& slots) {
        if (term.size() == 0) {
            for (std::size_t i = 0; i < slots.size(); ++i)
                if (slots[i] == term.op().text()) slot_ = static_cast<int>(i);
            if (slot_ < 0) constant_ = std::strtod(term.op().text().c_str(), nullptr);
        }
        function_ = term.op().text();
        for (const Term& child : term.children()) children_.emplace_back(child, slots);
    }
    float at(std::span<const float> operands) const {
        if (children_.empty()) return slot_ >= 0 ? operands[static_cast<std::size_t>(slot_)] : static_cast<float>(constant_);
        double x[2] = {0, 0};
        for (std::size_t i = 0; i < children_.size(); ++i) x[i] = children_[i].at(operands);
        return static_cast<float>(apply_scalar(function_, std::span(x, children_.size())));
    }

private:
    std::string function_;
    std::vector<ScalarProgram> children_;
    int slot_ = -1;
    double constant_ = 0;
};

// What an instance and an output element's last step compute, over buffers.
class InstanceKernel {
public:
    InstanceKernel(const Statement& s, const Buffers& given) : s_(s), value_(s.value, read_names(s)), finish_(s.finish, finish_names(s)) {
        for (const Buffer& b : s.buffers) {
            auto it = given.find(b.name);
            auto size = static_cast<std::size_t>(element_count(b.shape));
            if (it != given.end() && it->second.size() != size) throw UserError("buffer " + b.name + " has the wrong number of elements");
            if (it == given.end() && b.kind != BufferKind::output) throw UserError("buffer " + b.name + " is not given");
            data.push_back(it != given.end() ? it->second : std::vector<float>(size, 0.0f));
        }
    }

    float read(const Access& a, std::span<const std::int64_t> index) const {
        const Shape& shape = s_.buffers[static_cast<std::size_t>(a.buffer)].shape;
        if (!inside(shape, index)) return static_cast<float>(s_.outside);
        return data[static_cast<std::size_t>(a.buffer)][flat(shape, index)];
    }
    // What an instance reads, and after it the statement's own coefficients there.
    void add_coefficients(std::vector<float>& operands, std::span<const std::int64_t> iterators) const {
        for (const Coefficient& c : s_.coefficients)
            operands.push_back(static_cast<float>(c.at(iterators[static_cast<std::size_t>(c.row)], iterators[static_cast<std::size_t>(c.column)])));
    }
    float value(std::span<const float> operands) const { return value_.at(operands); }
    float combine(float acc, float v) const {
        return s_.combine == Combine::sum ? acc + v : s_.combine == Combine::max ? (v < acc || acc != acc ? acc : v) : v;
    }
    float finish(float acc, std::span<const std::int64_t> output) const {
        std::vector<float> operands{acc};
        for (const FinishRead& r : s_.finish_reads) {
            std::vector<std::int64_t> index;
            for (int d : r.dimensions) index.push_back(output[static_cast<std::size_t>(d)]);
            operands.push_back(data[static_cast<std::size_t>(r.buffer)][flat(s_.buffers[static_cast<std::size_t>(r.buffer)].shape, index)]);
        }
        return finish_.at(operands);
    }

    std::vector<std::vector<float>> data;  // in addition to Statement::buffers

private:
    static std::vector<std::string> read_names(const Statement& s) {
        std::vector<std::string> names;
        for (const Access& a : s.reads) names.push_back(s.buffers[static_cast<std::size_t>(a.buffer)].name);
        for (const Coefficient& c : s.coefficients) names.push_back(c.name);
        return names;
    }
    static std::vector<std::string> finish_names(const Statement& s) {
        std::vector<std::string> names{"acc"};
        for (const FinishRead& r : s.finish_reads) names.push_back(s.buffers[static_cast<std::size_t>(r.buffer)].name);
        return names;
    }
    const Statement& s_;
    ScalarProgram value_, finish_;
};

// Where each output element comes from when missing ones are brought back (-1: it is zero); nothing when none are.
inline std::vector<std::int64_t> restored_sources(const Statement& s, const Domain& domain) {
    return domain.restore == Restore::none ? std::vector<std::int64_t>{} : output_sources(domain, graph_axes(s));
}

}  // namespace loopegg
