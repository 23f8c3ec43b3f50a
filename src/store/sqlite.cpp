// Stores in SQLite files, which the processes of one machine share.
#include <sqlite3.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/regular_file.hpp"
#include "store/backend.hpp"
#include "store/schema.hpp"

namespace loopegg {
namespace {

constexpr double patience = 60;  // seconds that a file held by others is waited for

// What a person can do about SQLite's answer.
std::string remedy(int code, const std::filesystem::path& file) {
    switch (code & 0xff) {
        case SQLITE_FULL: return "free some space there, or name another store (LOOPEGG_STORE, LOOPEGG_EVIDENCE)";
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

const char* sqlite_type(ColumnType type) {
    switch (type) {
        case ColumnType::text: return "TEXT";
        case ColumnType::integer: return "INTEGER";
        case ColumnType::real: return "REAL";
        case ColumnType::number: return "INTEGER PRIMARY KEY AUTOINCREMENT";
    }
    return "";
}

class Sqlite : public StoreBackend {
public:
    Sqlite(const std::filesystem::path& file, std::string name) : file_(file), name_(std::move(name)) {
        std::error_code error;
        if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
        if (error)
            throw UserError(
                Diagnostic{fmt::format("{} '{}': its folder cannot be made: {}", name_, file.string(), error.message()), {}, remedy(SQLITE_CANTOPEN, file)});
        refuse_special_file("use", file);
        const int code = fault_here(FaultPlace::store)
                             ? SQLITE_CANTOPEN
                             : sqlite3_open_v2(file.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
        try {
            if (code != SQLITE_OK) fail(code);
            sqlite3_busy_timeout(handle_, static_cast<int>(patience * 1000));
            distrust_schema(handle_);
            if (const std::string part = foreign_part(handle_); !part.empty())
                throw UserError(Diagnostic{fmt::format("{} '{}' has {}, which no loopegg wrote", name_, file.string(), part),
                                           {},
                                           fmt::format("'loopegg store repair {}' keeps its rows alone; or name another store", file.string())});
            run("PRAGMA journal_mode=WAL");
            run("PRAGMA synchronous=NORMAL");
        } catch (...) {
            sqlite3_close(handle_);
            throw;
        }
    }
    ~Sqlite() override { sqlite3_close(handle_); }

    [[noreturn]] void fail(int code) const {
        const std::string why = handle_ && sqlite3_errcode(handle_) != SQLITE_OK ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
        throw UserError(Diagnostic{fmt::format("{} '{}': {}", name_, file_.string(), why), {}, remedy(code, file_)});
    }
    [[noreturn]] void fail_for_a_test() override { fail(SQLITE_FULL); }

    std::unique_ptr<StoreRows> execute(const std::string& sql, const std::vector<StoreValue>& values) override;
    std::int64_t changes() const override { return sqlite3_changes(handle_); }
    void begin() override { run("BEGIN IMMEDIATE"); }
    void commit() override { run("COMMIT"); }
    void roll_back() noexcept override { sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr); }
    const char* skip_locked() const override { return ""; }  // a transaction has the whole file

    int version() override {
        auto rows = execute("PRAGMA user_version", {});
        return rows->next() ? static_cast<int>(rows->integer(0)) : 0;
    }
    void set_version(int version) override { run(fmt::format("PRAGMA user_version={}", version).c_str()); }
    void lock_for_upgrade() override {}
    std::set<std::string> columns_of(const Table& table) override {
        std::set<std::string> found;
        for (auto rows = execute(fmt::format("PRAGMA table_info({})", table.name), {}); rows->next();) found.insert(rows->text(1));
        return found;
    }
    void create(const Table& table) override {
        std::string text;
        bool counted = false;
        for (const Column& c : table.columns)
            text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", c.name, sqlite_type(c.type), c.rest), counted = counted || c.type == ColumnType::number;
        run((counted ? fmt::format("CREATE TABLE {}({})", table.name, text)
                     : fmt::format("CREATE TABLE {}({}, PRIMARY KEY({})) WITHOUT ROWID", table.name, text, fmt::join(table.key, ", ")))
                .c_str());
    }
    void add_column(const Table& table, const Column& column) override {
        run(fmt::format("ALTER TABLE {} ADD COLUMN {} {} {}", table.name, column.name, sqlite_type(column.type), column.rest).c_str());
    }
    void protect(const Table& table) override {
        for (const char* deed : {"UPDATE", "DELETE"})
            run(fmt::format("CREATE TRIGGER IF NOT EXISTS {0}_{2} BEFORE {1} ON {0} BEGIN SELECT RAISE(ABORT, '{0} is append-only'); END", table.name, deed,
                            deed[0] == 'U' ? "stays" : "remains")
                    .c_str());
    }

    void run(const char* sql) {
        if (fault_here(FaultPlace::store)) fail(SQLITE_FULL);
        // Switching to WAL and beginning to write do not always wait by themselves (sqlite3_busy_timeout), as everything else does.
        const double until = monotonic_seconds() + patience;
        int code = SQLITE_BUSY;
        while ((code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr)) == SQLITE_BUSY && monotonic_seconds() < until) sqlite3_sleep(50);
        if (code != SQLITE_OK) fail(code);
    }
    sqlite3* handle() const { return handle_; }

private:
    std::filesystem::path file_;
    std::string name_;
    sqlite3* handle_ = nullptr;
};

class SqliteRows : public StoreRows {
public:
    SqliteRows(const Sqlite& db, const std::string& sql) : db_(db) {
        const double until = monotonic_seconds() + patience;
        int code = SQLITE_BUSY;
        while ((code = sqlite3_prepare_v2(db.handle(), sql.c_str(), -1, &statement_, nullptr)) == SQLITE_BUSY && monotonic_seconds() < until) sqlite3_sleep(50);
        if (code != SQLITE_OK) db.fail(code);
    }
    ~SqliteRows() override { sqlite3_finalize(statement_); }
    SqliteRows(const SqliteRows&) = delete;
    SqliteRows& operator=(const SqliteRows&) = delete;

    void bind(int place, const StoreValue& value) {
        if (const auto* t = std::get_if<std::string>(&value))
            sqlite3_bind_text(statement_, place, t->data(), static_cast<int>(t->size()), SQLITE_TRANSIENT);
        else if (const auto* d = std::get_if<double>(&value))
            sqlite3_bind_double(statement_, place, *d);
        else if (const auto* i = std::get_if<std::int64_t>(&value))
            sqlite3_bind_int64(statement_, place, *i);
        else
            sqlite3_bind_null(statement_, place);
    }
    bool next() override {
        const double until = monotonic_seconds() + patience;
        int code = SQLITE_BUSY;
        while (((code = sqlite3_step(statement_)) == SQLITE_BUSY || code == SQLITE_LOCKED) && monotonic_seconds() < until)
            sqlite3_reset(statement_), sqlite3_sleep(50);
        if (code != SQLITE_ROW && code != SQLITE_DONE) db_.fail(code);
        return code == SQLITE_ROW;
    }
    std::string text(int column) const override {
        const unsigned char* t = sqlite3_column_text(statement_, column);
        return t ? reinterpret_cast<const char*>(t) : "";
    }
    double real(int column) const override { return sqlite3_column_double(statement_, column); }
    std::int64_t integer(int column) const override { return sqlite3_column_int64(statement_, column); }
    bool null(int column) const override { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

private:
    const Sqlite& db_;
    sqlite3_stmt* statement_ = nullptr;
};

std::unique_ptr<StoreRows> Sqlite::execute(const std::string& sql, const std::vector<StoreValue>& values) {
    auto rows = std::make_unique<SqliteRows>(*this, sql);
    for (std::size_t i = 0; i < values.size(); ++i) rows->bind(static_cast<int>(i) + 1, values[i]);
    return rows;
}

}  // namespace

std::unique_ptr<StoreBackend> open_sqlite(const StoreAddress& address, const std::string& name) { return std::make_unique<Sqlite>(address.file(), name); }

}  // namespace loopegg
