#include "backends/network/network_library.hpp"

#include <cstddef>

#include "backends/kernel/elf_object.hpp"
#include "backends/kernel/shared_library.hpp"
#include "backends/network/network_tables.hpp"
#include "base/error.hpp"

namespace loopegg {
namespace {

// What network.h offers, each by its name behind the prefix.
constexpr const char* offered[] = {"abi", "lacks",     "open",  "close",  "create",  "destroy",    "threads",
                                   "run", "run_steps", "steps", "inputs", "outputs", "input_size", "output_size"};

template <class Row>
std::string bytes_of(const std::vector<Row>& rows) {
    return {reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(Row)};
}

// The tables that loopegg_tables points to: the field, and what it points to.
struct Table {
    std::size_t field;
    std::string name, bytes;
};

}  // namespace

std::string network_library(const PlacedNetwork& n, const std::string& runtime) {
    const NetworkTables t = network_tables(n);
    require(t.operators.empty(), "a network that is linked here has no opaque operators");
    LinkRequest request;
    request.objects.push_back(runtime);
    for (const Kernel& k : n.kernels) request.objects.push_back(k.code);
    LinkedData kernels{"tables.kernels", std::string(sizeof(loopegg_kernel) * n.kernels.size(), '\0')};
    for (std::size_t k = 0; k < n.kernels.size(); ++k) kernels.pointers.push_back({k * sizeof(loopegg_kernel), n.kernels[k].symbol});
    LinkedData tables{"loopeggrt_tables", {reinterpret_cast<const char*>(&t.counts), sizeof t.counts}};
    tables.pointers.push_back({offsetof(loopegg_tables, kernels), kernels.name});
    request.data.push_back(std::move(kernels));
    for (Table& table : std::vector<Table>{{offsetof(loopegg_tables, step), "tables.steps", bytes_of(t.steps)},
                                           {offsetof(loopegg_tables, operands), "tables.operands", bytes_of(t.operands)},
                                           {offsetof(loopegg_tables, dimensions), "tables.dimensions", bytes_of(t.dimensions)},
                                           {offsetof(loopegg_tables, input_sizes), "tables.input_sizes", bytes_of(t.input_sizes)},
                                           {offsetof(loopegg_tables, output_sizes), "tables.output_sizes", bytes_of(t.output_sizes)},
                                           {offsetof(loopegg_tables, input_offsets), "tables.input_offsets", bytes_of(t.input_offsets)},
                                           {offsetof(loopegg_tables, output_offsets), "tables.output_offsets", bytes_of(t.output_offsets)},
                                           {offsetof(loopegg_tables, output_places), "tables.output_places", bytes_of(t.output_places)}}) {
        tables.pointers.push_back({table.field, table.name});
        request.data.push_back({table.name, std::move(table.bytes)});
    }
    request.data.push_back(std::move(tables));
    for (const char* name : offered) request.exported[network_prefix(n.name) + name] = std::string("loopeggrt_") + name;
    try {
        return link_shared_library(request);
    } catch (const Unlinkable& u) {
        throw UserError("network.so cannot be linked: " + u.why);
    }
}

}  // namespace loopegg
