"""Work of groups that a step did not need, for the next one that draws the same problem.

The problems that a step launched beyond its end are the first of the next step. With leftovers their samples
go on where they stopped, under the new weights: nothing is drawn twice, but a sample may then have tokens of two
policies (each is marked with its own), and which samples were under way depends on the machine. So it is off
unless the recipe asks for it, and not kept over a stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from foresail.data.prompts import PromptedProblem
from foresail.engine.request import Completion, Parked, Request
from foresail.records import Group, Sample
from foresail.rollout.groups import requests
from foresail.rollout.plan import Ask
from foresail.rollout.stream import Launched, Stream, to_ask


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A problem's samples by number: those that ended, and those that were half-way."""

    samples: Mapping[int, Sample]
    parked: Mapping[int, Parked]


Leftovers = dict[str, Leftover]  # by problem


@dataclass(kw_only=True)
class CarryingStream(Stream):
    """A stream that takes over leftovers, and leaves some."""

    leftovers: Leftovers
    before: dict[str, Parked] = field(
        default_factory=dict, init=False
    )  # request -> what it drew in steps before

    def __iter__(self) -> Iterator[tuple[int, Group]]:
        settled: dict[int, Group] = {}
        for number, group in super().__iter__():
            settled[number] = group
            yield number, group
        closing = self.controller.closing()
        assert closing is not None, "a stream ends with its step"
        for number in settled.keys() - closing.prefix:  # drawn in full, and not needed
            group = settled[number]
            self.leftovers[group.problem.id] = Leftover(samples=dict(enumerate(group.samples)), parked={})

    def _start(self, entry: PromptedProblem, number: int) -> None:
        leftover = self.leftovers.pop(entry.problem.id, None)
        if leftover is None:
            super()._start(entry, number)
            return
        wanted = requests(entry, self.draw, number)
        for place, parked in leftover.parked.items():
            self.before[wanted[place].id] = parked
            wanted[place] = continue_from(parked, wanted[place].id)
        asks = [to_ask(request, number, place) for place, request in enumerate(wanted)]
        self.active[number] = Launched(problem=entry.problem, asks=asks)
        missing = [ask for ask in asks if ask.sample not in leftover.samples]
        self.fleet.next_group = number + 1
        if missing:
            self.fleet.launch(missing, [wanted[ask.sample] for ask in missing])
        for place, sample in leftover.samples.items():
            self._hand_over(asks[place], sample)

    def _take(self, ask: Ask, completion: Completion) -> None:
        before = self.before.pop(ask.id, None)
        super()._take(ask, completion if before is None else join(before, completion))

    def _give_up(self, number: int, launched: Launched) -> None:
        drawn = self.fleet.withdraw(number, launched.asks)
        for ask in launched.asks:
            before = self.before.pop(ask.id, None)
            if before is not None and ask.sample not in launched.samples:
                new = drawn.get(ask.sample)
                drawn[ask.sample] = before if new is None else extend(before, new)
        self.leftovers[launched.problem.id] = Leftover(samples=launched.samples, parked=drawn)


def continue_from(parked: Parked, request_id: str) -> Request:
    """The rest of a request as one of its own: what was drawn is its prompt, and the noise goes on."""
    request, drawn = parked.request, tuple(parked.ids)
    left = request.sampling.max_new_tokens - len(drawn)
    return replace(
        request,
        id=request_id,
        prompt=request.prompt + drawn,
        sampling=request.sampling.model_copy(update={"max_new_tokens": left}),
    )


def join(before: Parked, completion: Completion) -> Completion:
    """As if it had been drawn in one go."""
    whole = extend(before, completion)
    return replace(
        completion, request=whole.request, ids=whole.ids, logprobs=whole.logprobs, versions=whole.versions
    )


def extend(before: Parked, drawn: Parked | Completion) -> Parked:
    return replace(
        before,
        ids=[*before.ids, *drawn.ids],
        logprobs=[*before.logprobs, *drawn.logprobs],
        versions=[*before.versions, *drawn.versions],
    )
