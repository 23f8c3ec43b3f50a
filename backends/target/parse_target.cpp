#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backends/target/parse_target.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

Reach reach_of(const JsonView& file) {
    const auto member = file.find("reach");
    if (!member) return Reach::compile;
    std::vector<std::string> names;
    for (Reach r : {Reach::here, Reach::rpc, Reach::ssh, Reach::bundle, Reach::compile}) {
        if (to_string(r) == member->text()) return r;
        names.push_back(to_string(r));
    }
    member->fail(fmt::format("'reach' is '{}', expected here, rpc, ssh, bundle or compile", member->text()), did_you_mean(member->text(), names));
}

// HOST:PORT of a server, or HOST:PORT/KEY of a tracker. The code that connects takes the address apart.
std::string address_of(const JsonView& view) {
    const std::string& text = view.text();
    const std::size_t colon = text.find(':'), slash = text.find('/');
    const std::string port = colon == text.npos ? "" : text.substr(colon + 1, slash == text.npos ? text.npos : slash - colon - 1);
    if (slash != text.npos && !is_file_name(text.substr(slash + 1)))
        view.fail(fmt::format("'{}' is no key of a tracker: expected letters, digits, '_', '-', '.'", text.substr(slash + 1)));
    const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
    if (colon == 0 || !digits || std::stoi(port) > 65535) view.fail(fmt::format("'{}' is not HOST:PORT or HOST:PORT/KEY", text));
    return text;
}

std::vector<BoardAddress> boards_of(const JsonView& view) {
    std::vector<BoardAddress> all;
    std::set<std::string> seen;
    for (const JsonView& one : view.items()) {
        const auto address = parse_board_address(one.text());
        if (!address) one.fail(fmt::format("'{}' is not [USER@]HOST[:PORT]", one.text()));
        if (!seen.insert(address->words()).second) one.fail(fmt::format("the board '{}' is listed twice", address->words()));
        all.push_back(*address);
    }
    if (all.empty()) view.fail("a target reached by ssh needs one board at least");
    return all;
}
std::string words_of(const std::vector<BoardAddress>& boards) {
    std::vector<std::string> all;
    for (const BoardAddress& b : boards) all.push_back(b.words());
    return join(all, ", ");
}

nlohmann::json tvm_of(const JsonView& view, const std::function<HostFacts()>& host) {
    const std::string kind = view.at("kind").text();
    if (kind != "llvm" && kind != "cuda") view.at("kind").fail(fmt::format("the TVM kind '{}' is not one that loopegg compiles for (llvm, cuda)", kind));
    if (kind == "cuda") view.at("arch").text();
    if (auto triple = view.find("mtriple")) {
        const std::string architecture = split(triple->text(), '-')[0];  // for an unknown architecture LLVM aborts the program
        if (architecture != "x86_64" && architecture != "aarch64")
            triple->fail(fmt::format("the architecture '{}' is not one that loopegg compiles for (x86_64, aarch64)", architecture));
    }
    nlohmann::json tvm = view.value();
    if (auto native = view.find("native")) {
        tvm.erase("native");
        if (native->boolean()) tvm.update(host().tvm);
    }
    return tvm;
}

UnitForm form_of(const JsonView& view, const MatrixUnit& unit) {
    view.only({"intrinsic", "rows", "columns", "words"});
    UnitForm f{view.at("intrinsic").text(), view.at("rows").integer(1, 64), view.at("columns").integer(1, 64), view.at("words").integer(1, 64)};
    if (!f.intrinsic.starts_with("llvm.")) view.at("intrinsic").fail(fmt::format("'{}' is no intrinsic of LLVM: expected llvm.NAME", f.intrinsic));
    if ((f.rows > 1 || f.words > 1) && (f.rows != f.columns || f.words * f.rows != f.rows * f.columns))
        view.fail(
            "a form with several rows or words has as many columns as rows, and as many words of each: vectors of sums, rows and columns have equal lanes");
    if (unit.rows % f.rows != 0 || unit.columns % f.columns != 0) view.fail("the tile of the unit is no whole number of rows and columns of its form");
    return f;
}

