#include "fisher/data.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "graph/npy.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;

constexpr const char* again = "download CIFAR-10's binary version again, and unpack it whole";
constexpr std::size_t cifar_pixels = 3072, cifar_record = cifar_pixels + 1;
constexpr float cifar_mean[] = {0.4914f, 0.4822f, 0.4465f}, cifar_deviation[] = {0.2470f, 0.2435f, 0.2616f};

Shape image_shape(const Graph& graph) {
    Shape shape = graph.inputs[0].shape;
    if (shape.size() < 2)
        throw UserError(fmt::format("the input of '{}' is {}: a batch dimension and at least one more are needed", graph.name, to_string(shape)));
    return {shape.begin() + 1, shape.end()};
}

std::size_t below(std::uint64_t& state, std::size_t n) { return static_cast<std::size_t>(splitmix(state) % n); }

// All images that a folder holds, addressed by number.
class Collection {
public:
    virtual ~Collection() = default;
    virtual std::size_t size() const = 0;
    virtual std::int64_t label(std::size_t i) const = 0;
    virtual void image(std::size_t i, float* out) const = 0;
};

class CifarFiles final : public Collection {
public:
    CifarFiles(const std::vector<fs::path>& files, const Graph& graph) {
        if (Shape shape = image_shape(graph); shape != Shape{3, 32, 32})
            throw UserError(Diagnostic{fmt::format("CIFAR-10's images are 3x32x32, and '{}' takes {}", graph.name, to_string(shape)),
                                       {},
                                       "give --data a folder with images of that shape (images*.npy and labels*.npy), or leave it out for synthetic images"});
        std::int64_t classes = classes_of(graph);
        for (const fs::path& path : files) {
            std::string bytes = read_file(path);
            if (bytes.empty()) throw UserError(Diagnostic{fmt::format("{} is empty", path.string()), {}, again});
            if (bytes.size() % cifar_record != 0)
                throw UserError(Diagnostic{
                    fmt::format("{} is torn: its {} bytes are no whole number of records of {} bytes", path.string(), bytes.size(), cifar_record), {}, again});
            for (std::size_t r = 0; r < bytes.size(); r += cifar_record)
                if (int label = static_cast<unsigned char>(bytes[r]); label >= classes || label > 9)
                    throw UserError(fmt::format("{}: record {} has the label {}, and '{}' knows 0 to {}", path.string(), r / cifar_record, label, graph.name,
                                                std::min<std::int64_t>(classes, 10) - 1));
            bytes_ += bytes;
        }
    }
    std::size_t size() const override { return bytes_.size() / cifar_record; }
    std::int64_t label(std::size_t i) const override { return static_cast<unsigned char>(bytes_[i * cifar_record]); }
    void image(std::size_t i, float* out) const override {
        const char* pixels = bytes_.data() + i * cifar_record + 1;
        for (std::size_t p = 0; p < cifar_pixels; ++p)
            out[p] = (static_cast<float>(static_cast<unsigned char>(pixels[p])) / 255.0f - cifar_mean[p / 1024]) / cifar_deviation[p / 1024];
    }

private:
    std::string bytes_;
};

// images*.npy and labels*.npy: the names agree once "image(s)" is read as "label(s)", or "x" as "y".
std::optional<fs::path> labels_beside(const fs::path& images) {
    std::string name = images.filename().string();
    auto with = [&](const std::string& from, const std::string& to) -> std::optional<fs::path> {
        auto at = name.find(from);
        if (at == std::string::npos) return {};
        fs::path other = images.parent_path() / (name.substr(0, at) + to + name.substr(at + from.size()));
        return fs::exists(other) ? std::optional(other) : std::nullopt;
    };
    if (auto found = with("image", "label")) return found;
    if (name.starts_with("x")) return with("x", "y");
    return {};
}

