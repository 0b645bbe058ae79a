"""Samples groups of multi-turn episodes: the model writes, the environment answers, the model continues.

After a turn the fleet holds the request without a slot until the environment has answered. The answer is appended
to its tokens, and the request is scheduled again. Nothing is tokenised again: a sample is the sampled tokens and
the appended ones, with loss mask 0.

An episode ends when the environment says so or has failed, or when no room is left for another turn. Text that the
chat template cannot write truncates the episode, as a lack of room does; it is no failure of the environment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from foresail.agents.environment import Observation
from foresail.agents.environments import Environments
from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.request import Completion
from foresail.records import Status, Verdict
from foresail.rollout.controller import StepEnd
from foresail.rollout.plan import SampleSpec
from foresail.rollout.stream import Launched, Stream
from foresail.tokenizer.foreign_text import UnwritableText
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(kw_only=True)
class Episode:
    """One running sample: its turns and the environment's answers so far."""

    spec: SampleSpec
    turns: list[Completion] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    answer: Future[Observation] | None = None  # while the environment works
    began: float  # by the event log's clock
    asked: float = 0.0
    waited: float = 0.0  # seconds for the environment, over all turns


def forget(problem: str, sample: int, observations: Sequence[Observation]) -> None:
    """For rollouts of which nobody wants the transcripts."""


@dataclass(kw_only=True)
class EpisodeStream(Stream):
    """A stream whose samples are episodes. `note` gets what the environment has said in each."""

    hold = True
    environments: Environments
    tokenizer: Tokenizer
    max_turns: int
    note: Callable[[str, int, Sequence[Observation]], None] = forget
    episodes: dict[str, Episode] = field(default_factory=dict, init=False)
    answered: deque[str] = field(default_factory=deque, init=False)  # filled by the environments' thread

    def _start(self, entry: PromptedProblem, number: int) -> None:
        super()._start(entry, number)
        for spec in self.active[number].specs:
            self.episodes[spec.id] = Episode(spec=spec, began=self.fleet.event_log.now())
            self.environments.begin(spec.id, entry.problem)

    def _take(self, spec: SampleSpec, completion: Completion) -> None:
        episode = self.episodes[spec.id]
        episode.turns.append(completion)
        if completion.finish == "length":
            self._end(episode)
            return
        response = self.tokenizer.decode(completion.ids, skip_special_tokens=True)
        episode.asked, episode.answer = self.fleet.event_log.now(), self.environments.step(spec.id, response)
        episode.answer.add_done_callback(lambda _: self.answered.append(spec.id))

    def _go_on(self) -> bool:
        """Append the environments' new answers; whether there were any."""
        count = len(self.answered)
        for name in [self.answered.popleft() for _ in range(count)]:
            if name not in self.episodes:  # cancelled meanwhile
                continue
            episode = self.episodes[name]
            answer, episode.answer = episode.answer, None
            episode.waited += self.fleet.event_log.now() - episode.asked
            assert answer is not None
            if (error := answer.exception()) is not None:
                self._end(episode, broken=to_verdict(error))
            else:
                self._append(episode, answer.result())
        return bool(count)

    def _append(self, episode: Episode, observation: Observation) -> None:
        episode.observations.append(observation)
        if observation.done:
            self._end(episode)
            return
        last = episode.turns[-1]
        try:
            ids = self._encode(observation, ended=last.ids[-1] in last.request.stop_ids)
        except UnwritableText:  # the model may have caused it: no failure of the environment
            self._cut(episode)
            return
        except ValueError as error:  # messages the template cannot write, or none
            self._end(episode, broken=to_verdict(error))
            return
        left = last.request.sampling.max_new_tokens - len(last.ids) - len(ids)
        if len(episode.turns) >= self.max_turns or left < 1:
            self._cut(episode)
        else:
            self.fleet.extend(episode.spec.id, ids)

    def _cut(self, episode: Episode) -> None:
        """End a truncated episode; what it has is graded."""
        episode.turns[-1] = replace(episode.turns[-1], finish="length")
        self._end(episode)

    def _encode(self, observation: Observation, *, ended: bool) -> list[int]:
        ids = self.tokenizer.encode_text(observation.text) if observation.text else []
        if observation.messages:
            ids += self.tokenizer.encode_next_turn(observation.messages, ended=ended and not ids)
        if not ids and observation.text:
            raise UnwritableText("the tokenizer knows no character of what the environment said")
        if not ids:
            raise ValueError(
                "the environment said nothing and is not done; give an Observation text or messages"
            )
        return ids

    def _end(self, episode: Episode, *, broken: Verdict | None = None) -> None:
        spec = episode.spec
        del self.episodes[spec.id]
        self.fleet.release(spec.id)
        self.environments.end(spec.id)
        self.environments.figures.add(
            spec,
            len(episode.turns),
            episode.observations,
            seconds=self.fleet.event_log.now() - episode.began,
            waited=episode.waited,
        )
        self.note(self.active[spec.group].problem.id, spec.sample, episode.observations)
        sample = replace(
            self.read(*episode.turns),
            turn_rewards=tuple(observation.reward for observation in episode.observations),
        )
        self._hand_over(spec, sample, broken)

    def _close(self, closing: StepEnd) -> None:
        self.environments.figures.close(closing.prefix)

    def _give_up(self, number: int, launched: Launched) -> None:
        super()._give_up(number, launched)
        for spec in launched.specs:
            if self.episodes.pop(spec.id, None) is not None:
                self.environments.end(spec.id)


def to_verdict(error: BaseException) -> Verdict:
    """A failed verdict: an environment that failed says nothing about the model."""
    words = str(error) or type(error).__name__
    status: Status = "timeout" if isinstance(error, TimeoutError) else "crashed"
    return Verdict(status=status, score=0.0, detail=f"environment: {words}"[:500])
