// Tiles of nests that transform tiles of an image (statements with coefficients): every transform written out, with vectors of channels.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "nest/schedule/naive_loops.hpp"
#include "nest/schedule/vector_machine.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

enum class TransformKind { input, output };

// A tile is a term: (transform-tile LANES), with LANES channels at a time. Empty for any other statement, or where the channels do not fill vectors.
std::vector<Term> transform_tiles(const Statement& statement, const VectorMachine& machine, TransformKind kind);

// The parts of such a nest. Every loop of the nest is in one of these parts.
constexpr std::array<std::string_view, 5> transform_parts{"blocks", "rows", "columns", "taps", "lanes"};
// The loops of one part, outermost first: blocks of channels (with images), rows and columns of tiles, what a transform does to one tile, channels.
// Gives none where there is no such part.
std::optional<std::vector<Term>> part_of_transform(const NaiveLoops& nest, const Term& tile, std::string_view part);

}  // namespace loopegg