class NpyFiles final : public Collection {
public:
    NpyFiles(const fs::path& folder, const std::vector<fs::path>& files, const Graph& graph) : shape_(image_shape(graph)) {
        std::int64_t classes = classes_of(graph);
        for (const fs::path& path : files) {
            auto labels_path = labels_beside(path);
            if (!labels_path) continue;
            Tensor images = read_npy(path), labels = read_npy(*labels_path);
            if (images.shape.empty() || Shape(images.shape.begin() + 1, images.shape.end()) != shape_)
                throw UserError(
                    fmt::format("{} holds {}, and '{}' takes batches of {}", path.string(), to_string(images.shape), graph.name, to_string(shape_)));
            if (labels.shape != Shape{images.shape[0]})
                throw UserError(
                    fmt::format("{} holds {}, but {} holds {} images", labels_path->string(), to_string(labels.shape), path.string(), images.shape[0]));
            for (std::size_t i = 0; i < labels.values.size(); ++i) {
                float v = labels.values[i];
                if (!(v >= 0 && v < static_cast<float>(classes)) || v != std::floor(v))
                    throw UserError(fmt::format("{}: label {} is {}, and '{}' knows 0 to {}", labels_path->string(), i, v, graph.name, classes - 1));
                labels_.push_back(static_cast<std::int64_t>(v));
            }
            for (float v : images.values)
                if (!std::isfinite(v)) throw UserError(fmt::format("{} holds NaN or an infinity; expected finite numbers", path.string()));
            values_.insert(values_.end(), images.values.begin(), images.values.end());
        }
        if (labels_.empty())
            throw UserError(Diagnostic{fmt::format("{} holds no batch: expected CIFAR-10's data_batch_*.bin, or images*.npy and labels*.npy", folder.string()),
                                       {},
                                       "leave --data out for synthetic images"});
    }
    std::size_t size() const override { return labels_.size(); }
    std::int64_t label(std::size_t i) const override { return labels_[i]; }
    void image(std::size_t i, float* out) const override {
        std::size_t each = static_cast<std::size_t>(element_count(shape_));
        std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(i * each), each, out);
    }

private:
    Shape shape_;
    std::vector<float> values_;
    std::vector<std::int64_t> labels_;
};

std::vector<fs::path> files_like(const fs::path& folder, std::string_view prefix, std::string_view suffix) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder)) {
        std::string name = entry.path().filename().string();
        if (name.starts_with(prefix) && name.ends_with(suffix)) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
}

Batch take(const Collection& from, const std::vector<std::size_t>& which, const Graph& graph) {
    Shape shape = image_shape(graph);
    std::size_t each = static_cast<std::size_t>(element_count(shape));
    Batch batch;
    batch.shape = shape;
    batch.shape.insert(batch.shape.begin(), static_cast<std::int64_t>(which.size()));
    batch.images.resize(which.size() * each);
    for (std::size_t i = 0; i < which.size(); ++i) {
        from.image(which[i], batch.images.data() + i * each);
        batch.labels.push_back(from.label(which[i]));
    }
    return batch;
}

// n different numbers below `size`: those of batch k.
std::vector<std::size_t> drawn_numbers(std::size_t size, std::int64_t n, std::uint64_t seed, std::int64_t k) {
    std::uint64_t state = Hasher().add(seed).add(static_cast<std::uint64_t>(k)).add(std::string_view("images")).finish().low;
    std::vector<std::size_t> which;
    while (which.size() < static_cast<std::size_t>(n)) {
        std::size_t i = below(state, size);
        if (std::find(which.begin(), which.end(), i) == which.end()) which.push_back(i);
    }
    return which;
}

Batch synthetic_batch(const Graph& graph, std::int64_t n, std::uint64_t seed, std::int64_t k) {
    Shape shape = image_shape(graph);
    shape.insert(shape.begin(), n);
    const std::string name = fmt::format("synthetic images {}", k);
    const bool pictures = shape.size() == 4;  // a network of tokens or features gets noise
    Batch batch{shape, pictures ? dead_leaves(shape, Hasher().add(seed).add(name).finish().low) : normal_tensor(shape, seed, name).values, {}};
    std::uint64_t state = Hasher().add(seed).add(static_cast<std::uint64_t>(k)).add(std::string_view("labels")).finish().low;
    for (std::int64_t i = 0; i < n; ++i) batch.labels.push_back(static_cast<std::int64_t>(below(state, static_cast<std::size_t>(classes_of(graph)))));
    return batch;
}

