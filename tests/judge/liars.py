# ruff: noqa: E501 - a script on one line reads better than one that is broken for its width
"""Objects that say one thing by one method and another by the next, made by combining; and tests that look at them.

`f(n)` should be [0, 1, …, n - 1], `g(n)` the dict {0: 0, …, n - 1: n - 1}; the tests are such that among plain values
only the right one passes.
"""

from __future__ import annotations

import random

# What a method may say in the place of the truth; `self.n` is how many items there should be, `self.k` how often
# anything was asked.
LIES: dict[str, list[str]] = {
    "__len__": [
        "return self.n",
        "return self.n + 1",
        "return 0",
        "self.k += 1; return self.n * (self.k % 2)",
    ],
    "__bool__": ["return True", "return False", "self.k += 1; return self.k % 2 == 0"],
    "__getitem__": [
        "return list(range(self.n))[key]",
        "return key",
        "return list(range(self.n))[key] if self.n else None",
        "self.k += 1; return list(range(self.n))[key]",
    ],
    "__contains__": ["return True", "return key in range(self.n)", "return False"],
    "__eq__": ["return True", "return key == list(range(self.n))"],
    "__ne__": ["return False"],
    "__lt__": ["return True"],
    "__le__": ["return True"],
    "__gt__": ["return False"],
    "__hash__": ["return hash(tuple(range(self.n)))"],
    "__str__": ["return str(list(range(self.n)))"],
    "__repr__": ["return repr(list(range(self.n)))"],
    "__reversed__": ["return iter(range(self.n)[::-1])"],
    "__next__": ["self.k += 1\n        if self.k > self.n: raise StopIteration\n        return self.k - 1"],
    "__length_hint__": ["return self.n"],
    "__call__": ["return self"],
    "__instancecheck__": ["return True"],
    "__add__": ["return list(range(self.n))"],
    "__getattr__": ["return 0 if key == 'x' else (lambda *a: list(range(self.n)))"],
    "keys": ["return range(self.n + 1)", "return ()", "self.k += 1; return range(self.n * (self.k > 1))"],
    "items": ["return ((i, i) for i in range(self.n))"],
    "index": ["return key"],
    "count": ["return 1"],
    "sort": ["return None"],
    "tolist": ["return list(range(self.n))"],
    "__array__": ["return list(range(self.n))"],
}
TAKES_KEY = "__getitem__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __add__ __getattr__ __instancecheck__ index count".split()
# Never the right items at first.
ITEMS = [
    "return iter(())",
    "return iter([None] * self.n)",
    "return iter(range(self.n + 1))",
    "return iter(range(1, self.n + 1))",
    "self.k += 1; return iter(range(self.n if self.k > 2 else 0))",
    "self.k += 1; return iter(range(self.n) if self.k % 2 == 0 else ())",
    "return iter([object() for _ in range(self.n)])",
    "return self",
]
CLASSES = ["list", "tuple", "dict", "str", "set", "float", "int"]


def make_liar(numbers: random.Random) -> str:
    """A program whose `f` and `g` return an instance of a class with some of these lies."""
    names = numbers.sample([*LIES], numbers.randint(0, 8))
    names += [
        name
        for name in ("__len__", "__getitem__", "__bool__")
        if name not in names and numbers.random() < 0.6
    ]
    body = ["    def __init__(self, n): self.n, self.k = n, 0"]
    body += [f"    def __iter__(self): {numbers.choice(ITEMS)}"]
    for name in names:
        key = ", key=0" if name in TAKES_KEY else ""
        said = (
            LIES[name][0] if numbers.random() < 0.6 else numbers.choice(LIES[name])
        )  # the first: as it should be
        body.append(f"    def {name}(self{key}, *rest): {said}")
    if numbers.random() < 0.3:
        body.append(f"    __class__ = property(lambda self: {numbers.choice(CLASSES)})")
    if "__next__" not in names:
        body = [
            line.replace("return self", "return iter([])") if line.endswith("): return self") else line
            for line in body
        ]
    if "__eq__" in names and "__hash__" not in names:
        body.append("    __hash__ = object.__hash__")
    return "\n".join(["class Liar:", *body, "def f(n): return Liar(n)", "g = f", ""])


