#include "store/board_health.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/progress.hpp"
#include "store/database.hpp"

namespace loopegg {

void tell_board_health(const StoreAddress& store, const std::string& target, const std::string& address, const BoardNews& news) noexcept try {
    Database db(store, "the store");
    StoreQuery(db,
               "INSERT INTO boards(target, address, state, why, cpu, conditions, measured, lost, since, at) VALUES(?,?,?,?,?,?,?,?,unixepoch(),unixepoch()) "
               "ON CONFLICT(target, address) DO UPDATE SET why=excluded.why, cpu=CASE WHEN excluded.cpu='' THEN boards.cpu ELSE excluded.cpu END, "
               "conditions=CASE WHEN excluded.conditions='' THEN boards.conditions ELSE excluded.conditions END, measured=boards.measured+excluded.measured, "
               "lost=boards.lost+excluded.lost, since=CASE WHEN boards.state=excluded.state THEN boards.since ELSE excluded.since END, "
               "at=CASE WHEN excluded.state='up' THEN excluded.at ELSE boards.at END, state=excluded.state")
        .bind(target)
        .bind(address)
        .bind(std::string(news.up ? "up" : "away"))
        .bind(news.why)
        .bind(news.cpu)
        .bind(news.conditions)
        .bind(news.measured)
        .bind(news.lost)
        .done();
} catch (...) {
}

std::vector<BoardHealth> board_health(const StoreAddress& store) {
    std::vector<BoardHealth> all;
    if (!store.exists()) return all;
    Database db(store, "the store");
    StoreQuery q(db,
                 "SELECT target, address, state, why, cpu, conditions, measured, lost, unixepoch() - since, unixepoch() - at FROM boards ORDER BY target, "
                 "address");
    while (q.row())
        all.push_back({q.text(0), q.text(1), q.text(2) == "up", q.text(3), q.text(4), q.text(5), q.integer(6), q.integer(7), std::max(0.0, q.real(8)),
                       std::max(0.0, q.real(9))});
    return all;
}

std::string health_words(const BoardHealth& h) {
    std::string words = h.up ? "answered " + human_seconds(h.seen_seconds) + " ago" : "away for " + human_seconds(h.since_seconds) + ": " + h.why;
    if (h.up && !h.conditions.empty()) words += ", " + h.conditions;
    return words + fmt::format("; {} timed, {} lost", h.measured, h.lost);
}

}  // namespace loopegg
