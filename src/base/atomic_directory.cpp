#include "base/atomic_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/system_words.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

constexpr const char* manifest_name = "manifest.json";
constexpr const char* committed_name = ".loopegg-committed";
constexpr const char* staged_prefix = ".loopegg-new-";
constexpr const char* lock_name = ".loopegg-lock";

struct Entry {
    std::uintmax_t bytes = 0;
    std::string hash;
};
using Manifest = std::map<std::string, Entry>;  // by path inside the folder

// A path that stays inside: the manifest may be a stranger's.
bool stays_inside(const fs::path& p) {
    if (p.empty() || p.is_absolute()) return false;
    for (const fs::path& part : p)
        if (part == ".." || part == "." || part.empty()) return false;
    return true;
}

// A name whose way leads through a link leads out of the folder. A folder of ours has no links, but the folder may be a stranger's.
bool through_a_link(const fs::path& folder, const fs::path& name) {
    std::error_code ignored;
    fs::path at = folder;
    for (const fs::path& part : name.parent_path())
        if (fs::is_symlink(at /= part, ignored)) return true;
    return false;
}

void refuse_links(const fs::path& folder, const Manifest& all) {
    for (const auto& [name, entry] : all)
        if (through_a_link(folder, name))
            throw UserError(Diagnostic{fmt::format("the folder '{}' names '{}', which leads through a link", folder.string(), name),
                                       {},
                                       "a folder of loopegg has no links: remove them, or create the folder again"});
}

Manifest read_manifest(const fs::path& file) {
    const JsonView view = read_json(read_source(file, 64 << 20));
    view.at("loopegg").integer(1, 1);
    Manifest all;
    for (const auto& [name, entry] : view.at("files").members()) {
        if (!stays_inside(name)) entry.fail(fmt::format("'{}' is not a path inside the folder", name));
        all[name] = {static_cast<std::uintmax_t>(entry.at("bytes").integer(0, std::int64_t{1} << 50)), entry.at("hash").text()};
    }
    return all;
}

void write_manifest(const fs::path& folder, const Manifest& all) {
    nlohmann::json files = nlohmann::json::object();
    for (const auto& [name, e] : all) files[name] = {{"bytes", e.bytes}, {"hash", e.hash}};
    write_file(folder / manifest_name, nlohmann::json{{"loopegg", 1}, {"files", files}}.dump(1) + "\n");
}

Entry entry_of(const fs::path& file) {
    const std::string bytes = read_file(file);
    return {bytes.size(), hash_of(bytes).hex()};
}

Manifest manifest_of(const fs::path& folder) {
    Manifest all;
    for (const auto& e : fs::recursive_directory_iterator(folder))
        if (e.is_regular_file() && e.path().filename() != lock_name) all[e.path().lexically_relative(folder).string()] = entry_of(e.path());
    all.erase(manifest_name);
    return all;
}

// Held while files are moved. A folder that we may not write to is left as it is.
class Lock {
public:
    Lock(const fs::path& file, int how) : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
        if (fd_ >= 0 && ::flock(fd_, how) != 0) ::close(fd_), fd_ = -1;
    }
    ~Lock() {
        if (fd_ >= 0) ::close(fd_);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    bool held() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }
    bool is(const fs::path& file) const {
        struct stat ours, there;
        return ::fstat(fd_, &ours) == 0 && ::lstat(file.c_str(), &there) == 0 && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
    }

private:
    int fd_;
};

// The lock of a folder, whose file goes with it, however the work under it ends. Whoever waits for a file that is gone by then asks again.
class FolderLock {
public:
    explicit FolderLock(const fs::path& folder) : file_(folder / lock_name) {
        do lock_.emplace(file_, LOCK_EX);
        while (lock_->held() && !lock_->is(file_));
    }
    ~FolderLock() {
        std::error_code ignored;
        if (lock_->held()) fs::remove(file_, ignored);
    }
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;
    bool held() const { return lock_->held(); }

private:
    fs::path file_;
    std::optional<Lock> lock_;
};

void move_into_place(const fs::path& from, const fs::path& to) {
    if (fault_here(FaultPlace::write)) fail_system("write", to, ENOSPC);
    std::error_code error;
    if (fs::is_directory(to, error)) fs::remove_all(to, error);
    fs::create_directories(to.parent_path());
    fs::rename(from, to);
}

// Puts what was committed in place; may be called again after a kill at any moment.
void install(const fs::path& folder) {
    const fs::path committed = folder / committed_name;
    std::error_code ignored;
    if (fs::is_symlink(committed)) throw UserError(fmt::format("'{}' is a link, expected a folder that loopegg wrote", committed.string()));
    if (!fs::exists(committed / manifest_name)) {  // the manifest moves last: whoever was killed had only this folder left to remove
        fs::remove_all(committed, ignored);
        return;
    }
    const Manifest fresh = read_manifest(committed / manifest_name);
    refuse_links(folder, fresh), refuse_links(committed, fresh);
    if (fs::exists(folder / manifest_name)) {
        Manifest old;
        try {
            old = read_manifest(folder / manifest_name);
        } catch (const UserError&) {  // a manifest that cannot be read names nothing
        }
        refuse_links(folder, old);
        for (const auto& [name, entry] : old)
            if (!fresh.contains(name)) fs::remove(folder / name, ignored);
        for (const auto& [name, entry] : old)  // folders that are empty now
            for (fs::path up = fs::path(name).parent_path(); !up.empty() && fs::is_empty(folder / up, ignored) && !ignored; up = up.parent_path())
                fs::remove(folder / up, ignored);
    }
    for (const auto& [name, entry] : fresh)
        if (fs::exists(committed / name)) move_into_place(committed / name, folder / name);
    move_into_place(committed / manifest_name, folder / manifest_name);
    fs::remove_all(committed, ignored);
}

