# ruff: noqa: E501 - a script on one line reads better than one that is broken for its width
"""Forgeries of assert scripts, made by combining: what a program may do × how tests are written.

In every script `f(x)` should be `x + 1` (or, where lists are handed over, what the script says). `HONEST` programs
pass; of the others none may. Scripts are written the way test authors write them, careless ones included.
"""

from __future__ import annotations

CASES = "cases = [(1, 2), (2, 3), (5, 6)]\n"

# Raised when the test calls: each would end, skip or satisfy some idiom below if it came through.
RAISED = {
    "StopIteration": "raise StopIteration",
    "StopIteration with a value": "raise StopIteration(x + 1)",
    "StopIteration's child": "raise type('Stop', (StopIteration,), {})",
    "StopAsyncIteration": "raise StopAsyncIteration",
    "GeneratorExit": "raise GeneratorExit",
    "SystemExit": "raise SystemExit(0)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "a BaseException": "raise type('Odd', (BaseException,), {})",
    "AssertionError": "raise AssertionError",
    "IndexError": "raise IndexError",
    "KeyError": "raise KeyError(x)",
    "AttributeError": "raise AttributeError('ok')",
    "ValueError": "raise ValueError",
    "TypeError": "raise TypeError",
    "NotImplementedError": "raise NotImplementedError",
    "unittest.SkipTest": "import unittest; raise unittest.SkipTest('not now')",
    "on the second call only": "f.n = getattr(f, 'n', 0) + 1\n    if f.n > 1: raise StopIteration\n    return 0",
    "an empty iterator": "return iter(())",
    "a generator that raises": "yield from map(next, [iter(())])",
    "nothing": "return None",
}

