#include "base/hash.hpp"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace loopegg {
namespace {

std::uint64_t scramble(std::uint64_t x) {  // the finaliser of splitmix64: every input bit reaches every output bit
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

}  // namespace

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

void Hasher::mix(std::uint64_t word) {
    ++words_;
    state_[0] = std::rotl(state_[0] ^ scramble(word), 29) * 0x9fb21c651e98df25ull + state_[1];
    state_[1] = std::rotl(state_[1] ^ scramble(word + 0x9e3779b97f4a7c15ull), 37) * 0xd6e8feb86659fd93ull + state_[0];
}

Hasher& Hasher::add(std::uint64_t value) {
    mix(value);
    return *this;
}

Hasher& Hasher::add(double value) { return add(std::bit_cast<std::uint64_t>(value)); }

Hasher& Hasher::add(std::string_view bytes) {
    mix(bytes.size());
    while (!bytes.empty()) {
        std::uint64_t word = 0;  // assembled byte by byte: the same on either byte order
        std::size_t n = bytes.size() < 8 ? bytes.size() : 8;
        for (std::size_t i = 0; i < n; ++i) word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
        mix(word);
        bytes.remove_prefix(n);
    }
    return *this;
}

Hash128 Hasher::finish() const {
    std::uint64_t a = scramble(state_[0] + words_), b = scramble(state_[1] ^ std::rotl(a, 17));
    return {scramble(a + b), b};
}

Hash128 hash_of(std::string_view bytes) { return Hasher().add(bytes).finish(); }

bool is_hex_of_hash(std::string_view text) { return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos; }

}  // namespace loopegg
