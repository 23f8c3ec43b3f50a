// Shared libraries that are linked here: what the system's loader and linker make of them, and what is refused.
#include <catch2/catch.hpp>

#include <dlfcn.h>
#include <elf.h>

#include <cmath>
#include <random>
#include <thread>

#include "backends/kernel/elf_object.hpp"
#include "backends/kernel/kernel.hpp"
#include "backends/kernel/link_plan.hpp"
#include "backends/kernel/object_image.hpp"
#include "backends/kernel/shared_library.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"

using namespace loopegg;

namespace {

std::uint16_t own_machine() { return native_architecture() == "aarch64" ? EM_AARCH64 : EM_X86_64; }

std::string object_of(const std::string& source, const std::string& language = "c") {
    ScratchFile text("." + language), object(".o");
    write_file(text.path(), source);
    run_or_throw({language == "c" ? "cc" : "c++", "-O1", "-fPIC", "-fno-asynchronous-unwind-tables", "-c", text.path().string(), "-o", object.path().string()},
                 "compiling");
    return read_file(object.path());
}

// A library in this process, by the system's loader.
class Loaded {
public:
    explicit Loaded(const LinkRequest& request) {
        write_file(file_.path(), link_shared_library(request));
        library_ = dlopen(file_.path().c_str(), RTLD_NOW | RTLD_LOCAL);
        INFO((library_ ? "" : dlerror()));
        REQUIRE(library_);
    }
    ~Loaded() { dlclose(library_); }
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;
    template <class F>
    F* function(const char* name) const {
        return reinterpret_cast<F*>(dlsym(library_, name));
    }

private:
    ScratchFile file_{".so"};
    void* library_;
};

std::string refusal(const LinkRequest& request) {
    try {
        link_shared_library(request);
    } catch (const Unlinkable& u) {
        return u.why;
    }
    return "";
}

const char* const first = R"(
#include <math.h>
extern int other(int);
extern const int numbers[];
extern const int* const table[];
__attribute__((weak)) int choice(void) { return 1; }
static int counter, start = 40;
static _Thread_local int mine;
static int (*const functions[])(void) = {choice};
int use(int x) { return other(x) + numbers[1] + *table[0] + functions[0]() + ++counter + start; }
int own(int add) { return mine += add; }
float wave(float x) { return expf(x) + sinf(x); }
)";
const char* const second = "int choice(void) { return 1000; }\nint other(int x) { return 2 * x; }\n";

LinkRequest request_of(const std::string& a, const std::string& b) {
    static const int values[] = {3, 5, 7};
    const std::string bytes(reinterpret_cast<const char*>(values), sizeof values);
    return {{a, b}, {{"numbers", bytes}, {"table", std::string(8, '\0'), {{0, "numbers", 8}}}}, {{"net_use", "use"}, {"net_own", "own"}, {"net_wave", "wave"}}};
}

}  // namespace

TEST_CASE("objects, tables, weak names and thread-local data become a library", "[flow]") {
    const std::string a = object_of(first), b = object_of(second);
    const Loaded library(request_of(a, b));
    auto* use = library.function<int(int)>("net_use");
    auto* own = library.function<int(int)>("net_own");
    REQUIRE((use && own));
    CHECK(use(10) == 20 + 5 + 7 + 1000 + 1 + 40);  // the strong name wins, wherever it is called from
    CHECK(use(10) == 20 + 5 + 7 + 1000 + 2 + 40);
    CHECK((own(5) == 5 && own(5) == 10));
    int other_thread = 0;
    std::thread([&] { other_thread = own(1); }).join();
    CHECK((other_thread == 1 && own(0) == 10));
    CHECK(library.function<float(float)>("net_wave")(0.5f) == expf(0.5f) + sinf(0.5f));
    CHECK(!library.function<void()>("use"));  // inside, it has no name
}

TEST_CASE("two libraries of the same names stay apart", "[flow]") {
    const std::string a = object_of(first), b = object_of(second);
    const Loaded one(request_of(a, b)), two(request_of(a, b));
    auto *x = one.function<int(int)>("net_own"), *y = two.function<int(int)>("net_own");
    CHECK((x(1) == 1 && x(1) == 2 && y(1) == 1));
}

