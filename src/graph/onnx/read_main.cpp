// A program of its own: an ONNX file comes by standard input, is parsed by protobuf, and goes to standard output as plain data (model_bytes.hpp).
//
// Protobuf reads what strangers wrote. Here it has no network, no programs, no files to write, and memory in proportion to the file; where it falls,
// this process falls alone.
#include <sys/resource.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "base/confine.hpp"
#include "base/regular_file.hpp"
#include "graph/onnx/model_bytes.hpp"

extern "C" loopegg::OnnxCodec loopegg_onnx_codec();

int main(int count, char** words) {
    const long megabytes = count == 2 ? std::atol(words[1]) : 0;
    if (megabytes <= 0) {
        std::cerr << "usage: loopegg_onnx_read MEGABYTES < MODEL > DATA (loopegg starts it)\n";
        return 2;
    }
    loopegg::Confinement limits;
    limits.memory_mb = megabytes, limits.programs = false;
    loopegg::confine(limits);
    const rlimit written{static_cast<rlim_t>(megabytes) << 20, static_cast<rlim_t>(megabytes) << 20};
    ::setrlimit(RLIMIT_FSIZE, &written);
    try {
        loopegg::OnnxModel model;
        {
            const std::string bytes = loopegg::read_standard_input();
            if (const std::string problem = loopegg_onnx_codec().parse(bytes, model); !problem.empty()) {
                std::cerr << problem << "\n";
                return 1;
            }
        }
        loopegg::write_model_bytes(model, std::cout);
        return std::cout.flush() ? 0 : 1;
    } catch (const std::bad_alloc&) {
        std::cerr << "it needs more than " << megabytes << " MB of memory\n";
        return 1;
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
}
