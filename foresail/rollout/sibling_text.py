"""A response's token ids, packed once to be sent to several instances that draft for its siblings."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np


class SiblingText(Sequence[int]):
    """Ids that another process receives as an array: pickle.loads(pickle.dumps(SiblingText([5, 9]))) -> 5, 9.

    A list would be pickled number by number, and again for every instance.
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...

    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        return self._ids[place]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._ids, dtype=dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return unpack, (self._packed,)

    @cached_property
    def _packed(self) -> bytes:
        return array("i", self._ids).tobytes()


def unpack(packed: bytes) -> Sequence[int]:
    ids = array("i")
    ids.frombytes(packed)
    return ids
