#include "fuzz/readers.hpp"

#include "backends/target/parse_target.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/sexpr.hpp"
#include "batch/jobs.hpp"
#include "egraph/serialize.hpp"
#include "extract/serialized.hpp"
#include "graph/model_json.hpp"
#include "graph/npy.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/safetensors.hpp"
#include "nest/plan/plan.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/term/grammar.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

SourcePtr text(std::string_view bytes) { return make_source("<fuzz>", std::string(bytes)); }

void sexpr(std::string_view bytes) {
    for (const SExpr& e : read_sexprs(text(bytes))) {
        std::string once = to_string(e);
        require(to_string(read_sexprs(text(once)).at(0)) == once, "an s-expression reads back otherwise");
        to_term(e);
    }
}

void json(std::string_view bytes) { read_json(text(bytes)); }

void model(std::string_view bytes) {
    std::string once = write_model(read_model(text(bytes)));
    require(write_model(read_model(text(once))) == once, "a model reads back otherwise");
}

void safetensors(std::string_view bytes) {
    std::string once = write_safetensors(parse_safetensors("<fuzz>", bytes));
    require(write_safetensors(parse_safetensors("<fuzz>", once)) == once, "weights read back otherwise");
}

void npy(std::string_view bytes) {
    std::string once = write_npy(parse_npy("<fuzz>", bytes));
    require(write_npy(parse_npy("<fuzz>", once)) == once, "an array reads back otherwise");
}

void egraph(std::string_view bytes) {
    std::string once = to_json(read_serialized(text(bytes)));
    require(to_json(read_serialized(text(once))) == once, "an e-graph reads back otherwise");
}

// The same format, into the engine, where classes that hold one node become one.
void engine(std::string_view bytes) {
    const ReadEGraph read = read_egraph_json(text(bytes));
    const std::string once = write_egraph_json(read.graph, read.roots);
    const ReadEGraph again = read_egraph_json(text(once));
    require(again.graph.class_count() == read.graph.class_count() && again.graph.node_count() == read.graph.node_count(),
            "an e-graph of the engine reads back otherwise");
}

void target(std::string_view bytes) {
    const Target t = parse_target(text(bytes), [] { return HostFacts{{{"mtriple", "x86_64-linux-gnu"}, {"mcpu", "haswell"}}, {}}; });
    t.architecture(), t.fingerprint();
    require(t.machine.peak_gflops() > 0, "a target without speed");
}

void jobs(std::string_view bytes) {
    for (const Job& job : read_jobs(text(bytes))) require(!job.name.empty() && !job.arguments("out").empty(), "a job without a name");
}

void plan(std::string_view bytes) {
    Plan once = read_plan(text(bytes));
    require(read_plan(text(write_plan(once))) == once, "a plan reads back otherwise");
}

void nest(std::string_view bytes) {
    Term term = complete(parse_term(bytes, "<fuzz>"));
    resolve(term);
}

// Checked all the way but for the judge, and made ready to run.
void rule_file(std::string_view bytes) {
    const RuleBook book = load_rules(text(bytes), {.judge = false});
    bind_rules(book.rules(), {});
}

// What is imported is exported only while it is small: hostile sizes are the importer's to refuse, not the exporter's to write.
void onnx(std::string_view bytes) {
    OnnxReading alone;
    alone.upgrade = false;  // another program's work, as parsing is
    Model model = import_onnx("<fuzz>", bytes, alone, false);
    std::size_t elements = 0;
    for (const auto& [name, tensor] : model.weights) elements += tensor.values.size();
    if (elements > 100000) return;
    std::string once = export_onnx(model.graph, model.weights);
    Model back = import_onnx("<fuzz>", once, alone, false);
    require(export_onnx(back.graph, back.weights) == once, "an ONNX file reads back otherwise");
}

}  // namespace

std::span<const Reader> readers() {
    static const Reader all[] = {
        {"sexpr", sexpr}, {"json", json},       {"model", model}, {"safetensors", safetensors}, {"npy", npy},       {"egraph", egraph}, {"plan", plan},
        {"nest", nest},   {"rules", rule_file}, {"onnx", onnx},   {"engine", engine},           {"target", target}, {"jobs", jobs},
    };
    return all;
}

void try_reader(const Reader& reader, std::string_view bytes) {
    try {
        reader.read(bytes);
    } catch (const UserError& e) {
        require(!e.diagnostics().empty() && !e.diagnostics()[0].message.empty(), "a refusal without a reason");
    }
}

}  // namespace loopegg
