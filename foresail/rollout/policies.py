"""Scheduling policies: which waiting request runs next.

    fifo      in launch order
    group     in launch order, all samples of a group on one instance, without chunks, as in other frameworks
    context   one probe per group, then the group that seems longest by its siblings' lengths
    oracle    longest first by the true lengths, to compare `context` with

A policy orders requests; the scheduler chooses the instance and the time. All calls are O(log n) in the number of
open requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

from foresail.rollout.plan import SampleSpec
from foresail.rollout.ranking import Rank, Ranking

POLICIES = ("fifo", "group", "context", "oracle")
GUARD_EVERY = 16


class Pick(NamedTuple):
    """A waiting request, its number of generated tokens, and why it is next."""

    spec: SampleSpec
    generated: int
    why: str


class Policy(Protocol):
    """The order of waiting requests."""

    @property
    def whole_groups(self) -> bool:
        """Whether a group's samples run without chunks and queue at one instance."""

    def push(self, spec: SampleSpec, generated: int) -> None:
        """Add a request that waits for its first or next chunk."""

    def peek(self) -> Pick | None:
        """The next request; the same until another method is called."""

    def pop(self, tokens: int) -> Pick:
        """Remove the next request, which now runs for up to `tokens` tokens."""

    def finished(self, spec: SampleSpec, length: int) -> None:
        """Learn that a response ended at this length."""

    def remove(self, spec: SampleSpec) -> None:
        """Forget one request; its siblings stay."""

    def drop(self, group: int) -> None:
        """Forget a group and its waiting requests."""


def build_policy(name: str, *, true_length: Callable[[SampleSpec], int] | None = None) -> Policy:
    """build_policy("context"); `oracle` needs the true lengths, which simulations and replays know."""
    if name == "fifo":
        return FixedOrder(launch_order, why="fifo")
    if name == "group":
        return FixedOrder(launch_order, why="group", whole_groups=True)
    if name == "context":
        return Context()
    if name == "oracle" and true_length is not None:
        return FixedOrder(longest_first(true_length), why="oracle")
    if name == "oracle":
        raise ValueError(
            "policy oracle needs true lengths, which only a simulation or a replay has; try context"
        )
    raise ValueError(f"there is no policy {name!r}; choose one of {', '.join(POLICIES)}")


def launch_order(spec: SampleSpec) -> Rank:
    return spec.group, spec.sample


def longest_first(true_length: Callable[[SampleSpec], int]) -> Callable[[SampleSpec], Rank]:
    return lambda spec: (-true_length(spec), spec.group, spec.sample)


class FixedOrder:
    """Orders requests by a rank that never changes."""

    def __init__(self, rank: Callable[[SampleSpec], Rank], *, why: str, whole_groups: bool = False) -> None:
        self.whole_groups = whole_groups
        self._rank, self._why = rank, why
        self._waiting: dict[str, Pick] = {}
        self._order: Ranking[str] = Ranking()
        self._groups: dict[int, set[str]] = {}

    def push(self, spec: SampleSpec, generated: int) -> None:
        self._waiting[spec.id] = Pick(spec, generated, self._why)
        self._order.put(spec.id, self._rank(spec))
        self._groups.setdefault(spec.group, set()).add(spec.id)

    def peek(self) -> Pick | None:
        first = self._order.first()
        return None if first is None else self._waiting[first]

    def pop(self, tokens: int) -> Pick:
        pick = self.peek()
        assert pick is not None, "pop follows a peek that found somebody"
        self._remove(pick.spec.id)
        self._groups[pick.spec.group].remove(pick.spec.id)
        return pick

    def finished(self, spec: SampleSpec, length: int) -> None:
        """Nothing is learned from it."""

    def remove(self, spec: SampleSpec) -> None:
        if spec.id in self._waiting:
            self._remove(spec.id)
            self._groups[spec.group].remove(spec.id)

    def drop(self, group: int) -> None:
        for name in self._groups.pop(group, ()):
            self._remove(name)

    def _remove(self, name: str) -> None:
        del self._waiting[name]
        self._order.remove(name)


