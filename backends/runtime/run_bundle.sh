#!/bin/sh
# Builds the runner with any C++ compiler, nvcc among them, and runs the bundle; results.txt is what to bring back. A run that was cut continues.
#   run_bundle.sh [RESULTS] [REPEATS]   how often each program is timed (21); 1 is enough to know whether its output is right
set -e
cd "$(dirname "$0")"
for compiler in ${CXX:-} c++ g++ clang++ nvcc /usr/local/cuda/bin/nvcc none; do
    [ "$compiler" = none ] && { echo "no C++ compiler is here: expected c++, g++, clang++ or nvcc" >&2; exit 1; }
    command -v "$compiler" >/dev/null && break
done
"$compiler" -O2 -std=c++17 -o bundle_runner bundle_runner.cpp -ldl
./bundle_runner bundle.txt "${1:-results.txt}" "${2:-21}"
