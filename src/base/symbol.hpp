// Interned names: a Symbol is a 32-bit handle, so comparing, hashing and storing a name costs what an integer costs.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace loopegg {

class Symbol {
public:
    Symbol() = default;                      // the empty name
    explicit Symbol(std::string_view text);  // safe to call from several threads
    const std::string& text() const;
    std::uint32_t id() const { return id_; }
    bool empty() const { return id_ == 0; }
    static Symbol from_id(std::uint32_t id) {
        Symbol s;
        s.id_ = id;
        return s;
    }

    // Ids follow the order of first interning: use them for identity, never for an order that a user sees.
    friend bool operator==(Symbol, Symbol) = default;
    friend auto operator<=>(Symbol, Symbol) = default;

private:
    std::uint32_t id_ = 0;
};

}  // namespace loopegg

template <>
struct std::hash<loopegg::Symbol> {
    std::size_t operator()(loopegg::Symbol s) const noexcept { return s.id() * 0x9E3779B97F4A7C15ull; }
};
