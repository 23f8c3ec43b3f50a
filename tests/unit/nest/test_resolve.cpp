#include <catch2/catch.hpp>

#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/interpreter.hpp"

using namespace loopegg;

namespace {

// The interpreter in the term's order against the statement alone, on whole numbers.
void check_nest(const std::string& text) {
    INFO(text);
    Term nest = complete(parse_term(text));
    Statement s = statement_of(nest_parts(nest).statement);
    Buffers buffers = whole_number_buffers(s, 7);
    Domain domain = domain_of(nest);
    INFO(to_string(domain) << "\n" << to_string(resolve(nest), s));
    CHECK(interpret(nest, buffers) == reference(s, domain, buffers));
}

const std::string conv = "(conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)";
const std::string strided = "(conv2d 2 2 4 3 7 6 3 2 2 1 1 0 1 2)";
const std::string fused = "(epilogue relu (epilogue add (epilogue scale_shift (epilogue bias " + conv + "))))";

}  // namespace

TEST_CASE("naive nests of every statement compute what the statement says", "[unit]") {
    for (const char* stmt : {"(conv2d 2 2 4 3 7 6 3 2 2 1 1 0 1 2)",
                             "(linear 3 5 7)",
                             "(matmul 2 3 4 5)",
                             "(max_pool 1 3 7 7 3 3 2 2 1 1)",
                             "(avg_pool 1 3 6 6 2 2 2 2 0 0)",
                             "(avg_pool_inside 1 3 6 6 3 3 2 2 1 1)",
                             "(row_sum 3 5 2)",
                             "(row_mean 3 4 1)",
                             "(row_max 3 5 1)",
                             "(row_exp_sum 3 5 1)",
                             "(row_square 3 4 1)",
                             "(row_softmax 3 5 2)",
                             "(row_norm 3 5 1e-05)",
                             "(map relu 12)",
                             "(map gelu 12)",
                             "(zip + 12)",
                             "(stretch * 2 3 4 5 15 2)",
                             "(move 2 3 1 4)",
                             "(order I 3142 (move 2 3 1 4))",
                             "(order O 312 (epilogue add (order J 132 (matmul 2 3 4 5))))",
                             "(order O 4231 (epilogue bias (conv2d 1 1 4 3 5 5 3 3 1 1 1 1 1 1)))",
                             "(epilogue (times 0.125) (matmul 2 3 4 5))",
                             "(scale 0.125 12)",
                             "(channel_scale 2 3 5)",
                             "(recurrence 4 6)"}) {
        Statement s = statement_of(parse_term(stmt));
        check_nest(to_string(nest_of(s)));
    }
}

TEST_CASE("every loop form resolves to the same result", "[unit]") {
    auto with = [](const std::string& stmt, const std::string& sched) { check_nest("(nest " + stmt + " " + sched + ")"); };
    for (const std::string& stmt : {conv, fused}) {
        with(stmt, "(at (quo co 4) (at oh (at ci (at kh (at kw (at (rem co 4) (at ow done)))))))");
        with(stmt, "(at (quo co 3) (at oh (at (quo ci 3) (at kh (at kw (at (rem co 3) (at (rem ci 3) (at ow done))))))))");
        with(stmt, "(par (pair (quo co 4) oh) (stage O (at ci (unroll kh (unroll kw (unroll (rem co 4) (vec ow done)))))))");
        with(stmt, "(par (quo co 4) (stage W (at oh (stage O (at ci (stage I (at kh (at kw (at (rem co 4) (vec ow done))))))))))");
        with(stmt, "(at ci (at co (at oh (at ow (at kh (at kw done))))))");
        with(stmt, "(cat (at (span co 0 3) (at ci (at oh (at ow (at kh (at kw done)))))) (at (span co 3 8) (at oh (at ci (at ow (at kh (at kw done)))))))");
        with(stmt, "(cat (at co (at (span ci 0 1) (at oh (at ow (at kh (at kw done)))))) (at (span ci 1 4) (at co (at oh (at ow (at kh (at kw done)))))))");
        with(stmt, "(at co (at oh (at ow (partial par ci (at kh (at kw done))))))");
        with(stmt, "(at co (partial vec (pair ci kh) (at oh (at ow (at kw done)))))");
        with(stmt, "(bind blockIdx.x co (bind threadIdx.x (pair oh ow) (stage (shared W) (at ci (at kh (at kw done))))))");
        with(stmt, "(at (quo (pair oh ow) 5) (at (rem (pair oh ow) 5) (at co (at ci (at kh (at kw done))))))");
        with(stmt, "(at (quo (pair co ci) 5) (at oh (at ow (at (rem (pair co ci) 5) (at kh (at kw done))))))");
    }
    with(strided, "(at n (at g (at (quo oh 3) (at co (at (rem oh 3) (stage O (at ci (at kh (stage (local I) (at kw (at ow done)))))))))))");
    with("(layout O co 4 (layout W co 4 " + conv + "))", "(at (quo co 4) (at oh (at ci (at kh (at kw (at (rem co 4) (at ow done)))))))");
}

