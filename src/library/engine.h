/* The engine as a C interface: rules, e-graphs, saturation, extraction and proofs. Python's loopegg.EGraph calls it through ctypes, so that one library serves
 * every version of Python, and Python's lock is released while the engine works.
 *
 * Every function answers with JSON: {"answer": ...}, or {"exit": CODE, "errors": [...]} as 'loopegg COMMAND --json' words them. The text is valid until the
 * thread's next call. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loopegg_rules loopegg_rules;
typedef struct loopegg_egraph loopegg_egraph;

#pragma GCC visibility push(default)

/* Where the rules and examples that come with loopegg are. Without it they are looked for as the program does. */
const char* loopegg_engine_home(const char* folder);

/* Rules from a text that `name` stands for in messages, or from the file `name` if text is null. `unproved` admits rules that are neither proved nor
 * refuted. */
const char* loopegg_rules_read(const char* name, const char* text, int unproved, loopegg_rules** rules);
void loopegg_rules_free(loopegg_rules* rules);

/* An e-graph for terms of the rules' language. It keeps a reference to nothing: the rules may be freed first. */
const char* loopegg_egraph_create(const loopegg_rules* rules, int proofs, loopegg_egraph** egraph);
void loopegg_egraph_free(loopegg_egraph* egraph);

/* {"do": "add" | "merge" | "equal" | "extract" | "explain" | "size" | "serialize", ...}; engine.cpp has the keys of each. A second call inside an e-graph is
 * refused. */
const char* loopegg_egraph_ask(loopegg_egraph* egraph, const char* request);

/* Runs the rules of the e-graph: {"iterations", "nodes", "seconds", "scheduler", "phase"}, all optional. `after` is called after each iteration with the
 * numbers of nodes and classes, and ends the run by returning 0; it may be null. */
typedef int (*loopegg_after_iteration)(long nodes, long classes);
const char* loopegg_egraph_saturate(loopegg_egraph* egraph, const char* options, loopegg_after_iteration after);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
