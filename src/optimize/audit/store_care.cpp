#include "optimize/audit/store_care.hpp"

#include <sqlite3.h>

#include <ctime>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/measure/latency_store.hpp"
#include "base/error.hpp"
#include "base/owner.hpp"
#include "base/regular_file.hpp"
#include "base/text.hpp"
#include "store/database.hpp"
#include "store/schema.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;
using StoredRow = std::vector<StoreValue>;  // in the order of the table's columns

// Reads a store as it is: nothing is made, changed or upgraded.
class StoreReader {
public:
    virtual ~StoreReader() = default;
    virtual bool has(const Table& table) = 0;
    // Calls `row` for every row that can be read. Returns the error that ended the reading, or "". A column that the table lacks is empty.
    virtual std::string each(const Table& table, const std::function<void(const StoredRow&)>& row) = 0;
};

class FileReader : public StoreReader {
public:
    explicit FileReader(const fs::path& file) {
        refuse_special_file("read", file);
        sqlite3_open_v2(file.c_str(), &db_, SQLITE_OPEN_READONLY, nullptr);
        sqlite3_busy_timeout(db_, 10000);
        distrust_schema(db_);
    }
    ~FileReader() override { sqlite3_close(db_); }
    std::string foreign() const { return foreign_part(db_); }
    FileReader(const FileReader&) = delete;
    FileReader& operator=(const FileReader&) = delete;

    std::string each_of(const std::string& sql, const std::function<void(sqlite3_stmt*)>& row) {
        sqlite3_stmt* s = nullptr;
        int code = sqlite3_prepare_v2(db_, sql.c_str(), -1, &s, nullptr);
        if (code == SQLITE_OK)
            while ((code = sqlite3_step(s)) == SQLITE_ROW) row(s);
        const std::string why = code == SQLITE_DONE ? "" : sqlite3_errmsg(db_);
        sqlite3_finalize(s);
        return why;
    }
    bool has(const Table& table) override {
        bool found = false;
        each_of("SELECT name FROM sqlite_master WHERE type='table'", [&](sqlite3_stmt* s) { found = found || text(s, 0) == table.name; });
        return found;
    }
    std::string each(const Table& table, const std::function<void(const StoredRow&)>& row) override {
        std::set<std::string> there;
        each_of(fmt::format("PRAGMA table_info({})", table.name), [&](sqlite3_stmt* s) { there.insert(text(s, 1)); });
        std::string columns;
        for (const Column& c : table.columns) columns += (columns.empty() ? "" : ", ") + (there.contains(c.name) ? std::string(c.name) : "NULL");
        return each_of(fmt::format("SELECT {} FROM {}", columns, table.name), [&](sqlite3_stmt* s) {
            StoredRow values;
            for (int i = 0; i < sqlite3_column_count(s); ++i) values.push_back(value(s, i));
            row(values);
        });
    }
    static std::string text(sqlite3_stmt* s, int column) {
        const auto* t = reinterpret_cast<const char*>(sqlite3_column_text(s, column));
        return t ? t : "";
    }

private:
    static StoreValue value(sqlite3_stmt* s, int column) {
        switch (sqlite3_column_type(s, column)) {
            case SQLITE_NULL: return std::monostate();
            case SQLITE_INTEGER: return static_cast<std::int64_t>(sqlite3_column_int64(s, column));
            case SQLITE_FLOAT: return sqlite3_column_double(s, column);
            default: return text(s, column);
        }
    }
    sqlite3* db_ = nullptr;
};