# One name is the program's: `f` in these.
LISTS = {
    "equal": "assert f(4) == [0, 1, 2, 3]",
    "equal as a list": "assert list(f(4)) == [0, 1, 2, 3]",
    "not different": "assert not list(f(4)) != [0, 1, 2, 3]",
    "length and zip": "r = f(4)\nassert len(r) == 4\nfor a, b in zip(r, [0, 1, 2, 3]): assert a == b",
    "zip, then length": "r = f(4)\nfor a, b in zip(r, [0, 1, 2, 3]): assert a == b\nassert len(r) == 4",
    "length and places": "r = f(4)\nassert len(r) == 4\nassert all(r[i] == i for i in range(4))",
    "all of it": "r = f(4)\nassert len(r) == 4 and all(x in [0, 1, 2, 3] for x in r) and all(i in r for i in range(4))",
    "length and sorted": "r = f(4)\nassert len(r) == 4\nassert sorted(r) == [0, 1, 2, 3]\nassert all(r[i] <= r[i + 1] for i in range(len(r) - 1))",
    "sum and set": "r = f(4)\nassert len(r) == len(set(r)) == 4 and sum(r) == 6 and max(r) == 3 and min(r) == 0 and r[0] == 0 and r[1] == 1",
    "first, last and length": "r = f(2)\nassert r[0] == 0 and r[-1] == 1 and len(r) == 2",
    "slices": "r = f(4)\nassert list(r[:2]) == [0, 1] and list(r[2:]) == [2, 3]",
    "unpacked": "a, b, c = f(3)\nassert (a, b, c) == (0, 1, 2)",
    "unpacked in a call": "assert [*f(3)] == [0, 1, 2]",
    "while it is true": "r = f(3)\nassert r\nassert [x for x in r] == [0, 1, 2]",
    "truth and loop": "r = f(3)\nif not r: raise SystemExit(1)\nn = 0\nfor i, x in enumerate(r):\n    assert x == i\n    n += 1\nassert n == 3",
    "loop over places": "r = f(4)\nassert len(r) == 4\nfor i in range(len(r)): assert r[i] == i",
    "json": "import json\nassert json.loads(json.dumps(list(f(3)))) == [0, 1, 2]",
    "joined": "assert ' '.join(map(str, f(3))) == '0 1 2'",
    "tuple": "assert tuple(f(3)) == (0, 1, 2)",
    "reversed": "assert list(reversed(f(3))) == [2, 1, 0]",
    "counter": "from collections import Counter\nr = f(3)\nassert Counter(r) == Counter([0, 1, 2]) and list(r) == sorted(r)",
    "any difference": "r = f(4)\nassert len(r) == 4 and not any(a != b for a, b in zip(r, range(4)))",
    "twice": "r = f(3)\nassert list(r) == list(r) == [0, 1, 2]",
    "unittest": "import unittest\nc = unittest.TestCase()\nr = f(3)\nc.assertEqual(len(r), 3)\nc.assertListEqual(list(r), [0, 1, 2])\nfor i in range(3): c.assertIn(i, r)",
    "nothing is nothing": "assert len(f(0)) == 0 and list(f(0)) == [] and len(f(2)) == 2 and list(f(2)) == [0, 1]",
}
DICTS = {
    "dict": "assert dict(f(3)) == {0: 0, 1: 1, 2: 2}",
    "keys and length": "r = f(3)\nassert len(r) == 3 and all(r[i] == i for i in range(3)) and set(r) == {0, 1, 2}",
    "items": "r = f(3)\nassert len(r) == 3\nfor k, v in r.items(): assert k == v\nassert sorted(r.keys()) == [0, 1, 2]",
    "get": "r = f(3)\nassert [r.get(i) for i in range(4)] == [0, 1, 2, None] and len(r) == 3",
}

# Containers of one's own that are what they say.
HONEST = {
    "class": "class Row:\n    def __init__(self, n): self.x = list(range(n))\n    def __len__(self): return len(self.x)\n    def __iter__(self): return iter(self.x)\n    def __getitem__(self, i): return self.x[i]\ndef f(n): return Row(n)",
    "places only": "class Row:\n    def __init__(self, n): self.x = list(range(n))\n    def __len__(self): return len(self.x)\n    def __getitem__(self, i): return self.x[i]\ndef f(n): return Row(n)",
    "Sequence": "from collections.abc import Sequence\nclass Row(Sequence):\n    def __init__(self, n): self.x = list(range(n))\n    def __len__(self): return len(self.x)\n    def __getitem__(self, i): return self.x[i]\ndef f(n): return Row(n)",
    "UserList": "from collections import UserList\ndef f(n): return UserList(range(n))",
    "child of list": "class Row(list):\n    pass\ndef f(n): return Row(range(n))",
}
HONEST_DICTS = {
    "UserDict": "from collections import UserDict\ndef f(n): return UserDict({i: i for i in range(n)})",
    "Mapping": "from collections.abc import Mapping\nclass Row(Mapping):\n    def __init__(self, n): self.x = {i: i for i in range(n)}\n    def __len__(self): return len(self.x)\n    def __iter__(self): return iter(self.x)\n    def __getitem__(self, i): return self.x[i]\ndef f(n): return Row(n)",
    "child of dict": "class Row(dict):\n    pass\ndef f(n): return Row({i: i for i in range(n)})",
}
