#include "base/database.hpp"

#include <chrono>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/fault.hpp"

namespace loopegg {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// What a person can do about SQLite's answer.
std::string remedy(int code, const std::filesystem::path& file) {
    switch (code & 0xff) {
        case SQLITE_FULL: return "make room there, or name another store (LOOPEGG_STORE, LOOPEGG_EVIDENCE)";
        case SQLITE_READONLY:
        case SQLITE_CANTOPEN:
        case SQLITE_PERM: return "name a store that you may write to (LOOPEGG_STORE, LOOPEGG_EVIDENCE)";
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB: return fmt::format("'loopegg store repair {}' keeps what can be read; or name another store", file.string());
        case SQLITE_BUSY:
        case SQLITE_LOCKED: return "another process has held it for a minute: is one stopped?";
        default: return "";
    }
}

}  // namespace

void Database::fail(int code) const {
    const std::string why = handle_ && sqlite3_errcode(handle_) != SQLITE_OK ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
    throw UserError(Diagnostic{fmt::format("{} '{}': {}", name_, file_.string(), why), {}, remedy(code, file_)});
}

Database::Database(const std::filesystem::path& file, std::string name, int version, const char* schema) : file_(file), name_(std::move(name)) {
    std::error_code error;
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
    if (error) throw UserError(Diagnostic{fmt::format("{} '{}': its folder cannot be made: {}", name_, file.string(), error.message()), {}, remedy(SQLITE_CANTOPEN, file)});
    const int code = fault_here(FaultPlace::store) ? SQLITE_CANTOPEN : sqlite3_open_v2(file.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
    try {
        if (code != SQLITE_OK) fail(code);
        sqlite3_busy_timeout(handle_, static_cast<int>(patience * 1000));
        run("PRAGMA journal_mode=WAL");
        run("PRAGMA synchronous=NORMAL");
        std::int64_t found = 0;
        {
            Query q(*this, "PRAGMA user_version");
            if (q.row()) found = q.integer(0);
        }
        if (found > version)
            throw UserError(Diagnostic{fmt::format("{} '{}' is of a later loopegg (its version is {}, this program knows {})", name_, file.string(), found, version), {},
                                       "name another store, or use the later program"});
        run(schema);
        if (found != version) run(fmt::format("PRAGMA user_version={}", version).c_str());
    } catch (...) {
        sqlite3_close(handle_);
        throw;
    }
}

Database::~Database() { sqlite3_close(handle_); }

void Database::run(const char* sql) {
    if (fault_here(FaultPlace::store)) fail(SQLITE_FULL);
    // Switching to WAL and beginning to write do not always wait by themselves (sqlite3_busy_timeout), as everything else does.
    const double until = now() + patience;
    int code = SQLITE_BUSY;
    while ((code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr)) == SQLITE_BUSY && now() < until) sqlite3_sleep(50);
    if (code != SQLITE_OK) fail(code);
}

bool Database::try_run(const char* sql) { return sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) == SQLITE_OK; }

Query::Query(Database& db, const char* sql) : db_(db) {
    if (fault_here(FaultPlace::store)) db.fail(SQLITE_FULL);
    const double until = now() + Database::patience;
    int code = SQLITE_BUSY;
    while ((code = sqlite3_prepare_v2(db.handle(), sql, -1, &statement_, nullptr)) == SQLITE_BUSY && now() < until) sqlite3_sleep(50);
    if (code != SQLITE_OK) db.fail(code);
}

Query& Query::bind(const std::string& v) {
    sqlite3_bind_text(statement_, ++bound_, v.data(), static_cast<int>(v.size()), SQLITE_TRANSIENT);
    return *this;
}
Query& Query::bind(double v) {
    sqlite3_bind_double(statement_, ++bound_, v);
    return *this;
}
Query& Query::bind(std::int64_t v) {
    sqlite3_bind_int64(statement_, ++bound_, v);
    return *this;
}

bool Query::row() {
    const double until = now() + Database::patience;
    int code = SQLITE_BUSY;
    while (((code = sqlite3_step(statement_)) == SQLITE_BUSY || code == SQLITE_LOCKED) && now() < until) sqlite3_reset(statement_), sqlite3_sleep(50);
    if (code != SQLITE_ROW && code != SQLITE_DONE) db_.fail(code);
    return code == SQLITE_ROW;
}

std::string Query::text(int column) const {
    const unsigned char* t = sqlite3_column_text(statement_, column);
    return t ? reinterpret_cast<const char*>(t) : "";
}

}  // namespace loopegg