// Reads a server's rows a few at a time, because there may be many.
class ServerReader : public StoreReader {
public:
    explicit ServerReader(const StoreAddress& address) : db_(address, "the store") {}
    bool has(const Table&) override { return true; }
    std::string each(const Table& table, const std::function<void(const StoredRow&)>& row) override {
        constexpr int at_once = 2000;
        std::string key, marks;
        for (const char* k : table.key) key += (key.empty() ? "" : ", ") + std::string(k), marks += marks.empty() ? "?" : ", ?";
        std::vector<StoreValue> last;
        for (int found = at_once; found == at_once;) {
            found = 0;
            StoreQuery q(db_, fmt::format("SELECT {} FROM {}{} ORDER BY {} LIMIT {}", column_list(table.columns), table.name,
                                          last.empty() ? "" : fmt::format(" WHERE ({}) > ({})", key, marks), key, at_once));
            for (const StoreValue& v : last) q.bind(v);
            for (; q.row(); ++found) {
                StoredRow values;
                last.clear();
                for (std::size_t i = 0; i < table.columns.size(); ++i) values.push_back(q.value(static_cast<int>(i), table.columns[i].type));
                for (const char* k : table.key)
                    for (std::size_t i = 0; i < table.columns.size(); ++i)
                        if (std::string(table.columns[i].name) == k) last.push_back(values[i]);
                row(values);
            }
        }
        return "";
    }

private:
    Database db_;
};

std::unique_ptr<StoreReader> open_reader(const StoreAddress& address) {
    if (address.on_server()) return std::make_unique<ServerReader>(address);
    return std::make_unique<FileReader>(address.file());
}

// One row by the names of its columns.
class Named {
public:
    Named(const Table& table, const StoredRow& row) : table_(table), row_(row) {}
    const StoreValue& at(const std::string& name) const {
        for (std::size_t i = 0; i < table_.columns.size(); ++i)
            if (name == table_.columns[i].name) return row_[i];
        throw InternalFault("a table has no column '" + name + "'");
    }
    std::string text(const std::string& name) const {
        const auto* t = std::get_if<std::string>(&at(name));
        return t ? *t : "";
    }
    double number(const std::string& name) const {
        if (const auto* d = std::get_if<double>(&at(name))) return *d;
        const auto* i = std::get_if<std::int64_t>(&at(name));
        return i ? static_cast<double>(*i) : 0;
    }

private:
    const Table& table_;
    const StoredRow& row_;
};

enum class Worth { sound, stale, impossible };

// Whether a row is valid.
Worth worth_of(const Table& table, const StoredRow& row) {
    const Named it(table, row);
    for (std::size_t i = 0; i < row.size(); ++i)
        for (const char* key : table.key)
            if (key == std::string(table.columns[i].name) && std::holds_alternative<std::monostate>(row[i])) return Worth::impossible;
    if (table.name == std::string("latency")) {
        const std::string state = it.text("state");
        if (state == "claimed")
            return is_owner_alive(it.text("owner"), static_cast<double>(std::time(nullptr)) - it.number("at")) ? Worth::sound : Worth::stale;
        return state == "failed" || (state == "measured" && is_valid_latency(it.number("median_ms"), it.number("iqr_ms"), static_cast<int>(it.number("n"))))
                   ? Worth::sound
                   : Worth::impossible;
    }
    if (table.name == std::string("evidence")) {
        const auto j = nlohmann::json::parse(it.text("body"), nullptr, false);
        return j.is_object() && j.contains("allowed") && j["allowed"].is_boolean() && j.contains("why") && j["why"].is_string() ? Worth::sound
                                                                                                                                : Worth::impossible;
    }
    return Worth::sound;
}

// Puts rows into a store, and leaves the store's own rows as they are.
class Writer {
public:
    Writer(Database& to, const Table& table) : to_(to), table_(table) {
        const bool counted = table.columns[0].type == ColumnType::number;  // such a row gets a new number, and is compared by its other columns
        std::string names, values, same, set;
        for (std::size_t i = counted; i < table.columns.size(); ++i) {
            const Column& c = table.columns[i];
            names += (names.empty() ? "" : ", ") + std::string(c.name);
            values += (values.empty() ? "" : ", ") + std::string(counted ? fmt::format("CAST(? AS {})", c.type == ColumnType::text ? "TEXT" : "BIGINT") : "?");
            same += (same.empty() ? "" : " AND ") + std::string(c.name) + "=?";
            set += (set.empty() ? "" : ", ") + fmt::format("{0}=excluded.{0}", c.name);
            columns_.push_back(i);
        }
        if (counted)
            sql_ = fmt::format("INSERT INTO {0}({1}) SELECT {2} WHERE NOT EXISTS (SELECT 1 FROM {0} WHERE {3})", table.name, names, values, same),
            twice_ = true;
        else if (table.name == std::string("latency"))
            sql_ = fmt::format("INSERT INTO {0}({1}) VALUES({2}) ON CONFLICT(key) DO UPDATE SET {3} WHERE {0}.state='claimed'", table.name, names, values, set);
        else
            sql_ = fmt::format("INSERT INTO {}({}) VALUES({}) ON CONFLICT DO NOTHING", table.name, names, values);
    }

