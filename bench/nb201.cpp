// Capacity measures over NAS-Bench-201 cells: Spearman's rho with trained accuracy, compared with the controls, combinations, and the guard as a filter.
//
//   bench_nb201 CELLS.csv [--cells 200] [--batch 64] [--data FOLDER] [--out scores.jsonl] [--seconds 600] [--threads 2]
//
// Scores are appended to the out file cell by cell and read back by the next run, so a long measurement can be done in pieces.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

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
    auto scorer = torch_runtime().scorer(graph, nullptr, {batch}, {1, false, false});
    MeasureInput m = sizes_of(graph);
    m.raw = scorer->score(graph, 0, {true, true, true, true});
    std::map<std::string, double> scores;
    for (const Measure& measure : measures()) scores[std::string(measure.name)] = measure.value(m);
    return scores;
}

std::vector<double> column(const std::vector<Cell>& cells, const std::string& name) {
    std::vector<double> values;
    for (const Cell& c : cells) {
        double v = c.scores.at(name);
        values.push_back(std::isfinite(v) ? v : -1e300);  // a network that collapses ranks last
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
    std::map<std::string, std::string> o{{"--cells", "200"}, {"--batch", "64"}, {"--data", ""}, {"--out", ""}, {"--seconds", "600"}, {"--threads", "2"}};
    if (argc < 2) throw UsageError("bench_nb201 CELLS.csv [--cells N] [--batch N] [--data FOLDER] [--out FILE] [--seconds S] [--threads T]");
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!o.contains(argv[i])) throw UsageError(std::string("unknown option ") + argv[i]);
        o[argv[i]] = argv[i + 1];
    }
    std::vector<Cell> cells = read_cells(argv[1]);
    cells.resize(std::min<std::size_t>(cells.size(), std::stoul(o["--cells"])));
    std::map<std::string, std::map<std::string, double>> known;
    if (std::ifstream in(o["--out"]); in)
        for (std::string line; std::getline(in, line);)
            if (auto row = nlohmann::json::parse(line, nullptr, false); row.is_object())
                known[row["arch"]] = row["scores"].get<std::map<std::string, double>>();
    Batch batch = load_batches(o["--data"], zoo_graph(cells.at(0).arch), std::stol(o["--batch"]), 1, 0).batches[0];
    auto began = std::chrono::steady_clock::now();
    auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
    std::ofstream out;
    if (!o["--out"].empty()) out.open(o["--out"], std::ios::app);
    std::atomic<std::size_t> next{0}, scored{0};
    std::mutex writing;
    auto complete = [](const std::map<std::string, double>& scores) {  // a row of an earlier version may lack a measure of today
        return std::all_of(measures().begin(), measures().end(), [&](const Measure& m) { return scores.contains(std::string(m.name)); });
    };
    for (Cell& cell : cells)
        if (auto found = known.find(cell.arch); found != known.end() && complete(found->second)) cell.scores = found->second;
    auto work = [&] {
        for (std::size_t i; (i = next++) < cells.size();) {
            Cell& cell = cells[i];
            if (!cell.scores.empty() || elapsed() > std::stod(o["--seconds"])) continue;
            cell.scores = score_cell(cell.arch, batch);
            nlohmann::json row{{"arch", cell.arch}, {"accuracy", cell.accuracy}, {"scores", nlohmann::json::object()}};
            for (const auto& [name, v] : cell.scores) row["scores"][name] = std::isfinite(v) ? v : -1e300;
            std::lock_guard lock(writing);
            if (out) out << row.dump() << "\n" << std::flush;
            if (++scored % 20 == 0) fmt::print(stderr, "{} cells, {:.2f} s each\n", scored.load(), elapsed() / static_cast<double>(scored));
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < std::stoi(o["--threads"]); ++t) others.emplace_back(work);
    work();
    for (std::thread& t : others) t.join();
    std::vector<Cell> done;
    for (Cell& cell : cells)
        if (!cell.scores.empty()) done.push_back(cell);
    if (done.size() < 3) throw UserError("too few cells are scored to say anything");
    std::vector<double> accuracy;
    for (const Cell& c : done) accuracy.push_back(c.accuracy);
    fmt::print("{} cells ({} scored in this run, {:.2f} s each), batch {}\n\n", done.size(), scored.load(),
               scored ? elapsed() / static_cast<double>(scored) : 0.0, o["--batch"]);
    const std::map<std::string, std::string> published{{"fisher", "0.36"}, {"grad-norm", "0.44-0.59"}, {"snip", "0.59"}, {"synflow", "0.74-0.76"},
                                                       {"naswot", "0.76"}, {"params", "0.75"},         {"macs", "0.80"}};
    // The ensemble's weights were chosen on cells among the first 400; the others were scored afterwards.
    constexpr std::size_t fitted = 400;
    std::vector<Cell> unseen;
    for (std::size_t i = fitted; i < cells.size(); ++i)
        if (!cells[i].scores.empty()) unseen.push_back(cells[i]);
    if (unseen.size() < 3) unseen = done;
    std::vector<double> unseen_accuracy;
    for (const Cell& c : unseen) unseen_accuracy.push_back(c.accuracy);
    fmt::print("{:<44} {:>6} {:>9}  published\n", "measure", "rho", "unseen");
    auto row = [&](const std::string& name, const std::vector<double>& all, const std::vector<double>& half, const std::string& known) {
        fmt::print("{:<44} {:>6.3f} {:>9.3f}  {}\n", name, spearman(all, accuracy), spearman(half, unseen_accuracy), known);
    };
    for (const Measure& m : measures()) {
        auto p = published.find(std::string(m.name));
        row(std::string(m.name), column(done, std::string(m.name)), column(unseen, std::string(m.name)), p == published.end() ? "" : p->second);
    }
    for (const std::vector<std::string>& names : std::vector<std::vector<std::string>>{
             {"naswot", "macs"}, {"synflow", "macs"}, {"naswot", "synflow", "macs"}, {"fisher", "naswot", "synflow", "params", "macs"}}) {
        std::string label;
        for (const std::string& n : names) label += (label.empty() ? "" : " + ") + n;
        row("rank sum: " + label, rank_sum(done, names), rank_sum(unseen, names), "");
    }
    // As a filter that lets half of the cells pass: how many of those that pass are of the better half, how many of the best tenth pass?
    fmt::print("\n{:<44} {:>9} {:>22}\n", "filter to the better half (unseen cells)", "precision", "recall of the best 10%");
    for (const char* name : {"fisher", "naswot", "macs", "ensemble"}) {
        std::vector<double> score = column(unseen, name), by_score = score, by_accuracy = unseen_accuracy;
        std::sort(by_score.begin(), by_score.end()), std::sort(by_accuracy.begin(), by_accuracy.end());
        double cut = by_score[by_score.size() / 2], middle = by_accuracy[by_accuracy.size() / 2], best = by_accuracy[by_accuracy.size() * 9 / 10], pass = 0,
               right = 0, top = 0, kept = 0;
        for (std::size_t i = 0; i < unseen.size(); ++i) {
            pass += score[i] >= cut, right += score[i] >= cut && unseen_accuracy[i] >= middle;
            top += unseen_accuracy[i] >= best, kept += score[i] >= cut && unseen_accuracy[i] >= best;
        }
        fmt::print("{:<44} {:>9.3f} {:>22.3f}\n", name, right / pass, kept / top);
    }
    return 0;
} catch (const UserError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
}
