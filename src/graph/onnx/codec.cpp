#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/places.hpp"
#include "base/process.hpp"
#include "codec_places.hpp"
#include "graph/onnx/model_bytes.hpp"
#include "graph/onnx/tensor_bytes.hpp"

namespace loopegg {
namespace {

OnnxCodec open_codec() {
    std::string path = module_library("libloopegg_onnx.so", LOOPEGG_ONNX_MODULE).string();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw UserError(fmt::format("the ONNX part of loopegg cannot be opened: {}", dlerror()));
    auto door = reinterpret_cast<OnnxCodec (*)()>(dlsym(library, "loopegg_onnx_codec"));
    if (!door) throw UserError(fmt::format("{} is not loopegg's ONNX part", path));
    return door();
}

const OnnxCodec& codec() {
    static const OnnxCodec opened = open_codec();
    return opened;
}

// Memory in proportion to the file: a hostile one that unfolds to more is refused there.
OnnxModel parsed_elsewhere(const std::string& file, std::string_view bytes) {
    const std::size_t megabytes = bytes.size() >> 20;
    const std::string helper = module_library("loopegg_onnx_read", LOOPEGG_ONNX_READ).string();
    const Filtered ran = run_filter({helper, std::to_string(512 + 8 * megabytes)}, bytes, 20 + static_cast<double>(megabytes) / 10);
    if (ran.too_long) throw UserError(fmt::format("cannot read '{}': protobuf took too long over it", file));
    if (ran.ended == -1) throw UserError(fmt::format("the part of loopegg that reads ONNX cannot be started: {}: {}", helper, ran.errors));
    if (ran.ended != 0) {
        const std::string words = ran.errors.substr(0, std::min<std::size_t>(ran.errors.find('\n'), 2000));
        throw UserError(fmt::format("cannot read '{}': {}", file, words.empty() ? fmt::format("protobuf ended with {} over it", ran.ended) : words));
    }
    return read_model_bytes(file, ran.output);
}

}  // namespace

OnnxModel parse_onnx(const std::string& file, std::string_view bytes, const std::filesystem::path& folder, bool confined) {
    const auto refuse = [&](const std::string& why) { throw UserError(fmt::format("cannot read '{}': {}", file, why)); };
    OnnxModel model;
    if (confined)
        model = parsed_elsewhere(file, bytes);
    else if (std::string problem = codec().parse(bytes, model); !problem.empty())
        refuse(problem);
    // A small file can name a large one, or the same bytes again and again.
    const std::uint64_t most = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE)) / 2;
    std::uint64_t taken = 0;
    const auto complete = [&](const std::string& name, OnnxTensor& t) {
        if (t.elsewhere.empty()) return;
        taken += static_cast<std::uint64_t>(std::max<std::int64_t>(0, elements_of(t.dims))) * (t.kind == OnnxTensor::Kind::float32 ? 4 : 8);
        if (taken > most) refuse(fmt::format("its tensors up to '{}' need {} bytes, and half of this machine's memory is {}", name, taken, most));
        if (std::string problem = take_from_elsewhere(name, folder.string(), t); !problem.empty()) refuse(problem);
    };
    for (auto& [name, tensor] : model.initializers) complete(name, tensor);
    for (OnnxNode& node : model.nodes)
        for (auto& [name, value] : node.attrs)
            if (auto* tensor = std::get_if<OnnxTensor>(&value)) complete(node.name + "." + name, *tensor);
    return model;
}

std::string serialize_onnx(const OnnxModel& model) {
    std::string bytes;
    if (std::string problem = codec().serialize(model, bytes); !problem.empty()) throw UserError(fmt::format("cannot write ONNX: {}", problem));
    return bytes;
}

}  // namespace loopegg
