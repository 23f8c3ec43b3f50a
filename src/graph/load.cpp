#include "graph/load.hpp"

#include "graph/model_json.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {

Graph load_graph(const std::string& model) {
    if (model.starts_with("zoo:")) return zoo_graph(model.substr(4));
    return read_model(std::filesystem::path(model));
}

}  // namespace loopegg
