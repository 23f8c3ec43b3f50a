// Tiles of a nest for units that multiply whole tiles of a product: which loops are the rows and columns of a tile, and which sums are its depth.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "nest/schedule/naive_loops.hpp"
#include "nest/schedule/vector_machine.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// A tile is a term: (unit-tile SHARED BLOCK ROWS R COLUMNS C DEPTH D PACKED SIZE SIZE ...). SHARED, ROWS, COLUMNS and DEPTH are numbers of naive loops. An
// instruction takes R iterations of the loop ROWS, C of COLUMNS and D steps of the sum DEPTH, of which PACKED neighbours are in one word. The tiles that are
// summed up at once are SIZE for each loop that moves the output. The cores share blocks of BLOCK iterations of the loop SHARED.

// Whether tiles have equally many rows, or the loop of the rows is cut where whole tiles end, because no tile that fills half of the unit divides it. Then the
// term is (cut-unit-tile ...), and one tile of fewer rows is the rest.
enum class UnitRows { equal, cut };

// At most `most` tiles, cheapest first by the estimate. Empty where the statement is no sum of products, or where no unit of the machine fits it.
std::vector<Term> unit_tiles(const Statement& statement, const NaiveLoops& nest, const VectorMachine& machine, UnitRows rows, std::size_t most);

std::int64_t words_of_tile(const Term& tile);  // PACKED

// The parts of a tiled nest. Every loop of the nest is in one of these parts.
constexpr std::array<std::string_view, 8> unit_parts{"shared", "outer", "sums", "own", "rows", "depth", "columns", "packed"};
// The loops of one part, outermost first. Gives none where there is no such part. Of a nest that is cut, the whole tiles have these parts.
std::optional<std::vector<Term>> part_of_unit(const NaiveLoops& nest, const Term& tile, std::string_view part);
// The same for the rest of a nest that is cut.
std::optional<std::vector<Term>> part_of_unit_rest(const NaiveLoops& nest, const Term& tile, std::string_view part);

}  // namespace loopegg
