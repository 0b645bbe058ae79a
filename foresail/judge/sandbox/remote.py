"""An object of the other process, as a test sees it: a value that stays what it was when it was first looked at.

What a program returns is to be judged, not to judge. So a test asks each question once, and what follows from an
answer is not asked: an object that iterates over two items has two, `x[1]` is the second of them, and it is true. A
program whose `__len__` says five and whose `__iter__` gives nothing has said something else than any list could.

    r = f(3); len(r); r[0]; sorted(r)          one question: the list of its items

Equality and `in` are never asked: two are equal when they are the same object there. And what a function returned
has no methods, or `f(x).startswith("ab")` would be the program's own verdict. Instances that a test makes itself,
`Stack().push(1)`, have them, and may change with every call; between two calls their answers must fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView
from functools import cache
from typing import Any, NoReturn, Protocol

# What a type may have that its stand-in has, too. With `keys` it is read as a dict is.
CLAIMS = ("__call__", "__len__", "__iter__", "__getitem__", "__setitem__", "__bool__", "__next__", "keys")

OPERATIONS: dict[str, Callable[..., Any]] = {
    "len": len,
    "bool": bool,
    "list": list,
    "dict": lambda value: {key: value[key] for key in value.keys()},  # noqa: SIM118 (no dict)
    "str": str,
    "repr": repr,
    "getitem": lambda value, key: value[key],
    "setitem": lambda value, key, to: value.__setitem__(key, to),
}


def claims_of(value: Any) -> str:
    """claims_of([]) -> "__len__ __iter__ …": the writer's word, of which the reader makes one class."""
    members: dict[str, Any] = {}
    for base in reversed(type(value).__mro__):  # not by `getattr`, which finds what the type's own type has
        members |= {name: base.__dict__[name] for name in CLAIMS if name in base.__dict__}
    return " ".join(name for name, member in members.items() if member is not None)


class Channel(Protocol):
    """What a stand-in needs of the `Peer` that met its object."""

    changes: int
    lost: Callable[[str], NoReturn]
    admit: Callable[[BaseException, str], None]

    def ask(self, request: dict[str, Any], has_methods: bool = False) -> Any: ...

    def call(
        self, number: int, arguments: tuple[Any, ...], keywords: dict[str, Any], has_methods: bool
    ) -> Any: ...

    def encode(self, value: Any) -> str: ...

    def decode(self, text: str, has_methods: bool = False) -> Any: ...


