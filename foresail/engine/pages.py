"""Counts the owners of the KV cache's pages and names their content; the tensors are in `cache`.

A full page can get a name, made from all tokens up to its end. Without owners a named page stays readable until it
is needed: a later prompt with the same beginning uses it again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import takewhile

import numpy as np

Name = bytes


class PagePool:
    """Pages 0..n-1, each with its number of owners; a page without owners is free."""

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages
        self._free = list(range(num_pages - 1, -1, -1))
        self._idle: OrderedDict[int, None] = (
            OrderedDict()
        )  # named, without an owner; the oldest is used first
        self._owners = [0] * num_pages
        self._names: dict[int, Name] = {}
        self._named: dict[Name, int] = {}

    @property
    def num_free(self) -> int:
        return len(self._free) + len(self._idle)

    def take(self, count: int) -> list[int]:
        assert count <= self.num_free, "the engine frees pages before it takes pages"
        pages = [self._free.pop() if self._free else self._reuse() for _ in range(count)]
        for page in pages:
            self._owners[page] = 1
        return pages

    def share(self, pages: Iterable[int]) -> None:
        for page in pages:
            self._owners[page] += 1
            self._idle.pop(page, None)

    def release(self, pages: Sequence[int]) -> None:
        # Backwards, so that the end of a context is overwritten before its beginning.
        for page in reversed(pages):
            self._owners[page] -= 1
            if self._owners[page] == 0:
                if page in self._names:
                    self._idle[page] = None
                else:
                    self._free.append(page)

    def remember(self, pages: Sequence[int], names: Sequence[Name]) -> None:
        """Name these pages by their content; a page that already has a name's content keeps it."""
        for page, name in zip(pages, names, strict=True):
            if page not in self._names and name not in self._named:
                self._names[page], self._named[name] = name, page

    def names(self, pages: Sequence[int]) -> list[Name]:
        """The names of the leading pages that have one."""
        return [self._names[page] for page in takewhile(self._names.__contains__, pages)]

    def find(self, names: Sequence[Name]) -> list[int]:
        """The pages of the leading known names."""
        pages = []
        for name in names:
            page = self._named.get(name)
            if page is None:
                break
            pages.append(page)
        return pages

    def forget_names(self, pages: Iterable[int]) -> None:
        """Remove the names of these pages, which have owners."""
        for page in pages:
            if (name := self._names.pop(page, None)) is not None:
                del self._named[name]

    def forget(self) -> None:
        """Remove all names, since the weights have changed."""
        self._free += self._idle
        self._idle.clear()
        self._names.clear()
        self._named.clear()

    def _reuse(self) -> int:
        page, _ = self._idle.popitem(last=False)
        del self._named[self._names.pop(page)]
        return page


def count_pages(num_tokens: int, page_size: int) -> int:
    """count_pages(33, 16) -> 3."""
    return -(-num_tokens // page_size)


def page_names(tokens: Sequence[int], page_size: int, known: Sequence[Name] = ()) -> list[Name]:
    """One name per whole page; equal names mean equal tokens from the first one on. The first may be known."""
    whole, names = len(tokens) // page_size, list(known)
    first = len(names) * page_size
    content = np.asarray(tokens[first : whole * page_size], dtype=np.int64).tobytes()
    name = names[-1] if names else b""
    for start in range(0, len(content), page_size * 8):
        name = blake2b(name + content[start : start + page_size * 8], digest_size=16).digest()
        names.append(name)
    return names
