#include "graph/onnx/model_bytes.hpp"

#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

// One description of every part serves both ways: `io(value)` writes the value, or reads it.
template <class IO>
void each_part(IO& io, OnnxTensor& t) {
    io(t.kind), io(t.dims), io(t.floats), io(t.doubles), io(t.integers), io(t.type), io(t.elsewhere);
}
template <class IO>
void each_part(IO& io, OnnxNode& n) {
    io(n.op), io(n.name), io(n.inputs), io(n.outputs), io(n.attrs), io(n.domain), io(n.has_subgraph);
}
template <class IO>
void each_part(IO& io, OnnxValue& v) {
    io(v.name), io(v.shape), io(v.has_shape), io(v.type), io(v.symbols);
}
template <class IO>
void each_part(IO& io, OnnxModel& m) {
    io(m.name), io(m.producer), io(m.ir_version), io(m.opset), io(m.inputs), io(m.outputs), io(m.nodes), io(m.initializers), io(m.metadata);
}
template <class IO, class A, class B>
void each_part(IO& io, std::pair<A, B>& p) {
    io(p.first), io(p.second);
}

class Writer {
public:
    explicit Writer(std::ostream& out) : out_(out) {}

    template <class T>
    void operator()(T& value) {
        if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
            raw(&value, sizeof value);
        else
            each_part(*this, value);
    }
    void operator()(std::string& text) { list(text.data(), text.size()); }
    template <class T>
    void operator()(std::vector<T>& all) {
        if constexpr (std::is_arithmetic_v<T>) return list(all.data(), all.size());
        size(all.size());
        for (T& one : all) (*this)(one);
    }
    template <class T>
    void operator()(std::map<std::string, T>& all) {
        size(all.size());
        for (auto& [name, value] : all) {
            std::string key = name;
            (*this)(key), (*this)(value);
        }
    }
    void operator()(OnnxAttr& value) {
        size(value.index());
        std::visit([&](auto& v) { (*this)(v); }, value);
    }

private:
    void raw(const void* bytes, std::size_t count) { out_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count)); }
    void size(std::uint64_t n) { raw(&n, sizeof n); }
    template <class T>
    void list(const T* values, std::size_t count) {
        size(count);
        if (count) raw(values, count * sizeof(T));
    }
    std::ostream& out_;
};

class Reader {
public:
    Reader(const std::string& file, std::string_view bytes) : file_(file), left_(bytes) {}

    template <class T>
    void operator()(T& value) {
        if constexpr (std::is_same_v<T, bool>)
            value = number<std::uint8_t>() != 0;
        else if constexpr (std::is_same_v<T, OnnxTensor::Kind>)
            value = static_cast<OnnxTensor::Kind>(below(number<int>(), 4));
        else if constexpr (std::is_arithmetic_v<T>)
            value = number<T>();
        else
            each_part(*this, value);
    }
    void operator()(std::string& text) {
        const std::size_t count = size(1);
        text.assign(left_.data(), count), left_.remove_prefix(count);
    }
    template <class T>
    void operator()(std::vector<T>& all) {
        if constexpr (std::is_arithmetic_v<T>) {
            const std::size_t count = size(sizeof(T));
            all.resize(count);
            if (count) std::memcpy(all.data(), left_.data(), count * sizeof(T));
            left_.remove_prefix(count * sizeof(T));
        } else {
            for (std::size_t count = size(8); count > 0; --count) (*this)(all.emplace_back());  // every part of ours takes 8 bytes or more
        }
    }
    template <class T>
    void operator()(std::map<std::string, T>& all) {
        for (std::size_t count = size(8); count > 0; --count) {
            std::string key;
            (*this)(key), (*this)(all[key]);
        }
    }
    void operator()(OnnxAttr& value) {
        switch (number<std::uint64_t>()) {
            case 0: (*this)(value.emplace<0>()); break;
            case 1: (*this)(value.emplace<1>()); break;
            case 2: (*this)(value.emplace<2>()); break;
            case 3: (*this)(value.emplace<3>()); break;
            case 4: (*this)(value.emplace<4>()); break;
            case 5: (*this)(value.emplace<5>()); break;
            case 6: (*this)(value.emplace<6>()); break;
            default: fail();
        }
    }
    void expect_end() const {
        if (!left_.empty()) fail();
    }

private:
    [[noreturn]] void fail() const { throw UserError(fmt::format("cannot read '{}': the process that parsed it answered garbage", file_)); }
    template <class T>
    T number() {
        if (left_.size() < sizeof(T)) fail();
        T value;
        std::memcpy(&value, left_.data(), sizeof value);
        left_.remove_prefix(sizeof value);
        return value;
    }
    int below(int n, int end) const { return n >= 0 && n < end ? n : (fail(), 0); }
    // So many elements follow, of so many bytes at least: no more than there are bytes.
    std::size_t size(std::size_t width) {
        const auto n = number<std::uint64_t>();
        if (n > left_.size() / width) fail();
        return n;
    }

    const std::string& file_;
    std::string_view left_;
};

}  // namespace

void write_model_bytes(const OnnxModel& model, std::ostream& out) {
    Writer writer(out);
    writer(const_cast<OnnxModel&>(model));  // a writer changes nothing
}

OnnxModel read_model_bytes(const std::string& file, std::string_view bytes) {
    OnnxModel model;
    Reader reader(file, bytes);
    reader(model);
    reader.expect_end();
    return model;
}

}  // namespace loopegg
