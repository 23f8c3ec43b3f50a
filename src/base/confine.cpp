#include "base/confine.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/text.hpp"

namespace loopegg {
namespace {

#if defined(__x86_64__)
constexpr unsigned this_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned this_architecture = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned this_architecture = 0;
#endif

// Ways to other machines, to other processes' memory and lives, and out of the group of processes that the parent kills. tgkill stays: abort and raise
// are made of it.
std::vector<int> refused_calls(const Confinement& c) {
    std::vector<int> calls{SYS_ptrace,          SYS_process_vm_readv, SYS_process_vm_writev, SYS_tkill,       SYS_setsid,      SYS_setpgid,
                           SYS_mount,           SYS_umount2,          SYS_pivot_root,        SYS_setns,       SYS_unshare,     SYS_bpf,
                           SYS_perf_event_open, SYS_keyctl,           SYS_add_key,           SYS_request_key, SYS_userfaultfd, SYS_init_module,
                           SYS_finit_module,    SYS_io_uring_setup};
    if (!c.network) calls.insert(calls.end(), {SYS_socket, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_sendto, SYS_sendmsg});
    if (!c.programs) calls.insert(calls.end(), {SYS_execve, SYS_execveat});
    return calls;
}

// What is answered where the call number in the accumulator is `call`.
void answer(std::vector<sock_filter>& program, int call, unsigned how) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, how));
}

// The accumulator holds the call number before and after; a call with other than `wanted` bits of `mask` in its first argument is refused.
void allow_only(std::vector<sock_filter>& program, int call, unsigned mask, unsigned wanted) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 5));
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])));
    program.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, wanted, 1, 0));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
}

// Threads are made, processes are not. The flags of clone3 are in memory, where no filter reads; the C library then asks by clone.
void refuse_processes(std::vector<sock_filter>& program) {
    answer(program, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    allow_only(program, SYS_clone, CLONE_THREAD, CLONE_THREAD);
#ifdef SYS_fork
    answer(program, SYS_fork, SECCOMP_RET_ERRNO | EPERM);
    answer(program, SYS_vfork, SECCOMP_RET_ERRNO | EPERM);
#endif
}

bool refuse_calls(const Confinement& c) {
    if (this_architecture == 0) return false;
    std::vector<sock_filter> program{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, this_architecture, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),  // calls by another convention are other calls
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),  // x32
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    for (int call : refused_calls(c)) answer(program, call, SECCOMP_RET_ERRNO | EPERM);
    if (!c.programs) refuse_processes(program);
    // A process with a group of its own may end this group, and nobody else.
    if (::getpgrp() == ::getpid())
        allow_only(program, SYS_kill, ~0u, 0);
    else
        answer(program, SYS_kill, SECCOMP_RET_ERRNO | EPERM);
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    sock_fprog whole{static_cast<unsigned short>(program.size()), program.data()};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
}

bool refuse_writes(const std::vector<std::filesystem::path>& folders) {
    const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) return false;
    landlock_ruleset_attr rules{};
    rules.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                              LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                              LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
    const int set = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0));
    if (set < 0) return false;
    auto allow = [&](const std::filesystem::path& path, std::uint64_t access) {
        const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
        if (fd < 0) return;
        landlock_path_beneath_attr rule{};
        rule.allowed_access = access, rule.parent_fd = fd;
        ::syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
        ::close(fd);
    };
    for (const auto& folder : folders) allow(folder, rules.handled_access_fs);
    for (const char* device : {"/dev/null", "/dev/shm"})
        allow(device, device == std::string_view("/dev/null") ? LANDLOCK_ACCESS_FS_WRITE_FILE : rules.handled_access_fs);
    const bool done = ::syscall(SYS_landlock_restrict_self, set, 0) == 0;
    ::close(set);
    return done;
}

void limit(int what, rlim_t value) {
    rlimit now{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(what), &now) != 0) return;
    if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value) value = now.rlim_max;
    const rlimit wanted{value, value};
    ::setrlimit(static_cast<__rlimit_resource_t>(what), &wanted);
}

}  // namespace

std::string confine(const Confinement& c) {
    std::vector<std::string> holds;
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, 512);
    limit(RLIMIT_FSIZE, rlim_t{16} << 30);
    if (c.memory_mb > 0) limit(RLIMIT_AS, static_cast<rlim_t>(c.memory_mb) << 20), holds.push_back(std::to_string(c.memory_mb) + " MB");
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
        std::vector<std::filesystem::path> folders = c.writes;
        std::error_code none;
        folders.push_back(std::filesystem::temp_directory_path(none));
        if (!c.files && refuse_writes(folders)) holds.push_back("writes only below " + std::to_string(folders.size()) + " folders");
        if (refuse_calls(c)) {
            if (!c.network) holds.push_back("no network");
            if (!c.programs) holds.push_back("no programs"), holds.push_back("no processes");
        }
    }
    return join(holds, ", ");
}

}  // namespace loopegg
