// Walks a network term in the order of its values, and calls a visitor for each part with the sizes that the parts around it leave.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nest/net/net.hpp"

namespace loopegg {

// A value between two parts, as the visitor names it.
struct NetValue {
    std::string name;
    std::optional<std::int64_t> channels{};  // that are written; none where the term does not determine it
};

class NetVisitor {
public:
    virtual ~NetVisitor() = default;
    // `nest` has the sizes that are left. Each answer is the name of what is written.
    virtual std::string layer(const NetSite& site, const Term& nest, const NetValue& in) = 0;
    virtual std::string each(const std::string& node, const NetValue& in) = 0;  // each, spread, opaque
    virtual std::string add(const std::string& node, const std::vector<NetValue>& operands) = 0;
    virtual std::string concat(const std::string& node, const std::vector<NetValue>& operands) = 0;
    virtual std::string tangle(const std::string& from, const std::string& to, const std::vector<NetLayer>& inside, const NetValue& in) = 0;
};

// Throws UserError for a term that is no network, and where sizes do not fit.
NetValue walk_net(const Term& net, const NetValue& input, NetVisitor& visitor);

}  // namespace loopegg