    void put(StoredRow row) {
        for (std::size_t i = 0; i < row.size(); ++i)
            if (std::holds_alternative<std::monostate>(row[i]) && std::string(table_.columns[i].rest).starts_with("NOT NULL"))
                row[i] = table_.columns[i].type == ColumnType::text ? StoreValue(std::string()) : StoreValue(std::int64_t{0});
        waiting_.push_back(std::move(row));
        if (waiting_.size() == 1000) flush();
    }
    std::int64_t flush() {
        written_ += to_.atomically([&] {
            std::int64_t written = 0;
            for (const StoredRow& row : waiting_) {
                StoreQuery q(to_, sql_);
                for (int turn = 0; turn <= (twice_ ? 1 : 0); ++turn)
                    for (std::size_t i : columns_) q.bind(row[i]);
                q.done();
                written += to_.changes();
            }
            return written;
        });
        waiting_.clear();
        return written_;
    }

private:
    Database& to_;
    const Table& table_;
    std::string sql_;
    std::vector<std::size_t> columns_;
    bool twice_ = false;
    std::vector<StoredRow> waiting_;
    std::int64_t written_ = 0;
};

const char* kind_of(const std::string& table) {
    return table == "latency" ? "latencies" : table == "evidence" ? "evidence" : table == "jobs" ? "jobs" : nullptr;
}

}  // namespace

StoreReport check_store(const StoreAddress& address) {
    StoreReport r;
    r.address = address;
    if (!(r.there = address.exists())) return r;
    std::string damage = "ok";
    if (!address.on_server()) {
        FileReader file(address.file());
        std::int64_t version = 0;
        if (const std::string why = file.each_of("PRAGMA user_version", [&](sqlite3_stmt* s) { version = sqlite3_column_int64(s, 0); }); !why.empty()) {
            r.faults.push_back("it cannot be read: " + why);
            return r;
        }
        if (version > schema_version)
            r.faults.push_back(fmt::format("it is of a later loopegg (its version is {}, this program knows {})", version, schema_version));
        if (const std::string part = file.foreign(); !part.empty()) r.faults.push_back(fmt::format("it has {}, which no loopegg wrote", part));
        file.each_of("PRAGMA integrity_check(1)", [&](sqlite3_stmt* s) { damage = FileReader::text(s, 0); });
    }
    const auto reader = open_reader(address);
    bool known = false;
    std::int64_t impossible = 0;
    std::string broken;
    for (const Table& table : store_tables()) {
        if (!reader->has(table)) continue;
        known = true;
        std::int64_t rows = 0;
        const std::string ended = reader->each(table, [&](const StoredRow& row) {
            ++rows;
            const Worth worth = worth_of(table, row);
            impossible += worth == Worth::impossible, r.stale += worth == Worth::stale;
            if (table.name != std::string("latency")) return;
            const std::string state = Named(table, row).text("state");
            r.failed += state == "failed", r.claimed += state == "claimed";
        });
        if (!ended.empty()) broken = ended;
        if (const char* kind = kind_of(table.name); kind && rows) r.rows += rows, r.kind += (r.kind.empty() ? "" : ", ") + std::string(kind);
    }
    if (!known) r.faults.push_back("it is no store of loopegg");
    if (damage != "ok") r.faults.push_back("it is damaged: " + split(damage, '\n')[0]);
    if (!broken.empty() && damage == "ok") r.faults.push_back("it cannot be read to its end: " + broken);
    if (impossible) r.faults.push_back(fmt::format("{} rows hold impossible times or invalid verdicts", impossible));
    return r;
}

