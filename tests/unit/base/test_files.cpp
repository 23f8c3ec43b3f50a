// Files that are read: regular ones, and nothing that keeps a reader waiting. Folders that are replaced as a whole.
#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/places.hpp"
#include "base/regular_file.hpp"
#include "base/scratch.hpp"

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

namespace {

struct UpdatedFolder {
    ScratchFile name{".folder"};
    ~UpdatedFolder() { fs::remove_all(path()); }
    const fs::path& path() const { return name.path(); }
    std::string read(const char* file) const { return read_file(path() / file); }
};

void write(const UpdatedFolder& f, const std::string& a, const std::string& b) {
    FolderUpdate update(f.path());
    write_file(update.path() / "a", a);
    fs::create_directories(update.path() / "inside");
    write_file(update.path() / "inside" / "b", b);
    update.commit();
}

}  // namespace

TEST_CASE("a folder is replaced as one, and what is not ours stays", "[unit]") {
    UpdatedFolder f;
    write(f, "1", "2");
    CHECK(manifest_faults(f.path()).empty());
    write_file(f.path() / "mine", "m");
    {
        FolderUpdate update(f.path());
        write_file(update.path() / "c", "3");
        CHECK(f.read("a") == "1");
        update.commit();
    }
    CHECK_FALSE(fs::exists(f.path() / "a"));
    CHECK_FALSE(fs::exists(f.path() / "inside"));
    CHECK(f.read("c") == "3");
    CHECK(f.read("mine") == "m");
    CHECK(manifest_faults(f.path()).empty());
}

TEST_CASE("an update that is not committed leaves nothing", "[unit]") {
    UpdatedFolder f;
    { FolderUpdate update(f.path()); }
    CHECK_FALSE(fs::exists(f.path()));
    write(f, "1", "2");
    {
        FolderUpdate update(f.path());
        write_file(update.path() / "a", "other");
    }
    CHECK(f.read("a") == "1");
    CHECK(std::distance(fs::directory_iterator(f.path()), {}) == 3);  // a, inside, manifest.json
}

TEST_CASE("a commit that fails leaves no lock behind", "[unit]") {
    UpdatedFolder f, elsewhere;
    fs::create_directories(elsewhere.path());
    write(f, "1", "2");
    {
        FolderUpdate update(f.path());
        write_file(update.path() / "a", "other");
        fs::create_symlink(elsewhere.path(), f.path() / ".loopegg-committed");  // no folder of ours has a link there
        CHECK_THROWS_AS(update.commit(), UserError);
    }
    fs::remove(f.path() / ".loopegg-committed");
    CHECK(f.read("a") == "1");
    CHECK(std::distance(fs::directory_iterator(f.path()), {}) == 3);  // a, inside, manifest.json
}

TEST_CASE("a commit that was cut anywhere is finished by the next who looks", "[unit]") {
    for (int moved = 0; moved < 3; ++moved) {
        UpdatedFolder f;
        write(f, "old", "old");
        write(f, "new", "new");
        // As after a kill: the files that were not moved yet lie in the committed folder.
        const fs::path committed = f.path() / ".loopegg-committed";
        fs::create_directories(committed / "inside");
        fs::copy_file(f.path() / "manifest.json", committed / "manifest.json");
        if (moved < 2) fs::rename(f.path() / "inside" / "b", committed / "inside" / "b");
        if (moved < 1) fs::rename(f.path() / "a", committed / "a");
        finish_update(f.path());
        CHECK(f.read("a") == "new");
        CHECK(f.read("inside/b") == "new");
        CHECK_FALSE(fs::exists(committed));
        CHECK(manifest_faults(f.path()).empty());
    }
}

TEST_CASE("every change of a file is a fault", "[unit]") {
    UpdatedFolder f;
    write(f, "1", "2");
    write_file(f.path() / "a", "2");
    CHECK(manifest_faults(f.path()) == std::vector<std::string>{"a was changed"});
    CHECK(manifest_faults(f.path(), "a").empty());
    write_file(f.path() / "a", "");
    CHECK(manifest_faults(f.path()).size() == 1);
    fs::remove(f.path() / "a");
    CHECK(manifest_faults(f.path()) == std::vector<std::string>{"a is gone"});
    CHECK_THROWS_WITH(require_whole(f.path(), "loopegg optimize"), Catch::Contains("a is gone") && Catch::Contains("loopegg optimize"));
    write_file(f.path() / "manifest.json", "{}");
    CHECK(manifest_faults(f.path()).size() == 1);
    write_file(f.path() / "manifest.json", R"({"loopegg": 1, "files": {"../x": {"bytes": 1, "hash": ""}}})");
    CHECK_THAT(manifest_faults(f.path()).at(0), Catch::Contains("not a path inside"));
}

