#include <dlfcn.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/places.hpp"
#include "graph/onnx/onnx_model.hpp"
#include "codec_places.hpp"

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

}  // namespace

OnnxModel parse_onnx(const std::string& file, std::string_view bytes, const std::filesystem::path& folder) {
    OnnxModel model;
    if (std::string problem = codec().parse(bytes, folder.string(), model); !problem.empty())
        throw UserError(fmt::format("cannot read '{}': {}", file, problem));
    return model;
}

std::string serialize_onnx(const OnnxModel& model) {
    std::string bytes;
    if (std::string problem = codec().serialize(model, bytes); !problem.empty()) throw UserError(fmt::format("cannot write ONNX: {}", problem));
    return bytes;
}

}  // namespace loopegg
