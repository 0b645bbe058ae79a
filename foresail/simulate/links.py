"""Transfer times between cards by bandwidth: rings, trees and chains.

No other traffic uses the links, and all cards are equally fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Links:
    """Bytes per second into one card; `latency` is the time of an empty message in seconds."""

    cards_per_host: int
    inside: float  # from a card of the same host
    between: float  # from another host
    latency: float = 0.0

    def ring_bandwidth(self, ranks: int) -> float:
        """The bandwidth of a ring of `ranks` cards; between hosts, all cards' links together carry one copy."""
        if ranks <= self.cards_per_host:
            return self.inside
        return min(self.inside, self.between * self.cards_per_host)


def ring_seconds(num_bytes: float, ranks: int, links: Links) -> float:
    """An all-gather to `num_bytes` on every rank, or a reduce-scatter of `num_bytes`; 0 for one rank.

    8 bytes on two ranks at 4 per second: each gets its missing 4 bytes in 1 second.
    """
    others = ranks - 1
    return others / ranks * num_bytes / links.ring_bandwidth(ranks) + others * links.latency


def all_to_all_seconds(num_bytes: float, ranks: int, links: Links) -> float:
    """Every rank sends `num_bytes`, evenly to all ranks; traffic within a host has its own links."""
    near = min(ranks, links.cards_per_host)
    inside, between = (near - 1) / ranks * num_bytes, (ranks - near) / ranks * num_bytes
    return max(inside / links.inside, between / links.between) + (ranks - 1) * links.latency


def one_by_one_seconds(num_bytes: float, receivers: int, bandwidth: float) -> float:
    """One sender serves the receivers one after another."""
    return receivers * num_bytes / bandwidth


def tree_seconds(num_bytes: float, receivers: int, bandwidth: float) -> float:
    """A tree: all with the bytes send them on; 1 receiver after a round, 3 after two, 7 after three."""
    return math.ceil(math.log2(receivers + 1)) * num_bytes / bandwidth


def chain_seconds(num_bytes: float, receivers: int, bandwidth: float, piece: float) -> float:
    """A chain: every receiver forwards pieces as they come, which adds the time of one piece."""
    if num_bytes <= 0:
        return 0.0
    pieces = math.ceil(num_bytes / piece)
    return (pieces + receivers - 1) * (num_bytes / pieces) / bandwidth