bool is_synthetic(const std::string& spec) { return spec.empty() || spec == "synthetic"; }

void expect_folder(const std::string& spec) {
    if (!fs::is_directory(spec))
        throw UserError(Diagnostic{fmt::format("the data folder '{}' does not exist", spec),
                                   {},
                                   "expected a folder of CIFAR-10's binary files or of .npy batches, or the word 'synthetic'"});
}

std::unique_ptr<Collection> open_collection(const std::string& spec, const Graph& graph, bool test, std::string& source) {
    std::vector<fs::path> cifar = files_like(spec, test ? "test_batch" : "data_batch", ".bin");
    if (!cifar.empty()) {
        source = "cifar10 " + spec;
        return std::make_unique<CifarFiles>(cifar, graph);
    }
    source = "npy " + spec;
    return std::make_unique<NpyFiles>(spec, files_like(spec, "", ".npy"), graph);
}

// The folder's own division into parts: DATA/train, and DATA/val, DATA/valid, DATA/validation or DATA/test.
std::optional<std::pair<std::string, std::string>> own_parts(const fs::path& folder) {
    if (!fs::is_directory(folder / "train")) return {};
    for (const char* name : {"val", "valid", "validation", "test"})
        if (fs::is_directory(folder / name)) return std::pair{(folder / "train").string(), (folder / name).string()};
    throw UserError(Diagnostic{fmt::format("{} has a folder 'train', and none for the images that accuracy is measured on", folder.string()),
                               {},
                               "name it val, valid, validation or test"});
}

// The folder of the images that may be learned from.
std::string training_part(const std::string& spec) {
    const auto parts = own_parts(spec);
    return parts ? parts->first : spec;
}

}  // namespace

std::int64_t classes_of(const Graph& graph) {
    const Shape& shape = graph.shape_of(graph.outputs.at(0));
    return shape.empty() ? 1 : shape.back();
}

BatchSet load_batches(const std::string& spec, const Graph& graph, std::int64_t n, std::int64_t count, std::uint64_t seed) {
    if (n < 1) throw UserError("--batch: expected at least 1 image, because an empty batch scores nothing");
    require(count >= 1, "at least one batch");
    BatchSet data;
    if (is_synthetic(spec)) {
        data.source = "synthetic", data.synthetic = true;
        for (std::int64_t k = 0; k < count; ++k) data.batches.push_back(synthetic_batch(graph, n, seed, k));
        return data;
    }
    expect_folder(spec);
    std::unique_ptr<Collection> all = open_collection(training_part(spec), graph, false, data.source);
    if (all->size() < static_cast<std::size_t>(n))
        throw UserError(Diagnostic{
            fmt::format("{} holds {} images, and a batch takes {}", spec, all->size(), n), {}, "give a smaller --batch, or a folder with more images"});
    for (std::int64_t k = 0; k < count; ++k) data.batches.push_back(take(*all, drawn_numbers(all->size(), n, seed, k), graph));
    return data;
}

BatchSet load_some(const std::string& spec, const Graph& graph, std::int64_t n, std::uint64_t seed) {
    if (is_synthetic(spec)) return load_batches(spec, graph, n, 1, seed);
    expect_folder(spec);
    BatchSet data;
    std::unique_ptr<Collection> all = open_collection(training_part(spec), graph, false, data.source);
    const std::int64_t some = std::min(n, static_cast<std::int64_t>(all->size()));
    data.batches.push_back(take(*all, drawn_numbers(all->size(), some, seed, 0), graph));
    return data;
}

namespace {

// All numbers below `size` in an order that depends on nothing else. So the test part is the same for every network and seed, and has all classes where the
// files are sorted by class.
std::vector<std::size_t> shuffled(std::size_t size) {
    std::vector<std::pair<std::uint64_t, std::size_t>> keys;
    for (std::size_t i = 0; i < size; ++i) keys.emplace_back(Hasher().add(static_cast<std::uint64_t>(i)).add(std::string_view("split")).finish().low, i);
    std::sort(keys.begin(), keys.end());
    std::vector<std::size_t> order;
    for (const auto& [key, i] : keys) order.push_back(i);
    return order;
}

std::vector<std::size_t> in_order(std::size_t size) {
    std::vector<std::size_t> order(size);
    std::iota(order.begin(), order.end(), std::size_t{0});
    return order;
}

}  // namespace

