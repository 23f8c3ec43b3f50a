// Capacity measures over NAS-Bench-201 cells: Spearman's rho with trained accuracy, beside the controls, combinations, and the guard as a filter.
//
//   bench_nb201 CELLS.csv [--cells 200] [--batch 64] [--data FOLDER] [--out scores.jsonl] [--seconds 600]
//
// Scores are appended to the out file cell by cell and read back by the next run, so a long measurement can be done in pieces.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "fisher/data.hpp"
#include "fisher/measures.hpp"
#include "graph/flops.hpp"
#include "graph/zoo/zoo.hpp"

using namespace loopegg;

namespace {

struct Cell {
    std::string arch;
    double accuracy = 0;
    std::map<std::string, double> scores;
};

std::vector<Cell> read_cells(const std::string& file) {
    std::ifstream in(file);
    if (!in) throw UserError("no cells: " + file + " cannot be read");
    std::vector<Cell> cells;
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
        auto comma = line.find(',');
        if (comma != std::string::npos) cells.push_back({line.substr(0, comma), std::stod(line.substr(comma + 1)), {}});
    }
    return cells;
}

// fisher and grad-norm are compared on a scale of ranks, so a cell whose gradient vanishes altogether scores zero.
std::map<std::string, double> score_cell(const std::string& arch, const Batch& batch) {
    Graph graph = zoo_graph(arch);
    auto scorer = torch_room().scorer(graph, nullptr, {batch}, {1, false, false});
    Measurement m{scorer->score(graph, 0, {true, true, true, true}), static_cast<double>(parameters(graph)), static_cast<double>(macs(graph))};
    std::map<std::string, double> scores;
    for (const Measure& measure : measures()) scores[std::string(measure.name)] = measure.value(m);
    return scores;
}

std::vector<double> column(const std::vector<Cell>& cells, const std::string& name) {
    std::vector<double> values;
    for (const Cell& c : cells) {
        double v = c.scores.at(name);
        values.push_back(std::isfinite(v) ? v : -1e300);   // a network that collapses ranks last
    }
    return values;
}

std::vector<double> rank_sum(const std::vector<Cell>& cells, const std::vector<std::string>& names) {
    std::vector<double> sum(cells.size(), 0.0);
    for (const std::string& name : names) {
        std::vector<double> r = ranks(column(cells, name));
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += r[i];
    }
    return sum;
}

}  // namespace

int main(int argc, char** argv) try {
    std::map<std::string, std::string> o{{"--cells", "200"}, {"--batch", "64"}, {"--data", ""}, {"--out", ""}, {"--seconds", "600"}};
    if (argc < 2) throw UsageError("bench_nb201 CELLS.csv [--cells N] [--batch N] [--data FOLDER] [--out FILE] [--seconds S]");
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!o.contains(argv[i])) throw UsageError(std::string("unknown option ") + argv[i]);
        o[argv[i]] = argv[i + 1];
    }
    std::vector<Cell> cells = read_cells(argv[1]);
    cells.resize(std::min<std::size_t>(cells.size(), std::stoul(o["--cells"])));
    std::map<std::string, std::map<std::string, double>> known;
    if (std::ifstream in(o["--out"]); in)
        for (std::string line; std::getline(in, line);)
            if (auto row = nlohmann::json::parse(line, nullptr, false); row.is_object()) known[row["arch"]] = row["scores"].get<std::map<std::string, double>>();
    Batch batch = load_batches(o["--data"], zoo_graph(cells.at(0).arch), std::stol(o["--batch"]), 1, 0).batches[0];
    auto began = std::chrono::steady_clock::now();
    auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
    std::ofstream out;
    if (!o["--out"].empty()) out.open(o["--out"], std::ios::app);
    std::vector<Cell> done;
    std::size_t scored = 0;
    for (Cell& cell : cells) {
        if (auto found = known.find(cell.arch); found != known.end()) cell.scores = found->second;
        else if (elapsed() > std::stod(o["--seconds"])) continue;
        else {
            cell.scores = score_cell(cell.arch, batch);
            ++scored;
            nlohmann::json row{{"arch", cell.arch}, {"accuracy", cell.accuracy}, {"scores", nlohmann::json::object()}};
            for (const auto& [name, v] : cell.scores) row["scores"][name] = std::isfinite(v) ? v : -1e300;
            if (out) out << row.dump() << "\n" << std::flush;
            if (scored % 20 == 0) fmt::print(stderr, "{} cells, {:.2f} s each\n", scored, elapsed() / static_cast<double>(scored));
        }
        done.push_back(cell);
    }
    std::vector<double> accuracy;
    for (const Cell& c : done) accuracy.push_back(c.accuracy);
    fmt::print("{} cells ({} scored in this run, {:.2f} s each), batch {}\n\n", done.size(), scored, scored ? elapsed() / static_cast<double>(scored) : 0.0, o["--batch"]);
    const std::map<std::string, std::string> published{{"fisher", "0.36"}, {"grad-norm", "0.44-0.59"}, {"snip", "0.59"}, {"synflow", "0.74-0.76"}, {"naswot", "0.76"}, {"params", "0.75"}, {"macs", "0.80"}};
    fmt::print("{:<44} {:>6}  published\n", "measure", "rho");
    for (const Measure& m : measures()) {
        auto p = published.find(std::string(m.name));
        fmt::print("{:<44} {:>6.3f}  {}\n", m.name, spearman(column(done, std::string(m.name)), accuracy), p == published.end() ? "" : p->second);
    }
    const std::vector<std::vector<std::string>> sums{{"naswot", "macs"}, {"synflow", "macs"}, {"naswot", "synflow"}, {"naswot", "synflow", "macs"}, {"naswot", "synflow", "params", "macs"},
                                                     {"fisher-layer", "naswot", "macs"}, {"snip", "naswot", "macs"}, {"fisher", "naswot", "synflow", "params", "macs"}, {"snip", "grad-norm", "naswot", "synflow", "macs"}};
    for (const auto& names : sums) {
        std::string label;
        for (const std::string& n : names) label += (label.empty() ? "" : " + ") + n;
        fmt::print("{:<44} {:>6.3f}\n", "rank sum: " + label, spearman(rank_sum(done, names), accuracy));
    }
    // As a filter: does it keep the better half?
    std::vector<double> sorted = accuracy, score = rank_sum(done, {"naswot", "synflow", "macs"}), order = score;
    std::sort(sorted.begin(), sorted.end()), std::sort(order.begin(), order.end());
    double middle = sorted[sorted.size() / 2], cut = order[order.size() / 2], kept = 0, right = 0, good = 0;
    for (std::size_t i = 0; i < done.size(); ++i) kept += score[i] >= cut, good += accuracy[i] >= middle, right += score[i] >= cut && accuracy[i] >= middle;
    fmt::print("\nthe better half by naswot + synflow + macs: precision {:.3f}, recall {:.3f}\n", right / kept, right / good);
    return 0;
} catch (const UserError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
}
