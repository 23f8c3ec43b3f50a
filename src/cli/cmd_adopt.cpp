// 'loopegg adopt': trained weights into the network that a run returned, in every form of it.
#include <fmt/format.h>

#include "base/atomic_directory.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "cli/commands.hpp"
#include "optimize/answer/adopt.hpp"
#include "report/page.hpp"
#include "report/run.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace cmd_adopt {

Action setup(CLI::App& app) {
    struct Asked {
        std::string out, weights, data;
    };
    auto asked = std::make_shared<Asked>();
    app.add_option("OUT", asked->out, "the out folder of a run")->required();
    app.add_option("WEIGHTS", asked->weights, "the trained weights, as 'loopegg train' or network.py saves them: a .safetensors file")->required();
    app.add_option("--data", asked->data, "images on which int8 scales are measured for the new weights, if the network multiplies int8 numbers");
    return [asked](Session& session) {
        const fs::path out = asked->out;
        require_whole(out, "loopegg optimize MODEL --out " + shell_word(asked->out), "report.html");
        FolderUpdate update(out);
        const nlohmann::json result = adopt_weights(out, asked->weights, asked->data, update.path(), session.progress);
        write_file(update.path() / "report.html", report_page(update.path(), out));
        update.commit();
        if (session.json)
            session.answer({{"folder", out.string()}, {"adopted", result["adopted"]}, {"returned", result["returned"]}});
        else
            fmt::print("{} has the weights of {}: network.so, model.onnx, network.py and model.json\n", out.string(), asked->weights);
        return 0;
    };
}

}  // namespace cmd_adopt

const Command adopt_command{"adopt", "put trained weights into the network that a run returned", "loopegg adopt out out/trained.safetensors", cmd_adopt::setup};

}  // namespace loopegg