@dataclass(kw_only=True)
class GroupRequests:
    """A group's requests: its probe, the waiting ones (a heap), and the tokens dispatched so far.

    `length` is the estimated response length: `max_tokens` at first, since starting a long group late costs more
    than starting a short one early; later the length of its longest finished response.
    """

    probe: str
    length: int
    known: bool = False
    waiting_probe: tuple[SampleSpec, int] | None = None
    rest: list[tuple[int, int, SampleSpec]] = field(default_factory=list)
    scheduled: int = 0


class Context:
    """Probes first, the one with the fewest tokens before others; then the group that seems longest.

    The first sample of a group is its probe. Probes come before all others, so each group's length is soon
    estimated. Every 16th pick among the others takes the group with the fewest dispatched tokens, so that a wrong
    estimate starves no group.

    Ties: the group launched first; in a group the request with most tokens, so that few are unfinished.
    """

    whole_groups = False

    def __init__(self, *, guard_every: int = GUARD_EVERY) -> None:
        self._guard_every = guard_every
        self._groups: dict[int, GroupRequests] = {}
        self._probes: Ranking[int] = Ranking()  # groups whose probe waits
        self._longest: Ranking[int] = (
            Ranking()
        )  # groups with other waiting requests; the same in both rankings
        self._underserved: Ranking[int] = Ranking()
        self._picks_of_rest = 0

    def push(self, spec: SampleSpec, generated: int) -> None:
        siblings = self._groups.get(spec.group)
        if siblings is None:
            siblings = self._groups[spec.group] = GroupRequests(probe=spec.id, length=spec.max_tokens)
        if spec.id == siblings.probe:
            siblings.waiting_probe = spec, generated
            self._probes.put(spec.group, (generated, spec.group))
        else:
            heappush(siblings.rest, (-generated, spec.sample, spec))
            self._place(spec.group, siblings)

    def peek(self) -> Pick | None:
        group = self._probes.first()
        if group is not None:
            probe = self._groups[group].waiting_probe
            assert probe is not None, "only waiting probes are ranked"
            return Pick(*probe, "probe")
        guarded = (self._picks_of_rest + 1) % self._guard_every == 0
        group = (self._underserved if guarded else self._longest).first()
        if group is None:
            return None
        minus_generated, _, spec = self._groups[group].rest[0]
        return Pick(spec, -minus_generated, "underserved" if guarded else "longest")

    def pop(self, tokens: int) -> Pick:
        pick = self.peek()
        assert pick is not None, "pop follows a peek that found somebody"
        group = pick.spec.group
        siblings = self._groups[group]
        if pick.why == "probe":
            siblings.waiting_probe = None
            self._probes.remove(group)
        else:
            heappop(siblings.rest)
            self._picks_of_rest += 1
        siblings.scheduled += tokens
        self._place(group, siblings)
        return pick

    def finished(self, spec: SampleSpec, length: int) -> None:
        siblings = self._groups[spec.group]
        siblings.length = max(siblings.length, length) if siblings.known else length
        siblings.known = True
        self._place(spec.group, siblings)

    def remove(self, spec: SampleSpec) -> None:
        siblings = self._groups[spec.group]
        if spec.id == siblings.probe:
            siblings.waiting_probe = None
            self._probes.remove(spec.group)
            return
        siblings.rest = [entry for entry in siblings.rest if entry[2].id != spec.id]
        heapify(siblings.rest)
        self._place(spec.group, siblings)

    def drop(self, group: int) -> None:
        if self._groups.pop(group, None) is not None:
            for ranking in (self._probes, self._longest, self._underserved):
                ranking.remove(group)

    def _place(self, group: int, siblings: GroupRequests) -> None:
        """Update the group's rank among those with waiting requests besides the probe."""
        if siblings.rest:
            self._longest.put(group, (-siblings.length, group))
            self._underserved.put(group, (siblings.scheduled, group))
        else:
            self._longest.remove(group)
            self._underserved.remove(group)
