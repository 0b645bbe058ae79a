"""Superwords: BPE goes on from the tokens of a first stage, without the cut at blanks: " of" + " the" -> " of the".

    continue_bpe([[3, 4, 9], …], weights=[1, …], lengths=[…], count=1000, max_length=32) -> [(3, 4), (300, 9), …]

Parts that repeat are counted once, with their weight. Each merge touches only places where its pair stands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

Pair = tuple[int, int]
NOTHING = -1


def continue_bpe(
    parts: Sequence[Sequence[int]],
    *,
    weights: Sequence[int],
    lengths: Sequence[int],
    count: int,
    max_length: int,
) -> list[Pair]:
    """Up to `count` merges of ids. The n-th makes the id `len(lengths) + n`; `lengths` are in characters.

    The most frequent pair comes first, of equally frequent ones the one with the lower ids.
    """
    chain = Chain(parts, weights)
    known = [*lengths]
    queue = [(-number, pair) for pair, number in chain.counts.items()]
    heapify(queue)
    merges: list[Pair] = []
    while queue and len(merges) < count:
        negative, pair = heappop(queue)
        if -negative != chain.counts.get(pair, 0):
            continue  # its count has changed since; a newer entry stands in the queue
        length = known[pair[0]] + known[pair[1]]
        if length > max_length:
            continue
        if negative >= 0:
            break
        merges.append(pair)
        known.append(length)
        for changed in chain.merge(pair, len(known) - 1):
            if number := chain.counts.get(changed, 0):
                heappush(queue, (-number, changed))
    return merges


class Chain:
    """All parts behind each other, as a list linked both ways, with the count and the places of each pair."""

    def __init__(self, parts: Sequence[Sequence[int]], weights: Sequence[int]) -> None:
        self.ids: list[int] = []
        self.weights: list[int] = []
        for part, weight in zip(parts, weights, strict=True):
            self.ids += [*part, NOTHING]
            self.weights += [weight] * (len(part) + 1)
        self.before = [*range(-1, len(self.ids) - 1)]
        self.behind = [*range(1, len(self.ids) + 1)]
        self.counts: dict[Pair, int] = defaultdict(int)
        self.places: dict[Pair, list[int]] = defaultdict(list)
        for place, (left, right) in enumerate(zip(self.ids, self.ids[1:], strict=False)):
            if left != NOTHING and right != NOTHING:
                self.counts[left, right] += self.weights[place]
                self.places[left, right].append(place)

    def merge(self, pair: Pair, new: int) -> list[Pair]:
        """Replace the pair everywhere, from left to right; return the pairs whose count has changed."""
        ids, before, behind = self.ids, self.before, self.behind
        changed: dict[Pair, None] = {}
        for place in sorted(self.places.pop(pair)):
            right = behind[place]
            if ids[place] != pair[0] or right >= len(ids) or ids[right] != pair[1]:
                continue  # an earlier merge has taken a half of it
            weight, left, after = self.weights[place], before[place], behind[right]
            for neighbours in ((left, place), (right, after)):
                self.change(neighbours, -weight, changed)
            ids[place], ids[right] = new, NOTHING - 1
            behind[place] = after
            if after < len(ids):
                before[after] = place
            for neighbours in ((left, place), (place, after)):
                self.change(neighbours, weight, changed)
        del self.counts[pair]
        changed.pop(pair, None)
        return [*changed]

    def change(self, places: tuple[int, int], weight: int, changed: dict[Pair, None]) -> None:
        left, right = places
        if left < 0 or right >= len(self.ids) or NOTHING in (self.ids[left], self.ids[right]):
            return
        pair = (self.ids[left], self.ids[right])
        self.counts[pair] += weight
        if weight > 0:
            self.places[pair].append(left)
        changed[pair] = None
