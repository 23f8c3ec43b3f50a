// A folder whose files belong together: written next to it, checked, and put in place as one.
//
// The manifest.json of a folder names its files, each with a hash. An update is written into a hidden folder inside that folder. When the update is
// whole, one rename commits it, and its files are moved into place, the manifest last. A process that is killed before the rename leaves the old
// files. A process that is killed after the rename leaves work that the next reader finishes. Files that no manifest names are somebody else's and stay.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace loopegg {

class FolderUpdate {
public:
    // Makes `folder` if need be, and clears away what killed updates left.
    explicit FolderUpdate(const std::filesystem::path& folder);
    ~FolderUpdate();  // without commit, the folder is as if nothing had been written
    FolderUpdate(const FolderUpdate&) = delete;
    FolderUpdate& operator=(const FolderUpdate&) = delete;

    const std::filesystem::path& path() const { return staged_; }  // where to write
    void commit();                                                 // all files of the old manifest are replaced

private:
    std::filesystem::path folder_, staged_;
    int lock_ = -1;
    bool made_ = false;  // the folder was not there
};

// Names every file below a folder in a manifest of its own. This is for a folder inside an update that people use by itself.
void seal_folder(const std::filesystem::path& folder);

// Finishes an update that was committed and not put in place, if there is one. Readers of such folders call it first.
void finish_update(const std::filesystem::path& folder);

// What is wrong with the folder by its manifest: no manifest, or a file that is gone, changed or cut. Empty where nothing is wrong.
std::vector<std::string> manifest_faults(const std::filesystem::path& folder, const std::string& except = {});

// Calls finish_update, then throws UserError unless all files but `except` are as they were written. `made_by` shows how such a folder is made.
void require_whole(const std::filesystem::path& folder, const std::string& made_by, const std::string& except = {});

// Writes one more file (a page that is made again) into a folder, and its line into the folder's manifest where there is one.
void write_into(const std::filesystem::path& folder, const std::string& name, const std::string& bytes);

}  // namespace loopegg
