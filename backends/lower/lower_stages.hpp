// Storages that stand for a tile of an operand: their shape and scope, what is copied into them, and how an output tile leaves them.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "backends/lower/lower_loops.hpp"

namespace loopegg {

class NestStages : protected NestLoops {
protected:
    using NestLoops::NestLoops;

    // A storage over a tile. Dimensions that deeper loops walk come last; those that threads walk are left out.
    std::shared_ptr<Storage> storage(const Tree& n, const Tile& tile, const std::string& name, bool local);
    bool on_stack(const tv::Buffer& b) const;
    std::vector<Expr> steps_here(const Tile& tile) const;  // the values of a tile's steps

    // Vectors that lie across the rows of the output would go there one float at a time, every float to another row. Such a tile is
    // put down in memory as it is and then copied row by row. Gives the tile with its steps in the order of the output's memory, and how
    // many of the last of them lie in one piece there.
    struct Rows {
        Tile tile;
        std::size_t in_one_piece = 0;
    };
    std::optional<Rows> across_rows(const TreeNode& n) const;

    // A copy made by one thread; of a padded tile, row by row where that can be.
    Obj copy_tile(const Tree& n, const Storage& st, const std::function<Obj()>& leaf);
    Obj copy_rows(const Tree& n, const Storage& st, const std::function<Obj()>& leaf);

    // One instruction of tensor cores (lower_tensor.cpp): what stands under a tensor loop, by a warp.
    Obj tensor_step(const TreeNode& n);

private:
    bool may_run_out(const TreeNode& stage, const TreeNode& body) const;
};

}  // namespace loopegg