TEST_CASE("what cannot be linked is reported", "[errors]") {
    const std::string a = object_of("int f(void) { return 1; }\nint g(void) { return f(); }\n"), b = object_of("int f(void) { return 2; }\n");
    CHECK(refusal({{a, b}, {}, {}}) == "'f' is defined twice");
    CHECK(refusal({{object_of("extern int missing(void);\nint f(void) { return missing(); }\n")}, {}, {}}) == "'missing' is nowhere");
    CHECK(refusal({{a}, {}, {{"out", "not_there"}}}) == "'not_there' is nowhere");
    CHECK(refusal({{object_of("#include <iostream>\nvoid f() { std::cout << 1; }\n", "cpp")}, {}, {}}) != "");
    CHECK(refusal({{"no object at all"}, {}, {}}) == "not an object");
    CHECK(refusal({{a}, {{"f", "12345678"}}, {}}) == "'f' is defined twice");
}

TEST_CASE("functions that newer headers rename are imported by the names that every glibc has") {
    const std::string caller = object_of(R"(
        long long __isoc23_strtoll(const char*, char**, int);
        long long number(const char* text) { return __isoc23_strtoll(text, 0, 10); }
    )");
    CHECK(Loaded({{caller}, {}, {{"number", "number"}}}).function<long long(const char*)>("number")("42") == 42);
    CHECK(glibc_function(own_machine(), "__isoc23_fscanf").name == std::string("__isoc99_fscanf"));
    CHECK(!glibc_function(own_machine(), "__isoc23_no_such_function").library);
}

TEST_CASE("a damaged object is refused or linked, and nothing else", "[errors]") {
    const std::string a = object_of(first), b = object_of(second);
    std::mt19937_64 dice(1);
    for (int n = 0; n < 3000; ++n) {
        std::string damaged = a;
        if (n % 3 == 0) damaged.resize(dice() % damaged.size());
        for (std::uint64_t flips = 1 + dice() % 4; flips-- > 0 && !damaged.empty();) damaged[dice() % damaged.size()] ^= static_cast<char>(1 << dice() % 8);
        LinkRequest request = request_of(damaged, b);
        try {
            link_shared_library(request);
        } catch (const Unlinkable&) {
        } catch (const std::bad_alloc&) {
        }
    }
}

TEST_CASE("the versions of glibc's functions are there") {
    for (const char* name : glibc_function_names()) {
        const GlibcFunction f = glibc_function(own_machine(), name);
        CAPTURE(name, f.library, f.version);
        if (std::string(name) == "__tls_get_addr") continue;  // the loader's own, which dlsym does not find; the code for aarch64 does without
        void* const library = dlopen(f.library, RTLD_NOW);
        REQUIRE(library);
        CHECK(dlvsym(library, name, f.version));
        dlclose(library);
    }
    CHECK(!glibc_function(own_machine(), "no_such_function").library);
}

namespace {

// Exponentials and a parallel loop: calls into other libraries, constants, and pointers that the loader fills.
std::string object_for(const char* target) {
    return compile_nest(parse_term("(nest (map gelu 64) (par (quo x 16) (vec (rem x 16) done)))"), find_target(target), "k").code;
}

std::unique_ptr<ObjectImage> load(std::string_view object, std::string& why) {
    return ObjectImage::load(object, why, [](const char* name) { return dlsym(RTLD_DEFAULT, name); });
}

}  // namespace

TEST_CASE("an object of this machine is linked in memory", "[unit]") {
    std::string why;
    const auto image = load(object_for("host"), why);
    CAPTURE(why);
    REQUIRE(image);
    CHECK(image->find("__tvm_ffi_k") != nullptr);
    CHECK(image->find("no such symbol") == nullptr);
}

TEST_CASE("objects that cannot be linked in memory say why", "[errors]") {
    std::string why;
    CHECK_FALSE(load(object_for(native_architecture() == "aarch64" ? "i7" : "a57"), why));
    CHECK(why == "not an object of this machine");
    CHECK_FALSE(load("", why));
    CHECK(why == "not an object");
    const std::string whole = object_for("host");
    for (std::size_t size = 64; size < whole.size(); size += 97) CHECK_FALSE(load(std::string_view(whole).substr(0, size), why));
}
