"""Samples groups of episodes of programs: a program asks, the engines answer, until the program ends.

Other threads put the programs' requests and ends into a queue of events, which the stream reads between two steps
of the engines. A request that continues a turn extends that turn's request, with its keys and values; any other
begins a new record (`conversation.py`).

An episode has failed when its program raises, or asks nothing for too long. Time in which its requests wait for the
engines does not count, so no verdict depends on how busy they are.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from foresail.agents.figures import EpisodeFigures
from foresail.agents.programs.chat_request import ChatRequest
from foresail.agents.programs.chat_turns import MODEL, NoRoom, place_turn, to_reply
from foresail.agents.programs.columns import show_problem
from foresail.agents.programs.conversation import ChatTurn, Conversation
from foresail.agents.programs.endpoint import Endpoint, over
from foresail.agents.programs.episode import (
    Asked,
    ProgramEpisode,
    ProgramFinished,
    Waiting,
    sampling_of,
    settle,
)
from foresail.agents.programs.outcome import Hung, ProgramOutcome, judge_outcome
from foresail.agents.programs.program import Agent, Programs
from foresail.chat.errors import Refusal
from foresail.chat.reply import Reply
from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.request import Completion
from foresail.records import Sample
from foresail.rollout.controller import StepEnd
from foresail.rollout.groups import requests, to_spec
from foresail.rollout.plan import SampleSpec
from foresail.rollout.stream import Launched, Stream
from foresail.tokenizer.tokenizer import Tokenizer

MAX_STOP_SETS = 64  # in a run: the engine keeps a table for each
SECONDS_BETWEEN_CHECKS = 0.2  # of the time limits


@dataclass(kw_only=True)
class ProgramStream(Stream):
    """A stream whose samples are episodes of programs."""

    programs: Programs
    endpoint: Endpoint
    figures: EpisodeFigures
    stop_sets: set[tuple[str, ...]]
    tokenizer: Tokenizer
    max_turns: int
    max_length: int
    turn_seconds: float
    columns: tuple[str, ...] = ()  # shown to programs
    episodes: dict[str, ProgramEpisode] = field(default_factory=dict, init=False)
    waiting: dict[str, Waiting] = field(default_factory=dict, init=False)  # by the fleet's request id
    families: dict[int, dict[tuple[int, ...], int]] = field(default_factory=dict, init=False)
    joined: dict[int, list[SampleSpec]] = field(default_factory=dict, init=False)  # by family
    events: deque[Asked | ProgramFinished] = field(
        default_factory=deque, init=False
    )  # filled by other threads
    checked: float = field(default=0.0, init=False)

    def _start(self, entry: PromptedProblem, number: int) -> None:
        samples = requests(entry, self.group_spec, number)
        specs = [to_spec(request, number, sample) for sample, request in enumerate(samples)]
        self.active[number] = Launched(problem=entry.problem, specs=specs)
        self.fleet.next_group = number + 1
        self.families[number] = {tuple(entry.ids): number}
        self.fleet.event_log.note("launch", group=number, requests=len(specs))
        for spec, request in zip(specs, samples, strict=True):
            key = self.endpoint.admit(partial(self._ask, spec.id))
            agent = Agent(
                base_url=self.endpoint.base_url,
                api_key=key,
                model=MODEL,
                problem=show_problem(entry.problem, self.columns),
            )
            self.episodes[spec.id] = ProgramEpisode(
                spec=spec,
                request=request,
                entry=entry,
                conversation=Conversation(key=request.key, own_prompt=tuple(entry.ids)),
                key=key,
                job=self.programs.start(agent, partial(self._finished, spec.id)),
                began=self.fleet.event_log.now(),
            )

    # Called in other threads: they only add events.

    def _ask(self, episode: str, request: ChatRequest) -> Future[Reply]:
        reply: Future[Reply] = Future()
        self.events.append(Asked(episode, request, reply))
        return reply

    def _finished(self, episode: str, result: Any, error: BaseException | None) -> None:
        self.events.append(ProgramFinished(episode, ProgramOutcome(result=result, error=error)))

    # From events to requests of the engines, and from completions to replies.

    def _go_on(self) -> bool:
        count = len(self.events)
        for item in [self.events.popleft() for _ in range(count)]:
            episode = self.episodes.get(item.episode)
            if isinstance(item, Asked):
                try:
                    self._begin(episode, item)
                except Refusal as refusal:
                    settle(item.reply, error=refusal)
            elif episode is not None and episode.outcome is None:
                self._end_program(episode, item.outcome)
        self._end_idle_programs()
        return bool(count)

    def _begin(self, episode: ProgramEpisode | None, asked: Asked) -> None:
        if episode is None or episode.outcome is not None:
            raise over()
        self._check_stop(asked.request.stop)
        try:
            turn = place_turn(
                asked.request,
                episode.conversation,
                episode.entry,
                tokenizer=self.tokenizer,
                stop_ids=self.group_spec.stop_ids,
                max_turns=self.max_turns,
                max_new_tokens=episode.request.sampling.max_new_tokens,
                max_length=self.max_length,
            )
        except NoRoom:
            episode.cut = True
            raise
        episode.cut = False
        self._submit(episode, turn)
        if not episode.num_waiting:
            episode.rest()
        episode.num_waiting += 1
        self.waiting[turn.request_id] = Waiting(episode, turn, asked.reply)

    def _submit(self, episode: ProgramEpisode, turn: ChatTurn) -> None:
        """Extend the parent's request if it is still held, else begin a new request."""
        parent, sampling = turn.parent, sampling_of(turn, episode.request.sampling)
        if parent is not None and parent.is_open:
            parent.is_open, turn.request_id = False, parent.request_id
            self.fleet.extend(turn.request_id, turn.prompt[len(parent.ids) :], sampling)
            return
        number = len(episode.conversation.turns) - 1
        turn.request_id = f"{episode.spec.id}/{number}" if number else episode.spec.id
        spec = SampleSpec(
            id=turn.request_id,
            group=self._family(episode.spec.group, turn.prompt),
            sample=episode.spec.sample + number * len(self.group_spec.samplings),
            prompt_tokens=len(turn.prompt),
            max_tokens=turn.left,
        )
        request = replace(episode.request, id=spec.id, prompt=turn.prompt, key=turn.key, sampling=sampling)
        self.joined.setdefault(spec.group, []).append(spec)
        self.fleet.join(spec, request, hold=True)

    def _family(self, group: int, prompt: tuple[int, ...]) -> int:
        """The fleet's group number: requests of a group with the same prompt share one."""
        families = self.families[group]
        if prompt not in families:
            families[prompt] = self.fleet.next_group
            self.fleet.next_group += 1
        return families[prompt]

    def _check_stop(self, stop: tuple[str, ...]) -> None:
        if stop and stop not in self.stop_sets:
            if len(self.stop_sets) >= MAX_STOP_SETS:
                raise Refusal(
                    f"the programs of this run have named {MAX_STOP_SETS} different sets of stop texts, and there "
                    "is no place for more; name the same ones every time",
                    param="stop",
                )
            self.stop_sets.add(stop)

    def _take(self, spec: SampleSpec, completion: Completion) -> None:
        episode, turn, waiting = self.waiting.pop(spec.id)
        reply = to_reply(turn.asked, completion, self.tokenizer)
        episode.conversation.end(turn, completion, reply.message)
        turn.is_open = True
        episode.num_waiting -= 1
        episode.replied = time.monotonic()
        settle(waiting, reply)
        if episode.outcome is not None and not episode.num_waiting:
            self._end(episode, episode.outcome)

    # The end of an episode.

    def _end_idle_programs(self) -> None:
        now = time.monotonic()
        if now - self.checked < min(SECONDS_BETWEEN_CHECKS, self.turn_seconds / 4):
            return
        self.checked = now
        late = [
            episode
            for episode in self.episodes.values()
            if not episode.num_waiting and episode.outcome is None and now - episode.since > self.turn_seconds
        ]
        for episode in late:
            words = f"it asked nothing for {self.turn_seconds:g} s, ten times environment.step_seconds"
            self._end_program(episode, ProgramOutcome(error=Hung(words)))

    def _end_program(self, episode: ProgramEpisode, outcome: ProgramOutcome) -> None:
        """Its open requests are sampled to their end, so records do not depend on when the program ended."""
        episode.outcome = outcome
        self._dismiss(episode)
        if not episode.num_waiting:
            episode.rest()
            self._end(episode, outcome)

    def _end(self, episode: ProgramEpisode, outcome: ProgramOutcome) -> None:
        del self.episodes[episode.spec.id]
        for turn in episode.conversation.turns:
            if turn.is_open:
                self.fleet.release(turn.request_id)
        sample = self._sample(episode)
        self.figures.add(
            episode.spec,
            len(episode.conversation.turns),
            (),
            seconds=self.fleet.event_log.now() - episode.began,
            waited=episode.idle,
            num_records=len(sample.records),
        )
        self._hand_over(episode.spec, *judge_outcome(outcome, sample, cut=episode.cut))

    def _sample(self, episode: ProgramEpisode) -> Sample:
        """The last request's record with the others as branches; the bare prompt if nothing was asked."""
        records = [self.read(*record) for record in episode.conversation.records()]
        if records:
            return replace(records[0], branches=tuple(records[1:]))
        ids = [*episode.entry.ids]
        zeros, none = [0] * len(ids), [0.0] * len(ids)
        return Sample(
            ids=ids, loss_mask=zeros, logprobs=none, versions=zeros, turns=zeros, finish="cancelled"
        )

    def _dismiss(self, episode: ProgramEpisode) -> None:
        self.endpoint.revoke(episode.key)
        self.programs.stop(episode.job)

    def _score(self, number: int) -> Any:
        for family in self.families.pop(number).values():
            self.joined.pop(family, None)
        return super()._score(number)

    def _close(self, closing: StepEnd) -> None:
        self.figures.close(closing.prefix)

    def _give_up(self, number: int, launched: Launched) -> None:
        for family in self.families.pop(number).values():
            self.fleet.cancel(family, self.joined.pop(family, []))
        for spec in launched.specs:
            if (episode := self.episodes.pop(spec.id, None)) is not None:
                self._dismiss(episode)
