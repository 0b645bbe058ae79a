"""Runs two computations of a decode step concurrently, since neither fills the GPU.

    routed_TD, shared_TD = overlapped(lambda: experts(x_TD), lambda: shared(x_TD))

Neither may change what the other reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import torch

First = TypeVar("First")
Second = TypeVar("Second")


def overlapped(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """What both give: in a step that is being captured the second has a stream of its own, else it comes later."""
    if not (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()):
        return first(), second()
    current = torch.cuda.current_stream()
    other = stream_beside(current)
    other.wait_stream(current)
    with torch.cuda.stream(other):
        from_second = second()
    from_first = first()
    current.wait_stream(other)
    return from_first, from_second


@cache
def stream_beside(stream: torch.cuda.Stream) -> torch.cuda.Stream:
    return torch.cuda.Stream(stream.device)
