// Convolutions, pooling and resizing in any number of dimensions.
#include <algorithm>
#include <map>
#include <numeric>

#include "graph/onnx/evaluate/tensors.hpp"

namespace loopegg::onnx_eval {
namespace {

// A window that walks over the spatial dimensions.
struct Window {
    Ints in, out, kernel, stride, dilation, before, after;
};

Window window_of(const OnnxNode& node, const OnnxTensor& x, Ints kernel) {
    if (x.dims.size() < 3) problem("an image is expected");
    const std::size_t n = x.dims.size() - 2;
    Window w{Ints(x.dims.begin() + 2, x.dims.end()),
             {},
             std::move(kernel),
             attr_ints(node, "strides").value_or(Ints(n, 1)),
             attr_ints(node, "dilations").value_or(Ints(n, 1)),
             {},
             {}};
    const Ints pads = attr_ints(node, "pads").value_or(Ints(2 * n, 0));
    const std::string automatic = attr_text(node, "auto_pad", "NOTSET");
    const bool ceil = attr_int(node, "ceil_mode", 0) != 0;
    if (w.kernel.size() != n || w.stride.size() != n || w.dilation.size() != n || pads.size() != 2 * n) problem("its window does not fit to its input");
    for (std::size_t d = 0; d < n; ++d) {
        if (w.kernel[d] < 1 || w.stride[d] < 1 || w.dilation[d] < 1 || w.kernel[d] > 1 << 20 || w.stride[d] > 1 << 20 || w.dilation[d] > 1 << 20)
            problem("a window, stride or dilation that is not possible");
        const std::int64_t reach = (w.kernel[d] - 1) * w.dilation[d] + 1;
        std::int64_t before = pads[d], after = pads[n + d], out = 0;
        if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
            out = (w.in[d] + w.stride[d] - 1) / w.stride[d];
            const std::int64_t all = std::max<std::int64_t>(0, (out - 1) * w.stride[d] + reach - w.in[d]);
            before = automatic == "SAME_UPPER" ? all / 2 : all - all / 2, after = all - before;
        } else {
            if (automatic == "VALID") before = after = 0;
            if (before < 0 || after < 0 || before > 1 << 20 || after > 1 << 20) problem("padding that is not possible");
            const std::int64_t room = w.in[d] + before + after - reach;
            if (room < 0) problem("a window that is larger than its input");
            out = (ceil ? (room + w.stride[d] - 1) / w.stride[d] : room / w.stride[d]) + 1;
            if (ceil && (out - 1) * w.stride[d] >= w.in[d] + before) --out;  // a window that would begin in the padding at the end
        }
        w.before.push_back(before), w.after.push_back(after), w.out.push_back(out);
    }
    return w;
}

// Visits the places of a window around output `o` that are in the image: their number within the kernel, and the flat offset in the image.
template <class Visit>
void each_inside(const Window& w, const Ints& o, Visit visit) {
    const std::size_t n = w.in.size();
    Ints k(n, 0);
    const Ints strides = strides_of(w.in);
    for (std::int64_t flat = 0, all = count_of(w.kernel); flat < all; ++flat) {
        std::int64_t offset = 0;
        bool inside = true;
        for (std::size_t d = 0; d < n; ++d) {
            const std::int64_t p = o[d] * w.stride[d] + k[d] * w.dilation[d] - w.before[d];
            inside = inside && p >= 0 && p < w.in[d];
            offset += p * strides[d];
        }
        if (inside) visit(flat, offset);
        for (std::size_t d = n; d-- > 0;) {
            if (++k[d] < w.kernel[d]) break;
            k[d] = 0;
        }
    }
}

Ints place(std::int64_t flat, const Ints& dims) {
    Ints o(dims.size());
    for (std::size_t d = dims.size(); d-- > 0; flat /= dims[d]) o[d] = flat % dims[d];
    return o;
}

Outputs conv(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &weight = need(in, 1);
    if (weight.dims.size() != x.dims.size() || x.dims.size() < 3) problem("its weight does not fit to its input");
    const Window w = window_of(node, x, Ints(weight.dims.begin() + 2, weight.dims.end()));
    const std::int64_t groups = attr_int(node, "group", 1), co = weight.dims[0], ci = weight.dims[1], inner = count_of(w.in), outer = count_of(w.out),
                       size = count_of(w.kernel);
    if (groups < 1 || co % groups || ci * groups != x.dims[1]) problem("its groups do not fit to the channels");
    Ints dims{x.dims[0], co};
    dims.insert(dims.end(), w.out.begin(), w.out.end());
    OnnxTensor y = make(element_type(x), dims);
    expect_work(static_cast<double>(size_of(y)) * static_cast<double>(ci) * static_cast<double>(size));
    std::vector<std::pair<std::int64_t, std::int64_t>> inside;
    for (std::int64_t o = 0; o < outer; ++o) {
        inside.clear();
        each_inside(w, place(o, w.out), [&](std::int64_t k, std::int64_t p) { inside.emplace_back(k, p); });
        for (std::int64_t b = 0; b < x.dims[0]; ++b)
            for (std::int64_t c = 0; c < co; ++c) {
                double sum = maybe(in, 2) ? number(*in[2], at(c)) : 0;
                for (std::int64_t i = 0; i < ci; ++i)
                    for (const auto& [k, p] : inside)
                        sum += number(weight, at((c * ci + i) * size + k)) * number(x, at((b * x.dims[1] + c / (co / groups) * ci + i) * inner + p));
                set(y, at((b * co + c) * outer + o), sum);
            }
    }
    return {y};
}

Outputs conv_transpose(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &weight = need(in, 1);
    const std::size_t n = x.dims.size() - 2;
    if (weight.dims.size() != x.dims.size() || x.dims.size() < 3 || weight.dims[0] != x.dims[1]) problem("its weight does not fit to its input");
    const std::int64_t groups = attr_int(node, "group", 1), ci = x.dims[1], co = weight.dims[1];
    const Ints kernel(weight.dims.begin() + 2, weight.dims.end()), strides = attr_ints(node, "strides").value_or(Ints(n, 1)),
                                                                   dilations = attr_ints(node, "dilations").value_or(Ints(n, 1));
    const Ints extra = attr_ints(node, "output_padding").value_or(Ints(n, 0)), wanted = attr_ints(node, "output_shape").value_or(Ints{});
    Ints pads = attr_ints(node, "pads").value_or(Ints(2 * n, 0)), out, spatial(x.dims.begin() + 2, x.dims.end());
    const std::string automatic = attr_text(node, "auto_pad", "NOTSET");
    if (groups < 1 || ci % groups || strides.size() != n || dilations.size() != n || extra.size() != n || pads.size() != 2 * n ||
        (!wanted.empty() && wanted.size() != n))
        problem("its window does not fit to its input");
    for (std::size_t d = 0; d < n; ++d) {
        if (strides[d] < 1 || dilations[d] < 1 || kernel[d] < 1 || strides[d] > 1 << 20 || dilations[d] > 1 << 20 || std::abs(pads[d]) > 1 << 20 ||
            std::abs(pads[n + d]) > 1 << 20)
            problem("a window that is not possible");
        const std::int64_t full = strides[d] * (spatial[d] - 1) + extra[d] + (kernel[d] - 1) * dilations[d] + 1;
        if (!wanted.empty() || automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
            const std::int64_t size = wanted.empty() ? spatial[d] * strides[d] : wanted[d], all = std::max<std::int64_t>(0, full - size);
            pads[d] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2, pads[n + d] = all - pads[d];
            if (automatic != "SAME_UPPER" && wanted.empty()) pads[d] = all - all / 2, pads[n + d] = all / 2;
            out.push_back(size);
        } else {
            out.push_back(full - pads[d] - pads[n + d]);
        }
        if (out.back() < 0) problem("an output of a negative size");
    }
    Ints dims{x.dims[0], co * groups};
    dims.insert(dims.end(), out.begin(), out.end());
    OnnxTensor y = make(element_type(x), dims);
    const std::int64_t inner = count_of(spatial), outer = count_of(out), size = count_of(kernel);
    expect_work(static_cast<double>(size_of(x)) * static_cast<double>(co) * static_cast<double>(size));
    std::vector<double> sums(size_of(y), 0);
    const Ints out_strides = strides_of(out);
    for (std::int64_t p = 0; p < inner; ++p) {
        const Ints o = place(p, spatial);
        for (std::int64_t k = 0; k < size; ++k) {
            const Ints q = place(k, kernel);
            std::int64_t to = 0;
            bool inside = true;
            for (std::size_t d = 0; d < n; ++d) {
                const std::int64_t v = o[d] * strides[d] + q[d] * dilations[d] - pads[d];
                inside = inside && v >= 0 && v < out[d];
                to += v * out_strides[d];
            }
            if (!inside) continue;
            for (std::int64_t b = 0; b < x.dims[0]; ++b)
                for (std::int64_t i = 0; i < ci; ++i)
                    for (std::int64_t c = 0; c < co; ++c)
                        sums[at((b * co * groups + i / (ci / groups) * co + c) * outer + to)] +=
                            number(x, at((b * ci + i) * inner + p)) * number(weight, at((i * co + c) * size + k));
        }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) set(y, i, sums[i] + (maybe(in, 2) ? number(*in[2], i / at(outer) % at(co * groups)) : 0));
    return {y};
}

Outputs pool(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const Window w = window_of(node, x, attr_ints(node, "kernel_shape").value_or(Ints{}));
    const bool most = node.op == "MaxPool", padded = attr_int(node, "count_include_pad", 0) != 0, columns = attr_int(node, "storage_order", 0) != 0;
    const auto p = static_cast<double>(attr_int(node, "p", 2));
    const std::int64_t planes = x.dims[0] * x.dims[1], inner = count_of(w.in), outer = count_of(w.out);
    Ints dims{x.dims[0], x.dims[1]};
    dims.insert(dims.end(), w.out.begin(), w.out.end());
    OnnxTensor y = make(element_type(x), dims), places = make(int64, node.outputs.size() > 1 ? dims : Ints{0});
    expect_work(static_cast<double>(size_of(y)) * static_cast<double>(count_of(w.kernel)));
    std::vector<std::int64_t> inside;
    for (std::int64_t o = 0; o < outer; ++o) {
        inside.clear();
        const Ints where = place(o, w.out);
        each_inside(w, where, [&](std::int64_t, std::int64_t at_image) { inside.push_back(at_image); });
        double divisor = static_cast<double>(inside.size());
        if (padded) {  // of the padded image, which a window of ceil_mode may still leave
            divisor = 1;
            for (std::size_t d = 0; d < w.in.size(); ++d) {
                std::int64_t seen = 0;
                for (std::int64_t k = 0; k < w.kernel[d]; ++k) seen += where[d] * w.stride[d] + k * w.dilation[d] < w.in[d] + w.before[d] + w.after[d];
                divisor *= static_cast<double>(seen);
            }
        }
        for (std::int64_t plane = 0; plane < planes; ++plane) {
            double best = -INFINITY, sum = 0;
            std::int64_t from = -1;
            for (std::int64_t i : inside) {
                const double v = number(x, at(plane * inner + i));
                if (from < 0 || v > best) best = v, from = i;
                sum += node.op == "LpPool" ? std::pow(std::abs(v), p) : v;
            }
            const std::size_t to = at(plane * outer + o);
            set(y, to, most ? best : node.op == "LpPool" ? std::pow(sum, 1 / p) : sum / divisor);
            if (size_of(places) == 0) continue;
            if (columns && w.in.size() == 2) from = from % w.in[1] * w.in[0] + from / w.in[1];
            places.integers[to] = plane * inner + from;
        }
    }
    return node.outputs.size() > 1 ? Outputs{y, places} : Outputs{y};
}

Outputs global_pool(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    if (x.dims.size() < 3) problem("an image is expected");
    Ints dims(x.dims.size(), 1);
    dims[0] = x.dims[0], dims[1] = x.dims[1];
    OnnxTensor y = make(element_type(x), dims);
    const std::size_t inner = size_of(y) ? size_of(x) / size_of(y) : 0;
    const auto p = static_cast<double>(attr_int(node, "p", 2));
    for (std::size_t i = 0; i < size_of(y); ++i) {
        double best = -INFINITY, sum = 0;
        for (std::size_t k = 0; k < inner; ++k) {
            const double v = number(x, i * inner + k);
            best = std::max(best, v), sum += node.op == "GlobalLpPool" ? std::pow(std::abs(v), p) : v;
        }
        set(y, i, node.op == "GlobalMaxPool" ? best : node.op == "GlobalLpPool" ? std::pow(sum, 1 / p) : sum / static_cast<double>(inner));
    }
    return {y};
}

double cubic(double t, double a) {
    t = std::abs(t);
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

// Which elements of the old axis, and how much of each, make element o of the new one. Outside: the weights stay, the place is -1.
struct Sample {
    std::vector<std::pair<std::int64_t, double>> parts;
    bool outside = false;
};

struct Resizing {
    std::string mode, place, nearest;
    double cubic_a = -0.75;
    bool exclude_outside = false, antialias = false;
};

// One axis: its old and new size, their ratio, and the part of the old axis that is shown (for tf_crop_and_resize).
struct ResizedAxis {
    std::int64_t n, m;
    double scale, from, to;
};

Sample sample(const Resizing& r, const ResizedAxis& axis, std::int64_t o) {
    const auto& [n, m, scale, from, to] = axis;
    const auto x = static_cast<double>(o), in = static_cast<double>(n), out = static_cast<double>(m), exact = scale * in;
    double c = (x + 0.5) / scale - 0.5;
    if (r.place == "asymmetric")
        c = x / scale;
    else if (r.place == "align_corners")
        c = m == 1 ? 0 : x * (in - 1) / (exact - 1);
    else if (r.place == "pytorch_half_pixel")
        c = m == 1 ? 0 : (x + 0.5) / scale - 0.5;
    else if (r.place == "tf_half_pixel_for_nn")
        c = (x + 0.5) / scale;
    else if (r.place == "half_pixel_symmetric")
        c = in / 2 * (1 - out / exact) + (x + 0.5) / scale - 0.5;
    else if (r.place == "tf_crop_and_resize")
        c = m > 1 ? from * (in - 1) + x * (to - from) * (in - 1) / (out - 1) : 0.5 * (from + to) * (in - 1);
    Sample s;
    s.outside = r.place == "tf_crop_and_resize" && (c < 0 || c > in - 1);
    auto clamped = [&](double v) { return std::clamp<std::int64_t>(static_cast<std::int64_t>(v), 0, axis.n - 1); };
    if (r.mode == "nearest") {
        const double v = r.nearest == "floor"               ? std::floor(c)
                         : r.nearest == "ceil"              ? std::ceil(c)
                         : r.nearest == "round_prefer_ceil" ? std::floor(c + 0.5)
                                                            : std::ceil(c - 0.5);
        s.parts = {{clamped(v), 1.0}};
        return s;
    }
    const bool by_cubic = r.mode == "cubic";
    const double widen = r.antialias && scale < 1 ? 1 / scale : 1, reach = (by_cubic ? 2 : 1) * widen;
    double sum = 0;
    for (auto k = static_cast<std::int64_t>(std::floor(c - reach)); k <= static_cast<std::int64_t>(std::ceil(c + reach)); ++k) {
        const double t = (static_cast<double>(k) - c) / widen, w = by_cubic ? cubic(t, r.cubic_a) : std::max(0.0, 1 - std::abs(t));
        if (w == 0 || (r.exclude_outside && (k < 0 || k >= n))) continue;
        s.parts.emplace_back(std::clamp<std::int64_t>(k, 0, n - 1), w);
        sum += w;
    }
    for (auto& [k, w] : s.parts) w /= sum;
    return s;
}

Outputs resize(const OnnxNode& node, Inputs in, std::int64_t opset) {
    const OnnxTensor& x = need(in, 0);
    const bool old = node.op == "Upsample" || opset < 11;  // scales alone, asymmetric
    Resizing r{attr_text(node, "mode", "nearest"),
               attr_text(node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
               attr_text(node, "nearest_mode", old ? "floor" : "round_prefer_floor"),
               attr_float(node, "cubic_coeff_a", -0.75),
               attr_int(node, "exclude_outside", 0) != 0,
               attr_int(node, "antialias", 0) != 0};
    if (r.mode != "nearest" && r.mode != "linear" && r.mode != "cubic") problem("resizing by '" + r.mode + "' is not known");
    Ints axes(x.dims.size());
    std::iota(axes.begin(), axes.end(), 0);
    axes = attr_ints(node, "axes").value_or(axes);
    const OnnxTensor *roi = old ? nullptr : maybe(in, 1), *scales = maybe(in, old ? 1 : 2), *sizes = old ? nullptr : maybe(in, 3);
    std::vector<double> given;
    if (auto f = attr_floats(node, "scales")) given.assign(f->begin(), f->end());
    if (scales && size_of(*scales))
        for (std::size_t i = 0; i < size_of(*scales); ++i) given.push_back(number(*scales, i));
    Ints wanted = sizes ? list_of(*sizes) : Ints{};
    if (wanted.empty() == given.empty() || (wanted.empty() ? given.size() : wanted.size()) != axes.size()) problem("either sizes or scales are expected");
    const std::string policy = attr_text(node, "keep_aspect_ratio_policy", "stretch");
    OnnxTensor y = x;
    std::vector<std::vector<bool>> outside(x.dims.size());
    double ratio = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const double s = static_cast<double>(wanted[i]) / static_cast<double>(x.dims[at(placed_axis(axes[i], rank_of(x)))]);
        ratio = i == 0 ? s : policy == "not_larger" ? std::min(ratio, s) : std::max(ratio, s);
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::size_t d = at(placed_axis(axes[i], rank_of(x)));
        const std::int64_t n = x.dims[d];
        double scale = wanted.empty() ? given[i] : static_cast<double>(wanted[i]) / static_cast<double>(n);
        if (!wanted.empty() && policy != "stretch") scale = ratio;
        const double size = wanted.empty()        ? std::floor(static_cast<double>(n) * scale + 1e-9)
                            : policy != "stretch" ? std::nearbyint(scale * static_cast<double>(n))
                                                  : static_cast<double>(wanted[i]);
        if (!(scale > 0) || !(size >= 1) || size > static_cast<double>(max_elements) || n < 1) problem("a size that is not possible");
        const auto m = static_cast<std::int64_t>(size);
        const double from = roi && size_of(*roi) == 2 * axes.size() ? number(*roi, i) : 0,
                     to = roi && size_of(*roi) == 2 * axes.size() ? number(*roi, i + axes.size()) : 1;
        std::vector<Sample> samples;
        bool same = n == m;
        for (std::int64_t o = 0; o < m; ++o) {
            samples.push_back(sample(r, {n, m, scale, from, to}, o));
            outside[d].push_back(samples.back().outside);
            same = same && !samples.back().outside && samples.back().parts.size() == 1 && samples.back().parts[0].first == o;
        }
        if (same) continue;
        Ints dims = y.dims;
        dims[d] = m;
        OnnxTensor made = make(element_type(x), dims);
        std::int64_t inner = 1;
        for (std::size_t k = d + 1; k < dims.size(); ++k) inner *= dims[k];
        for (std::size_t k = 0; k < size_of(made); ++k) {
            const auto flat = static_cast<std::int64_t>(k);
            double sum = 0;
            for (const auto& [p, w] : samples[at(flat / inner % m)].parts) sum += w * number(y, at((flat / (inner * m) * n + p) * inner + flat % inner));
            set(made, k, sum);
        }
        y = std::move(made);
    }
    if (r.place == "tf_crop_and_resize") {
        const Ints strides = strides_of(y.dims);
        for (std::size_t k = 0; k < size_of(y); ++k)
            for (std::size_t d = 0; d < y.dims.size(); ++d)
                if (!outside[d].empty() && outside[d][k / at(strides[d]) % at(y.dims[d])]) set(y, k, attr_float(node, "extrapolation_value", 0));
    }
    return {y};
}

double reflected(double x, double low, double high) {
    const double range = high - low;
    if (range <= 0) return low;
    double v = std::fmod(std::abs(x - low), 2 * range);
    return v > range ? low + 2 * range - v : low + v;
}

Outputs grid_sample(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &grid = need(in, 1);
    if (x.dims.size() != 4 || grid.dims.size() != 4 || grid.dims[3] != 2 || grid.dims[0] != x.dims[0]) problem("an image and a grid of pairs are expected");
    std::string mode = attr_text(node, "mode", "linear");
    const std::string edge = attr_text(node, "padding_mode", "zeros");
    const bool align = attr_int(node, "align_corners", 0) != 0;
    const std::int64_t h = x.dims[2], w = x.dims[3], c = x.dims[1], oh = grid.dims[1], ow = grid.dims[2];
    if (mode == "bilinear") mode = "linear";
    if (mode == "bicubic") mode = "cubic";
    OnnxTensor y = make(element_type(x), {x.dims[0], c, oh, ow});
    auto place = [&](double g, std::int64_t n) {
        const auto s = static_cast<double>(n);
        return align ? (g + 1) / 2 * (s - 1) : ((g + 1) * s - 1) / 2;
    };
    auto bounded = [&](double v, std::int64_t n) {
        const auto s = static_cast<double>(n);
        return edge == "border"       ? std::clamp(v, 0.0, s - 1)
               : edge == "reflection" ? std::clamp(reflected(v, align ? 0 : -0.5, align ? s - 1 : s - 0.5), 0.0, s - 1)
                                      : v;
    };
    for (std::int64_t b = 0; b < x.dims[0]; ++b)
        for (std::int64_t o = 0; o < oh * ow; ++o) {
            double px = place(number(grid, at((b * oh * ow + o) * 2)), w), py = place(number(grid, at((b * oh * ow + o) * 2 + 1)), h);
            if (mode != "cubic") px = bounded(px, w), py = bounded(py, h);
            auto value = [&](std::int64_t k, double fy, double fx) {
                if (mode == "cubic") fx = bounded(fx, w), fy = bounded(fy, h);
                if (!(fx >= 0 && fx <= static_cast<double>(w - 1) && fy >= 0 && fy <= static_cast<double>(h - 1))) return 0.0;
                return number(x, at(((b * c + k) * h + static_cast<std::int64_t>(fy)) * w + static_cast<std::int64_t>(fx)));
            };
            for (std::int64_t k = 0; k < c; ++k) {
                double sum = 0;
                if (mode == "nearest") {
                    sum = value(k, std::nearbyint(py), std::nearbyint(px));
                } else {
                    const int low = mode == "cubic" ? -1 : 0, high = mode == "cubic" ? 2 : 1;
                    for (int dy = low; dy <= high; ++dy)
                        for (int dx = low; dx <= high; ++dx) {
                            const double fy = std::floor(py) + dy, fx = std::floor(px) + dx;
                            const double wy = mode == "cubic" ? cubic(py - fy, -0.75) : 1 - std::abs(py - fy),
                                         wx = mode == "cubic" ? cubic(px - fx, -0.75) : 1 - std::abs(px - fx);
                            if (wy != 0 && wx != 0) sum += wy * wx * value(k, fy, fx);
                        }
                }
                set(y, at((b * c + k) * oh * ow + o), sum);
            }
        }
    return {y};
}

// Columns back to an image: what windows took from one place is added up there.
Outputs col2im(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const Ints image = list_of(need(in, 1)), block = list_of(need(in, 2));
    const std::size_t n = image.size();
    const Ints strides = attr_ints(node, "strides").value_or(Ints(n, 1)), dilations = attr_ints(node, "dilations").value_or(Ints(n, 1)),
               pads = attr_ints(node, "pads").value_or(Ints(2 * n, 0));
    if (n == 0 || n > 6 || block.size() != n || strides.size() != n || dilations.size() != n || pads.size() != 2 * n || x.dims.size() != 3)
        problem("its image, block, strides, dilations and pads do not fit");
    Ints places;
    for (std::size_t d = 0; d < n; ++d) {
        constexpr std::int64_t most = 1 << 24;
        if (image[d] < 1 || block[d] < 1 || strides[d] < 1 || dilations[d] < 1 || pads[d] < 0 || pads[n + d] < 0) problem("a size that is not possible");
        if (std::max({image[d], block[d], strides[d], dilations[d], pads[d], pads[n + d]}) > most) problem("a size that is too large");
        const std::int64_t room = image[d] + pads[d] + pads[n + d] - dilations[d] * (block[d] - 1) - 1;
        if (room < 0) problem("its block is larger than its image");
        places.push_back(room / strides[d] + 1);
    }
    const std::int64_t window = count_of(block), count = count_of(places), area = count_of(image);
    if (x.dims[1] % window || x.dims[2] != count) problem("its columns do not fit to its image and block");
    const std::int64_t planes = x.dims[0] * (x.dims[1] / window);
    Ints dims{x.dims[0], x.dims[1] / window};
    dims.insert(dims.end(), image.begin(), image.end());
    OnnxTensor y = make(element_type(x), dims);
    std::vector<double> sums(at(planes * area), 0.0);
    for (std::int64_t w = 0; w < window; ++w)
        for (std::int64_t p = 0; p < count; ++p) {
            std::int64_t to = 0, inner = 1, rest_w = w, rest_p = p;
            bool inside = true;
            for (std::size_t d = n; d-- > 0;) {
                const std::int64_t i = rest_p % places[d] * strides[d] + rest_w % block[d] * dilations[d] - pads[d];
                rest_w /= block[d], rest_p /= places[d];
                inside = inside && i >= 0 && i < image[d];
                to += i * inner, inner *= image[d];
            }
            for (std::int64_t plane = 0; inside && plane < planes; ++plane) sums[at(plane * area + to)] += number(x, at((plane * window + w) * count + p));
        }
    for (std::size_t i = 0; i < sums.size(); ++i) set(y, i, sums[i]);
    return {y};
}

}  // namespace

Operation window_operation(const std::string& op) {
    static const std::map<std::string, Operation> all{
        {"Conv", conv},
        {"ConvTranspose", conv_transpose},
        {"MaxPool", pool},
        {"AveragePool", pool},
        {"LpPool", pool},
        {"GlobalAveragePool", global_pool},
        {"GlobalMaxPool", global_pool},
        {"GlobalLpPool", global_pool},
        {"Resize", resize},
        {"Upsample", resize},
        {"GridSample", grid_sample},
        {"Col2Im", col2im},
    };
    auto found = all.find(op);
    return found == all.end() ? nullptr : found->second;
}

}  // namespace loopegg::onnx_eval
