"""Holds keys and values of requests between two chunks in host memory, up to a limit.

It only saves time: for a request without pages they are recomputed, and its tokens are the same.
"""

from __future__ import annotations

from collections import OrderedDict

from foresail.engine.request import Parked


class KVPool:
    """Parked requests by id. Above the limit the one that has waited longest loses its keys and values."""

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 0:
            raise ValueError(f"a KV pool of {max_bytes} bytes; give 0 to recompute always, or more")
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self.evictions = 0
        self._parked: OrderedDict[str, Parked] = OrderedDict()

    def __len__(self) -> int:
        return len(self._parked)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._parked

    def put(self, parked: Parked) -> None:
        self.drop(parked.request.id)
        self._parked[parked.request.id] = parked
        self.num_bytes += num_bytes(parked)
        self._make_room()

    def take(self, request_id: str) -> Parked:
        """Remove a request from the pool, to run its next chunk."""
        parked = self._parked.pop(request_id)
        self.num_bytes -= num_bytes(parked)
        return parked

    def drop(self, request_id: str) -> None:
        if request_id in self._parked:
            self.take(request_id)

    def _make_room(self) -> None:
        for request_id, parked in self._parked.items():
            if self.num_bytes <= self.max_bytes:
                break
            if parked.kv is not None:
                self.num_bytes -= num_bytes(parked)
                self._parked[request_id] = parked.without_kv()
                self.evictions += 1


def num_bytes(parked: Parked) -> int:
    return 0 if parked.kv is None else parked.kv.pages.nbytes
