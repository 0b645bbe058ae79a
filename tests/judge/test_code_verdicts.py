# ruff: noqa: E501 - a program on one line reads better than one that is broken for its width
"""What the judge says of honest programs: every kind of test, comparison, ending and limit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from foresail.judge.judge import Judge
from foresail.judge.judge import judge as judge_shared
from foresail.judge.programs.program import (
    AssertTest,
    CallTest,
    Limits,
    OutputComparison,
    Program,
    StdinTest,
    Test,
)
from foresail.records import Verdict

LIMITS = Limits(seconds=5.0)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(workers=2) as judge:
        yield judge


def one(judge: Judge, source: str, test: Test, limits: Limits = LIMITS) -> Verdict:
    (verdict,) = judge.judge(Program(source=source), [test], limits)
    return verdict


# Standard input and output.


@pytest.mark.parametrize(
    ("source", "given", "printed"),
    [
        ("print(int(input()) + 1)", "41", "42"),
        ("import sys\nprint(sum(int(line) for line in sys.stdin))", "1\n2\n3\n", "6"),
        ("import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])", "abc", "cba"),
        ("import sys\nprint(len(sys.stdin.read()))", "x" * 300_000, "300000"),
        ("import os\nos.write(1, os.read(0, 100))", "raw", "raw"),
        ("print(open(0).read().upper())", "käse", "KÄSE"),
        ("if __name__ == '__main__':\n    print('main')", "", "main"),
        ("print(1)\nexit()\nprint(2)", "", "1"),
        ("import sys\nprint(1)\nsys.exit(0)\nprint(2)", "", "1"),
        ("import atexit\natexit.register(print, 'last')\nprint('first')", "", "first last"),
        ("import sys\nprint(sys.argv[1:], end='')", "", "[]"),
        ("import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return n and f(n - 1) + 1\nprint(f(50000))", "", "50000"),
        (
            "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(512 * 1024 * 1024)\n"
            "t = threading.Thread(target=lambda: print('deep'))\nt.start()\nt.join()",
            "",
            "deep",
        ),
        ("import threading\nthreading.Thread(target=lambda: print('not waited for')).start()", "", "not waited for"),
        ("import numbers, zlib, hashlib, calendar, unicodedata, csv\nprint('imports')", "", "imports"),
        ("with open('notes', 'w') as f: f.write('kept')\nprint(open('notes').read())", "", "kept"),
        ("import tempfile\nwith tempfile.TemporaryFile() as f: f.write(b'x')\nprint('ok')", "", "ok"),
        ("import asyncio\nasync def main(): print('loop')\nasyncio.run(main())", "", "loop"),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(1))", "", "P(x=1)"),
        ("import collections, pickle\nP = collections.namedtuple('P', 'x')\nprint(pickle.loads(pickle.dumps(P(1))))",
         "", "P(x=1)"),
        ("import random\nrandom.seed(1)\nprint(random.random() == random.random())", "", "False"),
        ("print(input())", "ends without a newline", "ends without a newline"),
    ],
)  # fmt: skip
def test_programs_run_as_they_would_at_home(judge: Judge, source: str, given: str, printed: str) -> None:
    verdict = one(judge, source, StdinTest(input=given, output=printed))
    assert verdict == Verdict(status="correct", score=1.0), verdict


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("print(1", "SyntaxError"),
        ("print(1 / 0)", "exit 1: ZeroDivisionError: division by zero"),
        ("print(2)\nraise SystemExit(3)", "exit 3"),
        ("print(2)\nraise SystemExit('why')", "exit 1: why"),
        ("import sys\nsys.exit(256)", "printed"),
        ("input(); input()", "EOFError"),
        ("import foresail", "ModuleNotFoundError"),
        ("import numpy", "ModuleNotFoundError"),
        ("x = 'a' * (1 << 30)", "memory limit 512 MB"),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\nimport ctypes\nctypes.string_at(0)",
            "signal 11",
        ),
        ("print('x' * (2 << 20))", "output limit"),
        ("print(3)", "printed 3, expected 2"),
        ("\0", "does not compile|null bytes"),
        ("print('\ud800')", "SyntaxError"),
    ],
)
def test_the_programs_fault_is_wrong_and_told(judge: Judge, source: str, detail: str) -> None:
    verdict = one(judge, source, StdinTest(input="", output="2"))
    assert (verdict.status, verdict.score) == ("wrong", 0.0)
    assert any(part in verdict.detail for part in detail.split("|")), verdict.detail


@pytest.mark.parametrize(
    "source", ["import time\ntime.sleep(9)", "while True: pass", "import time\nwhile True: time.sleep(0.01)"]
)
def test_time_is_limited_at_work_and_idle(judge: Judge, source: str) -> None:
    limits = Limits(seconds=0.3, idle_seconds=0.3)
    verdict = one(judge, source, StdinTest(input="", output=""), limits)
    assert (verdict.status, verdict.detail) == ("wrong", "time limit 0.3 s")


def test_memory_is_judged_by_what_is_used(judge: Judge) -> None:
    """Below the limit passes, above it fails, even though the address space would have held it."""
    small, large = (
        one(judge, f"x = bytearray({size} << 20)\nprint(len(x) >> 20)", StdinTest(input="", output=str(size)))
        for size in (400, 600)
    )
    assert (small.status, large.detail) == ("correct", "memory limit 512 MB")


def test_processes_are_allowed_when_the_limit_says_so(judge: Judge) -> None:
    if not judge.isolation.startswith("namespaces"):
        pytest.skip("only namespaces can tell when the last process has ended")
    source = "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n    print('parent')\nelse:\n    print('child', flush=True)\n    os._exit(0)"
    test = StdinTest(input="", output="child parent")
    assert one(judge, source, test).status == "wrong"
    assert one(judge, source, test, Limits(seconds=5, processes=2)).status == "correct"


def test_one_test_leaves_nothing_to_the_next(judge: Judge) -> None:
    source = "import os, builtins\nprint(os.listdir('.'), hasattr(builtins, 'mark'))\nopen('mark', 'w')\nbuiltins.mark = 1"
    test = StdinTest(input="", output="[] False")
    assert [v.status for v in judge.judge(Program(source=source), [test] * 3, LIMITS)] == ["correct"] * 3


def test_verdicts_are_repeatable(judge: Judge) -> None:
    source = "import random\nprint(random.random(), list({'a', 'b', 'c', 'd', 'e', 'f'}))"
    details = {one(judge, source, StdinTest(input="", output="")).detail for _ in range(4)}
    assert len(details) == 1


# Comparisons.


@pytest.mark.parametrize(
    ("printed", "expected", "comparison", "status"),
    [
        ("1 2\n", "1 2\n", OutputComparison(mode="bytes"), "correct"),
        ("1 2", "1 2\n", OutputComparison(mode="bytes"), "wrong"),
        (" 1\n\n2 ", "1 2", OutputComparison(), "correct"),
        ("12", "1 2", OutputComparison(), "wrong"),
        ("1 2 3", "1 2", OutputComparison(), "wrong"),
        ("0.3333333", "0.33333331", OutputComparison(mode="numbers"), "correct"),
        ("0.3334", "0.3333", OutputComparison(mode="numbers"), "wrong"),
        ("0.34", "0.33", OutputComparison(mode="numbers", relative=0.1), "correct"),
        ("1e-10", "0", OutputComparison(mode="numbers"), "correct"),
        ("1e-3", "0", OutputComparison(mode="numbers"), "wrong"),
        ("YES 1.0", "YES 1", OutputComparison(mode="numbers"), "correct"),
        ("yes 1.0", "YES 1", OutputComparison(mode="numbers"), "wrong"),
        ("nan", "1", OutputComparison(mode="numbers"), "wrong"),
        ("inf", "1", OutputComparison(mode="numbers", relative=10.0), "wrong"),
        ("1_0", "10", OutputComparison(mode="numbers"), "wrong"),
        ("3 1 2", "1 2 3", OutputComparison(mode="checker", checker="def check(i, o, e): return sorted(o.split()) == e.split()"),
         "correct"),
        ("3 1", "1 2 3", OutputComparison(mode="checker", checker="def check(i, o, e): return sorted(o.split()) == e.split()"),
         "wrong"),
        ("x", "1", OutputComparison(mode="checker", checker="def check(i, o, e): return int(o) == 1"), "wrong"),
        ("x", "1", OutputComparison(mode="checker", checker="def check(i, o, e):\n    while True: pass"), "wrong"),
        ("x", "1", OutputComparison(mode="checker", checker="def chek(i, o, e): return True"), "ungradable"),
        ("x", "1", OutputComparison(mode="checker", checker="def check("), "ungradable"),
        ("x", "1", OutputComparison(mode="checker", checker=None), "ungradable"),
    ],
)  # fmt: skip
def test_comparisons(
    judge: Judge, printed: str, expected: str, comparison: OutputComparison, status: str
) -> None:
    test = StdinTest(input=printed, output=expected, comparison=comparison)
    source = "import sys\nsys.stdout.write(sys.stdin.read())"
    assert one(judge, source, test, Limits(seconds=3)).status == status


# Calls.


class ListNode:
    def __init__(self, val: int = 0, next: ListNode | None = None) -> None:
        self.val, self.next = val, next


def linked(*values: int) -> ListNode | None:
    head = None
    for value in reversed(values):
        head = ListNode(value, head)
    return head


LIST_NODE = "class ListNode:\n    def __init__(self, val=0, next=None): self.val, self.next = val, next\n"


@pytest.mark.parametrize(
    ("source", "test", "status"),
    [
        ("def add(a, b): return a + b", CallTest(function="add", arguments=(1, 2), expected=3), "correct"),
        ("def add(a, b): return a + b", CallTest(function="add", arguments=(1,), keywords={"b": 2}, expected=3), "correct"),
        ("def add(a, b): return a - b", CallTest(function="add", arguments=(1, 2), expected=3), "wrong"),
        ("class Solution:\n    def f(self, x): return [x, (x,)]",
         CallTest(function="Solution().f", arguments=(1,), expected=[1, [1]]), "correct"),
        ("f = lambda: 10 ** 5000", CallTest(function="f", expected=10**5000), "correct"),
        ("f = lambda: 10 ** 5000 + 1", CallTest(function="f", expected=10**5000), "wrong"),
        ("f = lambda: 0.1 + 0.2", CallTest(function="f", expected=0.3), "wrong"),
        ("f = lambda: [0.1 + 0.2]", CallTest(function="f", expected=[0.3], relative=1e-9), "correct"),
        ("f = lambda: float('nan')", CallTest(function="f", expected=float("nan")), "correct"),
        ("f = lambda: float('inf')", CallTest(function="f", expected=1e308, relative=1.0), "wrong"),
        ("f = lambda: {1: {2, 3}, 'a': None}", CallTest(function="f", expected={"a": None, 1.0: {3, 2}}), "correct"),
        ("f = lambda: {1: {2, 3}}", CallTest(function="f", expected={1: {2, 4}}), "wrong"),
        ("f = lambda: {(1, 2): 'x'}", CallTest(function="f", expected={(1, 2): "x"}), "correct"),
        ("f = lambda: '1'", CallTest(function="f", expected=1), "wrong"),
        ("f = lambda: b'1'", CallTest(function="f", expected="1"), "wrong"),
        ("f = lambda: True", CallTest(function="f", expected=1), "correct"),
        ("f = lambda: None", CallTest(function="f", expected=None), "correct"),
        ("f = lambda: None", CallTest(function="f", expected=False), "wrong"),
        ("f = lambda: {1}", CallTest(function="f", expected=[1]), "wrong"),
        ("f = lambda: 1 + 2j", CallTest(function="f", expected=1 + 2j), "correct"),
        ("import collections\nf = lambda: collections.Counter('aab')", CallTest(function="f", expected={"a": 2, "b": 1}), "correct"),
        ("f = lambda: print", CallTest(function="f", expected=None), "wrong"),
        ("f = lambda: g()", CallTest(function="f", expected=None), "wrong"),
        ("def g(): pass", CallTest(function="f", expected=None), "wrong"),
        ("f = lambda: 1\nif __name__ == '__main__': input()", CallTest(function="f", expected=1), "correct"),
        ("print('noise')\nf = lambda: print('more') or 1", CallTest(function="f", expected=1), "correct"),
        (LIST_NODE + "def reverse(head):\n    last = None\n    while head: head.next, last, head = last, head, head.next\n    return last",
         CallTest(function="reverse", arguments=(linked(*range(3000)),), expected=linked(*range(2999, -1, -1))), "correct"),
        (LIST_NODE + "def reverse(head): return head",
         CallTest(function="reverse", arguments=(linked(1, 2),), expected=linked(2, 1)), "wrong"),
        ("f = lambda: 1", CallTest(function="f", arguments=(print,), expected=1), "ungradable"),
    ],
)  # fmt: skip
def test_calls(judge: Judge, source: str, test: CallTest, status: str) -> None:
    verdict = one(judge, source, test)
    assert verdict.status == status, verdict


# Assert scripts.


@pytest.mark.parametrize(
    ("source", "script", "status"),
    [
        ("def add(a, b): return a + b", "assert add(1, 2) == 3\nassert add('a', 'b') == 'ab'", "correct"),
        ("def add(a, b): return a + b", "assert add(1, 2) == 3\nassert add(1, 1) == 3", "wrong"),
        ("def add(a, b): return a + b", "def check(candidate):\n    assert candidate(1, b=2) == 3\ncheck(add)", "correct"),
        ("def add(a, b): return a + b", "assert add(1, 2) ==", "ungradable"),
        ("def sub(a, b): return a - b", "assert add(1, 2) == 3", "wrong"),
        ("def sum(a, b): return a + b", "assert sum(1, 2) == 3", "correct"),
        ("def f(x):\n    if x < 0: raise ValueError('no')\n    return x",
         "try:\n    f(-1)\n    raise SystemExit(1)\nexcept ValueError as error:\n    assert str(error) == 'no'", "correct"),
        ("class Odd(KeyError): pass\ndef f(x): raise Odd(x)", "try:\n    f(1)\nexcept LookupError:\n    ok = 1\nassert ok", "correct"),
        ("def order(x): x.sort()", "x = [2, 1]\norder(x)\nassert x == [1, 2]", "correct"),
        ("def order(x): pass", "x = [2, 1]\norder(x)\nassert x == [1, 2]", "wrong"),
        ("def f(x): return (i for i in x)", "assert list(f([1, 2])) == [1, 2]", "correct"),
        ("def f(x): return map(str, x)", "assert ' '.join(f([1, 2])) == '1 2'", "correct"),
        ("def f(x): return tuple(x)", "assert f([1]) == (1,)\nassert f([1]) != [1]\nassert isinstance(f([1]), tuple)", "correct"),
        ("def f(g, x): return g(g(x))", "assert f(lambda x: x + 1, 1) == 3", "correct"),
        ("def f(n): return lambda x: x + n", "assert f(1)(2) == 3", "correct"),
        ("class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n    def __len__(self): return len(self.items)",
         "s = Stack()\ns.push(1)\nassert len(s) == 1 and s.items == [1]", "correct"),
        ("class P:\n    def __init__(self, x): self.x = x\ndef f(): return P(3)", "assert f().x == 3", "correct"),
        (LIST_NODE + "def f(h): return h.next",
         LIST_NODE + "assert f(ListNode(1, ListNode(2))).val == 2\nassert isinstance(f(ListNode(1, ListNode(2))), ListNode)", "correct"),
        ("import math\ndef f(x): return math.sqrt(x)", "assert math.isclose(f(2) ** 2, 2)", "correct"),
        ("LIMIT = 7\ndef f(): return LIMIT", "assert f() == LIMIT == 7", "ungradable"),
        ("def f(x): return x is int", "assert f(int) is True", "correct"),
        ("def f(d): return {k: sorted(v) for k, v in d.items()}", "assert f({(1, 2): {3, 1}}) == {(1, 2): [1, 3]}", "correct"),
        ("def f(): return f()", "try:\n    f()\nexcept RecursionError:\n    pass", "correct"),
        ("def f():\n    while True: pass", "f()", "wrong"),
        ("raise ValueError('at once')", "assert f() == 1", "wrong"),
        ("def f(): return 1", "import random, math\nfor i in range(200):\n    assert f() == 1", "correct"),
    ],
)  # fmt: skip
def test_assert_scripts(judge: Judge, source: str, script: str, status: str) -> None:
    verdict = one(judge, source, AssertTest(script=script), Limits(seconds=3))
    assert verdict.status == status, verdict


def test_names_say_what_a_script_takes(judge: Judge) -> None:
    source = "def sum(a, b): return a * b\ndef abs(x): return 0"
    script = "assert abs(sum(2, 3) - 5) < 1"
    both, only_sum = AssertTest(script=script), AssertTest(script=script, names=("sum",))
    assert [v.status for v in judge.judge(Program(source=source), [both, only_sum], LIMITS)] == [
        "ungradable",
        "wrong",
    ]
    honest = Program(source="def sum(a, b): return a + b\ndef abs(x): return 9")
    assert [v.status for v in judge.judge(honest, [both, only_sum], LIMITS)] == ["ungradable", "correct"]


def test_a_failing_assert_is_quoted(judge: Judge) -> None:
    verdict = one(judge, "def f(): return 1", AssertTest(script="assert f() == 1\nassert f() == 2"))
    assert verdict.detail == "AssertionError at `assert f() == 2`"


# C++.

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")


@needs_compiler
def test_cpp_is_compiled_once_and_run_per_test(judge: Judge) -> None:
    source = (
        "#include <iostream>\nint main() { long long n; std::cin >> n; std::cout << n * n << std::endl; }"
    )
    tests = [StdinTest(input=str(n), output=str(n * n)) for n in (3, 10**9)] + [
        StdinTest(input="2", output="5")
    ]
    verdicts = judge.judge(Program(source=source, language="cpp"), tests, LIMITS)
    assert [verdict.status for verdict in verdicts] == ["correct", "correct", "wrong"]


@needs_compiler
@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("int main() { return x; }", "not declared"),
        ('#include "/etc/passwd"\nint main() {}', "No such file|Permission denied"),
        ("int main() { while (true); }", "time limit"),
        ("#include <cstdlib>\nint main() { abort(); }", "signal"),
        ("#include <vector>\nint main() { std::vector<long> x(1 << 30, 1); return x[5]; }", "memory limit"),
        ("#include <unistd.h>\nint main() { return fork() >= 0 ? 0 : 7; }", "exit 7"),
        (
            '#include <unistd.h>\nint main() { execl("/bin/sh", "sh", "-c", "exit 0", nullptr); return 7; }',
            "exit 7",
        ),
        ("#include <sys/socket.h>\nint main() { return socket(2, 1, 0) >= 0 ? 0 : 7; }", "exit 7"),
        ('#include <fcntl.h>\nint main() { return open("/etc/passwd", 0) >= 0 ? 0 : 7; }', "exit 7"),
    ],
)
def test_cpp_programs_are_confined_like_others(judge: Judge, source: str, detail: str) -> None:
    limits = Limits(seconds=1, memory_mb=256)
    (verdict,) = judge.judge(Program(source=source, language="cpp"), [StdinTest(input="", output="")], limits)
    assert verdict.status == "wrong"
    assert any(part in verdict.detail for part in detail.split("|")), verdict.detail


@needs_compiler
def test_cpp_recurses_deeply(judge: Judge) -> None:
    source = "#include <cstdio>\nint f(int n) { volatile char pad[64]; pad[0] = 1; return n ? f(n - 1) + pad[0] : 0; }\n"
    source += 'int main() { printf("%d", f(1000000)); }'
    (verdict,) = judge.judge(
        Program(source=source, language="cpp"), [StdinTest(input="", output="1000000")], LIMITS
    )
    assert verdict.status == "correct", verdict


@needs_compiler
def test_cpp_takes_only_stdin_tests(judge: Judge) -> None:
    with pytest.raises(ValueError, match="StdinTest"):
        judge.judge(Program(source="", language="cpp"), [CallTest(function="f")])


def test_a_missing_compiler_is_named(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match=r"g\+\+"):
        judge.judge(Program(source="", language="cpp"), [StdinTest(input="", output="")])


# The interface.


def test_no_tests_is_a_mistake(judge: Judge) -> None:
    with pytest.raises(ValueError, match="no tests"):
        judge.judge(Program(source=""), [])


def test_stopping_at_the_first_failure(judge: Judge) -> None:
    tests = [StdinTest(input=str(n), output=str(min(n, 2))) for n in range(6)]
    echo = Program(source="print(input())")
    assert [v.status for v in judge.judge(echo, tests)] == ["correct"] * 3 + ["wrong"] * 3
    assert [v.status for v in judge.judge(echo, tests, stop_at_first_failure=True)] == ["correct"] * 3 + [
        "wrong"
    ]
    broken = judge.judge(Program(source="("), tests, stop_at_first_failure=True)
    assert [v.status for v in broken] == ["wrong"]


def test_the_shared_judge() -> None:
    (verdict,) = judge_shared(Program(source="print(input())"), [StdinTest(input="x", output="x")])
    assert verdict.status == "correct"


def test_limits_and_languages_are_checked(judge: Judge) -> None:
    with pytest.raises(ValueError, match="limit seconds must be more than 0"):
        Limits(seconds=0)
    with pytest.raises(ValueError, match="use one of python, cpp"):
        judge.judge(Program(source="", language="rust"), [StdinTest(input="", output="")])  # type: ignore[arg-type]
