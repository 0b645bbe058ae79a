# ruff: noqa: E501 - a program on one line reads better than one that is broken for its width
"""Programs that cheat where values are compared: by what they return, and by what they send in place of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from foresail.judge.judge import Judge
from foresail.judge.programs.program import AssertTest, CallTest, Limits, Program

LIMITS = Limits(seconds=2.0, memory_mb=256)

# Each defines f, whose honest answer would be 42. `channel` is the descriptor its answers leave by.
PROGRAMS = {
    "equal to everything": """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 42
f = lambda: Equal()
""",
    "an int equal to everything": """
class Equal(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = int.__hash__
f = lambda: Equal(1)
""",
    "a list of everything": """
class Equal(list):
    def __eq__(self, other): return True
    def __len__(self): return 42
f = lambda: Equal([1])
""",
    "a class that says it is an int": """
class Fake:
    __class__ = int
    def __eq__(self, other): return True
    def __index__(self): return 41
    def __getattr__(self, name): return lambda *a: True
f = lambda: Fake()
""",
    "a metaclass": """
class Meta(type):
    def __eq__(cls, other): return True
    def __instancecheck__(cls, other): return True
    __hash__ = type.__hash__
class Fake(metaclass=Meta): pass
f = lambda: Fake
""",
    "exit with success": "import os\nf = lambda: os._exit(0)",
    "exit as if the test were bad": "import os\nf = lambda: os._exit(41)",
    "exit while it is loaded": "import os\nf = lambda: 42\nos._exit(0)",
    "leave by SystemExit": "import sys\nf = lambda: sys.exit(0)",
    "interrupt": "def f(): raise KeyboardInterrupt",
    "stop iteration": "def f(): raise StopIteration(42)",
    "raise what the judge would": "def f(): raise AssertionError('passed')",
    "die": "import os\ndef f(): os.kill(os.getpid(), 9); os.abort()",
    "a wrong frame by hand": """
import os
def f():
    os.write(4, b'{"root":41,"nodes":[]}')
    os._exit(0)
""",
    "two frames": """
import os
def f():
    os.write(4, b'{"root":41,"nodes":[]}')
    return 42
""",
    "frames ahead of questions": """
import os, json
def frame(message):
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, 'big') + body
true = json.dumps({"root": True, "nodes": []})
os.write(4, b''.join(frame({"value": true}) for _ in range(100)))
f = lambda: 41
""",
    "names nobody asked for": """
import json, os
def table(value): return json.dumps({"root": [0], "nodes": value})
names = table([["list", [1], [2]], ["dict", "f", [3], "isinstance", [3], "int", [3], "abs", [3]], ["list"],
               ["list", [4]], ["remote", "mine", 0]])
body = json.dumps({"value": names}).encode()
os.read(4, 1 << 16)
os.write(4, len(body).to_bytes(4, 'big') + body)
f = lambda: 41
""",
    "a frame that never ends": "import os\ndef f():\n    while True: os.write(4, b'[' * 65536)",
    "a frame of four gigabytes": "import os\ndef f():\n    os.write(4, b'\\xff' * 8)\n    os._exit(0)",
    "nested a million deep": "import os\ndef f():\n    os.write(4, b'[' * 900000)\n    os._exit(0)",
    "a pickle": "import os\ndef f():\n    os.write(4, b\"cos\\nsystem\\n(S'true'\\ntR.\")\n    os._exit(0)",
    "pointers into nowhere": 'import os\ndef f():\n    os.write(4, b\'{"root":[9],"nodes":[["list",[0]]]}\')\n    os._exit(0)',
    "a tuple inside itself": 'import os\ndef f():\n    os.write(4, b\'{"root":[0],"nodes":[["tuple",[0]]]}\')\n    os._exit(0)',
    "an unknown kind": 'import os\ndef f():\n    os.write(4, b\'{"root":[0],"nodes":[["eval","42"]]}\')\n    os._exit(0)',
    "keys that collide": """
import json, os
def f():
    keys = [k * (2 ** 61 - 1) for k in range(40000)]
    os.write(4, json.dumps({"root": [0], "nodes": [["set", *keys]]}).encode())
    os._exit(0)
""",
    "an endless iterator": "import itertools\nf = lambda: itertools.count()",
    "an endless list": "def f():\n    x = []\n    while True: x.append(42)",
    "itself": "def f():\n    x = []\n    x.append(x)\n    return x",
    "a patched encoder": """
