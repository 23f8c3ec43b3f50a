#include <dlfcn.h>

#include <catch2/catch.hpp>

#include "backends/kernel/elf.hpp"
#include "backends/kernel/kernel.hpp"
#include "backends/kernel/object_image.hpp"
#include "base/sexpr.hpp"

using namespace loopegg;

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
