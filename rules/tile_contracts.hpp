// What the lists of tiles promise of the parts of each tile. A list keeps its promises by leaving out the tiles that do not, so rules may rely on them.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nest/schedule/naive_loops.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

enum class PartRole {
    parallel,  // loops that move the output
    sum,       // loops that sum up
    mixed,     // both
};

struct TilePart {
    std::string_view name;
    PartRole role;
};

// The loops of all parts, in any order, visit exactly what the nest visits, and each instance once. Of a tile that is cut, those of the tile visit one
// piece and those of the rest the other, and both pieces have the same loops in the part "shared".
struct TileContract {
    std::string_view list;                 // "register-tiles": where tiles come from
    std::string_view parts_of, rest_of{};  // the functions that give the loops of a part; the second of a tile that is cut
    std::vector<TilePart> parts;
    std::vector<std::string_view> sums{};   // parts whose sums, in this order, are taken in the order of the statement, under strict-fp
    std::vector<std::string_view> empty{};  // parts that have no loops
    std::vector<std::pair<std::string_view, std::string_view>> instead{};  // parts that, all together, may replace others
    bool cuts_a_sum = false;
};

std::span<const TileContract> tile_contracts();
const TileContract* contract_of_list(std::string_view list);

// The loops of a part of one tile.
using LoopsOfPart = std::function<std::vector<Term>(std::string_view part)>;

// Whether a tile's parts have their roles, and whether their sums keep the order of the statement where that is asked for.
bool keeps_contract(const TileContract& contract, const NaiveLoops& nest, const LoopsOfPart& loops, bool strict_fp);

}  // namespace loopegg
