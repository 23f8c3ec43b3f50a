// The worker of a measurement: a process of its own that compiles, checks and times what it is sent, one JSON line at a time.
//
//   {"op":"build","id":1,"nest":"(nest ...)","target":"host"}   -> {"id":1,"ok":true} | {"id":1,"ok":false,"why":"...","own":true}
//   {"op":"open","id":2,"folder":"..."}                         -> the same, for a compiled network
//   {"op":"time","id":1,"samples":5,"cold":67108864}            -> {"id":1,"ok":true,"ms":[...],"clean":5}; weights out of so many bytes
//   {"op":"profile","id":2,"seconds":1}                         -> {"id":2,"ok":true,"ms":[...],"batch":1,"peak_kb":...}, one time for each call
//   {"op":"steps","id":2,"runs":10}                             -> {"id":2,"ok":true,"ms":[[...],...]}, the times of all steps in each run
//   {"op":"infer","id":2,"inputs":["x.npy"],"outputs":["y.npy"]} -> {"id":2,"ok":true}; one inference, from files and to files
//   {"op":"board","id":3,"nest":"(nest ...)","target":"b","samples":15} -> {"id":3,"ok":true,"ms":[...]}; on a board, over RPC
//   {"op":"pack","id":4,"nest":"(nest ...)","target":"b","file":"...","place":7,"samples":15,"seconds":60,"memory":8192} -> {"id":4,"ok":true}; the file is for
//                                                                  a board over ssh (board/board_trial.hpp)
//   {"op":"drop","id":1}                                        -> {"id":1,"ok":true}
// "own" is true where the compiler refuses a candidate or the candidate's result is wrong: no other try would help. "clean" counts the
// samples during which the processors were ours from beginning to end. With LOOPEGG_FAULTS set, a build may carry
// "fault": crash, hang, memory, divide, stray, garbage, and the worker does that instead; tests of the parent use it.
#pragma once
#include "base/confine.hpp"

namespace loopegg {

// Serves until the input ends. Replies go to `reply_fd`; standard output is closed to whatever kernels may print.
int run_worker(int reply_fd, const Confinement& confinement);

}  // namespace loopegg
