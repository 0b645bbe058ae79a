"""An object of the other process, as a test sees it: a value that stays what it was when it was first looked at.

A program must not pass by objects that answer what the test hopes for. So a test asks each question once, and
answers that follow from it are not asked for: an object that iterates over two items has length two, `x[1]` is the
second item, and it is true. A program whose `__len__` says five while `__iter__` gives nothing contradicts itself.

    r = f(3); len(r); r[0]; sorted(r)          one question: the list of its items

Equality and `in` are never asked for: two are equal when they are the same object there. What a function returned
has no methods, or `f(x).startswith("ab")` would be the program's own verdict. Instances that a test makes itself,
`Stack().push(1)`, have methods, and may change with every call; between two calls their answers must not contradict
each other.
"""

from __future__ import annotations

from collections.abc import Callable
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
    """claims_of([]) -> "__len__ __iter__ …", from which the other side makes a class of stand-ins."""
    members: dict[str, Any] = {}
    for base in reversed(type(value).__mro__):  # not by `getattr`, which finds what the type's own type has
        members |= {name: base.__dict__[name] for name in CLAIMS if name in base.__dict__}
    return " ".join(name for name, member in members.items() if member is not None)


class PeerChannel(Protocol):
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


class RemoteObject:
    """An object of the other process: what it was asked, and the answers.

    `has_methods` as above; `is_class` says that what a call of it returns has methods as well.
    """

    def __init__(self, peer: PeerChannel, number: int, claims: frozenset[str], has_methods: bool) -> None:
        self.peer, self.number, self.claims, self.has_methods = peer, number, claims, has_methods
        self.is_class = False
        self.answers: dict[tuple[str, ...], tuple[Any, Exception | None]] = {}
        self.changes = 0

    def get(self, name: str) -> Any:
        return self.answer(("get", name), lambda: self.get_now(name))

    def get_now(self, name: str) -> Any:
        question = {"do": "get", "of": self.number, "name": name}
        value = self.peer.ask(question, has_methods=self.has_methods)
        if isinstance(value, Remote) and not self.has_methods:
            error = AttributeError(f"{name} is no data; methods of what a function returned cannot be called")
            self.peer.admit(error, "get")
            raise error
        return value

    def set(self, name: str, value: Any) -> None:
        self.peer.ask({"do": "set", "of": self.number, "name": name, "to": self.peer.encode(value)})
        self.forget()

    def set_item(self, key: Any, value: Any) -> None:
        self.operate("setitem", object, self.peer.encode([key, value]))
        self.forget()

    def call(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return self.peer.call(self.number, arguments, keywords, has_methods=self.is_class)

    # Answers.

    def forget(self) -> None:
        """The test has changed it, or had it changed: what it is now is asked anew."""
        self.answers.clear()

    def answer(self, question: tuple[str, ...], ask: Callable[[], Any]) -> Any:
        """The first answer, also where that is an exception."""
        if self.has_methods and self.changes != self.peer.changes:
            self.forget()
            self.changes = self.peer.changes
        if question not in self.answers:
            try:
                self.answers[question] = ask(), None
            except Exception as error:
                self.answers[question] = None, error
        value, raised = self.answers[question]
        if raised is not None:
            self.peer.admit(raised, question[0])  # which may be expected at one place and not at another
            raise raised
        return value

    def ask_once(self, operation: str, kind: type, *operands: Any) -> Any:
        sent = self.peer.encode(list(operands))
        return self.answer((operation, sent), lambda: self.operate(operation, kind, sent))

    def operate(self, operation: str, kind: type, sent: str) -> Any:
        value = self.peer.ask({"do": "operate", "of": self.number, "by": operation, "with": sent})
        is_size = isinstance(value, int) and 0 <= value < 1 << 63
        if not isinstance(value, kind) or (kind is int and not is_size):
            self.peer.lost(f"the program answered {operation} with a {type(value).__name__}")
        return value

    # A container, of which everything follows from its items.

    def items(self) -> Any:
        """A list, or a dict where it has keys."""
        if "keys" in self.claims and "__getitem__" in self.claims:
            items = self.ask_once("dict", dict)
        elif self.has_methods and "__next__" in self.claims:  # reading an iterator changes it
            self.forget()
            return self.ask_once("list", list)
        else:
            items = self.ask_once("list", list)
        self.compare(items)
        return items

    def compare(self, items: Any) -> None:
        """An answer that was given before the items were known must be theirs."""
        none = self.peer.encode([])
        length, _ = self.answers.get(("len", none), (None, None))
        if length is not None and length != len(items):
            self.peer.lost(f"the program gave an object of length {length} that has {len(items)} items")
        if self.has_methods or isinstance(items, dict):
            return
        for (operation, sent), (value, _) in self.answers.items():
            key = self.peer.decode(sent)[0] if operation == "getitem" else None
            if type(key) is int and not self.is_at(items, key, value):
                self.peer.lost(f"the program gave an object that has another item at {key} than in its order")

    def is_at(self, items: list[Any], place: int, value: Any) -> bool:
        """Compares the encoded values, so that a NaN equals itself."""
        there = items[place : place + 1 or None]
        return bool(there) and self.peer.encode(there[0]) == self.peer.encode(value)

    def size(self) -> int:
        if not self.has_methods and "__iter__" in self.claims:
            return len(self.items())
        size: int = self.ask_once("len", int)
        for known in ("list", "dict"):
            items, _ = self.answers.get((known, self.peer.encode([])), (None, None))
            if items is not None:
                self.compare(items)
        return size

    def item(self, key: Any) -> Any:
        """A number or a slice is a place among the items, a key one of theirs; what else is no place is asked once.

        Of what has no order but its places, `x[0]` is asked: it may have other keys than places. And of objects
        that the test made, the method itself is.
        """
        is_read = any(operation == "list" for operation, _ in self.answers)
        if not self.has_methods and ("__iter__" in self.claims or isinstance(key, slice) or is_read):
            items = self.items()
            if isinstance(items, dict) or isinstance(key, int | slice):
                return items[key]
        return self.ask_once("getitem", object, key)

    def truth(self) -> bool:
        """As of any container, where it is one."""
        if "__len__" in self.claims and not (self.has_methods and "__bool__" in self.claims):
            return self.size() > 0
        return bool(self.ask_once("bool", bool))


OBJECT_KEY = "an object of the program"  # no attribute has such a name: all others are the object's own


class Remote:
    """The stand-in. `remote_class` adds what the types of such objects claim."""

    def __init__(self, remote: RemoteObject) -> None:
        self.__dict__[OBJECT_KEY] = remote

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return remote_object(self).get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        remote_object(self).set(name, value)

    def __str__(self) -> str:
        return str(remote_object(self).ask_once("str", str))

    def __repr__(self) -> str:
        return str(remote_object(self).ask_once("repr", str))


def remote_object(remote: Remote) -> RemoteObject:
    known: RemoteObject = remote.__dict__[OBJECT_KEY]
    return known


METHODS: dict[str, Callable[..., Any]] = {
    "__call__": lambda self, *arguments, **keywords: remote_object(self).call(arguments, keywords),
    "__len__": lambda self: remote_object(self).size(),
    "__iter__": lambda self: iter(remote_object(self).items()),
    "__getitem__": lambda self, key: remote_object(self).item(key),
    "__setitem__": lambda self, key, value: remote_object(self).set_item(key, value),
    "__bool__": lambda self: remote_object(self).truth(),
}
# Those of a returned object with keys: `dict(r)` and `r.items()` are answered from what it holds.
MAPPING_METHODS: dict[str, Callable[..., Any]] = {
    "keys": lambda self: remote_object(self).items().keys(),
    "values": lambda self: remote_object(self).items().values(),
    "items": lambda self: remote_object(self).items().items(),
    "get": lambda self, key, default=None: remote_object(self).items().get(key, default),
}


@cache
def remote_class(claims: frozenset[str], has_methods: bool) -> type[Remote]:
    """The class of stand-ins for objects whose types have these: `isinstance(r, Iterable)` is as there."""
    methods = {name: method for name, method in METHODS.items() if name in claims}
    if "__getitem__" in claims and "__iter__" not in claims:  # by places, as Python itself does
        methods["__iter__"] = METHODS["__iter__"]
    if "keys" in claims and not has_methods:
        methods |= MAPPING_METHODS
    return type("Remote", (Remote,), {**methods, "__hash__": object.__hash__})


def make_remote(peer: PeerChannel, number: int, has_methods: bool, claims: Any) -> Remote:
    """`claims` comes from the other side: unknown names are left out."""
    named = frozenset(claims.split() if isinstance(claims, str) else ()) & frozenset(CLAIMS)
    return remote_class(named, has_methods)(RemoteObject(peer, number, named, has_methods))
