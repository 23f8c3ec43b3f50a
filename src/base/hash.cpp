#include "base/hash.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "base/files.hpp"

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

namespace {

constexpr std::size_t block_bytes = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
    0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
    0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
    0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
    0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class State {
public:
    void add(const char* block) {
        std::array<std::uint32_t, 64> w{};
        for (std::size_t i = 0; i < 16; ++i)
            for (std::size_t b = 0; b < 4; ++b) w[i] = w[i] << 8 | static_cast<unsigned char>(block[4 * i + b]);
        for (std::size_t i = 16; i < 64; ++i) {
            const std::uint32_t low = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
            const std::uint32_t high = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
            w[i] = w[i - 16] + low + w[i - 7] + high;
        }
        auto [a, b, c, d, e, f, g, h] = words_;
        for (std::size_t i = 0; i < 64; ++i) {
            const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + constants[i] + w[i];
            const std::uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
        }
        const std::array<std::uint32_t, 8> more{a, b, c, d, e, f, g, h};
        for (std::size_t i = 0; i < 8; ++i) words_[i] += more[i];
    }

    std::string hex() const {
        std::string text;
        for (std::uint32_t word : words_) text += fmt::format("{:08x}", word);
        return text;
    }

private:
    std::array<std::uint32_t, 8> words_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
};

}  // namespace

std::string sha256_of(std::string_view bytes) {
    State state;
    const std::size_t whole = bytes.size() / block_bytes * block_bytes;
    for (std::size_t at = 0; at < whole; at += block_bytes) state.add(bytes.data() + at);
    std::string rest(bytes.substr(whole));  // with a one, zeros, and the number of bits
    rest += '\x80';
    rest.resize((rest.size() + 8 + block_bytes - 1) / block_bytes * block_bytes - 8);
    for (int shift = 56; shift >= 0; shift -= 8) rest += static_cast<char>(std::uint64_t{bytes.size()} * 8 >> shift);
    for (std::size_t at = 0; at < rest.size(); at += block_bytes) state.add(rest.data() + at);
    return state.hex();
}

std::string sha256_of_file(const std::filesystem::path& file) { return sha256_of(read_file(file)); }

}  // namespace loopegg
