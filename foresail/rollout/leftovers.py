"""Keeps samples of groups that a step did not need, for the next step with the same problem.

The next step begins with the problems that a step launched beyond its end. With leftovers their samples continue
under the new weights. Nothing is generated twice, but a sample may have tokens of two policies (each token has its
version), and which samples were running may depend on the machine. So this is off by default. Checkpoints hold the
leftovers (`train/rollouts/leftovers.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.request import Completion, Parked
from foresail.records import Group, Sample
from foresail.rollout.groups import continue_request, requests, to_spec
from foresail.rollout.plan import SampleSpec
from foresail.rollout.stream import Launched, Stream

Parts = tuple[Parked, ...]  # of one sample, one per step


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A problem's samples by number: finished ones, and parts of unfinished ones."""

    samples: Mapping[int, Sample]
    parked: Mapping[int, Parts]


Leftovers = dict[str, Leftover]  # by problem


@dataclass(kw_only=True)
class CarryingStream(Stream):
    """A stream that continues the last step's leftovers and keeps its own."""

    leftovers: Leftovers
    before: dict[str, Parts] = field(default_factory=dict, init=False)  # of earlier steps, by request

    def __iter__(self) -> Iterator[tuple[int, Group]]:
        settled: dict[int, Group] = {}
        for number, group in super().__iter__():
            settled[number] = group
            yield number, group
        closing = self.controller.closing()
        assert closing is not None, "a stream ends with its step"
        for number in settled.keys() - closing.prefix:  # finished but not needed
            group = settled[number]
            self.leftovers[group.problem.id] = Leftover(samples=dict(enumerate(group.samples)), parked={})

    def _start(self, entry: PromptedProblem, number: int) -> None:
        leftover = self.leftovers.pop(entry.problem.id, None)
        if leftover is None:
            super()._start(entry, number)
            return
        samples = requests(entry, self.group_spec, number)
        for place, parts in leftover.parked.items():
            self.before[samples[place].id] = parts
            samples[place] = replace(continue_request(parts[-1]), id=samples[place].id)
        specs = [to_spec(request, number, place) for place, request in enumerate(samples)]
        self.active[number] = Launched(problem=entry.problem, specs=specs)
        missing = [spec for spec in specs if spec.sample not in leftover.samples]
        self.fleet.next_group = number + 1
        if missing:
            self.fleet.launch(missing, [samples[spec.sample] for spec in missing])
        for place, sample in leftover.samples.items():
            self._hand_over(specs[place], sample)

    def _take(self, spec: SampleSpec, completion: Completion) -> None:
        self._hand_over(spec, self.read(*self.before.pop(spec.id, ()), completion))

    def _give_up(self, number: int, launched: Launched) -> None:
        parked: dict[int, Parts] = {
            sample: (part,) for sample, part in self.fleet.withdraw(number, launched.specs).items()
        }
        for spec in launched.specs:
            before = self.before.pop(spec.id, ())
            if before and spec.sample not in launched.samples:
                parked[spec.sample] = before + parked.get(spec.sample, ())
        self.leftovers[launched.problem.id] = Leftover(samples=launched.samples, parked=parked)
