// LibTorch's share of the joints: a library of its own, opened with local symbols, as fisher/ is.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

// d/dx of sum(relu(conv(x, w))^2): returns the largest difference between autograd and the same gradient by hand.
extern "C" double joints_torch_backward() {
    at::manual_seed(1);
    at::Tensor x = at::randn({2, 3, 8, 8}, at::kDouble).requires_grad_(true), w = at::randn({4, 3, 3, 3}, at::kDouble);
    at::Tensor y = at::conv2d(x, w, {}, 1, 1).relu();
    at::Tensor grad = torch::autograd::grad({y.square().sum()}, {x})[0];
    at::Tensor by_hand = at::conv_transpose2d(2 * y.detach(), w, {}, 1, 1);
    return (grad - by_hand).abs().max().item<double>();
}