# How tests look through their cases. An honest program passes them all.
IDIOMS = {
    "all of a map": "assert all(map(lambda c: f(c[0]) == c[1], cases))",
    "no difference in a map": "assert not any(map(lambda c: f(c[0]) != c[1], cases))",
    "all of a generator": "assert all(f(a) == b for a, b in cases)",
    "all of a list": "assert all([f(a) == b for a, b in cases])",
    "filter": "assert not list(filter(lambda c: f(c[0]) != c[1], cases))",
    "sum of a map": "assert sum(map(lambda c: f(c[0]) != c[1], cases)) == 0",
    "max with a default": "assert not max(map(lambda c: f(c[0]) != c[1], cases), default=False)",
    "first difference": "assert next(filter(lambda c: f(c[0]) != c[1], cases), None) is None",
    "a set of results": "assert set(map(lambda c: f(c[0]) == c[1], cases)) <= {True}",
    "zip of a map": "for got, (_, want) in zip(map(lambda c: f(c[0]), cases), cases): assert got == want",
    "starmap": "from itertools import starmap\nassert all(starmap(lambda a, b: f(a) == b, cases))",
    "takewhile": "from itertools import takewhile\nassert all(ok for ok in takewhile(lambda _: True, map(lambda c: f(c[0]) == c[1], cases)))",
    "iter with a sentinel": "left = list(cases)\ndef step():\n    if not left: return None\n    a, b = left.pop()\n    return f(a) == b\nassert all(iter(step, None))",
    "a while over next": "it = iter(cases)\nwhile True:\n    try:\n        a, b = next(it)\n        assert f(a) == b\n    except StopIteration:\n        break",
    "places until there are none": "i = 0\nwhile True:\n    try:\n        a, b = cases[i]\n        assert f(a) == b\n        i += 1\n    except IndexError:\n        break",
    "keys until there are none": "table, i = dict(enumerate(cases)), 0\ntry:\n    while True:\n        assert f(table[i][0]) == table[i][1]\n        i += 1\nexcept KeyError:\n    pass",
    "except and go on": "for a, b in cases:\n    try:\n        got = f(a)\n    except Exception:\n        continue\n    assert got == b",
    "except and return": "def check(g):\n    try:\n        g(1)\n    except Exception:\n        return\n    assert g(1) == 2\ncheck(f)",
    "except and pass": "for a, b in cases:\n    try:\n        assert f(a) == b\n    except AssertionError:\n        raise\n    except Exception:\n        pass",
    "bare except": "bad = 0\nfor a, b in cases:\n    try:\n        bad += f(a) != b\n    except:\n        pass\nassert bad == 0",
    "else": "for a, b in cases:\n    try:\n        f(a)\n    except Exception:\n        pass\n    else:\n        assert f(a) == b",
    "collected results": "results = []\nfor a, b in cases:\n    try:\n        results.append(f(a) == b)\n    except Exception:\n        pass\nassert all(results)",
    "suppress": "from contextlib import suppress\nfor a, b in cases:\n    with suppress(ValueError, TypeError, IndexError, KeyError, AttributeError, StopIteration):\n        got = f(a)\n        if got != b: raise SystemExit(1)",
    "a context that swallows": "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, kind, *_): return kind is not AssertionError\nwith Quiet():\n    for a, b in cases: assert f(a) == b",
    "finally and return": "def check():\n    try:\n        for a, b in cases: assert f(a) == b\n    except AssertionError:\n        return False\n    except BaseException:\n        pass\n    return True\nassert check()",
    "exit with the outcome": "import sys\ntry:\n    ok = f(1) == 2\n    sys.exit(0 if ok else 1)\nexcept (ValueError, IndexError, KeyError, TypeError, AttributeError, NotImplementedError):\n    pass",
    "__getitem__": "class Rows:\n    def __getitem__(self, i): return f(cases[i][0]) == cases[i][1]\nassert all(Rows())",
    "__next__": "class Rows:\n    def __init__(self): self.it = iter(cases)\n    def __iter__(self): return self\n    def __next__(self):\n        a, b = next(self.it)\n        return f(a) == b\nassert all(Rows())",
    "a property with a default": "class Case:\n    @property\n    def ok(self): return f(1) == 2\nassert getattr(Case(), 'ok', True)",
    "__missing__": "class Table(dict):\n    def __missing__(self, k): return f(k)\nassert Table()[1] == 2",
    "a generator function": "def results():\n    for a, b in cases: yield f(a) == b\nassert all(results())",
    "send": "def results():\n    got = yield\n    while True: got = yield f(got)\ng = results(); next(g)\nassert [g.send(a) for a, _ in cases] == [b for _, b in cases]",
    "threads": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(1) as pool:\n    assert all(got == b for got, (_, b) in zip(pool.map(lambda c: f(c[0]), cases), cases))",
    "asyncio": "import asyncio\nasync def one(a): return f(a)\nasync def main():\n    got = await asyncio.gather(*(one(a) for a, _ in cases), return_exceptions=True)\n    assert all(isinstance(g, BaseException) or g == b for g, (_, b) in zip(got, cases))\nasyncio.run(main())",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        for a, b in cases:\n            with self.subTest(a): self.assertEqual(f(a), b)\nunittest.main(argv=['t'], exit=True)",
    "a sorting key": "assert [c for c in cases if f(c[0]) != c[1]] == [] and sorted(cases, key=lambda c: f(c[0])) == cases",
    "a runner": "def run(test):\n    try:\n        test()\n    except AssertionError:\n        raise\n    except Exception:\n        pass\ndef one():\n    assert f(1) == 2\ndef two():\n    f(2)\n    assert f(2) == 3\nrun(one)\nrun(two)",
    "a decorator": "def case(test):\n    try: test()\n    except (ValueError, TypeError, KeyError, IndexError, AttributeError): return False\n    return True\n@case\ndef passed(): assert f(1) == 2\nassert f(1) == 2 or not passed",
    "reduce": "from functools import reduce\nassert reduce(lambda ok, c: ok and f(c[0]) == c[1], cases, True)",
    "next of the value": "assert all(map(lambda c: [f(c[0])] == [c[1]] and next(iter([f(c[0])])) == c[1], cases))",
    "no difference is greater": "assert all(map(lambda c: abs(f(c[0]) - c[1]) < 1e-9, cases))",
}

HONEST = "def f(x): return x + 1\n"


def raising(action: str) -> str:
    return f"def f(x):\n    {action}\n"


