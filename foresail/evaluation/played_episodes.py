"""Right episodes of a checkpoint in an environment, as conversations with tool calls to learn from.

A line of sampled.jsonl holds a problem's right episodes turn by turn, as the model wrote them and the environment
answered. Which are kept, and in which form, is decided afterwards: another choice plays nothing again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from foresail.data.problems.prompts import PromptedProblem
from foresail.evaluation.evaluator import EpisodeSource
from foresail.evaluation.recorded_samples import ProblemRecord
from foresail.evaluation.solutions import Choice, Solutions, choose_some, to_asked
from foresail.records import Group, Message
from foresail.rewards.trajectory import read_trajectory
from foresail.tokenizer.tokenizer import Tokenizer

Row = dict[str, Any]


class Transcripts(Protocol):
    """What environments say, noted while episodes are played (`agents.transcripts`)."""

    def take(self, problem: str, sample: int) -> list[Row]: ...

    def schemas(self) -> list[Row]: ...

    def conversation(
        self, responses: Sequence[str], said: Sequence[Row], *, as_written: bool
    ) -> tuple[list[Row], str]: ...


class PlayedSource(EpisodeSource, Protocol):
    """Episodes with transcripts. `instructions`: what they add to a system prompt about their tools."""

    @property
    def transcripts(self) -> Transcripts | None: ...

    @property
    def instructions(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class PlayedProblem(ProblemRecord):
    """`cut` episodes had the right answer and ended at a limit. An episode: {"sample": 3, "responses": […],
    "said": […]}."""

    cut: int
    episodes: list[Row]


def read_episodes(transcripts: Transcripts) -> Callable[[Group, Tokenizer], Mapping[str, Any]]:
    def read(group: Group, tokenizer: Tokenizer) -> Mapping[str, Any]:
        cut, episodes = 0, []
        for number, (sample, verdict) in enumerate(zip(group.samples, group.verdicts, strict=True)):
            said = transcripts.take(group.problem.id, number)
            if verdict.status != "correct":
                continue
            if sample.finish != "stop":
                cut += 1
                continue
            responses = [turn.response for turn in read_trajectory(tokenizer, sample).turns]
            episodes.append({"sample": number, "responses": responses, "said": said})
        return {"cut": cut, "episodes": episodes}

    return read


def choose_episodes(
    played: Sequence[tuple[PromptedProblem, PlayedProblem]],
    num_samples: int,
    choice: Choice,
    transcripts: Transcripts,
    *,
    instructions: str = "",
    as_written: bool = False,
) -> Solutions:
    """Different ones: other calls, or another answer. `shortest`: of fewest calls, then of fewest characters."""
    counts: Counter[str] = Counter(problems=len(played), samples=len(played) * num_samples)
    rows = []
    for entry, record in played:
        counts["failed"] += num_samples - record.judged
        counts["right"] += record.right
        counts["cut"] += record.cut
        different = different_episodes(record, transcripts, counts, as_written=as_written)
        if choice.shortest:
            different.sort(key=lambda pair: (calls_of(pair[1]), sum(len(one["content"]) for one in pair[1])))
        prompt = [*map(to_asked, entry.problem.prompt if as_written else without(entry, instructions))]
        tools = {} if as_written or not transcripts.schemas() else {"tools": transcripts.schemas()}
        rows += [
            {
                "messages": [*prompt, *messages],
                **tools,
                "id": f"{record.id}.{episode['sample']}",
                "problem": record.id,
                "pass_rate": round(record.pass_rate or 0.0, 4),
                "sample": episode["sample"],
                "calls": calls_of(messages),
            }
            for episode, messages in choose_some(different, record, choice, counts)
        ]
    return Solutions(rows=rows, counts=dict(counts))


def different_episodes(
    record: PlayedProblem, transcripts: Transcripts, counts: Counter[str], *, as_written: bool
) -> list[tuple[Row, list[Row]]]:
    """With their messages. What has no such form, or says the same again, is counted."""
    different: dict[str, tuple[Row, list[Row]]] = {}
    for episode in record.episodes:
        messages, reason = transcripts.conversation(
            episode["responses"], episode["said"], as_written=as_written
        )
        if reason:
            counts[reason] += 1
            counts["unfit"] += 1
        elif (form := form_of(messages)) in different:
            counts["duplicates"] += 1
        else:
            different[form] = (episode, messages)
    return [*different.values()]


@dataclass(frozen=True, kw_only=True)
class Play:
    """How episodes are played and written: the `playing` of `sample_solutions`. `table`: of the environment."""

    episodes: PlayedSource
    table: Mapping[str, Any]
    as_written: bool = False

    def __call__(self, record: Callable[..., Any], num_samples: int, choice: Choice) -> Solutions:
        transcripts = self.episodes.transcripts
        assert transcripts is not None, "opened with_transcripts"
        played = record(
            kind=PlayedProblem,
            describe=read_episodes(transcripts),
            episodes=self.episodes,
            played_by=self.table,
        )
        return choose_episodes(
            played,
            num_samples,
            choice,
            transcripts,
            instructions=self.episodes.instructions,
            as_written=self.as_written,
        )


def form_of(messages: Sequence[Row]) -> str:
    """Equal for episodes that differ by white space alone."""
    said = [
        [" ".join(one["content"].split()), [call["function"] for call in one.get("tool_calls", ())]]
        for one in messages
        if one["role"] == "assistant"
    ]
    return json.dumps(said, sort_keys=True)


def calls_of(messages: Sequence[Row]) -> int:
    """Messages of tools, where calls stand in the text."""
    return sum(one["role"] == "tool" for one in messages)


def without(entry: PromptedProblem, instructions: str) -> list[Message]:
    """The prompt without the description of tools that the environment has added: the row has schemas."""
    prompt = []
    for message in entry.problem.prompt:
        if instructions and message.role == "system" and message.content.endswith(instructions):
            content = message.content.removesuffix(instructions).rstrip()
            if content:
                prompt.append(Message(role="system", content=content, extra=message.extra))
        else:
            prompt.append(message)
    return prompt


def describe_unfit(counts: Mapping[str, int]) -> str:
    """ "3 right episodes without such a form: failed_call 2, beside_calls 1"; empty if there are none."""
    reasons = ("failed_call", "unfinished", "unmatched", "beside_calls", "no_messages")
    named = ", ".join(f"{reason} {counts[reason]:,}" for reason in reasons if counts.get(reason))
    return f"{counts['unfit']:,} right episodes were left out: {named}" if named else ""
