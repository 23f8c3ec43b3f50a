// Tiles of sums in the registers of a matrix unit (AMX on x86), or in vectors (lower_vectors.cpp). The schedule says what a tile is and which tiles are summed
// up at once (unit_loops.hpp).
#pragma once
#include <array>

#include "backends/lower/lower_stages.hpp"
#include "backends/lower/unit_loops.hpp"

namespace loopegg {

class NestUnits : protected NestStages {
protected:
    NestUnits(const Statement& statement, const LoopTree& tree, const Target& target);

    std::uint32_t units_used() const;                                    // by the code so far, in the words of runtime/loopegg_runtime.h
    Obj with_functions(const Obj& body) const;                           // that the code so far calls
    bool takes_signed_bytes() const { return int8() && signed_bytes_; }  // of int8 inputs

    bool has_unit(const std::string& operands) const;  // that multiplies such numbers

    // The code with the unit's registers shaped for the tiles below, and given back after it. Every core does this for itself.
    Obj configured(const Tree& below, const std::function<Obj()>& code);
    bool configures(const TreeNode& n) const;    // whether each core begins its tiles inside the loop
    bool begins_tiles(const Tree& n) const;      // whether tiles are multiplied in there, and nothing in there shapes registers for them
    bool configures_parts(const Tree& n) const;  // whether loops that follow each other in there shape the registers for themselves: their tiles may differ
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
        std::string instruction;  // that multiplies tiles in registers; "": sums lie in vectors
        UnitForm form{};          // that multiplies vectors; without an intrinsic, plain arithmetic
        std::uint32_t needs = 0;  // units of the runtime
        tv::Buffer vectors{};     // of sums: those of one tile after those of another
        bool in_registers() const { return !instruction.empty(); }
        std::int64_t vector_rows() const { return loops.rows->extent / form.rows; }
        std::int64_t vector_columns() const { return loops.columns->extent / form.columns; }
        std::int64_t lanes() const { return form.rows * form.columns; }
        std::vector<const TreeNode*> own;                                // loops over tiles of sums, outermost first
        std::int64_t sums = 1;                                           // tiles of sums
        std::array<std::int64_t, 2> kept{};                              // registers for tiles of each operand
        std::array<std::vector<std::vector<std::int64_t>>, 2> loaded{};  // what is in them, by the own loops that move the operand
        std::array<std::size_t, 2> next{};
    };
    std::optional<Tiles> fitting_tiles(const Tree& output_stage) const;
    std::optional<Tiles> fitting_registers(Tiles t) const;
    std::optional<Tiles> fitting_vectors(Tiles t) const;
    void require_small_sums() const;
    std::vector<Obj> clear_vectors() const;
    Obj multiply_vectors();
    Expr row_words(std::int64_t row, std::int64_t step);
    Expr column_words(std::int64_t column, std::int64_t step);
    Expr multiplied(const Expr& sums, const Expr& rows, const Expr& columns) const;
    Expr plain_products(Expr sums, const Expr& bytes, const Expr& wholes) const;
    Obj store_vectors(const Storage& sums);
    Expr finished_sums(const Spot& sums);
    std::int64_t sum_step(const Storage& sums, const TreeNode* loop) const;
    std::int64_t number_of_sum() const;  // of the tile that the own loops are at
    Spot vector_of_sums(std::int64_t tile, std::int64_t row, std::int64_t column) const;
    bool input_moves_along_rows(const UnitLoops& loops) const;
    template <class F>
    void each_own_tile(F f);  // f(number)
    std::vector<Obj> operand_tile(std::size_t side, std::int64_t& number);
    std::int64_t stride(std::size_t read, const TreeNode* loop) const;

    std::uint32_t needs_of(const MatrixUnit& unit) const;

    const Target& target_;
    const std::vector<MatrixUnit> units_;
    const bool signed_bytes_;
    std::optional<Tiles> tiles_;
    std::uint32_t used_ = 0;
    std::set<std::string> functions_;  // in LLVM's language
};

}  // namespace loopegg
