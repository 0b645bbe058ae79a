"""Two processes that call each other's functions with plain data: a test script and the program it tests.

`Peer.ask` sends a request and, until its reply comes, answers the other side's requests (a test may pass a lambda
to the program). A value without a plain form stays in its process and is sent as a number; see `Remote`.

The script's side trusts nothing that comes: a message that breaks the rules ends it, as `lost` does, rather than
raise what a test might catch.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from foresail.judge.sandbox.frames import MAX_FRAME_BYTES, read_exactly, write_frame
from foresail.judge.sandbox.remote import OPERATIONS, Remote, claims_of, make_remote, remote_object
from foresail.judge.wire import ValueDecoder, ValueEncoder, WireError, refuse_wildcard, set_fields

# A test that passes one of these to a program would let it reach into the test.
NOT_LENT = (
    "eval exec compile getattr setattr delattr vars globals locals open __import__ guarded_eval guarded_exec"
).split()


class Peer:
    """One end of the channel. The program's is open to all questions, the script's to calls of what it lent."""

    def __init__(
        self,
        channel: int,
        *,
        open_to_all: bool,
        namespace: dict[str, Any],
        lost: Callable[[str], NoReturn],
        admit: Callable[[BaseException, str], None] = lambda error, do: None,
        carry_back: Callable[[Any], bool] = lambda value: True,
    ) -> None:
        self.channel = channel
        self.open_to_all = open_to_all
        self.lost = lost  # called when the other side is dead or talks nonsense; does not return
        self.admit = admit  # returns only if an exception of the other side's may be raised here
        self.carry_back = carry_back  # whether a change of an argument is to be seen here
        self.namespace = namespace
        self.shared_classes: frozenset[str] = frozenset()  # those the other side can rebuild
        self.lent: list[Any] = []
        self.numbers: dict[int, int] = {}  # id of a lent object -> its number
        self.met: dict[tuple[int, bool], Remote] = {}
        self.num_asked = 0  # questions so far
        self.changes = 0  # of those, calls and assignments, after which an object may be another

    # What crosses.

    def encode(self, value: Any) -> str:
        return ValueEncoder(self.lend).encode(value)

    def decode(self, text: str, has_methods: bool = False) -> Any:
        decoder = ValueDecoder(self.classes(), lambda parts: self.meet(parts, has_methods))
        value = decoder.decode(text)
        if not self.open_to_all:
            for instance in decoder.instances:
                refuse_wildcard(instance)
        return value

    def classes(self) -> Mapping[str, type]:
        """Classes this side defined itself, whose instances travel by value: ListNode and the like."""
        return {
            name: kind
            for name, kind in self.namespace.items()
            if isinstance(kind, type) and kind.__module__ == self.namespace["__name__"]
        }

    def lend(self, value: Any) -> list[Any] | None:
        """The number of an object that stays here; None lets the encoder write its fields."""
        if isinstance(value, Remote):
            return ["remote", "yours", remote_object(value).number]
        by_value = not callable(value) and type(value).__name__ in self.shared_classes
        if by_value:
            return None
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.lent)
            self.lent.append(value)
        return ["remote", "mine", self.numbers[id(value)], claims_of(value)]

    def meet(self, parts: list[Any], has_methods: bool) -> Any:
        whose, number, *claims = parts if len(parts) in (2, 3) else (None, None)
        if type(number) is not int or number < 0:
            raise WireError("a remote object without a number")
        if whose == "mine":
            if (number, has_methods) not in self.met:  # what it claims at first, it stays
                self.met[number, has_methods] = make_remote(self, number, has_methods, *claims or ("",))
            return self.met[number, has_methods]
        if whose == "yours" and number < len(self.lent):
            return self.lent[number]
        raise WireError("a remote object of nobody")

    # Asking.

    def ask(self, request: dict[str, Any], has_methods: bool = False) -> Any:
        self.num_asked += 1
        self.changes += request["do"] in ("call", "set") or request.get("by") == "setitem"
        self.send(request)
        while True:
            message = self.receive()
            if "do" in message:
                self.send(self.answer(message))
            elif "raised" in message:
                error = rebuild_exception(message)
                self.admit(error, request["do"])
                raise error
            else:
                return self.decode_reply(message, has_methods)

    def decode_reply(self, message: dict[str, Any], has_methods: bool) -> Any:
        try:
            return self.decode(message["value"], has_methods)
        except Exception as error:  # whatever is wrong with it, a test must not catch it
            self.lost(f"the program returned what cannot be compared: {error}")

    def call(
        self, number: int, arguments: tuple[Any, ...], keywords: dict[str, Any], has_methods: bool
    ) -> Any:
        """Calls there, then writes back what the call did to lists, sets, dicts and nodes, if that is wanted."""
        sent_values = [*arguments, *keywords.values()]
        sent = {"do": "call", "of": number, "with": self.encode([list(arguments), keywords])}
        answer = self.ask(sent, has_methods)
        if type(answer) is not list or len(answer) != 2 or type(answer[1]) is not list:
            self.lost("the program answered a call with something else")
        value, after = answer
        if len(after) != len(sent_values):
            self.lost("the program answered a call with something else")
        for mine, theirs in zip(sent_values, after, strict=True):
            if isinstance(mine, Remote):
                if self.carry_back(mine):
                    remote_object(mine).forget()
            elif is_changed(mine, theirs) and self.carry_back(mine):
                self.write_back(mine, theirs)
        return value

    def write_back(self, mine: Any, theirs: Any) -> None:
        """`sort_in_place(numbers)` must change the script's own list."""
        if isinstance(mine, list | bytearray):
            mine[:] = theirs
        elif isinstance(mine, dict | set):
            mine.clear()
            mine.update(theirs)
        else:
            try:
                set_fields(mine, vars(theirs))
            except TypeError as error:
                self.lost(f"the program changed an argument: {error}")

    # Answering.

    def serve(self) -> None:
        """Answers until the other side closes the channel."""
        while True:
            self.send(self.answer(self.receive()))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"value": self.encode(self.carry_out(request))}
        except BaseException as error:
            return describe_exception(error)

    def carry_out(self, request: dict[str, Any]) -> Any:
        do = request["do"]
        if do == "call":
            arguments, keywords = self.decode(request["with"])
            called = self.lent[request["of"]]
            if not self.open_to_all and getattr(called, "__name__", "") in NOT_LENT:
                raise PermissionError(f"{called.__name__} is not called for others")
            value = called(*arguments, **keywords)
            return [value, [after_call(part) for part in [*arguments, *keywords.values()]]]
        if not self.open_to_all:
            raise PermissionError(f"{do} is not answered here")
        if do == "names":
            self.shared_classes = frozenset(request["classes"])
            lent = {name: [self.namespace[name]] for name in request["names"] if name in self.namespace}
            return [lent, list(self.classes())]
        target = self.lent[request["of"]]
        if do == "get":
            return getattr(target, request["name"])
        if do == "set":
            return setattr(target, request["name"], self.decode(request["to"]))
        return OPERATIONS[request["by"]](target, *self.decode(request["with"]))

    # Frames.

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message, separators=(",", ":")).encode()
        if len(body) > MAX_FRAME_BYTES:
            body = json.dumps({"raised": "MemoryError", "message": "a value too large to send"}).encode()
        try:
            write_frame(self.channel, body)
        except OSError:
            self.lost("the program ended during a call")

    def receive(self) -> dict[str, Any]:
        length = int.from_bytes(self.read(4), "big")
        if length > MAX_FRAME_BYTES:
            self.lost("the program sent a frame that is too long")
        try:
            message = json.loads(self.read(length))
        except (ValueError, RecursionError, MemoryError):
            self.lost("the program sent a frame that is not JSON")
        if not isinstance(message, dict):
            self.lost("the program sent a frame that is no message")
        return message

    def read(self, length: int) -> bytes:
        try:
            part = read_exactly(self.channel, length)
        except OSError:
            part = None
        if part is None:
            self.lost("the program ended during a call")
        return part


def after_call(value: Any) -> Any:
    """What a call may have changed, else None."""
    return value if isinstance(value, list | dict | set | bytearray) or hasattr(value, "__dict__") else None


def is_changed(mine: Any, theirs: Any) -> bool:
    """Whether an argument came back as another value; an object always counts as changed."""
    if type(mine) is not type(theirs) or mine is None or callable(mine):
        return False
    if isinstance(mine, list | dict | set | bytearray):
        try:
            return bool(mine != theirs)
        except Exception:  # nested too deeply, or with an `__eq__` of the script's
            return True
    return True


def describe_exception(error: BaseException) -> dict[str, Any]:
    """The nearest builtin type, since the other side knows no others."""
    name = next((kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"), "Exception")
    return {"raised": name, "message": str(error)[:500]}


def rebuild_exception(message: dict[str, Any]) -> BaseException:
    kind = getattr(builtins, str(message["raised"])[:100], None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        kind = Exception
    said = str(message.get("message", ""))[:500]
    try:
        return kind(said)
    except TypeError:  # UnicodeDecodeError and its like want five arguments
        return ValueError(said)