// Folders of updates whose process is gone: their lock can be had.
void clear_dead(const fs::path& folder) {
    std::error_code ignored;
    std::vector<fs::path> dead;
    for (const auto& e : fs::directory_iterator(folder, ignored)) {
        if (!e.path().filename().string().starts_with(staged_prefix) || e.is_symlink(ignored)) continue;
        Lock lock(e.path() / lock_name, LOCK_EX | LOCK_NB);
        if (lock.held()) dead.push_back(e.path());
    }
    for (const fs::path& d : dead) fs::remove_all(d, ignored);
}

}  // namespace

void seal_folder(const fs::path& folder) { write_manifest(folder, manifest_of(folder)); }

FolderUpdate::FolderUpdate(const fs::path& folder) : folder_(fs::absolute(folder)) {
    std::error_code error;
    made_ = fs::create_directories(folder_, error);
    if (error) fail_system("make the folder", folder, error.value());
    finish_update(folder_);
    clear_dead(folder_);
    std::string name = (folder_ / (staged_prefix + std::string("XXXXXX"))).string();
    if (fault_here(FaultPlace::write) ? (errno = ENOSPC, true) : !::mkdtemp(name.data())) fail_system("write into the folder", folder, errno);
    staged_ = name;
    ::chmod(name.c_str(), 0755);
    Lock lock(staged_ / lock_name, LOCK_EX | LOCK_NB);
    if (!lock.held()) fail_system("write into the folder", folder, errno);
    lock_ = lock.release();
}

FolderUpdate::~FolderUpdate() {
    std::error_code ignored;
    if (!staged_.empty()) {
        fs::remove_all(staged_, ignored);
        if (made_) fs::remove(folder_, ignored);  // unless somebody put something there
    }
    if (lock_ >= 0) ::close(lock_);
}

void FolderUpdate::commit() {
    std::error_code ignored;
    seal_folder(staged_);
    FolderLock lock(folder_);
    if (!lock.held()) fail_system("write into the folder", folder_, errno);
    if (fs::exists(folder_ / committed_name)) install(folder_);  // of another update, killed since we began
    if (fault_here(FaultPlace::write)) fail_system("write", folder_, ENOSPC);
    fs::remove(staged_ / lock_name, ignored);
    fs::rename(staged_, folder_ / committed_name);
    staged_.clear();
    try {
        install(folder_);
    } catch (const std::exception&) {  // what is committed can be put in place again, now or by whoever reads the folder next
        install(folder_);
    }
}

void finish_update(const fs::path& folder) {
    std::error_code ignored;
    if (!fs::exists(folder / committed_name, ignored)) return;
    FolderLock lock(folder);
    if (!lock.held()) fail_system("finish the update of the folder", folder, errno);
    if (fs::exists(folder / committed_name, ignored)) install(folder);
}

std::vector<std::string> manifest_faults(const fs::path& folder, const std::string& except) {
    std::error_code ignored;
    if (!fs::exists(folder / manifest_name, ignored)) return {"it has no manifest.json, so whether its files belong together is unknown"};
    std::vector<std::string> faults;
    Manifest all;
    try {
        all = read_manifest(folder / manifest_name);
    } catch (const UserError& e) {
        return {e.what()};
    }
    for (const auto& [name, entry] : all) {
        if (name == except) continue;
        const fs::path file = folder / name;
        if (!fs::is_regular_file(file, ignored))
            faults.push_back(fmt::format("{} is gone", name));
        else if (fs::file_size(file, ignored) != entry.bytes)
            faults.push_back(fmt::format("{} has {} bytes and had {}", name, fs::file_size(file, ignored), entry.bytes));
        else if (entry_of(file).hash != entry.hash)
            faults.push_back(fmt::format("{} was changed", name));
    }
    return faults;
}

void require_whole(const fs::path& folder, const std::string& made_by, const std::string& except) {
    finish_update(folder);
    const std::vector<std::string> faults = manifest_faults(folder, except);
    if (faults.empty()) return;
    std::string text = fmt::format("the folder '{}' is not as it was written: {}", folder.string(), faults[0]);
    if (faults.size() > 1) text += fmt::format(", and {} more", faults.size() - 1);
    throw UserError(Diagnostic{text, {}, "create it again: " + made_by});
}

void write_into(const fs::path& folder, const std::string& name, const std::string& bytes) {
    std::error_code ignored;
    finish_update(folder);
    const bool listed = fs::exists(folder / manifest_name, ignored);
    Manifest all;
    if (listed) all = read_manifest(folder / manifest_name);
    if (all.erase(name) != 0) write_manifest(folder, all);  // whoever is killed here leaves a file that is not named, not one that is wrong
    write_file(folder / name, bytes);
    all[name] = {bytes.size(), hash_of(bytes).hex()};
    if (listed) write_manifest(folder, all);
}

}  // namespace loopegg
