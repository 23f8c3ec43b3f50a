// The interface to LibTorch for the rest of the program: run a network, score it, train it.
//
// The implementation is a module of its own (fisher/libtorch), which is opened on first use. So commands that score nothing start fast, and
// torch's symbols do not meet those of other libraries. Only plain types cross this border.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/channel_worth.hpp"
#include "graph/graph.hpp"

namespace loopegg {

struct Model;  // a network with its weights: graph/load.hpp

// Images and their labels, as the network is fed them.
struct Batch {
    Shape shape;  // n c h w
    std::vector<float> images;
    std::vector<std::int64_t> labels;
};

// The part of the images that a network is trained on, and the part that tests it.
struct Splits {
    Batch train, test;
    std::string source;  // as in BatchSet (data.hpp)
};

enum class NormMode {
    batch,    // batch_norm uses the statistics of this batch, as in training
    running,  // batch_norm uses the stored statistics, as in use
    none,     // batch_norm is left out, for measures that need a linear network
};

// Which families of measures are wanted; each costs a pass of its own where noted.
struct MeasureSet {
    bool fisher = true;    // one backward pass to the activations
    bool codes = true;     // ReLU codes, for naswot: no pass
    bool weights = false;  // weight gradients, for snip and grad-norm: a dearer backward pass
    bool synflow = false;  // a forward and backward pass in double precision
};

// The measures of one network on one seed. Formulas: measures.hpp.
struct RawScores {
    std::vector<std::pair<std::string, double>> fisher;  // by layer, in the network's order
    double loss = 0, naswot = 0, snip = 0, grad_norm = 0, synflow = 0;
    std::int64_t images = 1;                                // in the batch
    double code_spread = 0;                                 // how differently ReLUs code images, whatever their number: measures.hpp
    std::vector<std::pair<std::string, double>> codes;      // the code spread of each rectifier by itself
    std::vector<std::pair<std::string, double>> gradients;  // norm of each site's weight gradient
};

// How much a trained network needs each of its channels.
struct ChannelFisher {
    // 1/(2N) sum_n (sum_ij A g)^2 of each channel, at the batch norm that alone reads the site, or else at the site itself.
    SiteScores by_site;
    std::int64_t images = 0;  // N
    std::int64_t scored = 0;  // the images with the largest errors, which the sum runs over: the gradients of the others vanish
    std::int64_t right = 0;   // how many of the N images the network answers correctly
};

struct ScorerOptions {
    int threads = 0;  // how many networks are scored at a time; 0: as many as the machine has cores
    bool double_precision = false;
    bool carry_raw = false;  // a variant takes the original's (trained) weights as they are, not rescaled to its fan-in
};

// One network on one seed.
struct ScoreQuestion {
    const Graph* graph = nullptr;
    std::uint64_t seed = 0;
};

// Scores one original network and its variants on the same weights and the same batches.
class Scorer {
public:
    virtual ~Scorer() = default;

    // Seed k draws the weights and uses batch k (modulo the number of batches). A variant's weights are the original's where
    // both overlap. A graph may be the original itself. Layers have the names of the original's sites. Answers come in the order of the
    // questions. An answer depends neither on the other questions nor on the number of threads.
    virtual std::vector<RawScores> score(std::span<const ScoreQuestion> questions, const MeasureSet& wanted) = 0;

    RawScores score(const Graph& graph, std::uint64_t seed, const MeasureSet& wanted) {
        ScoreQuestion one{&graph, seed};
        return std::move(score({&one, 1}, wanted).at(0));
    }
};

struct TrainOptions {
    int epochs = 10, batch = 128, threads = 0;
    double rate = 0.05, momentum = 0.9, decay = 5e-4, label_smoothing = 0.1;
    double distill = 0;  // weight of the teacher's soft labels, 0 to 1
    double temperature = 4;
    double mixed = 0;     // the share of the images that are mixed with another image of their batch, 0 to 1
    bool augment = true;  // shifts by up to 4 pixels and mirrors
    std::uint64_t seed = 0;
    std::string checkpoint;  // a file that is written after each epoch, and from which a training continues; empty: none
};

struct TrainReport {
    int epoch = 0;
    double loss = 0, accuracy = 0, seconds = 0;  // accuracy in percent, on the test batches
};

class TorchRuntime {
public:
    virtual ~TorchRuntime() = default;
    virtual std::string describe() const = 0;  // "LibTorch 2.15.0, CPU, 2 threads"

    // The network's outputs. Weights must hold every parameter of every node.
    virtual std::vector<Tensor> forward(const Graph& graph, const Weights& weights, std::span<const Tensor> inputs, NormMode norm) = 0;

    // Fisher by layer for weights that are given, for tests against other implementations.
    virtual RawScores score_weights(const Graph& graph, const Weights& weights, const Batch& batch, const MeasureSet& wanted, bool double_precision) = 0;

    // Batch norms use their stored statistics.
    virtual ChannelFisher channel_fisher(const Graph& graph, const Weights& weights, const Batch& batch, int threads) = 0;

    // Without trained weights, each seed draws its own.
    virtual std::unique_ptr<Scorer> scorer(const Graph& original, const Weights* trained, std::vector<Batch> batches, const ScorerOptions& options) = 0;

    // Percent of right answers.
    virtual double accuracy(const Graph& graph, const Weights& weights, const Batch& data, int threads) = 0;

    // Trains `weights` in place. `teacher` may be null: then labels alone count. `on_epoch` is called after each epoch, and the training ends when `on_epoch`
    // returns false.
    virtual void train(const Graph& graph, Weights& weights, const Splits& data, const Model* teacher, const TrainOptions& options,
                       const std::function<bool(const TrainReport&)>& on_epoch) = 0;
};

// Opens the module on first use. Throws UserError when it cannot be opened, and says why.
TorchRuntime& torch_runtime();

}  // namespace loopegg
