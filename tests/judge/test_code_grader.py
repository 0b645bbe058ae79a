import gzip
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foresail.judge.grader import CodeGrader, add_prelude, call_methods, combine_verdicts
from foresail.judge.programs.difficulty import Scheme
from foresail.judge.programs.program import CallTest, Program
from foresail.judge.programs.task import CodeTask
from foresail.records import Message, Problem, Verdict

ADD = "def add(a, b):\n    return a + b\n"
STDIN = {"tests": {"inputs": ["1 2\n", "3 4\n", "-1 1\n"], "outputs": ["3\n", "7\n", "0\n"]}}
CHECK = {
    "test": "def check(candidate):\n    assert candidate(2) == 4.0\n    assert abs(candidate(0.5) - 0.25) < 1e-9",
    "entry_point": "square",
    "prompt": "import math\n\ndef square(x: float) -> float:\n    '''x squared'''\n",
}


def make_problem(**extra: object) -> Problem:
    return Problem(id="p", prompt=(Message(role="user", content="Write it."),), answer="", extra=extra)


def fenced(source: str, tag: str = "python") -> str:
    return f"<think>hm</think>Here:\n```{tag}\n{source}```"


@pytest.mark.parametrize(
    ("extra", "source", "status", "score"),
    [
        ({"test_list": ["assert add(1, 2) == 3", "assert add(1, 1) != 3"]}, ADD, "correct", 1.0),
        ({"test_list": ["assert add(1, 2) == 3", "assert add(1, 1) == 3"]}, ADD, "wrong", 0.5),
        ({"test_list": ["assert add(1, 2) == 3"]}, "def add(a, b) return a\n", "wrong", 0.0),
        (STDIN, "print(sum(map(int, input().split())))\n", "correct", 1.0),
        (STDIN, "print(abs(sum(map(int, input().split()))) or 5)\n", "wrong", 2 / 3),
        (CHECK, "def square(x):\n    return math.pow(x, 2)\n", "correct", 1.0),  # the prelude imports math
        (CHECK, "from __future__ import annotations\ndef square(x: Any): return x * x\n", "correct", 1.0),
        (
            {"tests": {"inputs": [[1, 2]], "outputs": [3], "fn_name": "add"}},
            "class Solution:\n    def add(self, a, b):\n        return a + b\n",
            "correct",
            1.0,
        ),
        ({"test_list": ["assert add(1, 2) == 3"]}, "import os\nos._exit(0)\n", "wrong", 0.0),
    ],
)
def test_programs_are_judged(extra: dict, source: str, status: str, score: float):
    verdict = CodeGrader(scheme="soft")(make_problem(**extra), fenced(source))
    assert (verdict.status, verdict.score) == (status, pytest.approx(score))


POLY = "def poly(xs, x):\n    return sum(c * x**i for i, c in enumerate(xs))\n\n"
FINISH = f"Finish:\n```python\n{POLY}def find_zero(xs):\n    pass\n```"
ZERO = {
    "test": "def check(candidate):\n    assert abs(poly([1, 2], candidate([1, 2]))) < 1e-4",
    "entry_point": "find_zero",
}


@pytest.mark.parametrize(
    ("prompt", "source", "status"),
    [
        (FINISH, "def find_zero(xs): return -0.5\n", "correct"),
        (FINISH, "def poly(xs, x): return 0\ndef find_zero(xs): return 7\n", "wrong"),
        ("Find a zero.", "def poly(xs, x): return 0\ndef find_zero(xs): return 7\n", "ungradable"),
        ("Find a zero.", POLY + "def find_zero(xs): return -0.5\n", "ungradable"),
    ],
)
def test_a_program_does_not_bring_its_tests_helpers(prompt: str, source: str, status: str):
    assert CodeGrader()(make_problem(**ZERO, prompt=prompt), fenced(source)).status == status


def test_levels_of_the_problem_decide_the_score():
    problem = make_problem(**STDIN, levels=[0, 0, 1])
    response = fenced("print(abs(sum(map(int, input().split()))) or 5)\n")
    scores = {
        scheme: CodeGrader(scheme=scheme)(problem, response).score for scheme in ("all", "strict", "soft")
    }
    assert scores == {"all": 0.0, "strict": 0.5, "soft": 0.5}


def test_no_program_is_unparsable():
    grade = CodeGrader()
    assert grade(make_problem(**STDIN), "print(1)").status == "unparsable"
    assert grade(make_problem(**STDIN), "<think>```python\nprint(1)\n```").status == "unparsable"
    calls = make_problem(test_list=["assert add(1, 2) == 3"])
    assert (
        grade(calls, fenced("int main() {}\n", "cpp")).status == "unparsable"
    )  # only Python has functions to call


def test_no_tests_are_ungradable():
    verdict = CodeGrader()(make_problem(question="?"), fenced(ADD))
    assert verdict.status == "ungradable"
    assert "question" in verdict.detail


def test_tests_in_the_answer_as_verl_has_them():
    answer = '{"inputs": ["1 2"], "outputs": ["3"]}'
    problem = Problem(id="p", prompt=(Message(role="user", content="Add."),), answer=answer)
    assert CodeGrader()(problem, fenced("print(sum(map(int, input().split())))\n")).status == "correct"