class Remote:
    """What all of them have; `remote_class` adds what their types claim."""

    _claims: frozenset[str] = frozenset()

    def __init__(self, peer: Channel, number: int, has_methods: bool) -> None:
        self.__dict__.update(_peer=peer, _number=number, _has_methods=has_methods, _is_class=False)
        self.__dict__.update(_answers={}, _changes=0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._answer(("get", name), lambda: self._get(name))

    def _get(self, name: str) -> Any:
        asked = {"do": "get", "of": self._number, "name": name}
        value = self._peer.ask(asked, has_methods=self._has_methods)
        if isinstance(value, Remote) and not self._has_methods:
            error = AttributeError(f"{name} is no data; methods of what a function returned cannot be called")
            self._peer.admit(error, "get")
            raise error
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        self._peer.ask({"do": "set", "of": self._number, "name": name, "to": self._peer.encode(value)})
        self._forget()

    def __str__(self) -> str:
        return str(self._ask_once("str", str))

    def __repr__(self) -> str:
        return str(self._ask_once("repr", str))

    # Answers.

    def _forget(self) -> None:
        """The test has changed it, or had it changed: what it is now is asked anew."""
        self._answers.clear()

    def _answer(self, question: tuple[str, ...], ask: Callable[[], Any]) -> Any:
        """The first answer, also where that is an exception."""
        if self._has_methods and self._changes != self._peer.changes:
            self._forget()
            self.__dict__["_changes"] = self._peer.changes
        if question not in self._answers:
            try:
                self._answers[question] = ask(), None
            except Exception as error:
                self._answers[question] = None, error
        value, raised = self._answers[question]
        if raised is not None:
            self._peer.admit(raised, question[0])  # which may be expected at one place and not at another
            raise raised
        return value

    def _ask_once(self, operation: str, kind: type, *operands: Any) -> Any:
        sent = self._peer.encode(list(operands))
        return self._answer((operation, sent), lambda: self._operate(operation, kind, sent))

    def _operate(self, operation: str, kind: type, sent: str) -> Any:
        value = self._peer.ask({"do": "operate", "of": self._number, "by": operation, "with": sent})
        is_size = isinstance(value, int) and 0 <= value < 1 << 63
        if not isinstance(value, kind) or (kind is int and not is_size):
            self._peer.lost(f"the program answered {operation} with a {type(value).__name__}")
        return value

    # A container, of which everything follows from its items.

    def _items(self) -> Any:
        """A list, or a dict where it has keys."""
        if "keys" in self._claims and "__getitem__" in self._claims:
            items = self._ask_once("dict", dict)
        elif self._has_methods and "__next__" in self._claims:  # whoever reads an iterator changes it
            self._forget()
            return self._ask_once("list", list)
        else:
            items = self._ask_once("list", list)
        self._compare(items)
        return items

    def _compare(self, items: Any) -> None:
        """An answer that was given before the items were known must be theirs."""
        none = self._peer.encode([])
        length, _ = self._answers.get(("len", none), (None, None))
        if length is not None and length != len(items):
            self._peer.lost(f"the program gave an object of length {length} that has {len(items)} items")
        if self._has_methods or isinstance(items, dict):
            return
        for (asked, sent), (value, _) in self._answers.items():
            key = self._peer.decode(sent)[0] if asked == "getitem" else None
            if type(key) is int and not self._is_at(items, key, value):
                self._peer.lost(
                    f"the program gave an object that has another item at {key} than in its order"
                )

    def _is_at(self, items: list[Any], place: int, value: Any) -> bool:
        """Compared as it is written: a NaN is itself."""
        there = items[place : place + 1 or None]
        return bool(there) and self._peer.encode(there[0]) == self._peer.encode(value)

    def _size(self) -> int:
        if self._is_value and "__iter__" in self._claims:
            return len(self._items())
        size: int = self._ask_once("len", int)
        for known in ("list", "dict"):
            items, _ = self._answers.get((known, self._peer.encode([])), (None, None))
            if items is not None:
                self._compare(items)
        return size

    @property
    def _is_read(self) -> bool:
        return any(asked == "list" for asked, _ in self._answers)

    @property
    def _is_value(self) -> bool:
        """What a function returned; of other objects the test asks for the methods themselves."""
        return not self._has_methods


def call(self: Remote, *arguments: Any, **keywords: Any) -> Any:
    return self._peer.call(self._number, arguments, keywords, has_methods=self._is_class)


def size(self: Remote) -> int:
    return self._size()


def iterate(self: Remote) -> Iterator[Any]:
    return iter(self._items())


def get_item(self: Remote, key: Any) -> Any:
    """A number or a slice is a place among the items, a key one of theirs; what else is no place is asked once.

    Of what has no order but its places, `x[0]` is asked: it may have other keys than places.
    """
    if self._is_value and ("__iter__" in self._claims or isinstance(key, slice) or self._is_read):
        items = self._items()
        if isinstance(items, dict) or isinstance(key, int | slice):
            return items[key]
    return self._ask_once("getitem", object, key)


def set_item(self: Remote, key: Any, value: Any) -> None:
    self._operate("setitem", object, self._peer.encode([key, value]))
    self._forget()


def is_true(self: Remote) -> bool:
    """As of any container, where it is one."""
    if "__len__" in self._claims and (self._is_value or "__bool__" not in self._claims):
        return self._size() > 0
    return bool(self._ask_once("bool", bool))


def get_keys(self: Remote) -> KeysView[Any]:
    keys: KeysView[Any] = self._items().keys()
    return keys


METHODS: dict[str, Callable[..., Any]] = {
    "__call__": call,
    "__len__": size,
    "__iter__": iterate,
    "__getitem__": get_item,
    "__setitem__": set_item,
    "__bool__": is_true,
}
# Those of a returned object with keys: `dict(r)` and `r.items()` are answered from what it holds.
OF_MAPPINGS: dict[str, Callable[..., Any]] = {
    "keys": get_keys,
    "values": lambda self: self._items().values(),
    "items": lambda self: self._items().items(),
    "get": lambda self, key, default=None: self._items().get(key, default),
}


@cache
def remote_class(claims: frozenset[str], has_methods: bool) -> type[Remote]:
    """The class of stand-ins for objects whose types have these: `isinstance(r, Iterable)` is as there."""
    methods = {name: method for name, method in METHODS.items() if name in claims}
    if "__getitem__" in claims and "__iter__" not in claims:  # by places, as Python itself does
        methods["__iter__"] = iterate
    if "keys" in claims and not has_methods:
        methods |= OF_MAPPINGS
    return type("Remote", (Remote,), {**methods, "_claims": claims, "__hash__": object.__hash__})


def make_remote(peer: Channel, number: int, has_methods: bool, claims: Any) -> Remote:
    """`claims` comes from the other side: names that nobody knows are left out."""
    named = claims.split() if isinstance(claims, str) else ()
    return remote_class(frozenset(named) & frozenset(CLAIMS), has_methods)(peer, number, has_methods)
