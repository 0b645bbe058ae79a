"""No program forges an assert script: by what it raises, by names it brings, by what it does to arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from forged_asserts import (
    CASES,
    CHANGES,
    EXPECTED,
    HONEST,
    IDIOMS,
    IN_PLACE,
    MEASURED,
    NEEDED,
    RAISED,
    REAL,
    changing,
    raising,
    shadowing,
)

from foresail.judge.judge import Judge
from foresail.judge.programs.program import AssertTest, Limits, Program

LIMITS = Limits(seconds=2, idle_seconds=2, memory_mb=256)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(workers=2) as judge:
        yield judge


def statuses(judge: Judge, jobs: Sequence[tuple[str, str]], names: tuple[str, ...] = ()) -> list[str]:
    """What is said of each (program, script)."""

    def status(job: tuple[str, str]) -> str:
        source, script = job
        tests = [AssertTest(script=script, names=names)]
        return judge.judge(Program(source=source), tests, LIMITS)[0].status

    with ThreadPoolExecutor(judge.workers) as threads:
        return list(threads.map(status, jobs))


def test_an_honest_program_passes_every_idiom(judge: Judge) -> None:
    said = statuses(judge, [(HONEST, CASES + script) for script in IDIOMS.values()])
    assert dict(zip(IDIOMS, said, strict=True)) == dict.fromkeys(IDIOMS, "correct")


def test_no_exception_crosses_into_a_test(judge: Judge) -> None:
    """Every idiom against StopIteration, and a draw of the other pairs."""
    pairs = [(raised, idiom) for raised in RAISED for idiom in IDIOMS]
    first = [pair for pair in pairs if pair[0] == "StopIteration"]
    drawn = first + random.Random(17).sample(pairs, 300)
    said = statuses(judge, [(raising(RAISED[r]), CASES + IDIOMS[i]) for r, i in drawn])
    assert [pair for pair, status in zip(drawn, said, strict=True) if status != "wrong"] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_an_exception_that_the_text_expects_is_seen(judge: Judge, name: str) -> None:
    script, honest, wrong = EXPECTED[name]
    sources = (f"def f(x):\n    {honest}\n", f"def f(x):\n    {wrong}\n")
    assert statuses(judge, [(source, script) for source in sources]) == ["correct", "wrong"]


def test_what_only_the_program_has_makes_a_test_ungradable(judge: Judge) -> None:
    """Even beside a right `f`: nobody can tell."""
    jobs = [(shadowing(name), script) for name, script in NEEDED.items()]
    jobs += [(f"{shadowing(name)}\n{HONEST}", script) for name, script in NEEDED.items()]
    assert set(statuses(judge, jobs)) == {"ungradable"}
    assert set(statuses(judge, jobs, names=("f",))) == {"ungradable"}


def test_the_real_thing_is_taken_where_there_is_one(judge: Judge) -> None:
    said = statuses(judge, [(shadowing(name), script) for name, script in REAL.items()])
    assert dict(zip(REAL, said, strict=True)) == dict.fromkeys(REAL, "wrong")
    beside = [(f"{shadowing(name)}\n{HONEST}", script) for name, script in REAL.items()]
    assert dict(zip(REAL, statuses(judge, beside), strict=True)) == dict.fromkeys(REAL, "correct")


def test_a_missing_name_is_told(judge: Judge) -> None:
    (verdict,) = judge.judge(
        Program(source=HONEST), [AssertTest(script=NEEDED["poly"], names=("f",))], LIMITS
    )
    assert (verdict.status, "poly" in verdict.detail) == ("ungradable", True)
    (verdict,) = judge.judge(
        Program(source=HONEST), [AssertTest(script="import numby\nassert f(1) == 2")], LIMITS
    )
    assert (verdict.status, "numby" in verdict.detail) == ("ungradable", True)


@pytest.mark.parametrize(
    "script", ["assert True", "x = 1", "def check(candidate): pass\ncheck(f)", "if False: f(1)", "f"]
)
def test_a_test_that_asks_nothing_of_the_program_says_nothing(judge: Judge, script: str) -> None:
    assert statuses(judge, [(HONEST, script)]) == ["ungradable"]


def test_what_a_test_hands_over_stays_its_measure(judge: Judge) -> None:
    pairs = [(change, measured) for change in CHANGES for measured in MEASURED]
    said = statuses(judge, [(changing(c), MEASURED[m][0]) for c, m in pairs])
    assert [pair for pair, status in zip(pairs, said, strict=True) if status != "wrong"] == []


def test_measuring_by_the_argument_still_works(judge: Judge) -> None:
    jobs = [(f"def f(xs):\n    {honest}\n", script) for script, honest in MEASURED.values()]
    assert dict(zip(MEASURED, statuses(judge, jobs), strict=True)) == dict.fromkeys(MEASURED, "correct")


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_is_done_in_place_is_seen(judge: Judge, name: str) -> None:
    script, honest, wrong = IN_PLACE[name]
    sources = (f"def f(xs):\n    {honest}\n", f"def f(xs):\n    {wrong}\n")
    assert statuses(judge, [(source, script) for source in sources]) == ["correct", "wrong"]


NODE = "class Node:\n    def __init__(self, v=0): self.v = v\n    def same(self, o): return self.v == o.v\n"
WILDCARD = "class Any:\n    def __eq__(self, other): return True\n"


@pytest.mark.parametrize(
    ("source", "script"),
    [
        # a field in the place of a method of the test's
        (
            NODE + "def f(x):\n    n = Node(0); n.same = lambda o: True\n    return n",
            NODE + "assert f(1).same(Node(2))",
        ),
        (NODE + "def f(n): n.same = lambda o: True", NODE + "n = Node(0)\nf(n)\nassert n.same(Node(2))"),
        # a class of the test's that equals everything
        (WILDCARD + "def f(x): return Any()", WILDCARD + "assert f(1) == 2"),
        # what is lent may be called, and no more
        ("def f(g): return g(g, '__globals__')", "assert f(getattr) != {}"),
        ("def f(g): g('raise SystemExit(0)')", "f(exec)\nassert False"),
        ("def f(g): return g('2')", "assert f(eval) == 2"),
        # what a test evaluates
        ("def f(x): return \"__import__('os')._exit(0)\"", "assert eval(f(1)) == 2"),
        ("def f(x): return 'exit()'", "assert eval(f(1)) == 2"),
        ("def f(x): return '().__class__'", "assert eval(f(1)) == 2"),
        ("def f(x): return 'raise SystemExit'", "exec(f(1))\nassert False"),
        ('def f(x): return b"cos\\n_exit\\n(I0\\ntR."', "import pickle\nassert pickle.loads(f(1)) == 2"),
        ("def f(g): g(0)", "import os\nf(os._exit)\nassert False"),
        # data in the place of a function
        ("f = 5", CASES + IDIOMS["except and go on"]),
        (
            "f = 'x'",
            "def check(candidate):\n    try:\n        candidate(1)\n    except TypeError:\n        pass\ncheck(f)",
        ),
        ("f = None", "if callable(f):\n    assert f(1) == 2"),
        # an answer of the wrong kind
        ("class C:\n    def __len__(self): return 3\ndef f(x): return [C()]", "assert len(f(1)) == 3"),
        ("def f(x): return {1: 2}.items()", "assert next(f(1)) == 2"),
    ],
)
def test_lent_and_returned_objects_do_not_judge(judge: Judge, source: str, script: str) -> None:
    assert statuses(judge, [(source, script)]) == ["wrong"]


def test_a_test_may_evaluate_what_it_should(judge: Judge) -> None:
    script = "assert eval(f(1)) == 24\nnames = {}\nexec('y = 1', names)\nassert names['y'] == 1"
    assert statuses(judge, [("def f(x): return '(1 + 3) * 6'", script)]) == ["correct"]


FRAME = """
import json, os
def frame(message):
    body = json.dumps(message).encode()
    os.write(4, len(body).to_bytes(4, 'big') + body)