# Programs that bring what the test should have. `f` itself is wrong.
SHADOWS = """
class _Yes:
    def __call__(self, *a, **k): return True
    def __getattr__(self, name): return _Yes()
    def __eq__(self, other): return True
    def __bool__(self): return True
    def __abs__(self): return 0
    def __sub__(self, other): return 0
    def __float__(self): return 0.0
    def __lt__(self, other): return True
    def __contains__(self, other): return True
    def __iter__(self): return iter(())
    def __len__(self): return 0
"""
NEEDED = {
    "np": "assert np.allclose(f(1), 2)",
    "numpy": "assert numpy.isclose(f(1), 2)",
    "pd": "assert pd.Series([f(1)]).equals(pd.Series([2]))",
    "torch": "assert torch.equal(f(1), 2)",
    "is_same_list": "assert is_same_list(f(1), 2)",
    "is_same_tree": "def check(candidate):\n    assert is_same_tree(candidate(1), 2)\ncheck(f)",
    "approx": "assert f(1) == approx(2)",
    "pytest": "assert f(1) == pytest.approx(2)",
    "poly": "assert abs(poly([1, 2], f(1))) < 1e-4",
    "check": "check(f)",
    "EPS": "assert abs(f(1) - 2) < EPS",
    "expected": "assert f(1) == expected",
    "cases": "for a, b in cases: assert f(a) == b",
    "answer": "assert f(1) == answer(1)",
    "reference": "assert f(1) == reference.solve(1)",
    "Node": "assert f(1) == Node(2)",
    "helpers": "assert helpers.equal(f(1), 2)",
    "assert_equal": "assert_equal(f(1), 2)",
    "is_same": "assert is_same(accumulate([1]), [1])",
    "unittest_": "unittest_.TestCase().assertEqual(f(1), 2)",
}
# The same where the real thing is at hand: the program's must not be taken, and an honest `f` passes.
REAL = {
    "Counter": "assert Counter([f(1)]) == Counter([2])",
    "math": "assert math.isclose(f(1), 2)",
    "isclose": "assert isclose(f(1), 2)",
    "deepcopy": "assert deepcopy([f(1)]) == [2]",
    "abs": "assert abs(f(1) - 2) < 1e-9",
    "all": "assert all([f(1) == 2])",
    "sorted": "assert sorted([f(1)]) == [2]",
    "isinstance": "assert isinstance(f(1), int) and f(1) == 2",
    "Fraction": "assert Fraction(f(1)) == Fraction(2)",
    "operator": "assert operator.eq(f(1), 2)",
    "unittest": "unittest.TestCase().assertEqual(f(1), 2)",
    "len": "assert len(range(f(1))) == 2",
    "next": "assert next(iter([f(1)])) == 2",
    "Remote": "Remote = int\nassert f(1) == 2",
}


def shadowing(name: str) -> str:
    return f"{SHADOWS}\n{name} = _Yes()\ndef f(x): return 0\n"


