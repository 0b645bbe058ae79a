"""Who owns which page of the KV cache. Counts only; the tensors live in `cache`."""

from __future__ import annotations

from collections.abc import Iterable


class PagePool:
    """Pages 0..n-1 with a count of owners each; a page is free when nobody owns it."""

    def __init__(self, num_pages: int) -> None:
        self._free = list(range(num_pages - 1, -1, -1))
        self._owners = [0] * num_pages

    @property
    def num_free(self) -> int:
        return len(self._free)

    def take(self, count: int) -> list[int]:
        assert count <= self.num_free, "the engine makes room before it takes pages"
        pages = [self._free.pop() for _ in range(count)]
        for page in pages:
            self._owners[page] = 1
        return pages

    def share(self, pages: Iterable[int]) -> None:
        for page in pages:
            self._owners[page] += 1

    def release(self, pages: Iterable[int]) -> None:
        for page in pages:
            self._owners[page] -= 1
            if self._owners[page] == 0:
                self._free.append(page)
