// The option '--store', the same for every command that keeps what it learns.
#pragma once
#include <CLI/CLI.hpp>

#include "store/address.hpp"

namespace loopegg {

inline CLI::Option* add_store_option(CLI::App& app) {
    return app
        .add_option_function<std::string>(
            "--store", use_store,
            "where to keep what is learned: an SQLite file, or postgresql://[USER@]HOST[:PORT]/DATABASE (default: LOOPEGG_STORE, or files in the cache folder)")
        ->type_name("PLACE");
}

}  // namespace loopegg
