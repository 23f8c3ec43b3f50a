// Files that live as long as the object that names them.
#pragma once
#include <filesystem>
#include <string>

namespace loopegg {

// Names for temporary files in a private folder of this process, removed with it.
class ScratchFile {
public:
    explicit ScratchFile(const std::string& suffix);
    ~ScratchFile();
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace loopegg
