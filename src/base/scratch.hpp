// Files that live as long as the object that names them.
#pragma once
#include <filesystem>
#include <string>

namespace loopegg {

// The name of a temporary file in a private folder of this process. The file is removed with the object.
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

// A folder that is empty at first (what a killed run left there is gone) and is removed with all that is in it.
class ScratchFolder {
public:
    explicit ScratchFolder(std::filesystem::path path);
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

// Writes plainly, with none of write_file's care for readers and disks, because the file is ours alone.
void write_scratch(const std::filesystem::path& path, const std::string& bytes);

}  // namespace loopegg
