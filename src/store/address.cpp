#include "store/address.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/places.hpp"

namespace loopegg {
namespace {

// 'host=... password=...', as libpq reads it too: by the words that only a server's settings have, as the name of a file seldom has them.
bool is_list_of_settings(const std::string& text) {
    const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> known(PQconndefaults(), PQconninfoFree);
    for (const PQconninfoOption* o = known.get(); o && o->keyword; ++o)
        for (std::size_t at = text.find(o->keyword); at != std::string::npos; at = text.find(o->keyword, at + 1)) {
            const std::size_t after = text.find_first_not_of(' ', at + std::string_view(o->keyword).size());
            const bool begins = at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) != 0;
            if (begins && after != std::string::npos && text[after] == '=') return true;
        }
    return false;
}

constexpr const char* expected = "expected the path of an SQLite file, or postgresql://[USER@]HOST[:PORT]/DATABASE";

}  // namespace

StoreAddress::StoreAddress(const std::string& text) {
    const std::size_t scheme = text.find("://");
    if (scheme == std::string::npos) {
        if (is_list_of_settings(text))  // a file of this name would show the password wherever it is named
            throw UserError(Diagnostic{"a store's address is not written as a list of settings", {}, expected});
        file_ = text;
        return;
    }
    const std::string name = text.substr(0, scheme);
    // Neither the address nor libpq's words about it are shown: a password with an odd letter in it would be among them.
    if (name != "postgresql" && name != "postgres") throw UserError(Diagnostic{fmt::format("a store's address cannot begin with '{}://'", name), {}, expected});
    const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(PQconninfoParse(text.c_str(), nullptr), PQconninfoFree);
    auto given = [&](const std::string& keyword) {
        for (const PQconninfoOption* o = options.get(); o && o->keyword; ++o)
            if (keyword == o->keyword && o->val) return std::string(o->val);
        return std::string();
    };
    // A password with an '@', a ':' or a '/' in it that is not written as %40, %3A or %2F falls apart, and a part of it is read as a host, a port or the name
    // of the database. Nothing behind the host has an '@'.
    const std::size_t path = std::min(text.find_first_of("/?#", scheme + 3), text.size());
    const bool torn = given("host").find('@') != std::string::npos || given("port").find_first_not_of("0123456789,") != std::string::npos ||
                      text.find('@', path) != std::string::npos;
    if (!options || torn)
        throw UserError(Diagnostic{"the store's address cannot be read: it begins with 'postgresql://', but the rest has not the form that libpq expects",
                                   {},
                                   std::string(expected) + "; signs like '@', ':' and '/' inside a name or a password are written as %40, %3A and %2F"});
    for (const PQconninfoOption* o = options.get(); o->keyword; ++o)
        if (o->val && *o->val) settings_[o->keyword] = o->val;
    if (settings_.empty()) settings_["application_name"] = "loopegg";  // 'postgresql://' alone means libpq's defaults
}

std::string StoreAddress::words() const {
    if (!on_server()) return file_.string();
    auto part = [&](const char* key, const char* before) { return settings_.contains(key) ? before + settings_.at(key) : std::string(); };
    const std::string user = part("user", "");
    return fmt::format("postgresql://{}{}{}{}{}", user, user.empty() ? "" : "@", part("host", ""), part("port", ":"), part("dbname", "/"));
}

bool StoreAddress::exists() const {
    std::error_code none;
    return on_server() || std::filesystem::exists(file_, none);
}

StoreAddress default_store() {
    const char* named = std::getenv("LOOPEGG_STORE");
    return named ? StoreAddress(named) : StoreAddress(in_cache_folder("latency.sqlite"));
}

StoreAddress default_evidence() {
    if (const char* named = std::getenv("LOOPEGG_EVIDENCE")) return named;
    if (StoreAddress store = default_store(); store.on_server()) return store;
    return in_cache_folder("evidence.sqlite");
}

StoreAddress typed_address(const std::string& text) {
    StoreAddress address(text);
    if (address.has_password())
        throw UsageError(Diagnostic{
            fmt::format("the address '{}' came with a password, which every user of this machine can read in the list of processes", address.words()),
            {},
            "write the password into ~/.pgpass (libpq reads it), or give the whole address in LOOPEGG_STORE"});
    return address;
}

void use_store(const std::string& text) {
    typed_address(text);
    ::setenv("LOOPEGG_STORE", text.c_str(), 1);
    ::setenv("LOOPEGG_EVIDENCE", text.c_str(), 1);
}

}  // namespace loopegg