# What a program may do to the list it is given before it answers: (what it does, what it returns).
CHANGES = {
    "empties it": ("xs.clear()", "[]"),
    "empties it and says 0": ("xs.clear()", "0"),
    "empties it and says None": ("xs.clear()", "None"),
    "makes it one": ("xs[:] = [1]", "[1]"),
    "makes it one and says 1": ("xs[:] = [1]", "1"),
    "makes all equal": ("xs[:] = [0] * len(xs)", "[0] * 3"),
    "empties it and says True": ("xs.clear()", "True"),
    "empties it and says 0.0": ("xs.clear()", "0.0"),
}
# Tests that measure `f` by the very list they handed over; `f` should sort, sum, or count.
MEASURED = {
    "sorted": ("xs = [3, 1, 2]\nassert f(xs) == sorted(xs)", "return sorted(xs)"),
    "sorted, in two lines": ("xs = [3, 1, 2]\ngot = f(xs)\nassert got == sorted(xs)", "return sorted(xs)"),
    "sorted, by a name": (
        "xs = [3, 1, 2]\ngot = f(xs)\nwant = sorted(xs)\nassert got == want",
        "return sorted(xs)",
    ),
    "sorted, after another call": ("xs = [3, 1, 2]\nf(xs)\nassert f(xs) == sorted(xs)", "return sorted(xs)"),
    "sorted, in a loop": (
        "for xs in ([3, 1, 2], [2, 1]):\n    assert f(xs) == sorted(xs)",
        "return sorted(xs)",
    ),
    "sorted, in a list": (
        "assert all([f(xs) == sorted(xs) for xs in ([3, 1, 2], [2, 1])])",
        "return sorted(xs)",
    ),
    "sorted, by a lambda": (
        "assert all(map(lambda xs: f(xs) == sorted(xs), [[3, 1, 2], [2, 1]]))",
        "return sorted(xs)",
    ),
    "sorted, in a helper": (
        "def run(ys):\n    return f(ys)\nxs = [3, 1, 2]\nassert run(xs) == sorted(xs)",
        "return sorted(xs)",
    ),
    "sorted, by a harness": (
        "class Harness:\n    def run(self, ys):\n        f(ys)\n        return f(ys)\nxs = [3, 1, 2]\nassert Harness().run(xs) == sorted(xs)",
        "return sorted(xs)",
    ),
    "sorted, in a dict": (
        "case = {'xs': [3, 1, 2]}\nassert f(case['xs']) == sorted(case['xs'])",
        "return sorted(xs)",
    ),
    "sorted, by assertEqual": (
        "import unittest\nxs = [3, 1, 2]\nunittest.TestCase().assertEqual(f(xs), sorted(xs))",
        "return sorted(xs)",
    ),
    "sorted, by check": (
        "def check(candidate):\n    xs = [3, 1, 2]\n    got = candidate(xs)\n    assert got == sorted(xs)\ncheck(f)",
        "return sorted(xs)",
    ),
    "all in it": (
        "xs = [3, 1, 2]\ngot = f(xs)\nassert all(x in got for x in xs) and len(got) == len(xs)",
        "return sorted(xs)",
    ),
    "sum": ("xs = [3, 1, 2]\nassert f(xs) == sum(xs)", "return sum(xs)"),
    "nearly the sum": ("xs = [3.5, 1, 2]\nassert abs(f(xs) - sum(xs)) < 1e-9", "return sum(xs)"),
    "isclose": ("import math\nxs = [3.5, 1, 2]\nassert math.isclose(f(xs), sum(xs))", "return sum(xs)"),
    "count": ("xs = [3, 1, 2]\ngot = f(xs)\nassert got == len(xs)", "return len(xs)"),
    "the largest or none": ("xs = [3, 1, 2]\nassert f(xs) == (max(xs) if xs else None)", "return max(xs)"),
    "if there are any": ("xs = [3, 1, 2]\ngot = f(xs)\nif xs:\n    assert got == max(xs)", "return max(xs)"),
    "for each of them": (
        "xs = [3, 1, 2]\ngot = f(xs)\nfor i in range(len(xs)):\n    assert got[i] == i + 1",
        "return sorted(xs)",
    ),
    "or there are none": ("xs = [3, 1, 2]\ngot = f(xs)\nassert got == 3 or not xs", "return max(xs)"),
    "a function of both": (
        "def same(a, b): return a == b\nxs = [3, 1, 2]\nassert same(f(xs), sorted(xs))",
        "return sorted(xs)",
    ),
    "zipped": (
        "xs = [3, 1, 2]\ngot = f(xs)\nassert len(got) == len(xs) and all(a == b for a, b in zip(got, sorted(xs)))",
        "return sorted(xs)",
    ),
}


def changing(name: str) -> str:
    action, returned = CHANGES[name]
    return f"def f(xs):\n    {action}\n    return {returned}\n"


# Tests of functions that work in place: (script, an honest body, a wrong one).
IN_PLACE = {
    "a statement": ("xs = [0, 1]\nf(xs)\nassert xs == [1, 0]", "xs.reverse()", "pass"),
    "None is checked": ("xs = [0, 1]\nassert f(xs) is None\nassert xs == [1, 0]", "xs.reverse()", "pass"),
    "a count and a part": (
        "xs = [1, 1, 2]\nk = f(xs)\nassert k == 2 and xs[:k] == [1, 2]",
        "xs[:] = [1, 2]; return 2",
        "return 2",
    ),
    "in a loop": (
        "for xs, want, n in [([1, 1], [1], 1), ([1, 1, 2], [1, 2], 2)]:\n    k = f(xs)\n    assert k == n\n    assert xs[:k] == want",
        "xs[:] = sorted(set(xs)); return len(xs)",
        "return len(set(xs))",
    ),
    "element by element": (
        "want = [1, 2]\nxs = [1, 1, 2]\nk = f(xs)\nassert k == len(want)\nfor i in range(k):\n    assert xs[i] == want[i]",
        "xs[:] = [1, 2]; return 2",
        "return 2",
    ),
    "by a copy": ("xs = [3, 1, 2]\nwant = sorted(xs)\nf(xs)\nassert xs == want", "xs.sort()", "xs.clear()"),
    "check": (
        "def check(candidate):\n    xs = [0, 1]\n    candidate(xs)\n    assert xs == [1, 0]\ncheck(f)",
        "xs.reverse()",
        "xs.clear()",
    ),
    "a helper": (
        "def run(xs):\n    f(xs)\n    return xs\nassert run([0, 1]) == [1, 0]",
        "xs.reverse()",
        "pass",
    ),
    "unittest": (
        "import unittest\nclass T(unittest.TestCase):\n    def setUp(self): self.xs = [0, 1]\n    def test(self):\n        f(self.xs)\n        self.assertEqual(self.xs, [1, 0])\nunittest.main(argv=['t'])",
        "xs.reverse()",
        "pass",
    ),
    "must not change": (
        "xs = [3, 1, 2]\ngot = f(xs)\nassert got == [1, 2, 3]\nassert xs == [3, 1, 2]",
        "return sorted(xs)",
        "xs.sort(); return xs",
    ),
    "either way": (
        "xs = [0, 1]\nout = f(xs)\nout = xs if out is None else out\nassert out == [1, 0]",
        "xs.reverse()",
        "pass",
    ),
    "a dict": ("d = {}\nf(d)\nassert d == {'a': 1}", "xs['a'] = 1", "pass"),
    "a table": (
        "grid = [[1, 2], [3, 4]]\nf(grid)\nassert grid == [[3, 1], [4, 2]]",
        "xs[:] = [list(r) for r in zip(*xs[::-1])]",
        "pass",
    ),
}