StoreReport repair_store(const StoreAddress& address) {
    StoreReport r = check_store(address);
    if (!r.there) throw UserError("there is no store at '" + address.words() + "'");
    if (r.faults.empty() && r.stale == 0) return r;
    if (address.on_server()) {
        std::vector<std::string> bad;
        const Table& latency = store_tables()[0];
        ServerReader(address).each(
            latency, [&](const StoredRow& row) { worth_of(latency, row) == Worth::sound ? void(++r.saved) : bad.push_back(Named(latency, row).text("key")); });
        Database db(address, "the latency store");
        db.atomically([&] {
            for (const std::string& key : bad) StoreQuery(db, "DELETE FROM latency WHERE key=?").bind(key).done();
        });
        return r;
    }
    const fs::path file = address.file(), fresh = file.string() + ".repaired", old = file.string() + ".damaged";
    std::error_code ignored;
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(fresh.string() + end, ignored);
    {
        FileReader from(file);
        Database to(fresh, "the repaired store");
        for (const Table& table : store_tables()) {
            if (!from.has(table)) continue;
            Writer writer(to, table);
            from.each(table, [&](const StoredRow& row) {
                if (worth_of(table, row) == Worth::sound) writer.put(row);
            });
            r.saved += writer.flush();
        }
        StoreQuery(to, "PRAGMA wal_checkpoint(TRUNCATE)").done();
    }
    fs::rename(file, old);
    for (const char* end : {"-wal", "-shm"}) fs::remove(file.string() + end, ignored);
    fs::rename(fresh, file);
    for (const char* end : {"-wal", "-shm"}) fs::remove(fresh.string() + end, ignored);
    return r;
}

std::int64_t forget(const StoreAddress& address, const Forgotten& what) {
    Database db(address, "the latency store");
    const bool all = !what.failures && !what.claims && !what.times;
    return db.atomically([&] {
        std::vector<std::string> keys;
        for (StoreQuery q(db, "SELECT key, state, target, nest FROM latency"); q.row();) {
            const std::string state = q.text(1);
            const bool kind = all || (what.failures && state == "failed") || (what.claims && state == "claimed") || (what.times && state == "measured");
            if (kind && (what.target.empty() || q.text(2) == what.target) && glob_matches(what.nest, q.text(3))) keys.push_back(q.text(0));
        }
        for (const std::string& key : keys) StoreQuery(db, "DELETE FROM latency WHERE key=?").bind(key).done();
        return static_cast<std::int64_t>(keys.size());
    });
}

std::map<std::string, std::int64_t> copy_store(const StoreAddress& from, const StoreAddress& to) {
    if (!from.exists()) throw UserError("there is no store at '" + from.words() + "'");
    std::error_code none;
    if (!from.on_server() && !to.on_server() && fs::equivalent(from.file(), to.file(), none))
        throw UserError("'" + from.words() + "' cannot be copied to itself");
    Database target(to, "the store");
    const auto reader = open_reader(from);
    std::map<std::string, std::int64_t> copied;
    for (const Table& table : store_tables()) {
        if (!reader->has(table)) continue;
        Writer writer(target, table);
        const std::string broken = reader->each(table, [&](StoredRow row) {
            if (worth_of(table, row) != Worth::sound) return;
            for (std::size_t i = 0; i < row.size(); ++i) {
                const std::string column = table.columns[i].name;
                if (column != "state" || row[i].index() != 3) continue;
                if (std::get<std::string>(row[i]) == "claimed") return;
                if (std::get<std::string>(row[i]) != "running") continue;
                row[i] = std::string("waiting");
                for (std::size_t j = 0; j < row.size(); ++j)
                    if (table.columns[j].name == std::string("owner")) row[j] = std::string();
            }
            writer.put(std::move(row));
        });
        copied[table.name] = writer.flush();
        if (!broken.empty())
            throw UserError(Diagnostic{fmt::format("the store '{}' cannot be read to its end: {}", from.words(), broken),
                                       {},
                                       fmt::format("'loopegg store repair {}' keeps what can be read", from.words())});
    }
    return copied;
}

}  // namespace loopegg
