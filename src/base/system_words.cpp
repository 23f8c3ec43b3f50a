#include "base/system_words.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

namespace loopegg {
namespace {

std::string remedy(int error) {
    switch (error) {
        case ENOSPC:
        case EDQUOT: return "free some space there, or name another folder";
        case EFBIG: return "files may not grow that large here: ulimit -f unlimited";
        case EACCES:
        case EPERM:
        case EROFS: return "name a folder that you may write to";
        case EMFILE:
        case ENFILE: return "allow more open files: ulimit -n 1024";
        case ENOMEM: return "there is too little memory: close other programs, or take a smaller batch";
        case EAGAIN: return "there are too many processes or threads: close other programs, or raise ulimit -u";
        default: return "";
    }
}

}  // namespace

Diagnostic system_diagnostic(const std::string& doing, const std::filesystem::path& path, int error) {
    return {fmt::format("cannot {} '{}': {}", doing, path.string(), std::strerror(error)), {}, remedy(error)};
}

void fail_system(const std::string& doing, const std::filesystem::path& path, int error) { throw UserError(system_diagnostic(doing, path, error)); }

UserError as_user_error(const std::system_error& e) {
    const int error = e.code().category() == std::generic_category() || e.code().category() == std::system_category() ? e.code().value() : 0;
    if (const auto* f = dynamic_cast<const std::filesystem::filesystem_error*>(&e)) {
        std::string paths = "'" + f->path1().string() + "'";
        if (!f->path2().empty()) paths += " and '" + f->path2().string() + "'";
        return UserError(Diagnostic{fmt::format("the file system refuses {}: {}", paths, e.code().message()), {}, remedy(error)});
    }
    return UserError(Diagnostic{fmt::format("the system refuses: {}", e.what()), {}, remedy(error)});
}

}  // namespace loopegg