# Exceptions that a test does expect: (script, an honest body, a wrong one).
EXPECTED = {
    "must raise": (
        "try:\n    f(-1)\n    assert False, 'no error'\nexcept ValueError:\n    pass\nassert f(1) == 2",
        "if x < 0: raise ValueError\n    return x + 1",
        "raise ValueError",
    ),
    "else": (
        "try:\n    f(-1)\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError\nassert f(1) == 2",
        "if x < 0: raise ValueError\n    return x + 1",
        "return x + 1",
    ),
    "a flag": (
        "raised = False\ntry:\n    f(-1)\nexcept ValueError:\n    raised = True\nassert raised and f(1) == 2",
        "if x < 0: raise ValueError\n    return x + 1",
        "return x + 1",
    ),
    "a value in its place": (
        "try:\n    got = f(-1)\nexcept ValueError as e:\n    got = str(e)\nassert got == 'negative'\nassert f(1) == 2",
        "if x < 0: raise ValueError('negative')\n    return x + 1",
        "raise ValueError('negative')",
    ),
    "assertRaises": (
        "import unittest\nt = unittest.TestCase()\nt.assertRaises(ValueError, f, -1)\nassert f(1) == 2",
        "if x < 0: raise ValueError\n    return x + 1",
        "raise ValueError",
    ),
    "with assertRaises": (
        "import unittest\nwith unittest.TestCase().assertRaises(ValueError):\n    f(-1)\nassert f(1) == 2",
        "if x < 0: raise ValueError\n    return x + 1",
        "return x + 1",
    ),
    "a TestCase": (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        with self.assertRaises(ValueError): f(-1)\n        self.assertEqual(f(1), 2)\nunittest.main(argv=['t'])",
        "if x < 0: raise ValueError\n    return x + 1",
        "raise ValueError",
    ),
    "a helper": (
        "def raises(kind, action):\n    try:\n        action()\n    except kind:\n        return True\n    return False\nassert raises(ValueError, lambda: f(-1)) and f(1) == 2",
        "if x < 0: raise ValueError\n    return x + 1",
        "return x + 1",
    ),
    "a kind above it": (
        "try:\n    f(-1)\n    raise SystemExit(1)\nexcept LookupError:\n    pass\nassert f(1) == 2",
        "if x < 0: raise KeyError\n    return x + 1",
        "raise ValueError",
    ),
    "in a loop": (
        "for bad in (-1, -2):\n    try:\n        f(bad)\n    except ValueError:\n        continue\n    raise AssertionError(bad)\nassert f(1) == 2",
        "if x < 0: raise ValueError\n    return x + 1",
        "return x + 1",
    ),
    "the end of an iterator": (
        "g = f(2)\nassert next(g) == 0 and next(g) == 1\ntry:\n    next(g)\n    assert False\nexcept StopIteration:\n    pass",
        "yield from range(x)",
        "yield from range(x + 1)",
    ),
    "a missing attribute": (
        "g = f\nassert not hasattr(g, 'nothing') and getattr(g, 'nothing', 7) == 7 and g(1) == 2",
        "return x + 1",
        "return x",
    ),
}