import json
json.dumps = lambda *a, **k: '{"root":true,"nodes":[]}'
f = lambda: 41
""",
    "patched builtins": """
import builtins
builtins.AssertionError = type('AssertionError', (Exception,), {})
builtins.isinstance = lambda *a: True
f = lambda: 41
""",
    "judge and party": """
def isinstance(*_): return True
def abs(*_): return 0
def all(*_): return True
def check(*_): return True
class math:
    isclose = staticmethod(lambda *a, **k: True)
f = lambda: 41
""",
}

TESTS = {
    "call": CallTest(function="f", expected=42),
    "call with tolerance": CallTest(function="f", expected=42, relative=1e-6, absolute=1e-6),
    "equality": AssertTest(script="assert f() == 42"),
    "inequality": AssertTest(script="assert not f() != 42\nassert isinstance(f(), int) and f() in (42,)"),
    "nearness": AssertTest(script="assert abs(f() - 42) < 1e-6"),
    "nearness by a module": AssertTest(script="assert math.isclose(f(), 42)"),
    "all of them": AssertTest(script="assert all([f() == 42, f() == 42])"),
    "HumanEval": AssertTest(script="def check(candidate):\n    assert candidate() == 42\n\ncheck(f)"),
    "careless": AssertTest(
        script="passed = False\ntry:\n    passed = f() == 42\nexcept BaseException:\n    pass\nassert passed is True"
    ),
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_forgery_passes(judge: Judge, name: str) -> None:
    limits = Limits(seconds=0.2, memory_mb=256) if "end" in name else LIMITS
    verdicts = judge.judge(Program(source=PROGRAMS[name]), list(TESTS.values()), limits)
    assert {test: verdict.status for test, verdict in zip(TESTS, verdicts, strict=True)} == dict.fromkeys(
        TESTS, "wrong"
    )


def test_an_honest_program_passes_the_same_tests(judge: Judge) -> None:
    verdicts = judge.judge(Program(source="import math\ndef f(): return 42"), list(TESTS.values()), LIMITS)
    assert [verdict.status for verdict in verdicts] == ["correct"] * len(TESTS)


YES_TO_ALL = """
class Yes:
    def __contains__(self, item): return True
    def __getattr__(self, name): return lambda *a, **k: True
    def __iter__(self): return iter([])
    def __len__(self): return 0
    def __sub__(self, other): return 0
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
f = lambda: Yes()
"""


@pytest.mark.parametrize(
    "script",
    [
        "assert 42 in f()",
        "assert f().startswith('ab')",
        "assert f().issubset({42})",
        "assert abs(f() - 42) < 1",
        "assert f() < 43",
        "assert f() >= 42",
        "assert {42}.issubset(f())",
        "assert any(x == 42 for x in f())",
    ],
)
def test_what_is_judged_does_not_judge(judge: Judge, script: str) -> None:
    (verdict,) = judge.judge(Program(source=YES_TO_ALL), [AssertTest(script=script)], LIMITS)
    assert verdict.status == "wrong"


def test_a_dead_program_cannot_be_caught_by_its_test(judge: Judge) -> None:
    """`except:` swallows everything, and yet the script must not go on without the program."""
    script = "try:\n    f()\nexcept:\n    pass"
    honest, dead = (
        judge.judge(Program(source=source), [AssertTest(script=script)], LIMITS)[0]
        for source in ("def f(): raise ValueError", "import os\ndef f(): os._exit(0)")
    )
    assert (honest.status, dead.status) == ("correct", "wrong")


def test_a_program_cannot_reach_the_script_through_what_it_is_lent(judge: Judge) -> None:
    """A function passed to the program can be called by it, and nothing else."""
    script = "secret = 42\ndef helper(x): return x\nassert f(helper) == 'no'"
    source = """
def f(helper):
    if helper(7) != 7:
        return 'broken'
    try:
        return helper.__globals__['secret']
    except AttributeError:
        pass
    try:
        return helper._peer.ask({"do": "get", "of": helper._number, "name": "__globals__"})['secret']
    except PermissionError:
        return 'no'
"""
    (verdict,) = judge.judge(Program(source=source), [AssertTest(script=script)], LIMITS)
    assert verdict.status == "correct", verdict
