// Puts a graph together node by node: every call adds one node and answers its name.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

class GraphBuilder {
public:
    explicit GraphBuilder(std::string name) { graph_.name = std::move(name); }

    std::string input(std::string name, Shape shape) {
        graph_.inputs.push_back({name, std::move(shape)});
        return name;
    }
    std::string node(std::string op, std::string name, std::vector<std::string> inputs, std::map<std::string, Attr> attrs = {}) {
        graph_.nodes.push_back(Node{name, std::move(op), std::move(inputs), std::move(attrs)});
        return name;
    }

    struct Conv {
        std::int64_t out, kernel, stride = 1, padding = 0, groups = 1;
        bool bias = false;
    };
    std::string conv(std::string name, std::string x, Conv c) {
        return node("conv2d", std::move(name), {std::move(x)},
                    {{"out_channels", c.out}, {"kernel", c.kernel}, {"stride", c.stride}, {"padding", c.padding}, {"groups", c.groups}, {"bias", c.bias}});
    }
    std::string norm(std::string name, std::string x) { return node("batch_norm", std::move(name), {std::move(x)}); }
    std::string relu(std::string name, std::string x) { return node("relu", std::move(name), {std::move(x)}); }
    std::string add(std::string name, std::string a, std::string b) { return node("add", std::move(name), {std::move(a), std::move(b)}); }
    std::string linear(std::string name, std::string x, std::int64_t out) { return node("linear", std::move(name), {std::move(x)}, {{"out_features", out}}); }
    std::string pool(std::string op, std::string name, std::string x, std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0) {
        return node(std::move(op), std::move(name), {std::move(x)}, {{"kernel", kernel}, {"stride", stride}, {"padding", padding}});
    }

    // The complete graph.
    Graph finish(std::vector<std::string> outputs) {
        graph_.outputs = std::move(outputs);
        complete(graph_);
        return std::move(graph_);
    }

private:
    Graph graph_;
};

}  // namespace loopegg
