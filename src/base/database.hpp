// SQLite files that several processes open at once: opened, upgraded, waited for and complained about in one place.
#pragma once
#include <sqlite3.h>

#include <filesystem>
#include <string>

namespace loopegg {

class Database {
public:
    // `name` is for words ("the latency store"). Makes the file and its folder if need be. `version` is written into a new file (user_version);
    // a file of a later one is refused, since we cannot know what its rows mean. Throws UserError with the path, the cause and what to do.
    Database(const std::filesystem::path& file, std::string name, int version, const char* schema);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    // Runs statements. A file that others hold is waited for, at most `patience` seconds.
    void run(const char* sql);
    bool try_run(const char* sql);   // false where it fails
    int changes() const { return sqlite3_changes(handle_); }
    sqlite3* handle() const { return handle_; }
    const std::filesystem::path& file() const { return file_; }
    [[noreturn]] void fail(int code) const;

    static constexpr double patience = 60;

private:
    std::filesystem::path file_;
    std::string name_;
    sqlite3* handle_ = nullptr;
};

// One statement, bound from left to right, and stepped.
class Query {
public:
    Query(Database& db, const char* sql);
    ~Query() { sqlite3_finalize(statement_); }
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;
    Query& bind(const std::string& v);
    Query& bind(double v);
    Query& bind(std::int64_t v);
    bool row();              // the next one; false at the end
    void done() { while (row()) {} }
    std::string text(int column) const;
    double real(int column) const { return sqlite3_column_double(statement_, column); }
    std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
    bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

private:
    Database& db_;
    sqlite3_stmt* statement_ = nullptr;
    int bound_ = 0;
};

// All or nothing, also when an exception or a kill comes in between. It begins by writing, so nobody writes between its reads and its writes.
class Transaction {
public:
    explicit Transaction(Database& db) : db_(db) { db_.run("BEGIN IMMEDIATE"); }
    ~Transaction() { if (!committed_) db_.try_run("ROLLBACK"); }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit() { db_.run("COMMIT"), committed_ = true; }

private:
    Database& db_;
    bool committed_ = false;
};

}  // namespace loopegg
