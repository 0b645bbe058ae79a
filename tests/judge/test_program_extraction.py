import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.judge.programs.fences import find_program, guess_language, read_blocks

CODE = "print(1)\n"


def fenced(tag: str, body: str = CODE) -> str:
    return f"```{tag}\n{body}```"


@pytest.mark.parametrize(
    ("response", "language", "source"),
    [
        (fenced("python"), "python", CODE),
        (fenced("py"), "python", CODE),
        (fenced("Python3"), "python", CODE),
        (fenced(" python title=a.py"), "python", CODE),
        (fenced("{.python}"), "python", CODE),
        (fenced("cpp"), "cpp", CODE),
        (fenced("C++"), "cpp", CODE),
        (fenced("c++17"), "cpp", CODE),
        (fenced("cpp20"), "cpp", CODE),
        (fenced(""), "python", CODE),
        (fenced("", "#include <cstdio>\nint main() {}\n"), "cpp", "#include <cstdio>\nint main() {}\n"),
        ("~~~python\nprint(1)\n~~~", "python", CODE),
        ("````python\nprint('''\n```\n''')\n````", "python", "print('''\n```\n''')\n"),
        ("The code is ```python\nprint(1)\n```", "python", CODE),
        ("1. So:\n   ```python\n   if 1:\n       print(1)\n   ```", "python", "if 1:\n    print(1)\n"),
        ("```python\r\nprint(1)\r\n```\r\n", "python", CODE),
        # the last block in a language we run speaks, whatever stands after it
        (fenced("python", "old\n") + "\nor\n" + fenced("python"), "python", CODE),
        (fenced("cpp", "old\n") + "\nor\n" + fenced("python"), "python", CODE),
        (fenced("python") + "\nwhich prints\n" + fenced("", "1\n"), "python", CODE),
        (fenced("python") + "\nrun it by\n" + fenced("bash", "python a.py\n"), "python", CODE),
        (fenced("text", "1\n") + "\n" + fenced("") + "\n" + fenced("json", "{}\n"), "python", CODE),
        (fenced("python") + "\n```", "python", CODE),
        # only what follows the thinking counts
        ("<think>" + fenced("python", "old\n") + "</think>" + fenced("python"), "python", CODE),
        (fenced("python", "old\n") + "</think>\n" + fenced("python"), "python", CODE),
    ],
)
def test_the_program_is_found(response: str, language: str, source: str):
    program = find_program(response)
    assert program is not None
    assert (program.language, program.source) == (language, source)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "print(1)",
        "`print(1)`",
        "```python print(1)```",
        fenced("python", ""),
        fenced("python", " \n\n"),
        fenced("java"),
        fenced("javascript"),
        fenced("cppython"),
        "<think>" + fenced("python"),
        "<think>" + fenced("python") + "</think> so that is it",
        "```python\nprint(1)",  # cut off
        fenced("python", "first = 1\n") + "\nBetter:\n```python\nprint(1",  # the last one is cut off
        fenced("python") + "\nno:\n" + fenced("python", ""),  # the last one is blank
    ],
)
def test_no_program(response: str):
    assert find_program(response) is None


def test_only_wanted_languages():
    both = fenced("cpp", "int main() {}\n") + "\n" + fenced("python")
    assert find_program(both, ("python",)) is not None
    assert find_program(both, ("cpp",)) is None  # the last block speaks, and it is Python
    assert find_program(fenced("", "#include <map>\n"), ("python",)) is None


def test_a_shorter_or_other_fence_does_not_close():
    blocks = list(read_blocks("````\na\n```\n~~~~\nb\n`````\nc"))
    assert [(block.text, block.closed) for block in blocks] == [("a\n```\n~~~~\nb\n", True)]


def test_the_language_is_guessed():
    assert guess_language("  # include <map>") == "cpp"
    assert guess_language("using namespace std;") == "cpp"
    assert guess_language("print('#include')") == "python"


lines = st.lists(st.sampled_from(["```", "```python", "~~~", "````cpp", " ```", "x = 1", "", "</think>"]))


@given(st.one_of(lines.map("\n".join), st.text(alphabet="`~ \n\tpyc+{}<>/think", max_size=200)))
def test_nothing_raises_and_programs_are_parts_of_the_response(response: str):
    program = find_program(response)
    if program is not None:
        assert program.source.strip()
        assert program.source.strip() in response.replace("\r\n", "\n")


@given(st.text(alphabet=st.characters(exclude_characters="`\r", exclude_categories=["Cs"]), min_size=1))
def test_a_fenced_program_comes_back_whole(source: str):
    if source.strip() and "think>" not in source:
        program = find_program(f"So:\n```python\n{source}\n```\nDone.")
        assert program is not None
        assert program.source == source + "\n"


def test_long_responses_take_linear_time():
    assert find_program("```" * 100_000) is None
    assert find_program("```\n" * 100_001 + "x") is None
    assert find_program("`" * 300_000 + "\n" + "~" * 300_000) is None
