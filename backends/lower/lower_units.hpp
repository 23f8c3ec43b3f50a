// Tiles of sums in the registers of a matrix unit (AMX on x86), or of whole numbers in vectors (lower_dots.cpp). The schedule says what a tile is and which
// tiles are summed up at once (unit_loops.hpp).
#pragma once
#include <array>

#include "backends/lower/lower_stages.hpp"
#include "backends/lower/unit_loops.hpp"

namespace loopegg {

class NestUnits : protected NestStages {
protected:
    NestUnits(const Statement& statement, const LoopTree& tree, const Target& target);

    std::uint32_t units_used() const;  // by the code so far, in the words of runtime/loopegg_runtime.h

    bool has_unit(const std::string& operands) const;  // that multiplies such numbers

    // The code with the unit's registers shaped for tiles, and given back after it. Every core does this for itself.
    Obj configured(const std::function<Obj()>& code);
    bool configures(const TreeNode& n) const;  // whether each core begins its tiles inside the loop
    bool multiplies_in_tiles(const Tree& n) const;

    // Between begin_tiles and store_tiles, the loops inside a stage of the output sum up in the unit's registers. Gives false, and begins nothing, where the
    // target has no such unit or the loops do not fit it.
    bool begin_tiles(const Tree& output_stage);
    bool in_tiles() const { return tiles_.has_value(); }
    bool is_tile_loop(const TreeNode& n) const;
    std::vector<Obj> clear_tiles();
    Obj multiply_tiles();
    Obj store_tiles(const Storage& sums);

private:
    struct Tiles {
        UnitLoops loops;
        std::string instruction;                                         // that multiplies; "": plain arithmetic
        bool in_registers = false;                                       // of a matrix unit; otherwise in vectors
        tv::Buffer wholes{};                                             // sums that are whole numbers, a row after the other
        std::vector<const TreeNode*> own;                                // loops over tiles of sums, outermost first
        std::int64_t sums = 1;                                           // tiles of sums
        std::array<std::int64_t, 2> kept{};                              // registers for tiles of each operand
        std::array<std::vector<std::vector<std::int64_t>>, 2> loaded{};  // what is in them, by the own loops that move the operand
        std::array<std::size_t, 2> next{};
    };
    std::optional<Tiles> fitting_tiles(const Tree& output_stage) const;
    std::optional<Tiles> fitting_registers(Tiles t) const;
    std::optional<Tiles> fitting_vectors(Tiles t) const;
    std::vector<Obj> clear_vectors() const;
    Obj multiply_vectors();
    Expr dot(const Expr& sums, const Expr& bytes, const Expr& wholes, std::int64_t lanes) const;
    Obj store_wholes(const Storage& sums);
    std::int64_t sum_step(const Storage& sums, const TreeNode* loop) const;
    std::int64_t number_of_sum() const;  // of the tile that the own loops are at
    Spot row_of_wholes(std::int64_t tile, std::int64_t row) const;
    bool input_moves_along_rows() const;
    template <class F>
    void each_own_tile(F f);  // f(number)
    std::vector<Obj> operand_tile(std::size_t side, std::int64_t& number);
    std::int64_t stride(std::size_t read, const TreeNode* loop) const;

    const std::vector<MatrixUnit> units_;
    std::optional<Tiles> tiles_;
    std::uint32_t used_ = 0;
};

}  // namespace loopegg
