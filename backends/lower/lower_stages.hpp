// Storages that represent a tile of an operand: their shape and scope, what is copied into them, and how an output tile leaves them.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "backends/lower/lower_loops.hpp"

namespace loopegg {

class NestStages : protected NestLoops {
protected:
    using NestLoops::NestLoops;

    // A storage over a tile. Dimensions that deeper loops walk come last; dimensions that threads walk are left out.
    std::shared_ptr<Storage> storage(const Tree& n, const Tile& tile, const std::string& name, bool local);
    bool on_stack(const tv::Buffer& b) const;
    std::vector<Expr> steps_here(const Tile& tile) const;  // the values of a tile's steps

    // Vectors across the rows of the output would be stored one float at a time, every float to another row. Such a tile is
    // stored in memory as it is and then copied row by row. Gives the tile with its steps in the order of the output's memory, and how
    // many of the last steps are contiguous in that memory.
    struct Rows {
        Tile tile;
        std::size_t in_one_piece = 0;
    };
    std::optional<Rows> across_rows(const TreeNode& n) const;

    // A copy that one thread makes; a padded tile is copied row by row where that is possible.
    Obj copy_tile(const Tree& n, const Storage& st, const std::function<Obj()>& leaf);
    Obj copy_rows(const Tree& n, const Storage& st, const std::function<Obj()>& leaf);

    std::optional<int> packed_step(const Tree& stage) const;
    // One element of a storage is a value, or a word of packed values; then the packed step counts words here.
    Obj store_element(const Storage& st, const Tile& tile, const std::function<Expr()>& value);

    // One instruction of tensor cores (lower_tensor.cpp), by which a warp does what is under a tensor loop.
    Obj tensor_step(const TreeNode& n);

    // Packed tiles of warps, which the threads of a block copy together (warp_tiles.cpp). First each thread fetches its part into registers, `kept`, and then
    // it stores that in the tile, packed. Weights are packed already, and in memory in the order of the tile.
    std::int64_t kept_words(const TreeNode& stage) const;
    Obj fetch_words(const TreeNode& stage, const Storage& st, const tv::Buffer& kept);
    Obj store_words(const TreeNode& stage, const Storage& st, const tv::Buffer& kept);
    // Puts the weights of buffer b in the order of their tiles.
    void order_as_tiles(int b, KernelBuffer& parameter);

private:
    void make_flat(Storage& st, Shape& shape) const;
    Tile items_of(const TreeNode& stage, const Storage& st) const;
    bool is_packed_weight(const TreeNode& stage) const { return readers_.contains(stage.buffer); }
    const Expr padding_ = outside();
    bool may_run_out(const TreeNode& stage, const TreeNode& body) const;
};

}  // namespace loopegg
