r"""Whether two answers surely differ, told without any code of the verifier, so that an attack knows what is wrong.

    surely_differ(r"\frac{1}{2}", r"\frac{1}{3}") -> True
    surely_differ("(x+1)^2", "x^2+2x+1") -> False, as for whatever cannot be read or told apart beyond doubt

Values are worked out with 60 digits at points of several sizes and signs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from attack_reading import Answer, Unread, understood
from mpmath import inf, isfinite, mp, mpc, mpf, pi  # type: ignore[import-untyped]

DIGITS = 60
APART = mpf(10) ** -9  # relative; nothing in the data that differs differs by less
TOO_LARGE = 10_000  # exponents beyond it are not worked out

_SCALES = (("3", "5", "7"), ("0.37", "1.61", "0.83"), ("-4.3", "-2.7", "-9.1"), ("23", "41", "17"),
           ("-310.7", "-157.3", "911.1"), ("12345.6", "-54321.7", "7777.7"))  # fmt: skip


def surely_differ(one: str, other: str) -> bool:
    """Whether both can be read and mean different things beyond doubt."""
    if any((sign in one) != (sign in other) for sign in ("circ", "%")):  # 90 and 90°, 28 and 28 % may pass
        return False
    first, second = understood(one), understood(other)
    return first is not None and second is not None and _differ(first, second)


# Values.


def _value(tree: tuple[Any, ...], point: dict[str, Any]) -> Any:
    head, *args = tree
    if head == "number":
        return mpf(args[0])
    if head == "letter":
        return point[args[0]]
    if head in ("pi", "e", "i", "infinity", "-infinity"):
        return {"pi": +pi, "e": mp.e + 0, "i": mpc(0, 1), "infinity": inf, "-infinity": -inf}[head]
    values = [_value(arg, point) for arg in args]
    if head == "^":
        if abs(values[1]) > TOO_LARGE:
            raise Unread
        return values[0] ** values[1]
    if head == "root":
        return mp.root(values[0], int(values[1])) if values[0] >= 0 else mp.sqrt(values[0])
    if head == "!":
        if not mp.isint(values[0]) or abs(values[0]) > TOO_LARGE:
            raise Unread
        return mp.factorial(values[0])
    plain = {"+": sum, "neg": lambda v: -v[0], "*": lambda v: v[0] * v[1], "/": lambda v: v[0] / v[1],
             "abs": lambda v: abs(v[0])}  # fmt: skip
    return plain[head](values) if head in plain else getattr(mp, head)(values[0])


def _letters(tree: tuple[Any, ...]) -> set[str]:
    if tree[0] == "letter":
        return {tree[1]}
    return set().union(*(_letters(part) for part in tree[1:] if isinstance(part, tuple)))


def _values_at_points(*trees: tuple[Any, ...]) -> Iterator[list[Any]]:
    """The finite values of all trees at each point where they have some."""
    names = sorted(set().union(*map(_letters, trees)))
    with mp.workdps(DIGITS):
        for scale in _SCALES if names else _SCALES[:1]:
            point = {name: mpf(scale[place % 3]) + place // 3 for place, name in enumerate(names)}
            try:
                values = [_value(tree, point) for tree in trees]
            except (Unread, ValueError, ZeroDivisionError, TypeError, OverflowError):
                continue
            yield [mpc(value) if isinstance(value, mpc) else mpf(value) for value in values]


def _apart(one: Any, other: Any) -> bool:
    if not (isfinite(one) and isfinite(other)):
        return bool(one != other) and not (mp.isnan(one) or mp.isnan(other))
    return bool(abs(one - other) > APART * max(abs(one), abs(other)))


def _values_differ(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """At one point where both are real, or at every one where a value is complex."""
    compared = [
        (_apart(*pair), any(isinstance(value, mpc) for value in pair))
        for pair in _values_at_points(one, other)
    ]
    if any(apart for apart, is_complex in compared if not is_complex):
        return True
    constant = not _letters(one) and not _letters(other)
    return constant and any(apart for apart, _ in compared)


def _not_proportional(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    ratios = [a / b for a, b in _values_at_points(one, other) if b and isfinite(a) and isfinite(b)]
    return len(ratios) > 1 and any(_apart(ratio, ratios[0]) for ratio in ratios[1:])


# Answers.


def _differ(one: Answer, other: Answer) -> bool:
    if one.kind == other.kind == "named" and one.parts[0] != other.parts[0]:
        return _is_constant(one.parts[1]) and _is_constant(other.parts[1])
    one, other = _without_name(one), _without_name(other)
    kinds = {one.kind, other.kind}
    if kinds == {"value"}:
        return _values_differ(one.parts[0], other.parts[0])
    if kinds == {"word"}:
        return bool(one.parts != other.parts)
    if kinds == {"equation"}:
        return _not_proportional(one.parts[0], other.parts[0])
    if kinds <= {"list", "set"}:
        return _collections_differ(one.parts, other.parts)
    if kinds <= {"()", "[]", "(]", "[)"} and len(one.parts) == len(other.parts) == 2 and len(kinds) == 2:
        return True
    if kinds <= {"()", "[]", "(]", "[)", "set"} and len(kinds) == 2 and "set" in kinds:
        return len(one.parts) == len(other.parts) == 2
    if kinds == {"union"}:
        return _unions_differ(one.parts, other.parts)
    if len(kinds) == 1:
        return len(one.parts) != len(other.parts) or any(map(_differ, one.parts, other.parts))
    return False


def _is_constant(answer: Answer) -> bool:
    return answer.kind == "value" and not _letters(answer.parts[0])


def _without_name(answer: Answer) -> Answer:
    return answer.parts[1] if answer.kind == "named" else answer


def _collections_differ(one: tuple[Answer, ...], other: tuple[Answer, ...]) -> bool:
    """Some item of one side differs from every item of the other."""
    return any(
        all(_differ(item, candidate) for candidate in there)
        for here, there in ((one, other), (other, one))
        for item in here
    )


def _unions_differ(one: tuple[Answer, ...], other: tuple[Answer, ...]) -> bool:
    """Membership of every end, of the middle between neighbours, and of places beyond the outermost."""
    mine, theirs = _bounds(one), _bounds(other)
    if mine is None or theirs is None:
        return False
    ends = sorted({end for low, high, _ in mine + theirs for end in (low, high) if isfinite(end)})
    places = ends + [(low + high) / 2 for low, high in pairwise(ends) if _apart(low, high)]
    places += [ends[0] - 1, ends[-1] + 1] if ends else [mpf(0)]
    return any(_lies_in(place, mine) != _lies_in(place, theirs) for place in places)


def _bounds(sets: tuple[Answer, ...]) -> list[tuple[Any, Any, str]] | None:
    """Lower end, upper end and brackets of each interval; None where one is no interval of numbers."""
    bounds = []
    for part in sets:
        points = [item.parts[0] for item in part.parts if isinstance(item, Answer) and item.kind == "value"]
        if part.kind not in ("()", "[]", "(]", "[)") or len(points) != 2 or any(map(_letters, points)):
            return None
        for low, high in _values_at_points(*points):
            bounds.append((low, high, part.kind))
    return bounds if len(bounds) == len(sets) else None


def _lies_in(place: Any, bounds: list[tuple[Any, Any, str]]) -> bool:
    return any(
        (low < place or (kind[0] == "[" and not _apart(low, place)))
        and (place < high or (kind[1] == "]" and not _apart(place, high)))
        for low, high, kind in bounds
    )
