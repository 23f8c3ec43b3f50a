#include <catch2/catch.hpp>

#include <filesystem>
#include <set>
#include <string>

#include "base/files.hpp"
#include "base/hash.hpp"

using namespace loopegg;

TEST_CASE("values are framed: where one ends matters", "[unit][base]") {
    CHECK(Hasher().add("ab").add("c").finish() != Hasher().add("a").add("bc").finish());
    CHECK(Hasher().add("").finish() != Hasher().finish());
}

TEST_CASE("stored keys never change: these are part of the file format", "[unit][base]") {
    CHECK(hash_of("loopegg").hex() == "4ba3dfdbb10f905625102e58282c865a");
    CHECK(Hasher().add(1).add(2.5).add("x").finish().hex() == "59b0b34c65b9be1a8e84497619db8077");
}

TEST_CASE("near inputs do not collide", "[unit][base]") {
    std::set<Hash128> seen;
    for (int i = 0; i < 100'000; ++i) seen.insert(Hasher().add(i).add(i / 7).finish());
    CHECK(seen.size() == 100'000);
}

TEST_CASE("SHA-256 is that of FIPS 180-4", "[unit][base]") {
    CHECK(sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256_of(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("lengths around a block are padded as they should be", "[unit][base]") {
    CHECK(sha256_of(std::string(55, 'a')) == "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    CHECK(sha256_of(std::string(56, 'a')) == "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    CHECK(sha256_of(std::string(64, 'a')) == "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST_CASE("a file has the hash of its bytes", "[unit][base]") {
    const auto file = std::filesystem::temp_directory_path() / "sha256.bin";
    write_file(file, std::string_view("a\0b\xff", 4));
    CHECK(sha256_of_file(file) == sha256_of(std::string_view("a\0b\xff", 4)));
    std::filesystem::remove(file);
}
