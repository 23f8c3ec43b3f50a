#!/bin/sh
# Builds the runner with nvcc (or any C++ compiler that finds cuda.h) and runs the bundle; results.txt is what to bring back.
set -e
cd "$(dirname "$0")"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
"$nvcc" -O2 -std=c++17 -o bundle_runner bundle_runner.cpp -lcuda
./bundle_runner bundle.txt "${1:-results.txt}"
