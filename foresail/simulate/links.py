"""How long bytes take between cards: rings, trees and chains, by bandwidths alone.

Nothing else is on the links meanwhile, and no card is slower than the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Links:
    """Bytes a second into one card; `latency` is what a message takes beside its bytes, in seconds."""

    cards_per_host: int
    inside: float  # from a card of the same host
    between: float  # from another host
    latency: float = 0.0

    def ring_bandwidth(self, ranks: int) -> float:
        """Of a ring through so many cards: beyond a host, the links of all its cards bring in one copy together."""
        if ranks <= self.cards_per_host:
            return self.inside
        return min(self.inside, self.between * self.cards_per_host)


def ring_seconds(num_bytes: float, ranks: int, links: Links) -> float:
    """All-gather to so many bytes on every rank, or reduce-scatter of so many; of one rank: nothing.

    8 bytes in two ranks, 4 a second: each gets the 4 bytes that it lacks, 1 second.
    """
    others = ranks - 1
    return others / ranks * num_bytes / links.ring_bandwidth(ranks) + others * links.latency


def all_to_all_seconds(num_bytes: float, ranks: int, links: Links) -> float:
    """Every rank sends so many bytes, to all ranks alike; what stays in the host has links of its own."""
    near = min(ranks, links.cards_per_host)
    inside, between = (near - 1) / ranks * num_bytes, (ranks - near) / ranks * num_bytes
    return max(inside / links.inside, between / links.between) + (ranks - 1) * links.latency


def one_by_one_seconds(num_bytes: float, receivers: int, bandwidth: float) -> float:
    """One sender serves the receivers one after another."""
    return receivers * num_bytes / bandwidth


def tree_seconds(num_bytes: float, receivers: int, bandwidth: float) -> float:
    """A tree: all that have the bytes send them on; 1 receiver after a round, 3 after two, 7 after three."""
    return math.ceil(math.log2(receivers + 1)) * num_bytes / bandwidth


def chain_seconds(num_bytes: float, receivers: int, bandwidth: float, piece: float) -> float:
    """A chain: every receiver passes pieces on as they come, so each receiver adds the time of one piece."""
    if num_bytes <= 0:
        return 0.0
    pieces = math.ceil(num_bytes / piece)
    return (pieces + receivers - 1) * (num_bytes / pieces) / bandwidth