TEST_CASE("restricted nests compute their domain, and restore the rest", "[unit]") {
    auto with = [](const std::string& sched) {
        check_nest("(restore repeat (nest " + conv + " " + sched + "))");
        check_nest("(restore zero (nest " + fused + " " + sched + "))");
    };
    with("(at (span co 0 4) (at ci (at oh (at ow (at kh (at kw done))))))");
    with("(at (span (rem oh 2) 0 1) (at (quo oh 2) (at co (at ci (at ow (at kh (at kw done)))))))");
    auto whole_output = [](const std::string& sched) { check_nest("(nest " + fused + " " + sched + ")"); };
    whole_output("(at (diag 4 co ci) (at (rem co 2) (at oh (at ow (at kh (at kw done))))))");
    whole_output("(at (diag 2 co ci) (at (rem co 4) (at (rem ci 2) (at oh (at ow (at kh (at kw done)))))))");
    whole_output("(at (diag 2 (quo oh 3) ci) (at (rem ci 2) (at (rem oh 3) (at co (at ow (at kh (at kw done)))))))");
    whole_output("(at co (at ci (at oh (at ow (at (span kh 1 2) (at (span kw 1 2) done))))))");
    // S3: one half of the channels in 2 groups, the other in 4.
    whole_output(
        "(cat (at (diag 2 (span co 0 4) ci) (at (rem (span co 0 4) 2) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))) "
        "(at (diag 4 (span co 4 8) ci) (at oh (at ow (at kh (at kw done))))))");
    // S2: some channels dense, the rest grouped, where the cut falls on no block.
    whole_output(
        "(cat (at (span co 0 2) (at ci (at oh (at ow (at kh (at kw done)))))) "
        "(at (diag 2 (span co 2 8) ci) (at (rem (span co 2 8) 3) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))");
}

TEST_CASE("a schedule that is none is refused in words", "[unit]") {
    auto refused = [](const std::string& sched) {
        try {
            resolve(complete(parse_term("(nest " + conv + " " + sched + ")")));
            return std::string("accepted");
        } catch (const UserError& e) {
            return std::string(e.what());
        }
    };
    CHECK_THAT(refused("(at co (at ci (at oh (at ow (at kh done)))))"), Catch::Contains("no loop walks 'kw'"));
    CHECK_THAT(refused("(at co (at co (at ci (at oh (at ow (at kh (at kw done)))))))"), Catch::Contains("more than one loop"));
    CHECK_THAT(refused("(at (quo co 2) (at ci (at oh (at ow (at kh (at kw done))))))"), Catch::Contains("leave some of its digits out"));
    CHECK_THAT(refused("(at cp (at ci done))"), Catch::Contains("is no axis of"));
    CHECK_THAT(refused("(at co (stage X (at ci (at oh (at ow (at kh (at kw done)))))))"), Catch::Contains("no buffer to stage"));
    CHECK_THAT(refused("(loop co done)"), Catch::Contains("is no schedule"));
}

TEST_CASE("a domain becomes a schedule over exactly its instances", "[unit]") {
    for (const char* sched : {"(at (diag 4 co ci) (at (rem co 2) (at oh (at ow (at kh (at kw done))))))",
                              "(at (diag 2 co ci) (at (rem co 4) (at (rem ci 2) (at (span (rem oh 2) 0 1) (at (quo oh 2) (at ow (at kh (at kw done))))))))",
                              "(cat (at (diag 2 (span co 0 4) ci) (at (rem (span co 0 4) 2) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))) "
                              "(at (diag 4 (span co 4 8) ci) (at oh (at ow (at kh (at kw done))))))",
                              "(cat (at (span co 0 2) (at ci (at oh (at ow (at kh (at kw done)))))) "
                              "(at (diag 2 (span co 2 8) ci) (at (rem (span co 2 8) 3) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))"}) {
        Statement s = statement_of(parse_term(conv));
        Domain domain = domain_of(s, parse_term(sched));
        Term back = schedule_of(s, domain);
        INFO(sched << "\n" << to_string(domain) << "\n" << to_string(back));
        Buffers buffers = whole_number_buffers(s, 3);
        CHECK(interpret(s, resolve(s, back), buffers) == interpret(s, resolve(s, parse_term(sched)), buffers));
    }
}
