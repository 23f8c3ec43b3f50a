// The grammar of nest terms, in one place, and the names of its operators.
//
//   NEST   ::= (nest STMT SCHED)                    the instances that SCHED visits, of the statement STMT
//            | (restore HOW NEST)                   HOW ::= repeat | zero | pointwise: how outputs that no instance computes come back
//   STMT   ::= (conv2d N G CO CI IH IW KH KW SH SW PH PW DH DW) | (linear N CO CI) | ...      see statement.hpp
//            | (epilogue E STMT)                    E ::= bias | scale_shift | relu | relu6 | silu | gelu | sigmoid | tanh | add | (times V):
//                                                   done to each output element after its last instance; the innermost E is done first
//            | (layout BUFFER AXIS k STMT)          BUFFER is stored with the dimension that AXIS walks in blocks of k:
//                                                   that dimension keeps d/k in place and d%k becomes the innermost dimension
//            | (order BUFFER P STMT)                BUFFER has its dimensions in the order of the digits of P: (order I 132 STMT) reads I[x,z,y] where
//                                                   STMT reads I[x,y,z]
//   SCHED  ::= (at AXIS SCHED)                      one serial loop
//            | (par AXIS SCHED)                     iterations run on several cores
//            | (vec AXIS SCHED)                     iterations are the lanes of a vector
//            | (unroll AXIS SCHED)                  iterations written out
//            | (bind PLACE AXIS SCHED)              PLACE ::= blockIdx.x|y|z | threadIdx.x|y|z | vthread | tensor.tf32 (rounding.hpp)
//            | (partial KIND AXIS SCHED)            KIND ::= serial | par | vec | unroll | threadIdx.x ...: a loop over a reduction in which every
//                                                   iteration sums into partial results of its own; they are added up, in the
//                                                   order of the axis, when the loop ends
//            | (stage BUFFER SCHED)                 the rest works on a local copy of the tile it touches; BUFFER ::= NAME
//                                                   | (shared NAME) | (ahead NAME: the next tile comes while this one is used), NAME ::= O I J K W A B;
//                                                   nothing is copied where the statement has no such buffer, or reads and writes it
//            | (cat SCHED SCHED)                    one part of the domain after another
//            | done                                 the statement itself
//   AXIS   ::= NAME:EXTENT                          an iterator of the statement, "co:64". Inside a nest a person may write "co"
//                                                   alone: complete() fills the extent in from STMT, bare() takes it away
//            | (quo AXIS k) | (rem AXIS k)          AXIS / k and AXIS % k; k need not divide the extent
//            | (pair AXIS AXIS)                     first * extent(second) + second
//            | (span AXIS lo hi)                    AXIS - lo, where lo <= AXIS < hi
//            | (diag G AXIS AXIS)                   the block number, where (quo A |A|/G) = (quo B |B|/G); G divides both extents
//
// The extent is in the name of an iterator so that a SCHED means the same wherever it is: nests of different shapes share
// one e-graph, and every class of axes or schedules knows its extents.
//
// What a SCHED means. Every AXIS is a partial function from instances (values of the statement's iterators) to whole numbers
// 0 .. extent-1; `span` and `diag` are undefined outside their condition. A list of loops visits the instances for which all of its
// axes are defined, in the lexicographic order of their values; `cat` visits its first part, then its second. A whole SCHED must tell
// any two instances that it visits apart (every digit of every iterator of extent > 1 is in exactly one loop); resolve() refuses a SCHED
// that does not. Iterators of extent 1 need no loop. No instance is visited by both parts of a `cat`.
//
// What happens to an output element: before its first instance it starts as the identity of the statement's combination (0 for sums, -inf for
// max). Each of its instances combines a value into it, in the order of the schedule. Missing elements come back (restore). Then
// the statement's own last step (an average's division) and the epilogues are done, once. Reordering the instances of one element is allowed
// (floating-point sums may be reassociated) unless strict-fp is on.
//
// (restore pointwise NEST) represents two nests: NEST, finished on the channels that it computes, and a 1x1 convolution with weights of its
// own that makes all channels from these. Rules propose this term. with_domain() makes the two nodes from it, so no nest with this restore is run.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/term.hpp"

namespace loopegg {

// An iterator as it is in a term.
struct AxisName {
    std::string name;
    std::int64_t extent = 0;  // 0: written without its extent
};
std::optional<AxisName> axis_name(const Term& leaf);         // none if the leaf cannot be an iterator
Term axis_leaf(std::string_view name, std::int64_t extent);  // "co:64"

// The operators by family; the last child of every schedule operator but `cat` and `done` is the rest of the list.
bool is_axis_operator(std::string_view op);  // quo rem pair span diag
bool is_loop_operator(std::string_view op);  // at par vec unroll bind partial

// Of a term whose operator is a loop: its axis and the rest of the list.
const Term& loop_axis(const Term& sched);
const Term& loop_rest(const Term& sched);

struct Statement;

// A NEST or SCHED with every iterator spelled with its extent. Throws UserError for an iterator that the statement does not have
// or whose extent differs.
Term complete(const Term& nest);
Term complete(const Statement& statement, const Term& sched);

// The same with bare names, for people.
Term bare(const Term& term);

// The parts of a NEST: STMT, SCHED, and HOW of the restore around them ("" if there is none). Throws UserError for anything else.
struct NestParts {
    Term statement, schedule;
    std::string restore;
};
NestParts nest_parts(const Term& nest);
Term nest_from(const NestParts& parts);  // the way back

}  // namespace loopegg