def verdict(status: str, detail: str = "") -> Verdict:
    return Verdict(status=status, score=float(status == "correct"), detail=detail)  # type: ignore[arg-type]


def task_of(count: int) -> CodeTask:
    return CodeTask(tests=(CallTest(function="f"),) * count)


@pytest.mark.parametrize("scheme", ["all", "strict", "soft"])
@pytest.mark.parametrize("failure", ["crashed", "ungradable", "timeout"])
def test_a_failure_is_never_a_score(scheme: Scheme, failure: str):
    summed = combine_verdicts(
        [verdict("correct"), verdict(failure, "no room"), verdict("wrong")], task_of(3), scheme
    )
    assert (summed.status, summed.score) == (failure, 0.0)
    assert "test 2: no room" in summed.detail


def test_crashed_comes_before_ungradable():
    assert (
        combine_verdicts([verdict("ungradable"), verdict("crashed")], task_of(2), "soft").status == "crashed"
    )


def test_detail_names_the_first_failure():
    summed = combine_verdicts(
        [verdict("correct"), verdict("wrong", "printed 3"), verdict("wrong", "x")], task_of(3), "soft"
    )
    assert summed.detail == "1 of 3 tests; first failure: test 2: printed 3"
    assert len(combine_verdicts([verdict("wrong", "x" * 999)], task_of(1), "all").detail) <= 200


def test_tests_after_a_failure_need_not_be_run():
    summed = combine_verdicts([verdict("correct"), verdict("wrong", "printed 3")], task_of(9), "all")
    assert (summed.status, summed.score) == ("wrong", 0.0)
    assert summed.detail == "1 of 9 tests; first failure: test 2: printed 3"
    assert combine_verdicts([verdict("correct")] * 2, task_of(2), "all").status == "correct"


def test_a_missing_compiler_is_not_the_responses_fault(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    verdict = CodeGrader()(make_problem(**STDIN), fenced("int main() {}\n", "cpp"))
    assert (verdict.status, verdict.score) == ("ungradable", 0.0)
    assert "g++" in verdict.detail


def test_prelude_stands_after_future_imports():
    program = add_prelude(
        Program(source='"""Doc"""\nfrom __future__ import annotations\nx = 1\n'), "import math"
    )
    assert program.source == 'from __future__ import annotations\nimport math\n\n"""Doc"""\nx = 1\n'
    compile(program.source, "program.py", "exec")
    cpp = Program(source="int main() {}", language="cpp")
    assert add_prelude(cpp, "import math") == cpp


@pytest.mark.parametrize(
    ("source", "function"),
    [
        ("class Solution:\n    def add(self, a, b): return add", "Solution().add"),
        ("def add(a, b): return a\nclass Solution:\n    def add(self): pass", "add"),
        ("class Solution:\n    def add(self): pass\nadd = Solution().add", "add"),
        ("from operator import add\nclass Solution:\n    def add(self): pass", "add"),
        ("def add(a, b): return a", "add"),
        ("def add(", "add"),
    ],
)
def test_bare_names_are_found_in_class_solution(source: str, function: str):
    (test,) = call_methods([CallTest(function="add", arguments=(1, 2), expected=3)], Program(source=source))
    assert test == CallTest(function=function, arguments=(1, 2), expected=3)


def test_the_grader_travels_to_other_processes():
    grader = CodeGrader(scheme="strict")
    assert pickle.loads(pickle.dumps(grader)) == grader


def test_solutions_written_by_hand_pass_contest_tests():
    """In Python and C++; each is also wrong on the tests of the next one, which asks for something else."""
    data = Path(__file__).parents[2] / "../shared/data/code/rllm_deepcoder/test_code_contests.jsonl.gz"
    if not data.is_file():
        pytest.skip("../shared/data/code/rllm_deepcoder is not here")
    with gzip.open(data, "rt") as file:
        rows = [json.loads(line) for line in file]
    paths = sorted((Path(__file__).parent / "contest_solutions").iterdir())
    paths = [path for path in paths if path.suffix == ".py" or shutil.which("g++")]
    problems = [make_problem(tests=thin(rows[int(path.name[:3])]["tests"])) for path in paths]
    for place, path in enumerate(paths):
        response = fenced(path.read_text(), path.suffix[1:])
        assert CodeGrader()(problems[place], response).status == "correct", path.name
        other = problems[(place + 2) % len(problems)]
        assert CodeGrader()(other, response).status == "wrong", path.name


def thin(tests: dict) -> dict:
    return {name: values[:6] for name, values in tests.items()}


def test_what_the_compiler_would_warn_of_is_not_for_the_terminal():
    """In a process of its own: pytest has filters of its own."""
    answers = [r'def f(): return "\d"', "def f(x): return 1if x else 2", "def f(): return 1 is 1"]
    script = (
        "from foresail.judge.grader import defined_names\n"
        "from foresail.judge.programs.program import Program\n"
        f"for source in {answers!r}:\n"
        "    assert defined_names(Program(source=source)) == ({'f'}, set())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
