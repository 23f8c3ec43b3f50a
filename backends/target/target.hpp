// The machines that nests are compiled for: JSON files in backends/targets/ and in the user's own folder.
#pragma once
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "backends/target/board_address.hpp"
#include "base/hash.hpp"
#include "nest/schedule/matrix_unit.hpp"

namespace loopegg {

// How a time on this target can be measured.
enum class Reach {
    here,     // on this machine
    rpc,      // through TVM's RPC, at an address
    ssh,      // on boards that ssh reaches, by a worker that is copied there
    bundle,   // by carrying a bundle to the machine and its times back
    compile,  // not at all: machine code and estimates only
};
std::string to_string(Reach reach);

// Data-sheet numbers, for estimates. A GPU's cores are its multiprocessors, its lanes their fp32 units.
struct Machine {
    int cores = 1, lanes = 4, fma_per_cycle = 1;
    double ghz = 1, memory_gbs = 10, l1_kb = 32, l2_kb = 256, l3_kb = 0, launch_us = 1;
    int threads_per_core = 0, registers_per_core = 0;
    double shared_kb_per_core = 0;
    std::vector<MatrixUnit> units{};
    double peak_gflops() const { return 2.0 * cores * ghz * lanes * fma_per_cycle; }
};

struct Target {
    std::string name, summary;
    Reach reach = Reach::compile;
    std::string address;               // host:port, when reach is rpc; all boards, in words for people, when reach is ssh
    std::vector<BoardAddress> boards;  // boards of the same kind, when reach is ssh
    nlohmann::json tvm;                // what TVM is given, features filled in
    Machine machine;
    std::filesystem::path file;       // that the target was read from
    std::set<std::string> allowed{};  // roundings that a user allows (nest/term/rounding.hpp)
    std::filesystem::path rules{};    // a rule file whose phases for schedules come before those of the shipped files; empty: none

    bool on_board() const { return reach == Reach::rpc || reach == Reach::ssh; }  // kernels are timed one by one, elsewhere
    bool gpu() const { return tvm.value("kind", "") == "cuda"; }
    std::string architecture() const;  // "x86_64", "aarch64", "sm_61"
    Hash128 fingerprint() const;       // of everything that changes code or speed: part of the latency store's keys
};

std::vector<MatrixUnit> allowed_units(const Target& target);  // the machine's units whose rounding the user allows
// The target with the roundings that a user allows. Throws UserError for a word that names no rounding, and for a target that gains nothing by roundings.
Target allowing(Target target, const std::vector<std::string>& roundings);

// The target of this name. Throws UserError that names the known targets.
Target find_target(const std::string& name);
// All targets that can be read, the project's first and then the user's, each sorted by name. `broken` gets the complaints about targets that cannot be read.
std::vector<Target> all_targets(std::vector<std::string>* broken = nullptr);

// Throws UserError, with `name` as the file, unless the text is a target.
void check_target(const std::string& name, const std::string& text);
Target read_target(const std::filesystem::path& file);
std::filesystem::path user_targets_folder();  // LOOPEGG_TARGETS, or targets/ in the user's configuration folder

}  // namespace loopegg