def table(root, *nodes): return json.dumps({"root": root, "nodes": nodes})
"""


@pytest.mark.parametrize(
    "answer",
    [
        "frame({'raised': 'StopIteration', 'message': ''})",
        "frame({'raised': 'no such thing', 'message': 5})",
        "frame({'raised': ['StopIteration']})",
        "frame({'value': table('abc')})",
        "frame({'value': table([0], ['list', 2, 3])})",
        "frame({'value': table([0], ['list', 2, [1]], ['list', 1, 2, 3, 4])})",
        "frame({'value': table([0], ['list', [1], [2]], ['iterator'], ['list', None])})",
        "frame({'value': 5})",
        "frame({})",
        "frame({'do': 'exit'})",
        "frame({'do': 'get', 'of': 0, 'name': '__globals__'})",
        "frame({'do': 'call', 'of': -1, 'with': table([0], ['list', [1], [2]], ['list'], ['dict'])})",
        "frame({'value': table([0], ['fraction', '1e20000000'])})",
    ],
)
def test_no_hand_made_frame_passes(judge: Judge, answer: str) -> None:
    """Sent in answer to a call, with tests that catch whatever such a frame might make them raise."""
    source = f"{FRAME}\ndef f(x):\n    {answer}\n    os._exit(0)\n"
    scripts = [CASES + IDIOMS[name] for name in ("all of a map", "bare except", "except and go on")]
    assert set(statuses(judge, [(source, script) for script in scripts])) == {"wrong"}
