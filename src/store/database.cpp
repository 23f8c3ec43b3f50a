#include "store/database.hpp"

#include <atomic>
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fault.hpp"

namespace loopegg {

Database::Database(StoreAddress address, std::string name) : address_(std::move(address)) {
    StoreCall call;
    backend_ = address_.on_server() ? open_postgresql(address_, name) : open_sqlite(address_, name);
    upgrade(name);
}
Database::~Database() = default;

void Database::upgrade(const std::string& name) {
    auto known = [&] {
        const int found = backend_->version();
        if (found > schema_version)
            throw UserError(Diagnostic{
                fmt::format("{} '{}' is of a later loopegg (its version is {}, this program knows {})", name, address_.words(), found, schema_version),
                {},
                "name another store, or use the later program"});
        return found == schema_version;
    };
    if (known()) return;
    atomically([&] {
        backend_->lock_for_upgrade();
        if (known()) return;  // another process was first
        for (const Table& table : store_tables()) {
            const std::set<std::string> there = backend_->columns_of(table);
            if (there.empty())
                backend_->create(table);
            else
                for (const Column& column : table.columns)
                    if (!there.contains(column.name)) backend_->add_column(table, column);
            if (!table.index.empty())
                backend_
                    ->execute(fmt::format("CREATE INDEX IF NOT EXISTS {0}_by_{1} ON {0}({2})", table.name, table.index[0], fmt::join(table.index, ", ")), {})
                    ->next();
            if (table.append_only) backend_->protect(table);
        }
        backend_->set_version(schema_version);
    });
}

StoreQuery::StoreQuery(Database& db, std::string sql) : db_(db), sql_(std::move(sql)) {
    if (fault_here(FaultPlace::store)) db.backend().fail_for_a_test();
}

bool StoreQuery::row() {
    StoreCall call;
    if (!rows_) rows_ = db_.backend().execute(sql_, values_);
    return rows_->next();
}

StoreValue StoreQuery::value(int column, ColumnType type) const {
    if (null(column)) return std::monostate();
    if (type == ColumnType::text) return text(column);
    if (type == ColumnType::real) return real(column);
    return integer(column);
}

namespace {

std::atomic<std::int64_t> calls{0}, nanoseconds{0};
thread_local int depth = 0;

}  // namespace

StoreCost operator-(const StoreCost& now, const StoreCost& before) { return {now.calls - before.calls, now.seconds - before.seconds}; }

StoreCost store_cost() { return {calls.load(), static_cast<double>(nanoseconds.load()) * 1e-9}; }

StoreCall::StoreCall() {
    if (depth++ == 0) start_ = monotonic_seconds();
}

StoreCall::~StoreCall() {
    if (--depth > 0) return;
    ++calls;
    nanoseconds += static_cast<std::int64_t>((monotonic_seconds() - start_) * 1e9);
}

}  // namespace loopegg
