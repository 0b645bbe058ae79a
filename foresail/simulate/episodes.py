"""Simulated episodes: after a turn a tool takes some time, then the request continues with its answer.

As in a run (`agents/episodes.py`) the fleet holds a request that waits for its tool, without a slot.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.request import Completion
from foresail.rollout.plan import SampleSpec
from foresail.rollout.stream import Launched, Stream
from foresail.simulate.clock import VirtualClock
from foresail.simulate.generated_text import Repeated
from foresail.simulate.workloads import Problems


class Places(NamedTuple):
    """The numbers of episodes with a slot, waiting for one, and waiting for a tool, from a time on."""

    moment: float
    running: int
    queued: int
    at_tools: int


@dataclass(kw_only=True)
class EpisodeCount:
    """Sums over ended episodes, and the places of all episodes over time."""

    episodes: int = 0
    turns: int = 0
    seconds: float = 0.0  # from launch to end, total
    tool_seconds: float = 0.0  # of these, waiting for tools
    places: list[Places] = field(default_factory=lambda: [Places(0.0, 0, 0, 0)])  # of running episodes, too


@dataclass(kw_only=True)
class SimulatedEpisodes(Stream):
    """A stream of episodes with known turns and tools."""

    hold = True
    problems: Problems
    clock: VirtualClock
    began: dict[str, float] = field(default_factory=dict, init=False)  # of running episodes
    turns: dict[str, list[Completion]] = field(default_factory=dict, init=False)
    at_tools: dict[str, SampleSpec] = field(default_factory=dict, init=False)
    answered: deque[str] = field(default_factory=deque, init=False)
    count: EpisodeCount = field(default_factory=EpisodeCount, init=False)

    def _start(self, entry: PromptedProblem, number: int) -> None:
        super()._start(entry, number)
        for spec in self.active[number].specs:
            self.began[spec.id], self.turns[spec.id] = self.clock.now(), []

    def _take(self, spec: SampleSpec, completion: Completion) -> None:
        done, planned = self.turns[spec.id], self.problems.turns(spec)
        turn = planned[len(done)]
        assert len(completion.ids) == turn.tokens, f"turn {len(done)} of {spec} is {turn}, not {completion}"
        done.append(completion)
        if len(done) == len(planned) and not turn.tool_seconds:
            self._end(spec)
        else:
            self.at_tools[spec.id] = spec
            self.clock.at(self.clock.now() + turn.tool_seconds, partial(self._answer, spec.id))

    def _answer(self, name: str) -> None:
        self.answered.append(name)
        self.clock.wake()

    def _go_on(self) -> bool:
        """Continue the episodes whose tool has answered; returns whether there were any."""
        names = [self.answered.popleft() for _ in range(len(self.answered))]
        for name in names:
            if (spec := self.at_tools.pop(name, None)) is not None:  # else it was cancelled meanwhile
                done, planned = len(self.turns[name]), self.problems.turns(spec)
                if done == len(planned):
                    self._end(spec)
                else:
                    self.fleet.extend(name, Repeated(0, planned[done - 1].tool_tokens))
        self._note_places()
        return bool(names)

    def _end(self, spec: SampleSpec) -> None:
        self.fleet.release(spec.id)
        turns, began = self.turns.pop(spec.id), self.began.pop(spec.id)
        self.count.episodes += 1
        self.count.turns += len(turns)
        self.count.seconds += self.clock.now() - began
        self.count.tool_seconds += sum(turn.tool_seconds for turn in self.problems.turns(spec))
        self._hand_over(spec, self.read(*turns))

    def _give_up(self, number: int, launched: Launched) -> None:
        super()._give_up(number, launched)
        for spec in launched.specs:
            for table in (self.began, self.turns, self.at_tools):
                table.pop(spec.id, None)

    def _note_places(self) -> None:
        """Record the places of episodes; the last record of one time counts."""
        scheduler, places = self.fleet.scheduler, self.count.places
        now = Places(self.clock.now(), scheduler.num_running, scheduler.num_waiting, len(self.at_tools))
        if places[-1].moment == now.moment:
            places.pop()
        if not places or places[-1][1:] != now[1:]:
            places.append(now)