TEST_CASE("a file that is made anew keeps the folder whole", "[unit]") {
    UpdatedFolder f;
    write(f, "1", "2");
    write_into(f.path(), "page", "p");
    write_into(f.path(), "page", "q");
    CHECK(manifest_faults(f.path()).empty());
    CHECK(f.read("page") == "q");
}

TEST_CASE("who is killed after the last file moved leaves an update that is finished", "[unit][base]") {
    const ScratchFolder scratch(fs::temp_directory_path() / "loopegg-whole-folder-last");
    const fs::path folder = scratch.path() / "out";
    {
        FolderUpdate update(folder);
        write_file(update.path() / "a.json", "1");
        update.commit();
    }
    fs::create_directories(folder / ".loopegg-committed" / "finalists");  // what is left of it: folders that are empty
    CHECK_NOTHROW(require_whole(folder, "again"));
    CHECK(!fs::exists(folder / ".loopegg-committed"));
    CHECK(read_file(folder / "a.json") == "1");
    fs::create_directories(folder / ".loopegg-committed");
    {
        FolderUpdate update(folder);
        write_file(update.path() / "a.json", "2");
        update.commit();
    }
    CHECK(read_file(folder / "a.json") == "2");
}

TEST_CASE("links in a stranger's folder lead no write and no removal out of it", "[errors][base]") {
    const UpdatedFolder outside, f;
    fs::create_directories(outside.path());
    write_file(outside.path() / "kept", "k");
    const std::string manifest = R"({"loopegg": 1, "files": {"way/NAME": {"bytes": 1, "hash": "x"}}})";
    auto naming = [&](const std::string& name) { return std::string(manifest).replace(manifest.find("NAME"), 4, name); };
    auto untouched = [&] { return read_file(outside.path() / "kept") == "k" && std::distance(fs::directory_iterator(outside.path()), {}) == 1; };
    SECTION("a file that is put in place") {
        fs::create_directories(f.path() / ".loopegg-committed" / "way");
        write_file(f.path() / ".loopegg-committed" / "way" / "evil", "e");
        write_file(f.path() / ".loopegg-committed" / "manifest.json", naming("evil"));
        fs::create_directory_symlink(outside.path(), f.path() / "way");
        CHECK_THROWS_WITH(finish_update(f.path()), Catch::Contains("leads through a link"));
    }
    SECTION("a file of the old manifest that is taken away") {
        fs::create_directories(f.path() / ".loopegg-committed");
        write_file(f.path() / ".loopegg-committed" / "manifest.json", R"({"loopegg": 1, "files": {}})");
        write_file(f.path() / "manifest.json", naming("kept"));
        fs::create_directory_symlink(outside.path(), f.path() / "way");
        CHECK_THROWS_WITH(finish_update(f.path()), Catch::Contains("leads through a link"));
    }
    SECTION("the folder of an update itself, and its lock") {
        fs::create_directories(f.path());
        fs::create_directory_symlink(outside.path(), f.path() / ".loopegg-new-x");
        { const FolderUpdate update(f.path()); }
        CHECK(untouched());
        fs::create_directory_symlink(outside.path(), f.path() / ".loopegg-committed");
        CHECK_THROWS_WITH(finish_update(f.path()), Catch::Contains("is a link"));
        fs::remove(f.path() / ".loopegg-lock");
        fs::create_symlink(outside.path() / "lock", f.path() / ".loopegg-lock");
        CHECK_THROWS_AS(finish_update(f.path()), UserError);
    }
    CHECK(untouched());
}

TEST_CASE("threads that write one file at a time leave it whole", "[unit]") {
    const UpdatedFolder f;
    fs::create_directories(f.path());
    const std::string bytes(100'000, 'x');
    std::atomic<int> failed{0};
    std::vector<std::thread> team;
    for (int t = 0; t < 8; ++t)
        team.emplace_back([&] {
            for (int i = 0; i < 20; ++i) try {
                    write_file(f.path() / "same", bytes);
                } catch (const UserError&) {
                    ++failed;
                }
        });
    for (std::thread& t : team) t.join();
    CHECK(failed == 0);
    CHECK(f.read("same") == bytes);
    CHECK(std::distance(fs::directory_iterator(f.path()), fs::directory_iterator()) == 1);  // and nothing beside it
}
