// A 128-bit hash that is the same on every machine and in every release: the key of everything that is stored.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace loopegg {

struct Hash128 {
    std::uint64_t high = 0, low = 0;
    std::string hex() const;  // 32 lower-case digits
    friend bool operator==(const Hash128&, const Hash128&) = default;
    friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

// Feeds values one after another. Each value is framed, so ("ab","c") and ("a","bc") differ.
class Hasher {
public:
    Hasher& add(std::string_view bytes);
    Hasher& add(std::uint64_t value);
    Hasher& add(std::int64_t value) { return add(static_cast<std::uint64_t>(value)); }
    Hasher& add(int value) { return add(static_cast<std::uint64_t>(static_cast<std::int64_t>(value))); }
    Hasher& add(double value);
    Hasher& add(const Hash128& h) { return add(h.high).add(h.low); }
    Hash128 finish() const;

private:
    void mix(std::uint64_t word);
    std::array<std::uint64_t, 2> state_{0x6c6f6f7065676721ull, 0x9ae16a3b2f90404full};
    std::uint64_t words_ = 0;
};

Hash128 hash_of(std::string_view bytes);
bool is_hex_of_hash(std::string_view text);  // as Hash128::hex writes it

// SHA-256 (FIPS 180-4): the hash by which others recognise a file, with any program of theirs.
std::string sha256_of(std::string_view bytes);  // 64 lower-case digits
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace loopegg
