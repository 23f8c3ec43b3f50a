// 'loopegg zoo': writes a well-known network as a model.json, or lists them.
#include <fmt/format.h>

#include "base/files.hpp"
#include "cli/commands.hpp"
#include "graph/flops.hpp"
#include "graph/model_json.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {
namespace cmd_zoo {

int list(Session& session) {
    nlohmann::json all = nlohmann::json::array();
    for (const ZooEntry& entry : zoo()) {
        all.push_back({{"name", entry.name}, {"summary", entry.summary}});
        if (!session.json) fmt::print("{:<20} {}\n", entry.name, entry.summary);
    }
    if (session.json)
        session.answer({{"networks", all}});
    else
        fmt::print("{:<20} {}\n", "'|nor_conv_3x3~0|+...'", "a NAS-Bench-201 cell by its arch string, CIFAR-10 32");
    return 0;
}

Action setup(CLI::App& app) {
    struct Options {
        std::string name, out;
        std::int64_t batch = 1;
    };
    auto o = std::make_shared<Options>();
    app.add_option("NAME", o->name, "the network (default: list all)");
    app.add_option("-o,--out", o->out, "the model.json to write (default: print it)");
    app.add_option("--batch", o->batch, "batch size")->check(CLI::Range(1, 65536));
    return [o](Session& session) {
        if (o->name.empty()) return list(session);
        Graph graph = with_batch(zoo_graph(o->name), o->batch);
        std::string text = write_model(graph);
        if (!o->out.empty()) write_file(o->out, text);
        if (session.json)
            session.answer({{"name", graph.name}, {"file", o->out}, {"nodes", graph.nodes.size()}, {"parameters", parameters(graph)}, {"macs", macs(graph)}});
        else if (o->out.empty())
            fmt::print("{}", text);
        return 0;
    };
}

}  // namespace cmd_zoo

const Command zoo_command{"zoo", "write a well-known network, or list all", "loopegg zoo resnet34-cifar10 -o m.json", cmd_zoo::setup};

}  // namespace loopegg
