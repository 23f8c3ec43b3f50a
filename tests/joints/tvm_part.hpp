// TVM's share of the joints, apart from the rest because its headers are heavy.
#pragma once
#include <vector>

// Compiles 'out[i] = in[i] * 2 + 1' for this machine, in parallel over i, and runs it.
std::vector<float> joints_tvm_double_plus_one(const std::vector<float>& in);
