// A folder whose files belong together: written beside, checked, and put in place as one.
//
// What a folder holds is named in its manifest.json, with a hash of every file. An update is written into a hidden folder inside it; when that
// is whole, one rename commits it, and its files are moved into place, the manifest last. Whoever is killed before the rename leaves the old
// files, whoever is killed after it leaves work that the next reader finishes. Files that no manifest names are somebody else's and stay.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace loopegg {

class FolderUpdate {
public:
    // Makes `folder` if need be, and clears away what updates left that were killed.
    explicit FolderUpdate(const std::filesystem::path& folder);
    ~FolderUpdate();   // without commit: as if nothing had been
    FolderUpdate(const FolderUpdate&) = delete;
    FolderUpdate& operator=(const FolderUpdate&) = delete;

    const std::filesystem::path& path() const { return staged_; }   // where to write
    void commit();                                                  // all files of the old manifest are replaced

private:
    std::filesystem::path folder_, staged_;
    int lock_ = -1;
    bool made_ = false;   // the folder was not there
};

// Names every file below a folder in a manifest of its own: for a folder inside an update that is used by itself.
void seal_folder(const std::filesystem::path& folder);

// Finishes an update that was committed and not put in place. Readers of such folders call it first; where nothing is to be done nothing is.
void finish_update(const std::filesystem::path& folder);

// What is wrong with the folder by its manifest: a file that is gone, changed or cut; no manifest. Empty: nothing.
std::vector<std::string> manifest_faults(const std::filesystem::path& folder, const std::string& but_for = {});

// finish_update, then throws UserError unless all is as it was written, but for a file that is made anew. `made_by` tells how such a folder is made.
void require_whole(const std::filesystem::path& folder, const std::string& made_by, const std::string& but_for = {});

// Writes one more file into a folder that has a manifest, and its line there (a page that is made anew). A folder without one: the file alone.
void write_into(const std::filesystem::path& folder, const std::string& name, const std::string& bytes);

}  // namespace loopegg
