"""Any JSON value, and a good one with anything in any place: for parsers of requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

Path = tuple[Any, ...]


def json_leaves(words: Sequence[str]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(words)
    )


def json_values(names: Sequence[str], words: Sequence[str]) -> st.SearchStrategy[Any]:
    """Objects have some of these names, texts are some of these words."""
    return st.recursive(
        json_leaves(words),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(st.one_of(st.sampled_from(names), st.text(max_size=3)), inner, max_size=5),
        ),
        max_leaves=25,
    )


def places(value: Any, path: Path = ()) -> list[Path]:
    """places({"a": [1]}) -> [(), ("a",), ("a", 0)]."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, entry in inner for place in places(entry, (*path, key)))]


def with_change(value: Any, path: Path, new: Any) -> Any:
    """with_change({"a": [1]}, ("a", 0), 2) -> {"a": [2]}."""
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else [*value]
    copy[path[0]] = with_change(value[path[0]], path[1:], new)
    return copy
