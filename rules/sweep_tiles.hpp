// Tiles of nests that go through memory once: functions of each element, and sums along rows that are contiguous in memory.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "nest/schedule/naive_loops.hpp"
#include "nest/schedule/vector_machine.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

enum class SweepKind {
    elements,  // nothing is summed up: vectors along the innermost loop
    rows,      // one operand is summed up along its own order in memory: each lane sums up a part
};

// A tile is a term: (sweep-tile ALONG LANES CHUNK). The naive loop with the number ALONG is divided into vectors of LANES elements, and CHUNK elements
// stay with one core. Vectors run along the innermost loop, or along a loop whose elements are in blocks. Empty for other statements.
std::vector<Term> sweep_tiles(const Statement& statement, const NaiveLoops& nest, const VectorMachine& machine, SweepKind kind);
// A tile of a nest whose innermost loop is cut where its whole vectors end: (sweep-cut LANES). Empty where a whole number of vectors fills that loop, and
// where there is no other loop that the cores could share.
std::vector<Term> cut_sweeps(const Statement& statement, const NaiveLoops& nest, const VectorMachine& machine, SweepKind kind);

// The parts of such a nest. Every loop of the nest is in one of these parts.
constexpr std::array<std::string_view, 3> sweep_parts{"shared", "steps", "lanes"};
// The loops of one part, outermost first: what the cores may share, what one core does step by step, vectors. Gives none where there is no such part.
// Of a nest that is cut, the whole vectors have these parts.
std::optional<std::vector<Term>> part_of_sweep(const NaiveLoops& nest, const Term& tile, std::string_view part);
// The same for the rest of a nest that is cut.
std::optional<std::vector<Term>> part_of_sweep_rest(const NaiveLoops& nest, const Term& tile, std::string_view part);

// Tiles of nests that transform tiles of an image (statements with coefficients): every transform written out, with vectors of channels.
enum class TransformKind { input, output };

// A tile is a term: (transform-tile LANES), with LANES channels at a time. Empty for any other statement, or where the channels do not fill vectors.
std::vector<Term> transform_tiles(const Statement& statement, const VectorMachine& machine, TransformKind kind);

// The parts of such a nest. Every loop of the nest is in one of these parts.
constexpr std::array<std::string_view, 5> transform_parts{"blocks", "rows", "columns", "taps", "lanes"};
// The loops of one part, outermost first: blocks of channels (with images), rows and columns of tiles, what a transform does to one tile, channels.
// Gives none where there is no such part.
std::optional<std::vector<Term>> part_of_transform(const NaiveLoops& nest, const Term& tile, std::string_view part);

}  // namespace loopegg