Splits load_splits(const std::string& spec, const Graph& graph, std::int64_t limit, std::uint64_t seed) {
    if (is_synthetic(spec)) {
        const std::int64_t some = limit > 0 ? limit : 512;
        return {synthetic_batch(graph, some, seed, 0), synthetic_batch(graph, some, seed, 1), "synthetic"};
    }
    expect_folder(spec);
    Splits splits;
    std::string other;
    const auto parts = own_parts(spec);
    const std::string train_folder = parts ? parts->first : spec, test_folder = parts ? parts->second : spec;
    const std::unique_ptr<Collection> train = open_collection(train_folder, graph, false, splits.source);
    const auto part = [&](const Collection& all, std::vector<std::size_t> which) {
        if (limit > 0) which.resize(std::min(which.size(), static_cast<std::size_t>(limit)));
        return take(all, which, graph);
    };
    const bool cifar = splits.source.starts_with("cifar10");
    if (cifar && files_like(test_folder, "test_batch", ".bin").empty())
        throw UserError(Diagnostic{fmt::format("{} has no test_batch.bin to measure accuracy on", test_folder), {}, again});
    if (parts || cifar) {
        const std::unique_ptr<Collection> test = open_collection(test_folder, graph, cifar, other);
        return {part(*train, in_order(train->size())), part(*test, in_order(test->size())), splits.source};
    }
    if (train->size() < 2)
        throw UserError(fmt::format("{} holds {} image, and training takes at least two: one to learn from and one to test with", spec, train->size()));
    const std::vector<std::size_t> order = shuffled(train->size());
    const auto held = order.end() - static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, train->size() / 10));
    return {part(*train, {order.begin(), held}), part(*train, {held, order.end()}), splits.source};
}

namespace {

constexpr std::int64_t leaves = 400;                  // enough to cover the ground
constexpr double smallest = 1.0 / 10, largest = 0.5;  // radii, as parts of the shorter side
constexpr float common = 0.9f, own = 0.436f;          // brightness that channels share, and what each adds: squares sum to 1

// The density of radii falls with their cube, which makes the picture look alike at every scale.
double radius(double u) { return 1 / std::sqrt(1 / (smallest * smallest) + u * (1 / (largest * largest) - 1 / (smallest * smallest))); }

}  // namespace

std::vector<float> dead_leaves(const Shape& images, std::uint64_t seed) {
    const std::int64_t n = images[0], channels = images[1], height = images[2], width = images[3];
    const double side = static_cast<double>(std::min(height, width));
    std::vector<float> out(static_cast<std::size_t>(n * channels * height * width));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::vector<float> colours = normal_tensor({leaves, channels + 1}, seed, fmt::format("leaves {}", i)).values;
        std::uint64_t state = seed + static_cast<std::uint64_t>(i) * 7919;
        const auto uniform = [&] { return static_cast<double>(splitmix(state) >> 11) * 0x1p-53; };
        for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
            const double y = uniform() * static_cast<double>(height), x = uniform() * static_cast<double>(width);
            const double r = leaf == 0 ? 2 * static_cast<double>(height + width) : radius(uniform()) * side;  // the first is the ground
            const float* colour = &colours[static_cast<std::size_t>(leaf * (channels + 1))];
            const auto first = [](double at) { return static_cast<std::int64_t>(std::max(0.0, std::ceil(at))); };
            for (std::int64_t row = first(y - r); row < height && static_cast<double>(row) <= y + r; ++row)
                for (std::int64_t column = first(x - r); column < width && static_cast<double>(column) <= x + r; ++column) {
                    const double dy = static_cast<double>(row) - y, dx = static_cast<double>(column) - x;
                    if (dy * dy + dx * dx > r * r) continue;
                    for (std::int64_t c = 0; c < channels; ++c)
                        out[static_cast<std::size_t>(((i * channels + c) * height + row) * width + column)] = common * colour[0] + own * colour[c + 1];
                }
        }
    }
    return out;
}

}  // namespace loopegg
