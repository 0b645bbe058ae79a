# ruff: noqa: E501 - a script on one line reads better than one that is broken for its width
"""No object passes for a container that it is not: lies × tests, by a search; and honest containers pass."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from liars import DICTS, HONEST, HONEST_DICTS, LISTS, make_liar

from foresail.judge.judge import Judge
from foresail.judge.programs.program import AssertTest, Limits, Program

LIMITS = Limits(seconds=1, idle_seconds=1, memory_mb=256)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(workers=2) as judge:
        yield judge


def statuses(judge: Judge, jobs: Sequence[tuple[str, str]]) -> list[str]:
    """What is said of each (program, script)."""

    def status(job: tuple[str, str]) -> str:
        source, script = job
        verdict = judge.judge(Program(source=source), [AssertTest(script=script, names=("f",))], LIMITS)[0]
        return verdict.status if verdict.status == "correct" else f"{verdict.status}: {verdict.detail}"

    with ThreadPoolExecutor(judge.workers) as threads:
        return list(threads.map(status, jobs))


def test_honest_containers_pass(judge: Judge) -> None:
    """But `==` of a container of one's own with a list, which is the program's method."""
    pairs = [(h, t) for h in HONEST for t in LISTS if t != "equal" or h == "child of list"]
    said = statuses(judge, [(HONEST[h], LISTS[t]) for h, t in pairs])
    assert {pair: word for pair, word in zip(pairs, said, strict=True) if word != "correct"} == {}
    pairs = [(h, t) for h in HONEST_DICTS for t in DICTS]
    said = statuses(judge, [(HONEST_DICTS[h], DICTS[t]) for h, t in pairs])
    assert {pair: word for pair, word in zip(pairs, said, strict=True) if word != "correct"} == {}


def test_no_liar_passes(judge: Judge) -> None:
    numbers = random.Random(7)
    liars = [make_liar(numbers) for _ in range(200)]
    tests = [*LISTS.values(), *DICTS.values()]
    jobs = [(liar, tests[number % len(tests)]) for number, liar in enumerate(liars)]
    said = statuses(judge, jobs)
    assert [job for job, word in zip(jobs, said, strict=True) if not word.startswith("wrong")] == []


# By hand: (program, test, what is right).
EMPTY = "class C:\n    def __init__(self, n=4): self.n, self.k = n, 0\n    def __len__(self): return self.n\n    def __iter__(self): return iter(())\n"
PLACES = "class C:\n    def __len__(self): return 3\n    def __getitem__(self, i):\n        C.k = getattr(C, 'k', 0) + 1\n        return ([0, 1, 2] if C.k < 4 else [2, 1, 0])[i]\n"
STATE = (
    "class C:\n    def __init__(self): self.x = []\n    def add(self, y): self.x.append(y)\n    def pop(self): return self.x.pop()\n"
    "    def __len__(self): return len(self.x)\n    def __iter__(self): return iter(self.x)\n    def __bool__(self): return bool(self.x)\n"
    "    def __getitem__(self, i): return self.x[i]\n    def __setitem__(self, i, y): self.x[i] = y\n"
)
APPROX = "class Approx:\n    def __init__(self, x, e): self.x, self.e = x, e\n"
EQUALS_NEAR = "    def __eq__(self, y): return abs(self.x - y) <= self.e\n"
BY_HAND = [
    # An attribute, a text and a truth stay what they were.
    ("class C:\n    k = 0\n    @property\n    def x(self):\n        self.k += 1\n        return self.k\ndef f(): return C()", "r = f()\nassert r.x == 1 and r.x == 2", "wrong"),
    ("class C:\n    k = 0\n    def __str__(self):\n        self.k += 1\n        return str(self.k)\ndef f(): return C()", "r = f()\nassert str(r) == '1' and str(r) == '2'", "wrong"),
    ("class C:\n    k = 0\n    def __bool__(self):\n        self.k += 1\n        return self.k == 1\ndef f(): return C()", "r = f()\nassert r\nassert not r", "wrong"),
    # A stand-in has what its object has, and no more.
    ("class C: pass\ndef f(): return C()", "from collections.abc import Iterable\nassert isinstance(f(), Iterable)", "wrong"),
    ("class C: pass\ndef f(): return C()", "assert hasattr(f(), '__len__')", "wrong"),
    ("class C: pass\ndef f(): return C()", "assert callable(f())", "wrong"),
    ("def f(): return lambda x: x + 1", "assert callable(f()) and f()(1) == 2", "correct"),
    (EMPTY + "def f(): return C()", "from collections.abc import Iterable, Sized\nassert isinstance(f(), Iterable) and isinstance(f(), Sized)", "correct"),
    # Places that are not those of its order.
    (PLACES + "def f(): return C()", "r = f()\nassert [r[i] for i in range(3)] == [0, 1, 2] and sum(r) == 3 and len(r) == 3", "wrong"),
    ("class C:\n    def __getitem__(self, name): return {'a': 1, (0, 1): 2, 7: 3}[name]\ndef f(): return C()", "r = f()\nassert r['a'] == 1 and r[0, 1] == 2 and r[7] == 3", "correct"),
    # Objects that the test makes.
    (EMPTY, "c = C(4)\nassert len(c) == 4\nfor a, b in zip(c, range(4)): assert a == b", "wrong"),
    (EMPTY, "c = C(4)\nfor a, b in zip(c, range(4)): assert a == b\nassert len(c) == 4", "wrong"),
    ("class C:\n    k = 0\n    @property\n    def x(self):\n        self.k += 1\n        return [0, 1] if self.k == 1 else []", "c = C()\nassert len(c.x) == 2\nfor a, b in zip(c.x, [0, 9]): assert a == b", "wrong"),
    (STATE, "c = C()\nc.add(1)\nassert c.x == [1]\nc.add(2)\nassert c.x == [1, 2] and c.pop() == 2 and c.x == [1]", "correct"),
    (STATE, "c = C()\nassert not c\nfor i in range(3): c.add(i)\nassert c and len(c) == 3 and list(c) == [0, 1, 2] and c[1] == 1\nc[1] = 5\nassert c[1] == 5 and list(c) == [0, 5, 2]\nassert c.pop() == 2 and len(c) == 2 and [*c] == [0, 5]", "correct"),
    (STATE + "def f(c): c.add(9)", "c = C()\nf(c)\nassert len(c) == 1 and list(c) == [9]\nf(c)\nassert len(c) == 2", "correct"),
    # What a function returned and another changes.
    (STATE + "def f(c=None):\n    if c is None: return C()\n    c.add(1)", "c = f()\nassert len(c) == 0\nf(c)\nassert len(c) == 1 and list(c) == [1]", "correct"),
    ("class C:\n    x = 0\ndef f(): return C()", "r = f()\nassert r.x == 0\nr.x = 5\nassert r.x == 5", "correct"),
    # Any name is the object's own, also one that a stand-in could need for itself.
    ("class C:\n    def __init__(self): self._items, self._size, self._peer, self._answers, self._number, self.asked = [1], 1, 2, 3, 4, 5", "c = C()\nassert c._items == [1] and (c._size, c._peer, c._answers, c._number, c.asked) == (1, 2, 3, 4, 5)\nc._size = 7\nassert c._size == 7", "correct"),
    ("class C: pass\ndef f(): return C()", "assert f()._items", "wrong"),
    ("class C: pass", "assert C()._size", "wrong"),
    # Instances of the test's own classes that equal more than one thing.
    (APPROX + "def f(): return Approx(0.0, 1e300)", APPROX + EQUALS_NEAR + "assert f() == 9", "wrong"),
    (APPROX + "def f(): return [1, {2: Approx(0.0, 1e300)}]", APPROX + EQUALS_NEAR + "assert f() == [1, {2: 9}]", "wrong"),
    (APPROX + "def f(): return Approx('.*', 0)", "import re\n" + APPROX + "    def __eq__(self, y): return re.fullmatch(self.x, y) is not None\nassert f() == 'abc'", "wrong"),
    (APPROX + "def f(): return Approx([*range(20)], 0)", APPROX + "    def __eq__(self, y): return y in self.x\nassert f() == 9", "wrong"),
    (APPROX + "def f(): return Approx(9.0, 1e-6)", APPROX + EQUALS_NEAR + "assert f() == 9", "correct"),
    (APPROX + "def f(): return Approx(2, 7)", APPROX + "    def __eq__(self, y): return (self.x - getattr(y, 'x', y)) % self.e == 0\nassert f() == 9 and f() == Approx(16, 7)", "correct"),
    (APPROX + "def f(): return Approx([], 0)", APPROX + "    def __eq__(self, y): return [*self.x] == [*y]\nassert f() == [] and f() == ()", "correct"),
    ("class C:\n    def __iter__(self):\n        yield float('nan')\n    def __len__(self): return 1\n    def __getitem__(self, i): return [*self][i]\ndef f(): return C()", "r = f()\nassert r[0] != r[0] and len(r) == 1 and list(r)", "correct"),
]  # fmt: skip


def test_cases_by_hand(judge: Judge) -> None:
    def status(case: tuple[str, str, str]) -> str:
        source, script, _ = case
        names = tuple(name for name in ("C", "f") if f"{name}(" in script)
        return judge.judge(Program(source=source), [AssertTest(script=script, names=names)], LIMITS)[0].status

    assert [case for case in BY_HAND if status(case) != case[2]] == []