std::vector<MatrixUnit> units_of(const JsonView& view) {
    std::vector<MatrixUnit> all;
    for (const JsonView& one : view.items()) {
        one.only({"instruction", "operands", "rows", "columns", "depth", "packed", "tiles", "cycles", "latency", "load", "features", "forms", "signed"});
        MatrixUnit u;
        u.instruction = one.at("instruction").text();
        u.operands = one.at("operands").text();
        if (std::find(rounding_names().begin(), rounding_names().end(), u.operands) == rounding_names().end())
            one.at("operands")
                .fail(fmt::format("'operands' is '{}', expected {}", u.operands, join(rounding_names(), " or ")), did_you_mean(u.operands, rounding_names()));
        u.rows = one.at("rows").integer(1, 1024), u.columns = one.at("columns").integer(1, 1024), u.depth = one.at("depth").integer(1, 1024);
        if (auto packed = one.find("packed")) u.packed = packed->integer(1, 4);
        if (u.depth % u.packed != 0) one.at("depth").fail(fmt::format("'depth' must be a multiple of 'packed', {}", u.packed));
        if (auto tiles = one.find("tiles")) u.tiles = tiles->integer(1, 1024);
        if (auto cycles = one.find("cycles")) u.cycles = static_cast<double>(cycles->integer(1, 10'000));
        if (auto latency = one.find("latency")) u.latency = static_cast<double>(latency->integer(0, 10'000));
        if (auto load = one.find("load")) u.load = static_cast<double>(load->integer(0, 10'000));
        if (auto features = one.find("features"))
            for (const JsonView& f : features->items()) u.features.push_back(f.text());
        if (auto forms = one.find("forms"))
            for (const JsonView& f : forms->items()) u.forms.push_back(form_of(f, u));
        if (auto bytes = one.find("signed")) u.signed_bytes = bytes->boolean();
        all.push_back(std::move(u));
    }
    return all;
}

Machine machine_of(const JsonView& view, const std::function<HostFacts()>& host) {
    view.only({"native", "cores", "lanes", "fma_per_cycle", "ghz", "memory_gbs", "l1_kb", "l2_kb", "l3_kb", "launch_us", "threads_per_core",
               "registers_per_core", "shared_kb_per_core", "units"});
    Machine m;
    if (auto native = view.find("native"); native && native->boolean()) m = host().machine;
    auto count = [&view](const char* key, int& field, int least) {
        if (auto member = view.find(key)) field = static_cast<int>(member->integer(least, 1'000'000'000));
    };
    auto number = [&view](const char* key, double& field, bool zero) {
        auto member = view.find(key);
        if (!member) return;
        field = member->number();
        if (field < 0 || (field == 0 && !zero)) member->fail(fmt::format("'{}' must be {}", key, zero ? "0 or more" : "more than 0"));
    };
    count("cores", m.cores, 1), count("lanes", m.lanes, 1), count("fma_per_cycle", m.fma_per_cycle, 1);
    count("threads_per_core", m.threads_per_core, 0), count("registers_per_core", m.registers_per_core, 0);
    number("ghz", m.ghz, false), number("memory_gbs", m.memory_gbs, false), number("launch_us", m.launch_us, true);
    number("l1_kb", m.l1_kb, true), number("l2_kb", m.l2_kb, true), number("l3_kb", m.l3_kb, true), number("shared_kb_per_core", m.shared_kb_per_core, true);
    if (auto units = view.find("units")) m.units = units_of(*units);
    if (auto native = view.find("native"); native && native->boolean()) {  // what such machines may have: this one has the units whose features it has
        const nlohmann::json features = host().tvm.value("mattr", nlohmann::json::array());
        const auto has = [&](const std::string& f) { return std::find(features.begin(), features.end(), "+" + f) != features.end(); };
        std::erase_if(m.units, [&](const MatrixUnit& u) { return !std::all_of(u.features.begin(), u.features.end(), has); });
    }
    return m;
}

}  // namespace

std::string to_string(Reach reach) {
    switch (reach) {
        case Reach::here: return "here";
        case Reach::rpc: return "rpc";
        case Reach::ssh: return "ssh";
        case Reach::bundle: return "bundle";
        case Reach::compile: return "compile";
    }
    return "";
}

std::string Target::architecture() const {
    if (gpu()) return tvm.at("arch");
    return split(tvm.value("mtriple", "unknown"), '-')[0];
}

Hash128 Target::fingerprint() const { return Hasher().add(name).add(tvm.dump()).finish(); }

Target parse_target(const SourcePtr& source, const std::function<HostFacts()>& host) {
    const JsonView file = read_json(source);
    file.only({"name", "summary", "reach", "address", "boards", "tvm", "machine"});
    Target t;
    t.name = file.at("name").text();
    if (!is_file_name(t.name)) file.at("name").fail(fmt::format("'{}' is not a valid target name: expected letters, digits, '_', '-', '.'", t.name));
    if (auto summary = file.find("summary")) t.summary = summary->text();
    t.reach = reach_of(file);
    if (auto address = file.find("address"); address && !address->text().empty()) t.address = address_of(*address);
    if (t.reach == Reach::rpc && t.address.empty()) file.fail("a target reached by rpc needs an \"address\", HOST:PORT");
    if (t.reach == Reach::ssh)
        t.boards = boards_of(file.at("boards")), t.address = words_of(t.boards);
    else if (auto boards = file.find("boards"))
        boards->fail("only a target reached by ssh has \"boards\"");
    t.tvm = tvm_of(file.at("tvm"), host);
    if (auto machine = file.find("machine")) t.machine = machine_of(*machine, host);
    return t;
}

}  // namespace loopegg
