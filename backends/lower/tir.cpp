#include "backends/lower/tir.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace loopegg::tv {
namespace {

const Obj no_span{nullptr};

DLDataType type_of(const char* name) { return ffi::StringToDLDataType(name); }
Obj primitive_type(const char* name) { return obj(Fn::prim_type, type_of(name)); }

std::int64_t floor_division(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

List nodes(const std::vector<Expr>& all) {
    List r;
    for (const Expr& e : all) r.push_back(e.node);
    return r;
}

Expr called(const char* type, const char* op, const List& args) {
    return Expr(obj(Fn::call, primitive_type(type), obj(Fn::get_op, op), args, nullptr, List{}, no_span));
}
List with_name(const char* name, const std::vector<Expr>& args) {
    List all{obj(Fn::string_imm, name, no_span)};
    for (const Expr& a : args) all.push_back(a.node);
    return all;
}

}  // namespace

Expr::Expr(std::int64_t v) : node(obj(Fn::int_imm, type_of("int32"), v, no_span)), constant(true), value(v) {}

Expr binary(Fn f, const Expr& a, const Expr& b) { return Expr(obj(f, a.node, b.node, no_span)); }

Expr operator+(const Expr& a, const Expr& b) {
    if (a.constant && b.constant) return a.value + b.value;
    if (a.is(0)) return b;
    if (b.is(0)) return a;
    return binary(Fn::add, a, b);
}
Expr operator-(const Expr& a, const Expr& b) {
    if (a.constant && b.constant) return a.value - b.value;
    if (b.is(0)) return a;
    return binary(Fn::sub, a, b);
}
Expr operator*(const Expr& a, const Expr& b) {
    if (a.constant && b.constant) return a.value * b.value;
    if (a.is(0) || b.is(0)) return 0;
    if (a.is(1)) return b;
    if (b.is(1)) return a;
    return binary(Fn::mul, a, b);
}
Expr floor_div(const Expr& a, const Expr& b) {
    if (a.constant && b.constant) return floor_division(a.value, b.value);
    if (b.is(1)) return a;
    return binary(Fn::floor_div, a, b);
}
Expr floor_mod(const Expr& a, const Expr& b) {
    if (a.constant && b.constant) return a.value - floor_division(a.value, b.value) * b.value;
    if (b.is(1)) return 0;
    return binary(Fn::floor_mod, a, b);
}

Expr less(const Expr& a, const Expr& b) { return binary(Fn::lt, a, b); }
Expr at_least(const Expr& a, const Expr& b) { return binary(Fn::ge, a, b); }
Expr both(const Expr& a, const Expr& b) {
    if (!a.node.defined()) return b;
    if (!b.node.defined()) return a;
    return binary(Fn::logical_and, a, b);
}

// -3.4028235e38, as the lowest float32 is written, is no float32 before it is rounded.
Expr float_value(double v) { return Expr(obj(Fn::float_imm, type_of("float32"), static_cast<double>(static_cast<float>(v)), no_span)); }
Expr choose(const Expr& condition, const Expr& yes, const Expr& no) {
    if (!condition.node.defined()) return yes;
    return Expr(obj(Fn::if_expr, condition.node, yes.node, no.node, no_span));
}
Expr select(const Expr& condition, const Expr& yes, const Expr& no) {
    if (!condition.node.defined()) return yes;
    return Expr(obj(Fn::select, condition.node, yes.node, no.node, no_span));
}
Expr intrinsic(const char* op, const std::vector<Expr>& args) { return called("float32", op, nodes(args)); }
Expr truncate(const Expr& number) { return Expr(obj(Fn::cast, type_of("int32"), number.node, no_span)); }
Expr with_bits(const Expr& whole) { return intrinsic("tirx.reinterpret", {whole}); }
Expr bits_of(const Expr& number) { return called("int32", "tirx.reinterpret", nodes({number})); }
Expr bitwise(const char* op, const Expr& a, const Expr& b) { return Expr(ffi::Function::GetGlobalRequired(op)(a.node, b.node, no_span).cast<Obj>()); }
std::string lanes_of(const char* type, std::int64_t lanes) { return lanes == 1 ? type : type + ("x" + std::to_string(lanes)); }
Expr run_of(const Expr& first, std::int64_t lanes) { return lanes == 1 ? first : Expr(obj(Fn::ramp, first.node, Expr(1).node, Expr(lanes).node, no_span)); }
Expr spread(const Expr& value, std::int64_t lanes) { return lanes == 1 ? value : Expr(obj(Fn::broadcast, value.node, Expr(lanes).node, no_span)); }
Expr whole_lanes(const Expr& floats, std::int64_t lanes) { return called(lanes_of("int32", lanes).c_str(), "tirx.reinterpret", nodes({floats})); }
Expr float_lanes(const Expr& wholes, std::int64_t lanes) { return called(lanes_of("float32", lanes).c_str(), "tirx.reinterpret", nodes({wholes})); }
Expr as_numbers(const Expr& wholes, std::int64_t lanes) { return Expr(obj(Fn::cast, type_of(lanes_of("float32", lanes).c_str()), wholes.node, no_span)); }
Expr chosen_lanes(const std::vector<Expr>& vectors, const std::vector<std::int64_t>& lanes) {
    List indices;
    for (std::int64_t lane : lanes) indices.push_back(Expr(lane).node);
    return Expr(obj(Fn::shuffle, nodes(vectors), indices, no_span));
}
std::string multiplying_name(const std::string& intrinsic) {
    std::string name = "loopegg_by_" + intrinsic;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}
std::string multiplying_function(const std::string& intrinsic, InWords numbers, std::int64_t lanes) {
    const auto known = call(Fn::llvm_intrinsic, intrinsic).cast<std::int64_t>();
    if (known == 0) throw UserError("LLVM has no intrinsic '" + intrinsic + "', which the target's file names");
    const auto vector = [&](std::int64_t n, const char* type) { return "<" + std::to_string(n * lanes) + " x " + type + ">"; };
    const bool bytes = numbers == InWords::bytes;
    const std::string sums = vector(1, bytes ? "i32" : "float"), words = vector(1, "i32"), packed = bytes ? vector(4, "i8") : vector(2, "bfloat");
    return "declare " + sums + " @" + intrinsic + "(" + sums + ", " + packed + ", " + packed + ")\n" +  //
           "define " + sums + " @" + multiplying_name(intrinsic) + "(" + sums + " %sums, " + words + " %a, " + words + " %b) {\n" + "  %x = bitcast " + words +
           " %a to " + packed + "\n  %y = bitcast " + words + " %b to " + packed + "\n" +  //
           "  %r = call " + sums + " @" + intrinsic + "(" + sums + " %sums, " + packed + " %x, " + packed + " %y)\n  ret " + sums + " %r\n}\n";
}
Expr multiplied_lanes(const std::string& intrinsic, InWords numbers, const Expr& sums, const std::array<Expr, 2>& words, std::int64_t lanes) {
    return called(lanes_of(numbers == InWords::bytes ? "int32" : "float32", lanes).c_str(), "tirx.call_pure_extern",
                  with_name(multiplying_name(intrinsic).c_str(), {sums, words[0], words[1]}));
}
Obj with_llvm(const std::string& functions, const Obj& body) {
    return obj(Fn::attr_stmt, Expr(0).node, "pragma_import_llvm", obj(Fn::string_imm, functions, no_span), body, no_span);
}
Expr outer_function(const char* name, const std::vector<Expr>& args) { return called("float32", "tirx.call_pure_extern", with_name(name, args)); }
Obj outer_call(const char* name, const std::vector<Expr>& args) {
    return obj(Fn::evaluate, called("void", "tirx.call_extern", with_name(name, args)).node, no_span);
}

Expr narrow(std::int64_t number) { return Expr(obj(Fn::int_imm, type_of("uint8"), number, no_span)); }
Expr wide(std::int64_t number) { return Expr(obj(Fn::int_imm, type_of("int64"), number, no_span)); }
Obj machine_call(const char* intrinsic, const std::vector<Expr>& args) {
    List all{obj(Fn::int_imm, type_of("uint32"), call(Fn::llvm_intrinsic, intrinsic).cast<std::int64_t>(), no_span)};
    for (const Expr& a : args) all.push_back(a.node);
    return obj(Fn::evaluate, called("int32", "tirx.call_llvm_intrin", all).node, no_span);
}

Variable variable(const std::string& name) { return {obj(Fn::var, name, primitive_type("int32"), no_span)}; }

Buffer buffer(const std::string& name, const std::vector<std::int64_t>& shape, const char* scope) {
    List extents;
    for (std::int64_t s : shape) extents.push_back(Expr(s).node);
    Obj type = obj(Fn::buffer_type, scope, primitive_type("float32"), extents, List{}, Expr(0).node, 64, 1, nullptr, List{}, no_span);
    return {obj(Fn::buffer_var, name, type, no_span), shape, scope};
}
Expr Buffer::load(const std::vector<Expr>& at) const {
    require(at.size() == shape.size(), "a buffer is indexed by as many expressions as it has dimensions");
    return Expr(obj(Fn::buffer_load, node, nodes(at), no_span));
}
Obj Buffer::store(const Expr& value, const std::vector<Expr>& at) const {
    require(at.size() == shape.size(), "a buffer is indexed by as many expressions as it has dimensions");
    return obj(Fn::buffer_store, node, value.node, nodes(at), no_span);
}
Expr Buffer::address(const std::vector<Expr>& at) const {
    return Expr(obj(Fn::call, obj(Fn::pointer_type, primitive_type("float32"), scope), obj(Fn::get_op, "tirx.address_of"), List{load(at).node}, nullptr, List{},
                    no_span));
}
Obj Buffer::prefetch(const std::vector<Expr>& at) const {
    return obj(Fn::evaluate, called("void", "tirx.prefetch", nodes({address(at), 0, 3, 1})).node, no_span);
}

Obj loop(const Variable& v, std::int64_t extent, LoopKind kind, const Obj& body, const std::string& thread) {
    Obj bound{nullptr};
    if (kind == LoopKind::bound) {
        Obj range = obj(Fn::range, Expr(0).node, Expr(extent).node, no_span);
        bound = obj(Fn::iter_var, range, obj(Fn::var, thread, primitive_type("int32"), no_span), 1, thread, no_span);
    }
    return obj(Fn::for_loop, v.node, Expr(0).node, Expr(extent).node, static_cast<int>(kind), body, bound, ffi::Map<ffi::String, Any>{}, nullptr, no_span);
}
Obj sequence(const std::vector<Obj>& statements) {
    if (statements.size() == 1) return statements[0];
    List all;
    for (const Obj& s : statements) all.push_back(s);
    return obj(Fn::seq_stmt, all, no_span);
}
Obj guarded(const Expr& condition, const Obj& body) {
    if (!condition.node.defined()) return body;
    return obj(Fn::if_stmt, condition.node, body, nullptr, no_span);
}
Obj either(const Expr& condition, const Obj& yes, const Obj& no) {
    if (!condition.node.defined()) return yes;
    return obj(Fn::if_stmt, condition.node, yes, no, no_span);
}
// TVM takes storage of 1,024 bytes and more from a heap unless an annotation forbids it. Storage on the stack can stay in registers.
Obj allocate(const Buffer& b, bool on_stack) {
    ffi::Map<ffi::String, Any> annotations;
    if (on_stack) annotations.Set("disable_lower_builtin", obj(Fn::int_imm, type_of("bool"), 1, no_span));
    return obj(Fn::alloc_buffer, b.node, annotations, no_span);
}

Obj primitive(const std::string& name, const std::vector<Buffer>& parameters, const Obj& body) {
    List params;
    for (const Buffer& p : parameters) params.push_back(p.node);
    ffi::Map<ffi::String, Any> attributes{{"global_symbol", ffi::String(name)}, {"tirx.noalias", true}};
    Obj attrs = obj(Fn::make_object, "ir.DictAttrs", "__dict__", attributes);
    return obj(Fn::prim_func, params, body, primitive_type("void"), attrs, no_span);
}
Obj module_of(const std::vector<std::pair<std::string, Obj>>& functions) {
    ffi::Map<Any, Any> all;
    for (const auto& [name, f] : functions) all.Set(obj(Fn::global_var, name), f);
    return obj(Fn::ir_module, all, nullptr, ffi::Map<ffi::String, Any>{});
}

}  // namespace loopegg::tv
