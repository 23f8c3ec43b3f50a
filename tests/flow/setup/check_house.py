"""The checkers of the tree look at what git tracks. The checker of the house counts parameters, of declarations and definitions alone, however they are written."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases, setup_program

checker = setup_program("check-house")


def faults(code):
    return list(checker.parameter_faults("src/a.cpp", code))


def a_function_with_seven_parameters_is_refused():
    assert faults("int a;\n\nvoid f(int a, int b, int c, int d, int e, int f, int g);") == [
        "src/a.cpp:3: f has 7 parameters; those that belong together become a struct"]
    for code in ("void f(int, bool, char*, std::int64_t, std::int64_t, std::int64_t, bool) {}",
                 "Room::Room(const A& a, B* b, std::map<K, V> c, int d = 3,\n           std::vector<int> e = {1, 2}, F f = {}, G g = g_of(1, 2)) : a_(a) {}",
                 "auto f = [&](A a, B b, C c, D d, E e, F f, G g) { return 0; };",
                 "bool operator()(A a, B b, C c, D d, E e, F f, G g) const;",
                 "template <class T>\nT f(T a, T b, T c, T d, T e, T f, const std::function<void(int, int)>& g) try {"):
        assert len(faults(code)) == 1, code


def six_parameters_are_allowed():
    assert not faults("void f(std::map<int, std::pair<int, int>> a, int b, int c, int d, int e, const std::function<void(int, int, int)>& f = {1, 2});")
    assert not faults("void f(A a, B b, C c, D d, E e, F f = {1, 2, 3} /* , G g */);  // , H h")


def calls_and_values_are_no_declarations():
    for code in ("f(a, b & c, d * e, *f, &g, h < i, j > k, l ? m : n);",
                 "const Point p(a, b, c, d, e, f, g);",
                 "f(a, b, c, d, e, f, [&](const T& x, int y) -> int { return g(x, y); });",
                 "f(1, 2, 3, 4, 5, new T(6), sizeof x);",
                 "fmt::format(\"{} and {}\", a, b, c, d ? \"int a, int b\" : \"\", e, f(g, h), 1'000, 2'000);",
                 "for (int a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0; a < b; ++a) {}"):
        assert not faults(code), code


def text_comments_and_macros_are_no_code():
    seven = "void f(int a, int b, int c, int d, int e, int f, int g);"
    for code in (f"// {seven}", f"/* {seven}\n{seven} */", f'auto s = "{seven}";', f'auto s = R"c(\n{seven}\n)c";', f"#define F {seven}"):
        assert not faults(code), code
    assert "a.cpp:4:" in faults(f'auto s = R"(\n)";\n\n{seven}')[0]


def the_interface_to_compiled_networks_is_left_alone():
    assert not faults('extern "C" int loopegg_run_opaque(const char* a, int b, int c, const float* const* d, const long* e, float* f, long g);')


def a_folder_of_a_room_does_not_include_a_later_one():
    def folder_faults(path, include):
        return list(checker.include_faults(path, [f'#include "optimize/{include}"']))
    assert folder_faults("src/optimize/tune/a.cpp", "answer/b.hpp") == [
        f"src/optimize/tune/a.cpp:1: optimize/answer/b.hpp is of a folder that comes later ({', '.join(checker.FOLDERS['src/optimize'])})"]
    assert not folder_faults("src/optimize/answer/a.cpp", "tune/b.hpp") and not folder_faults("src/optimize/tune/a.cpp", "tune/b.hpp")
    assert not folder_faults("src/optimize/optimize.cpp", "answer/b.hpp") and not folder_faults("src/cli/a.cpp", "audit/b.hpp")


def what_a_user_leaves_in_the_clone_is_not_looked_at():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("src/a.cpp", "README.md", "out2/optimized/network.c", "venv/lib/site.py", "notes/Untitled.ipynb", "m.json"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("x" * 500 + "\n")
        subprocess.run("git init -q && git add src README.md", shell=True, check=True, cwd=folder)
        assert checker.tree_files(root) == ["README.md", "src/a.cpp"], checker.tree_files(root)
        with unittest.mock.patch.dict(os.environ, PATH=folder):       # a container without git
            assert checker.tree_files(root) == ["README.md", "m.json", "src/a.cpp"], checker.tree_files(root)
        subprocess.run(["rm", "-rf", folder + "/.git"], check=True)   # an unpacked archive: the folders of the tree alone
        assert checker.tree_files(root) == ["README.md", "m.json", "src/a.cpp"], checker.tree_files(root)


run_cases([a_folder_of_a_room_does_not_include_a_later_one, what_a_user_leaves_in_the_clone_is_not_looked_at, a_function_with_seven_parameters_is_refused, six_parameters_are_allowed, calls_and_values_are_no_declarations, text_comments_and_macros_are_no_code,
           the_interface_to_compiled_networks_is_left_alone])
