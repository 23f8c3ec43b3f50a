// Loop programs as TVM's TIR, built by hand: expressions, buffers, loops, functions. Nothing here decides anything.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/lower/tvm_adapter.hpp"

namespace loopegg::tv {

// An expression. Whole numbers fold here, so that the IR stays small before TVM's simplifier sees it.
struct Expr {
    Obj node;
    bool constant = false;
    std::int64_t value = 0;

    Expr() = default;
    explicit Expr(Obj n) : node(std::move(n)) {}
    Expr(std::int64_t v);
    Expr(int v) : Expr(std::int64_t{v}) {}
    bool is(std::int64_t v) const { return constant && value == v; }
};
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr floor_div(const Expr& a, const Expr& b);
Expr floor_mod(const Expr& a, const Expr& b);

// Conditions: an Expr whose node is empty means 'always'.
Expr less(const Expr& a, const Expr& b);
Expr at_least(const Expr& a, const Expr& b);
Expr both(const Expr& a, const Expr& b);

Expr float_value(double v);
Expr binary(Fn f, const Expr& a, const Expr& b);
Expr choose(const Expr& condition, const Expr& yes, const Expr& no);  // evaluates one side alone
Expr select(const Expr& condition, const Expr& yes, const Expr& no);  // may evaluate both
Expr intrinsic(const char* op, const std::vector<Expr>& args);        // "tirx.sqrt" and its kind, float32
Expr truncate(const Expr& number);                                    // a float32 as an int32
Expr with_bits(const Expr& whole);                                    // the float32 that has the bits of an int32
Expr bitwise(const char* op, const Expr& a, const Expr& b);           // "prim.bitwise_and", "prim.right_shift" and their kind, int32
Expr bits_of(const Expr& number);                                     // the int32 that has the bits of a float32

// Vectors of 32-bit whole numbers that are as floats in buffers. The lanes are neighbours of the last dimension.
Expr run_of(const Expr& first, std::int64_t lanes);                                           // the positions first, first + 1, ...
Expr spread(const Expr& value, std::int64_t lanes);                                           // one value in all lanes
Expr whole_lanes(const Expr& floats, std::int64_t lanes);                                     // the bits of float lanes as whole numbers
Expr float_lanes(const Expr& wholes, std::int64_t lanes);                                     // whole lanes as floats with the same bits
Expr as_numbers(const Expr& wholes, std::int64_t lanes);                                      // whole lanes as floats of the same value
Expr chosen_lanes(const std::vector<Expr>& vectors, const std::vector<std::int64_t>& lanes);  // of vectors one behind the other

// Sums plus the products that an intrinsic of LLVM makes of numbers in 32-bit words: 8-bit numbers and whole sums, or bf16 numbers and float sums. TIR has no
// such vectors, so the intrinsic is called by a function in LLVM's own language, which with_llvm adds to the code.
enum class InWords { bytes, bf16 };
std::string multiplying_function(const std::string& intrinsic, InWords numbers, std::int64_t lanes);
Expr multiplied_lanes(const std::string& intrinsic, InWords numbers, const Expr& sums, const std::array<Expr, 2>& words, std::int64_t lanes);
Obj with_llvm(const std::string& functions, const Obj& body);

Expr outer_function(const char* name, const std::vector<Expr>& args);  // calls a function of the text before the code: no side effects, float32
Obj outer_call(const char* name, const std::vector<Expr>& args);       // calls a function of the same text, for its effects

// Calls an intrinsic of LLVM for its effects. Numbers among its arguments that the instruction carries have 8 bits, and distances 64.
Expr narrow(std::int64_t number);  // as an 8-bit constant
Expr wide(std::int64_t number);    // as a 64-bit constant
Obj machine_call(const char* intrinsic, const std::vector<Expr>& args);

struct Variable {
    Obj node;
    Expr expr() const { return Expr(node); }
};
Variable variable(const std::string& name);

struct Buffer {
    Obj node;
    std::vector<std::int64_t> shape;
    std::string scope;
    Expr load(const std::vector<Expr>& at) const;
    Obj store(const Expr& value, const std::vector<Expr>& at) const;
    Expr address(const std::vector<Expr>& at) const;
    Obj prefetch(const std::vector<Expr>& at) const;  // asks for the cache line of an element; any position may be named
};
Buffer buffer(const std::string& name, const std::vector<std::int64_t>& shape, const char* scope);

enum class LoopKind : int { serial = 0, parallel = 1, vectorized = 2, unrolled = 3, bound = 4 };
Obj loop(const Variable& v, std::int64_t extent, LoopKind kind, const Obj& body, const std::string& thread = {});
Obj sequence(const std::vector<Obj>& statements);
Obj guarded(const Expr& condition, const Obj& body);  // body alone when the condition is 'always'
Obj either(const Expr& condition, const Obj& yes, const Obj& no);
Obj allocate(const Buffer& b, bool on_stack = false);  // in scope for the statements after it in a sequence
Obj primitive(const std::string& name, const std::vector<Buffer>& parameters, const Obj& body);
Obj module_of(const std::vector<std::pair<std::string, Obj>>& functions);

}  // namespace loopegg::tv
