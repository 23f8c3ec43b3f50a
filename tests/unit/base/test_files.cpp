// Files that are read: regular ones, and nothing that keeps a reader waiting.
#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/places.hpp"
#include "base/regular_file.hpp"

using namespace loopegg;
namespace fs = std::filesystem;

namespace {

struct Folder {
    fs::path path = fs::temp_directory_path() / ("loopegg-files-" + std::to_string(::getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
};

// A variable of the environment, as it was before when the object goes.
struct Variable {
    std::string name, before;
    bool was_set;
    Variable(std::string n, const char* value) : name(std::move(n)), was_set(std::getenv(name.c_str()) != nullptr) {
        if (was_set) before = std::getenv(name.c_str());
        value ? ::setenv(name.c_str(), value, 1) : ::unsetenv(name.c_str());
    }
    ~Variable() { was_set ? ::setenv(name.c_str(), before.c_str(), 1) : ::unsetenv(name.c_str()); }
};

}  // namespace

TEST_CASE("what is no regular file is refused by name and kind, and nobody waits for it", "[errors][base]") {
    Folder folder;
    const fs::path pipe = folder.path / "pipe", link = folder.path / "link";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    fs::create_symlink(pipe, link);
    CHECK_THROWS_WITH(read_file(pipe), Catch::Contains("pipe': it is a pipe, expected a file"));
    CHECK_THROWS_WITH(read_source(link), Catch::Contains("it is a pipe"));
    CHECK_THROWS_WITH(read_part(pipe, 0, 1), Catch::Contains("it is a pipe"));
    CHECK_THROWS_WITH(read_file("/dev/zero"), Catch::Contains("it is a device"));
    CHECK_THROWS_WITH(read_file(folder.path), Catch::Contains("it is a directory"));
    CHECK_THROWS_WITH(read_file(folder.path / "none"), Catch::Contains("No such file"));
    CHECK_THROWS_WITH(refuse_special_file("use", pipe), Catch::Contains("cannot use"));
    CHECK_NOTHROW(refuse_special_file("use", folder.path / "none"));
}

TEST_CASE("a device is not replaced by a file", "[errors][base]") {
    Folder folder;
    const fs::path pipe = folder.path / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_THROWS_WITH(write_file(pipe, "text"), Catch::Contains("cannot write") && Catch::Contains("it is a pipe"));
    CHECK(fs::is_fifo(pipe));
}

TEST_CASE("a part of a file ends where the file ends", "[unit][base]") {
    Folder folder;
    write_file(folder.path / "f", "0123456789");
    CHECK(read_part(folder.path / "f", 0, 1) == "0");
    CHECK(read_part(folder.path / "f", 4, 3) == "456");
    CHECK(read_part(folder.path / "f", 8, 5) == "89");
    CHECK(read_part(folder.path / "f", 20, 5).empty());
    CHECK(read_file(folder.path / "f", 10) == "0123456789");
    CHECK_THROWS_WITH(read_file(folder.path / "f", 9), Catch::Contains("larger than 9 bytes"));
}

TEST_CASE("a home that is empty or relative is no place for a cache", "[unit][base]") {
    const Variable cache("XDG_CACHE_HOME", ""), config("XDG_CONFIG_HOME", nullptr), home("HOME", "");
    CHECK(in_cache_folder("x").is_absolute());
    CHECK(in_config_folder("x").is_absolute());
    const Variable relative("HOME", "somewhere");
    CHECK(in_cache_folder("x").is_absolute());
    const Variable given("XDG_CACHE_HOME", "/c");
    CHECK(in_cache_folder("x") == "/c/loopegg/x");
}
