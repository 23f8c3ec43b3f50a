"""The checker of pages finds the faults that it must find: figures without an experiment, figures that the experiment does not hold,
links that lead nowhere, words that setup/wording.txt replaces."""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases, setup_program

checker = setup_program("check-pages")
FOLDER = tempfile.TemporaryDirectory()
checker.ROOT = pathlib.Path(FOLDER.name).resolve()
(checker.ROOT / "experiments").mkdir()
(checker.ROOT / "docs").mkdir()
(checker.ROOT / "setup").mkdir()
(checker.ROOT / "setup/wording.txt").write_text("# pattern | instead\n\\b(tells?|told)\\b | reports\n\\bby `(short|full)` | the recipe in words\n\\bgoes on\\b | resumes\n")
(checker.ROOT / "experiments/a.md").write_text("# A page\n\nIt took 11.72 ms and lost -0.4 points; 1,159 M.\n")


def figures(text):
    return list(checker.figure_faults("docs/p.md", text))


def links(text):
    (checker.ROOT / "docs/p.md").write_text(text)
    return list(checker.link_faults("docs/p.md", text))


def a_figure_names_its_experiment():
    assert figures("It takes 11.7 ms.") and "names no experiment" in figures("It takes 11.7 ms.")[0]
    assert not figures("It takes 11.7 ms ([a](../experiments/a.md)).") and not figures("Limits are `60 s` and 3 seeds.")


def a_figure_is_in_the_experiment_that_it_names():
    found = figures("It takes 11.6 ms ([a](../experiments/a.md)).")
    assert len(found) == 1 and "does not hold the figure 11.6" in found[0], found


def a_table_is_held_by_its_caption():
    table = "[a](../experiments/a.md) has the commands:\n\n| network | ms |\n|---|---|\n| original | {} |\n"
    assert not figures(table.format("11.72")) and figures(table.format("11.99")) and figures("| network | took |\n|---|---|\n| original | 3 ms |\n")


def links_and_anchors_resolve():
    assert not links("# Here\n\n[a](../experiments/a.md#a-page), [here](#here)\n")
    assert links("[b](../experiments/b.md)\n") and links("[a](../experiments/a.md#no-such)\n")


def pages_are_short():
    assert list(checker.size_faults("docs/p.md", "x\n" * 251)) and list(checker.size_faults("docs/p.md", "x" * 121 + "\n"))
    assert not list(checker.size_faults("docs/p.md", "x\n" * 250)) and not list(checker.size_faults("docs/p.md", "| " + "x" * 121 + " |\n"))


def a_ratio_follows_from_the_times_of_its_table():
    table = "| network | ms |\n|---|---|\n| original | 12.58 |\n| smaller | **2.83: {}x** |\n"
    assert not list(checker.ratio_faults("docs/p.md", table.format("4.4")))
    assert "expected 4.4x" in list(checker.ratio_faults("docs/p.md", table.format("4.2")))[0]


def wordings(path, text):
    return list(checker.wording_faults(path, text))


def a_page_has_none_of_the_words_that_are_replaced():
    found = wordings("docs/p.md", "# A page\n\nIt was told\nby `short`.\n")
    assert [f.split(": ")[0] for f in found] == ["docs/p.md:3", "docs/p.md:4"] and "write reports" in found[0], found
    assert wordings("docs/p.md", "It goes\non.\n")[0].startswith("docs/p.md:1: 'goes on'")
    assert wordings("docs/p.md", "```sh\nrun it   # tells the time\n```\n") and wordings("docs/p.md", "```text\n  --told NAME  what it tells\n```\n")


def code_and_links_may_have_any_word():
    assert not wordings("docs/p.md", "`--told` is [here](told.md#tells); `full` is a word.\n\n    {\"told\": 1}\n\n```console\n$ tell\ntold\n```\n```sh\ntell told\n```\n")


def a_message_has_none_of_the_words_that_are_replaced():
    assert wordings("src/a.cpp", 'x;\nthrow UserError("it tells the time");\n')[0].startswith("src/a.cpp:2: 'tells'")
    assert not wordings("src/a.cpp", 'int told = j["told"];  // it tells\nadd("--told", "src/told.cpp, told_ms");\n')


run_cases([a_ratio_follows_from_the_times_of_its_table, a_page_has_none_of_the_words_that_are_replaced, code_and_links_may_have_any_word, a_message_has_none_of_the_words_that_are_replaced,
           a_figure_names_its_experiment, a_figure_is_in_the_experiment_that_it_names, a_table_is_held_by_its_caption, links_and_anchors_resolve, pages_are_short])
